"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (name, text) => Object.assign(document.createElement(name), { textContent: text });

  // ---- the table: sort and filter --------------------------------------------------------

  const table = byId("table");
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows].filter((row) => row.dataset.set);
  const text = (row, column) => row.cells[column].textContent;
  const column = (name) => heads.findIndex((head) => head.textContent === name);

  function compare(one, other, numbers) {
    const [a, b] = numbers ? [parseFloat(one), parseFloat(other)] : [one, other];
    // Cells without a number come last in both orders.
    if (numbers && (Number.isNaN(a) || Number.isNaN(b))) return null;
    return numbers ? a - b : a.localeCompare(b, "en", { numeric: true });
  }

  function sort(index) {
    const down = heads[index].getAttribute("aria-sort") === "ascending";
    const numbers = heads[index].classList.contains("n");
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[index].setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...rows].sort((a, b) => {
      const [one, other] = [text(a, index), text(b, index)];
      const order = compare(one, other, numbers);
      if (order === null) return Number.isNaN(parseFloat(one)) - Number.isNaN(parseFloat(other));
      return down ? -order : order;
    });
    table.tBodies[0].append(...sorted);
  }

  const form = byId("filters");
  const selects = [...form.querySelectorAll("[data-column]")].map((select) => [
    select, column(select.dataset.column),
  ]);
  const verdicts = { official: column("Official"), rules: column("Rules") };

  function filter() {
    const words = byId("search").value.toLowerCase().split(/\s+/);
    const verdict = byId("verdict").value;
    let shown = 0;
    for (const row of rows) {
      const all = row.textContent.toLowerCase();
      const fits = words.every((word) => all.includes(word))
        && selects.every(([select, at]) => !select.value || text(row, at) === select.value)
        && (!verdict || text(row, verdicts[verdict]) === "FAIL");
      row.hidden = byId(row.dataset.set).hidden = !fits;
      shown += fits;
    }
    byId("count").textContent = `${shown} of ${rows.length} result sets`;
  }

  heads.forEach((head, index) => {
    const button = make("button", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => sort(index));
    head.replaceChildren(button);
  });
  form.hidden = rows.length < 2;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  filter();

  // ---- the charts: unpacked and drawn when they come into view ----------------------------

  async function unpack(id) {
    const bytes = Uint8Array.from(atob(byId(id).textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  async function prepare() {
    const [runtime, charts] = await Promise.all([unpack("runtime"), unpack("charts")]);
    document.head.append(make("script", runtime));
    return JSON.parse(charts);
  }

  let prepared = null;

  async function draw(container) {
    if (container.dataset.drawn) return;
    container.dataset.drawn = "yes";
    try {
      prepared = prepared || prepare();
      const payload = await prepared;
      // All frames first: together they decide how wide a chart is.
      const charts = payload.charts[container.dataset.charts];
      const frames = charts.map((chart) => [frame(container, chart), chart]);
      for (const [target, chart] of frames) await show(target, payload, chart);
    } catch (error) {
      container.append(make("p", `The charts cannot be drawn: ${error.message}`));
    }
  }

  function frame(container, [, title, description]) {
    const [figure, caption, target] = ["figure", "figcaption", "div"].map((name) => make(name, ""));
    target.className = "chart";
    caption.append(make("b", title), ` ${description}`);
    figure.append(target, caption);
    container.append(figure);
    return target;
  }

  // The inverse of columns() in chart_data.py.
  function values([kind, ...packed]) {
    if (kind === "v") {
      return packed.flatMap((value, at) => (at % 2 ? [] : Array(packed[at + 1]).fill(value)));
    }
    const [decimals, ...steps] = packed;
    let sum = 0;
    return steps.map((step) => Number(((sum += step) / 10 ** decimals).toFixed(decimals)));
  }

  function records(columns) {
    const rows = [];
    for (const [name, packed] of Object.entries(columns)) {
      values(packed).forEach((value, at) => { (rows[at] = rows[at] || {})[name] = value; });
    }
    return rows;
  }

  async function show(target, payload, [spec, title, description, names]) {
    const datasets = {};
    for (const name of Object.keys(names)) datasets[name] = records(payload.data[names[name]]);
    await vegaEmbed(target, { ...payload.specs[spec], description: `${title}. ${description}`, datasets }, {
      actions: false, ast: true, config: payload.config, defaultStyle: false, renderer: "svg", tooltip: showTooltip,
    });
  }

  function showTooltip(_, event, __, value) {
    const tip = byId("tip");
    tip.hidden = value === null || typeof value !== "object";
    if (tip.hidden) return;
    tip.textContent = Object.entries(value).map(([name, field]) => `${name}: ${field}`).join("\n");
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 8))}px`;
  }

  // A set is drawn as a whole when it is opened, so that it can be printed without scrolling.
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "200px" });
  document.querySelectorAll("[data-charts]").forEach((container) => {
    watcher.observe(container);
    const details = container.closest("details");
    details.addEventListener("toggle", () => { if (details.open) draw(container); });
  });
  addEventListener("scroll", () => { byId("tip").hidden = true; }, { passive: true });

  // ---- links into closed sections -----------------------------------------------------------

  function follow() {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.tagName === "DETAILS") {
      target.hidden = false;
      target.open = true;
      target.querySelector("summary").focus({ preventScroll: true });
    } else {
      target.focus({ preventScroll: true });
    }
    target.scrollIntoView({ behavior: "instant" });
  }
  addEventListener("hashchange", follow);
  follow();
})();
