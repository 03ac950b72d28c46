// A round: its chart, and the result sets that were picked, at most two of them side by side.
(() => {
  const { byId, make } = charts;
  const SAME = 0.02; // of minutes: points this near to each other cover each other
  const picked = byId("picked");
  const pair = picked.querySelector(".pair");
  const homes = new Map(); // of the sets that are picked: the places where they were
  const benchmarks = new Map(); // of all result sets
  let results = [];

  // ---- the chart ----

  const UNITS = { cost: "accelerator-minutes", rate: "models a minute" };

  // What the chart shows: minutes, accelerator-minutes, or models a minute of weak scaling if there is nothing else.
  function measure() {
    const strong = results.some(({ row }) => row.dataset.minutes);
    return strong ? table.state.get("y") || "minutes" : "rate";
  }

  function point({ row, get }, of) {
    const { minutes, rate, size, accelerator, hardware } = row.dataset;
    const x = Number(size);
    const fails = ["Official", "Rules"].filter((name) => get(name) === "FAIL").join(" and ").toLowerCase();
    const text = `${get("Benchmark")}: ${get("Minutes")}${"unverified" in row.dataset ? " (unverified)" : ""} minutes, ${rate ? `${Number(rate).toPrecision(3)} models a minute, ` : ""}${hardware}\n${get("Submitter")}, ${get("System")}`;
    const y = Number(of === "rate" ? rate : minutes) * (of === "cost" ? x : 1);
    return {
      x, y, rank: of === "rate" ? -y : Number(minutes), minutes: Number(minutes), benchmark: get("Benchmark"), round: get("Round"), accelerator,
      open: get("Division") !== "closed", status: get("Availability"), fails, href: `#${row.dataset.set}`, text: fails ? `${text}\n${fails} FAIL` : text,
    };
  }

  // The points of a measure; a system without accelerators has no accelerator-minutes.
  function points(of) {
    const has = (row) => (of === "rate" ? row.dataset.rate : row.dataset.minutes && !(of === "cost" && "nodes" in row.dataset));
    return results.filter(({ row }) => has(row)).map((result) => point(result, of));
  }

  function draw() {
    const of = measure();
    const shown = points(of);
    const names = new Set(shown.map(({ benchmark }) => benchmark));
    const each = names.size > 1;
    const series = plot.grouped(shown, each ? "benchmark" : "accelerator");
    if (!plot.show(shown.length > 1)) return;
    if (each) series.sort((a, b) => (a.name < b.name ? -1 : 1)); // as the cards
    const unit = UNITS[of] || of;
    if (names.size === 1 && of !== "rate") series.push(...ideal(series));
    const nodes = results.some(({ row }) => "nodes" in row.dataset);
    plot.draw(byId("plot"), {
      title: `${document.querySelector("h1").textContent}: ${names.size > 3 ? `${names.size} benchmarks` : [...names].join(", ")}, ${unit}`,
      x: { title: nodes ? "accelerators, or nodes without them" : "accelerators" }, y: { title: unit }, series, each,
    });
  }

  // Each card has a drawing of its benchmark.
  function sketch() {
    const all = points("minutes");
    for (const card of document.querySelectorAll(".card")) {
      const wanted = new URLSearchParams(card.querySelector("h3 a").hash.slice(2));
      const own = all.filter(({ benchmark, round }) => benchmark === wanted.get("Benchmark") && round === (wanted.get("Round") || round));
      if (own.length) plot.sketch(card.querySelector("svg"), own, all);
      else card.querySelector("svg").remove();
    }
  }

  // The line of ideal scaling from the fewest accelerator-minutes, beside a line with several numbers of accelerators.
  function ideal(series) {
    const lines = series.filter(({ line }) => line.length > 1).map(({ line }) => line);
    if (!lines.length) return [];
    const [least, most] = [Math.min, Math.max].map((end) => end(...lines.flat().map(({ x }) => x)));
    const cost = Math.min(...lines.flat().map((one) => one.minutes * one.x));
    const line = [least, most].map((x) => ({ x, y: table.state.get("y") ? cost : cost / x }));
    return [{ name: "ideal scaling", points: [], line, dashed: true }];
  }

  // ---- the result sets that are picked ----

  const chosen = () => (table.state.get("set") || "").split(",").map(byId).filter((set) => set && set.matches(".set")).slice(0, 2);

  function fill(set) {
    for (const part of set.querySelectorAll("noscript")) {
      const parsed = new DOMParser().parseFromString(part.textContent, "text/html");
      part.replaceWith(...parsed.body.childNodes);
    }
  }
  document.addEventListener("toggle", ({ target }) => { if (target.open) fill(target); }, true);

  function place() {
    const sets = chosen();
    for (const [set, home] of homes) {
      if (sets.includes(set)) continue;
      set.open = false;
      home.replaceWith(set);
      homes.delete(set);
    }
    for (const set of sets) {
      if (!homes.has(set)) {
        homes.set(set, new Comment());
        set.replaceWith(homes.get(set));
      }
      set.hidden = false;
      set.open = true;
      fill(set);
    }
    if (sets.some((set, at) => pair.children[at] !== set)) pair.append(...sets);
    picked.hidden = !sets.length;
    pair.classList.toggle("two", sets.length > 1);
    for (const set of sets) for (const value of set.querySelectorAll(".pairs dd, .facts dd")) value.classList.toggle("differs", differs(value, sets));
    offer(sets);
    coinciding(sets);
  }

  function differs(value, sets) {
    const title = value.previousElementSibling.textContent;
    const values = sets.map((set) => [...set.querySelectorAll("dt")].find((one) => one.textContent === title))
      .map((one) => one && one.nextElementSibling.textContent);
    return values.length > 1 && values[0] !== values[1];
  }

  // Offers the other result sets of the benchmark, to be seen beside the first one.
  function offer([set, other]) {
    if (!set) return;
    const others = [...benchmarks].filter(([id, name]) => id !== set.id && name === benchmarks.get(set.id));
    byId("beside").replaceChildren(new Option("nothing", ""), ...others.map(([id]) => new Option(byId(id).querySelector("h4").textContent, id)));
    byId("beside").value = other ? other.id : "";
    byId("beside").parentElement.hidden = !others.length;
    byId("link").href = location.hash;
  }

  // Names the sets whose points are covered by that of the first one, or cover it.
  function coinciding([set]) {
    const shown = points(measure());
    const mine = shown.find(({ href }) => set && href === `#${set.id}`);
    const others = shown.filter((one) => mine && one !== mine && one.x === mine.x && Math.abs(Math.log(one.y / mine.y)) < SAME);
    const links = others.flatMap(({ href }) => [" ", Object.assign(make("a", byId(href.slice(1)).querySelector("h4").textContent), { href }), ";"]);
    byId("same").hidden = !others.length;
    byId("same").replaceChildren("At the same point:", ...links.slice(0, -1));
  }

  function pick(ids) {
    table.set({ set: ids.join(",") });
    place();
    if (!ids.length) return;
    picked.scrollIntoView({ behavior: "instant" });
    byId("picked-title").focus({ preventScroll: true });
  }

  byId("beside").addEventListener("input", ({ target }) => pick([chosen()[0].id, target.value].filter(Boolean)));
  let before = null;
  byId("close").addEventListener("click", () => {
    pick([]);
    if (before && before.isConnected) before.focus();
    else document.querySelector("#plot a[tabindex='0']")?.focus();
  });

  // ---- links ----

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const target = link && byId(link.getAttribute("href").slice(1));
    if (!target || !target.matches(".set")) return;
    event.preventDefault();
    before = link;
    const [first] = chosen();
    // With a modifier key, a second set comes beside the first one.
    pick((event.shiftKey || event.ctrlKey || event.metaKey) && first && first !== target ? [first.id, target.id] : [target.id]);
  });

  function follow() {
    if (location.hash.startsWith("#?")) {
      (chosen().length ? picked : byId("results")).scrollIntoView({ behavior: "instant" });
      return;
    }
    const target = byId(location.hash.slice(1));
    if (!target) return;
    if (target.matches(".set")) { pick([target.id]); return; }
    if (target.closest(".kind")) target.closest(".kind").open = true;
    if (target.tagName === "DETAILS") {
      target.hidden = target.closest(".group").hidden = false;
      target.open = true;
    }
    (target.querySelector("summary") || target).focus({ preventScroll: true });
    target.scrollIntoView({ behavior: "instant" });
  }

  // ---- findings ----

  const filters = byId("finding-filters");
  const kinds = [...document.querySelectorAll(".kind")].map((element) => ({ element, text: element.textContent.toLowerCase() }));

  function filterFindings() {
    const { severity, basis, text } = Object.fromEntries(new FormData(filters));
    const words = text.toLowerCase().split(/\s+/);
    for (const { element, text: content } of kinds) {
      const { dataset } = element;
      const fits = (!severity || dataset.severity === severity) && (!basis || dataset.basis === basis);
      element.hidden = !fits || !words.every((word) => content.includes(word));
    }
    for (const title of document.querySelectorAll(".title")) {
      let next = title.nextElementSibling;
      while (next && next.hidden) next = next.nextElementSibling;
      title.hidden = !next || !next.matches(".kind");
    }
    const shown = kinds.filter(({ element }) => !element.hidden).length;
    byId("finding-count").textContent = `${shown} of ${kinds.length} kinds of findings`;
  }
  if (filters) {
    filters.hidden = kinds.length < 2;
    filters.addEventListener("input", filterFindings);
    filters.addEventListener("submit", (event) => event.preventDefault());
    filterFindings();
  }

  table.start((shown) => {
    results = shown;
    if (!benchmarks.size) sketch();
    if (!benchmarks.size) for (const { row, get } of shown) benchmarks.set(row.dataset.set, get("Benchmark"));
    draw();
    const visible = new Set(shown.map(({ row }) => row.dataset.set));
    for (const set of document.querySelectorAll("#sets ~ .group .set")) set.hidden = !visible.has(set.id);
    for (const group of document.querySelectorAll(".group")) group.hidden = !group.querySelector(".set:not([hidden])");
    place();
  });
  plot.offer(byId("plot"), table.filtered);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
  addEventListener("hashchange", follow);
  follow();
})();
