(async () => {
  const { byId, make } = charts;
  const STEP = 60; // rows made at once
  const { rows: packed, benchmarks } = JSON.parse(await charts.unpack("data"));
  const rows = charts.records(packed);

  const COLUMNS = {
    minutes: "Minutes", benchmark: "Benchmark", round: "Round", submitter: "Submitter", system: "System",
    accelerators: "Number", accelerator: "Accelerator", status: "Availability", division: "Division",
    nodes: "Nodes", batch: "Batch size", energy: "Energy (J)",
  };
  const NUMBERS = new Set(["minutes", "accelerators", "nodes", "batch", "energy"]);
  const FACTS = {
    "Minutes, normalised": "minutes", "Minutes, not normalised": "unscaled",
    "Minutes, official summarizer": "official", Round: "round", Benchmark: "benchmark", Scaling: "scaling",
    Division: "division", Availability: "status", Submitter: "submitter", System: "system",
    "Name of the system": "system_name", Accelerators: "accelerators", Accelerator: "accelerator",
    Nodes: "nodes", Processor: "processor", Framework: "framework", "Global batch size": "batch", Runs: "runs",
    "Energy, joules": "energy", Path: "path",
  };
  const FILTERS = ["usage", "round", "benchmark", "submitter", "accelerator", "accelerators", "division", "status"];

  const trendOf = new Map(Object.entries(benchmarks).flatMap(
    ([id, { usage, names }]) => names.map((name) => [`${usage} ${name}`, id]),
  ));
  const version = (round) => round.split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);
  const rounded = (minutes) => (minutes * (1 + Number.EPSILON)).toFixed(3); // halves up, as published
  const repository = (row) => `${row.usage}_results_v${row.round}`;
  const titled = (row) => [row.benchmark, row.scaling === "weak" && "(weak)", row.own && "(yours)"].filter(Boolean).join(" ");
  const byKey = new Map();
  rows.forEach((row, index) => {
    row.index = index;
    row.key = `${row.own ? "own" : repository(row)}/${row.path}`;
    row.text = Object.keys(COLUMNS).map((name) => row[name]).concat(titled(row)).join(" ").toLowerCase();
    byKey.set(row.key, row);
  });

  function shown(row, name) {
    const value = row[name];
    if (value === null || value === undefined) return "";
    if (name === "minutes") return rounded(value);
    if (name === "usage") return value === "hpc" ? "HPC" : "Training";
    return name === "energy" ? Math.round(value).toLocaleString("en") : String(value);
  }

  // ---- the state of the page, which is in its address ------------------------------------

  const state = new URLSearchParams();

  function read() {
    const text = location.hash.slice(1);
    const fresh = new URLSearchParams(text.includes("=") ? text : "");
    for (const name of [...state.keys()]) state.delete(name);
    for (const [name, value] of fresh) state.set(name, value);
  }

  function set(changes) {
    for (const [name, value] of Object.entries(changes)) value ? state.set(name, value) : state.delete(name);
    history.replaceState(null, "", `#${state}`);
  }

  // ---- the table: rows are made when they come into view ----------------------------------

  const table = byId("table");
  const body = table.tBodies[0];
  const form = byId("filters");
  const selects = new Map();
  let matches = [];
  let made = 0;

  function order(name) {
    if (name === "round") return (a, b) => version(a.round) - version(b.round);
    if (NUMBERS.has(name)) return (a, b) => a[name] - b[name];
    return (a, b) => String(a[name]).localeCompare(String(b[name]), "en", { numeric: true });
  }

  function sorted(found) {
    const wanted = state.get("sort") || "-round";
    const name = wanted.replace(/^-/, "");
    if (!(name in COLUMNS)) return found;
    const [by, sign] = [order(name), wanted.startsWith("-") ? -1 : 1];
    // Rows without a value come last in both orders.
    const without = (row) => row[name] === null || row[name] === "";
    return found.sort((a, b) => without(a) - without(b) || sign * by(a, b) || a.minutes - b.minutes);
  }

  function filter() {
    const words = (state.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = FILTERS.filter((name) => state.get(name)).map((name) => [name, state.get(name)]);
    matches = sorted(rows.filter((row) => words.every((word) => row.text.includes(word))
      && wanted.every(([name, value]) => String(row[name]) === value)));
    body.replaceChildren();
    made = 0;
    more();
    byId("count").textContent = `${matches.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} results`;
    for (const head of table.tHead.rows[0].cells) {
      const sort = state.get("sort") || "-round";
      if (sort.replace(/^-/, "") !== head.dataset.name) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", sort.startsWith("-") ? "descending" : "ascending");
    }
  }

  function more() {
    const next = matches.slice(made, made + STEP);
    body.append(...next.map((row, at) => line(row, made + at)));
    made += next.length;
    byId("end").textContent = made < matches.length ? `${made} of ${matches.length} rows shown; scroll for more.` : "";
  }

  function line(row, at) {
    const element = make("tr", "");
    element.setAttribute("aria-rowindex", at + 2);
    for (const [name, title] of Object.entries(COLUMNS)) {
      const cell = make(name === "benchmark" ? "th" : "td", "");
      if (name === "benchmark") cell.scope = "row";
      cell.dataset.label = title;
      if (NUMBERS.has(name)) cell.className = name === "minutes" ? "n score" : "n";
      if (name === "minutes") {
        const button = make("button", shown(row, name) || "none");
        button.type = "button";
        button.setAttribute("aria-label", `${button.textContent} minutes, details`);
        button.addEventListener("click", () => open(row));
        cell.append(button);
      } else if (name === "benchmark") {
        cell.textContent = titled(row);
      } else {
        cell.textContent = shown(row, name);
      }
      element.append(cell);
    }
    return element;
  }

  function sortBy(name) {
    const current = state.get("sort") || "-round";
    set({ sort: current === name ? `-${name}` : name });
    filter();
  }

  function head() {
    table.tHead.rows[0].append(...Object.entries(COLUMNS).map(([name, title]) => {
      const cell = make("th", "");
      const button = make("button", title);
      button.type = "button";
      button.addEventListener("click", () => sortBy(name));
      cell.scope = "col";
      cell.dataset.name = name;
      if (NUMBERS.has(name)) cell.className = "n";
      cell.append(button);
      return cell;
    }));
    for (const [name, title] of Object.entries(COLUMNS)) byId("sort").append(new Option(title, name));
  }

  function controls() {
    const titles = { usage: "Usage", ...COLUMNS, accelerators: "Number of accelerators" };
    for (const name of FILTERS) {
      const values = [...new Set(rows.map((row) => row[name]).filter((value) => value !== null && value !== ""))];
      if (values.length < 2) continue;
      values.sort((a, b) => order(name)({ [name]: a }, { [name]: b }));
      if (name === "round") values.reverse();
      const select = make("select", "");
      select.append(new Option("all", ""), ...values.map((value) => new Option(shown({ [name]: value }, name), value)));
      select.addEventListener("input", () => { set({ [name]: select.value }); filter(); });
      const label = make("label", `${titles[name]} `);
      label.append(select);
      byId("q").parentElement.after(label);
      selects.set(name, select);
    }
    const labels = [...selects.values()].map((select) => select.parentElement);
    byId("q").parentElement.after(...labels);
  }

  function fill() {
    byId("q").value = state.get("q") || "";
    for (const [name, select] of selects) select.value = state.get(name) || "";
    byId("sort").value = (state.get("sort") || "round").replace(/^-/, "");
  }

  function csv() {
    const names = [...new Set([...Object.values(FACTS), "usage"])];
    // A spreadsheet would take a cell that begins so as a formula.
    const safe = (text) => (/^[\s"']*[=+\-@]/.test(text) ? `'${text}` : text);
    const cell = (value) => (value === null ? "" : typeof value === "number" ? String(value)
      : `"${safe(String(value)).replace(/"/g, '""')}"`);
    const lines = matches.map((row) => [...names.map((name) => cell(row[name])), cell(row.public ? source(row) : "")].join(","));
    const text = [[...names, "source"].join(","), ...lines, ""].join("\r\n");
    charts.save("mlperf-results.csv", "text/csv", `\ufeff${text}`);
  }

  // ---- the details of a result ---------------------------------------------------------------

  const details = byId("details");

  function source(row) {
    const path = row.path.split("/").map(encodeURIComponent).join("/");
    return `https://github.com/mlcommons/${repository(row)}/tree/HEAD/${path}`;
  }

  function open(row) {
    byId("details-title").textContent = `${row.submitter || row.system}: ${titled(row)}, round ${row.round}`;
    const facts = Object.entries(FACTS).filter(([, name]) => row[name] !== null && row[name] !== "");
    details.querySelector("dl").replaceChildren(...facts.map(([title, name]) => {
      const pair = make("div", "");
      const value = typeof row[name] === "number" ? row[name].toLocaleString("en", { maximumFractionDigits: 6 }) : row[name];
      pair.append(make("dt", title), make("dd", value));
      return pair;
    }));
    const permalink = make("a", "Permalink");
    set({ r: row.key });
    permalink.href = `#${new URLSearchParams({ r: row.key })}`;
    const links = [permalink];
    if (row.public) {
      const link = make("a", `Source: ${repository(row)}`);
      link.href = source(row);
      link.rel = "noopener noreferrer";
      links.push(link);
    }
    const trend = trendOf.get(`${row.usage} ${row.benchmark}`);
    if (trend) {
      const link = make("a", "Its benchmark over rounds");
      link.href = `#b=${trend}`;
      links.push(link);
    }
    details.querySelector(".links").replaceChildren(...links);
    if (!details.open) details.showModal();
  }
  details.addEventListener("close", () => set({ r: "" }));
  details.addEventListener("click", (event) => { if (event.target === details) details.close(); });

  // ---- charts ---------------------------------------------------------------------------------

  let prepared = null;
  const complete = (datum) => (!rows[datum.row] ? datum : {
    ...Object.fromEntries(["round", "submitter", "system", "benchmark", "accelerators", "accelerator", "minutes", "status"]
      .map((name) => [name, rows[datum.row][name]])), ...datum,
  });

  async function draw(container, id) {
    container.dataset.shown = id;
    try {
      prepared = prepared || charts.prepare();
      const payload = await prepared;
      payload.config.legend.columns = innerWidth < 480 ? 1 : 2;
      if (container.dataset.shown !== id) return;
      container.replaceChildren();
      const frames = payload.charts[id].map((chart) => [charts.frame(container, chart), chart]);
      for (const [target, chart] of frames) {
        const view = await charts.show(target, payload, chart, complete);
        charts.offer(target, chart[1], view);
        view.addEventListener("click", (_, item) => {
          if (item && item.datum && rows[item.datum.row]) open(rows[item.datum.row]);
        });
      }
    } catch (error) {
      container.append(make("p", `The charts cannot be drawn: ${error.message}`));
    }
  }

  const current = () => (state.get("b") in benchmarks ? state.get("b") : byId("b").options[0].value);

  function choose() {
    byId("b").value = current();
    for (const card of document.querySelectorAll(".card")) {
      card.getAttribute("href") === `#b=${current()}` ? card.setAttribute("aria-current", "true") : card.removeAttribute("aria-current");
    }
    if (seen.has("drawn") && byId("drawn").dataset.shown !== current()) draw(byId("drawn"), current());
  }

  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      if (target.id === "end") { more(); continue; }
      if (seen.has(target.id)) continue;
      seen.add(target.id);
      target.id === "drawn" ? choose() : draw(target, "moore");
    }
  }, { rootMargin: "300px" });

  // ---- start ----------------------------------------------------------------------------------

  function follow() {
    const text = location.hash.slice(1);
    if (text && !text.includes("=")) {
      byId(text)?.focus({ preventScroll: true });
      return;
    }
    const before = state.get("b");
    read();
    fill();
    filter();
    choose();
    const row = byKey.get(state.get("r"));
    if (row) open(row);
    else if (details.open) details.close();
    if (state.get("b") && state.get("b") !== before && !row) byId("benchmark").scrollIntoView({ behavior: "instant" });
  }

  head();
  controls();
  table.hidden = form.hidden = byId("choice").hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    set(Object.fromEntries(["q", "sort", ...FILTERS].map((name) => [name, ""])));
    setTimeout(() => { fill(); filter(); });
  });
  byId("q").addEventListener("input", () => { set({ q: byId("q").value.trim() }); filter(); });
  byId("sort").addEventListener("input", () => sortBy(byId("sort").value));
  byId("csv").addEventListener("click", csv);
  byId("b").addEventListener("input", () => { set({ b: byId("b").value }); choose(); });
  byId("only").addEventListener("click", () => {
    const { usage, names } = benchmarks[current()];
    set({ usage, benchmark: names[names.length - 1] });
    fill();
    filter();
    byId("all").scrollIntoView({ behavior: "instant" });
  });
  // A link to a result or a benchmark keeps the filters.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const text = link ? link.getAttribute("href").slice(1) : "";
    if (!text.includes("=") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const before = state.get("b");
    set({ r: "", ...Object.fromEntries(new URLSearchParams(text)) });
    const row = byKey.get(state.get("r"));
    if (row) { open(row); return; }
    if (details.open) details.close();
    choose();
    byId("benchmark").scrollIntoView({ behavior: "instant" });
    byId("benchmark").focus({ preventScroll: true });
  });
  addEventListener("hashchange", follow);
  for (const id of ["drawn", "all-benchmarks", "end"]) watcher.observe(byId(id));
  follow();
})();
