(async () => {
  const { byId, make } = charts;
  const STEP = 100; // rows made at once
  const { rows: packed, benchmarks, years } = JSON.parse(await charts.unpack("data"));
  const rows = charts.records(packed);

  const COLUMNS = {
    benchmark: "Benchmark", accelerators: "Accelerators", minutes: "Minutes", round: "Round", submitter: "Submitter", system: "System",
    accelerator: "Accelerator", status: "Availability", division: "Division", nodes: "Nodes", batch: "Batch size", energy: "Energy (J)",
  };
  const NUMBERS = new Set(["minutes", "accelerators", "nodes", "batch", "energy"]);
  const FACTS = {
    Minutes: "minutes", "Minutes, not normalised": "unscaled",
    "Minutes, official summarizer": "official", Round: "round", Benchmark: "benchmark", Scaling: "scaling",
    Division: "division", Availability: "status", Submitter: "submitter", System: "system",
    "Name of the system": "system_name", Accelerators: "accelerators", Accelerator: "accelerator",
    Nodes: "nodes", Processor: "processor", Framework: "framework", "Global batch size": "batch", Runs: "runs",
    "Energy, joules": "energy", Path: "path",
  };
  const MINUTES = ["minutes", "unscaled", "official"];
  const FILTERS = { b: "Benchmark", usage: "Usage", round: "Round", submitter: "Submitter", accelerator: "Accelerator", accelerators: "Accelerators", division: "Division", status: "Availability", own: "Whose" };
  const STATE = ["q", "sort", "x", "y", "benchmark", ...Object.keys(FILTERS)]; // what is filtered, ordered and drawn

  const trendOf = new Map(Object.entries(benchmarks).flatMap(
    ([id, { usage, names }]) => names.map((name) => [`${usage} ${name}`, id]),
  ));
  const places = new Map([...new Set([...Object.keys(benchmarks), ...rows.map((row) => row.benchmark)])].map((id, index) => [id, index]));
  const version = (round) => round.split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);
  const rounded = (minutes) => (minutes * (1 + Number.EPSILON)).toFixed(3); // halves up, as published
  const repository = (row) => `${row.usage}_results_v${row.round}`;
  const titled = (row) => [row.benchmark, row.scaling === "weak" && "(weak)", row.own === "yours" && "(yours)"].filter(Boolean).join(" ");
  const byKey = new Map();
  rows.forEach((row, index) => {
    row.index = index;
    row.key = `${row.new ? "own" : repository(row)}/${row.path}`;
    row.b = trendOf.get(`${row.usage} ${row.benchmark}`) || row.benchmark;
    row.text = Object.keys(COLUMNS).map((name) => row[name]).concat(titled(row)).join(" ").toLowerCase();
    byKey.set(row.key, row);
  });

  function shown(row, name) {
    const value = row[name];
    if (value === null || value === undefined) return "";
    if (name === "minutes") return rounded(value) + (row.public ? "" : " (unverified)");
    if (name === "b") return benchmarks[value]?.title || value;
    if (name === "usage") return value === "hpc" ? "HPC" : "Training";
    return ["accelerators", "nodes", "energy"].includes(name) ? Math.round(value).toLocaleString("en") : String(value);
  }

  // ---- the state of the page, which is in its address ----

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

  // ---- the table: rows are made when they come into view ----

  const table = byId("table");
  const body = table.tBodies[0];
  const form = byId("filters");
  let matches = [];
  let made = 0;

  function order(name) {
    if (name === "round") return (a, b) => version(a.round) - version(b.round);
    if (NUMBERS.has(name)) return (a, b) => a[name] - b[name];
    return (a, b) => String(a[name]).localeCompare(String(b[name]), "en", { numeric: true });
  }

  function sorted(found) {
    const wanted = state.get("sort") || "";
    const name = wanted.replace(/^-/, "");
    const [by, sign] = [order(name), wanted.startsWith("-") ? -1 : 1];
    // Benchmarks are not mixed unless another order is wanted; rows without a value come last in both orders.
    const usual = (a, b) => places.get(a.b) - places.get(b.b) || a.scaling.localeCompare(b.scaling) || version(b.round) - version(a.round) || a.minutes - b.minutes;
    if (!(name in COLUMNS)) return found.sort(usual);
    const without = (row) => row[name] === null || row[name] === "";
    return found.sort((a, b) => without(a) - without(b) || sign * by(a, b) || usual(a, b));
  }

  function filter() {
    const words = (state.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = ["benchmark", ...Object.keys(FILTERS)].filter((name) => state.get(name)).map((name) => [name, state.get(name)]);
    matches = sorted(rows.filter((row) => words.every((word) => row.text.includes(word))
      && wanted.every(([name, value]) => String(row[name]) === value)));
    body.replaceChildren();
    made = 0;
    more();
    draw();
    byId("count").textContent = `${matches.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} results`;
    for (const head of table.tHead.rows[0].cells) {
      const sort = state.get("sort") || "";
      if (sort.replace(/^-/, "") !== head.dataset.name) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", sort.startsWith("-") ? "descending" : "ascending");
    }
  }

  function more() {
    const next = matches.slice(made, made + STEP);
    body.append(...next.map((row, at) => line(row, made + at)));
    made += next.length;
    byId("more").hidden = made >= matches.length;
    byId("more").textContent = `Show more: ${made} of ${matches.length} results are shown`;
  }

  function line(row, at) {
    const element = make("tr", "");
    element.setAttribute("aria-rowindex", at + 2);
    element.className = row.own;
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
    const current = state.get("sort");
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
    for (const [name, title] of Object.entries(FILTERS)) {
      const values = [...new Set(rows.map((row) => row[name]).filter((value) => value !== null && value !== ""))];
      if (values.length < 2) continue;
      values.sort((a, b) => order(name)({ [name]: a }, { [name]: b }));
      if (name === "round") values.reverse();
      if (name === "b") values.sort((a, b) => places.get(a) - places.get(b));
      const select = Object.assign(make("select", ""), { id: name });
      select.append(new Option("all", ""), ...values.map((value) => new Option(shown({ [name]: value }, name), value)));
      const label = make("label", `${title} `);
      label.append(select);
      byId("q").parentElement.before(label);
    }
  }

  function fill() {
    for (const name of STATE) if (byId(name)) byId(name).value = state.get(name) || "";
    byId("sort").value = (state.get("sort") || "").replace(/^-/, "");
    for (const card of document.querySelectorAll(".card")) {
      card.getAttribute("href") === `#b=${state.get("b")}` ? card.setAttribute("aria-current", "true") : card.removeAttribute("aria-current");
    }
  }

  // What is filtered, for the names of files.
  const filtered = () => ["q", "benchmark", ...Object.keys(FILTERS)].map((name) => state.get(name)).filter(Boolean);

  function csv() {
    const names = [...new Set([...Object.values(FACTS), "usage"])];
    // A spreadsheet would take a cell that begins so as a formula.
    const safe = (text) => (/^[\s"']*[=+\-@]/.test(text) ? `'${text}` : text);
    const cell = (value) => (value === null ? "" : typeof value === "number" ? String(value)
      : `"${safe(String(value)).replace(/"/g, '""')}"`);
    const lines = matches.map((row) => [...names.map((name) => cell(row[name])), cell(row.public ? source(row) : "")].join(","));
    const text = [[...names, "source"].join(","), ...lines, ""].join("\r\n");
    charts.save(`${["mlperf-results", ...filtered()].join(" ")}.csv`, "text/csv", `\ufeff${text}`);
  }

  // ---- the details of a result ----

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
      const text = typeof row[name] === "number" ? row[name].toLocaleString("en", { maximumFractionDigits: 6 }) : row[name];
      const value = MINUTES.includes(name) && !row.public ? `${text} (unverified)` : text;
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

  // ---- the chart ----

  function point(row) {
    const title = `${titled(row)}, round ${row.round}: ${shown(row, "minutes")} minutes, ${row.accelerators ? shown(row, "accelerators") : `${shown(row, "nodes")} nodes`} \u00d7 ${row.accelerator}`;
    const size = row.accelerators || row.nodes;
    const scaled = state.get("y") ? row.minutes * row.accelerators : row.minutes;
    return {
      ...row, x: state.get("x") ? size : years[`${row.usage} ${row.round}`], y: scaled, own: row.own === "yours",
      href: `#${new URLSearchParams({ r: row.key })}`, text: `${title}\n${row.submitter}, ${row.system}`,
    };
  }

  // Over rounds: the fastest, those on 8 accelerators, and Moore's law, for each target; the other results are points.
  function overRounds(points, latest, category) {
    const lines = [];
    for (const span of new Set(points.map((one) => one.span))) {
      const of = points.filter((one) => one.span === span && one.status === category);
      const eight = of.filter((one) => one.accelerators === 8);
      const kinds = [["fastest", of], ["fastest on 8", eight.length < of.length ? eight : []]];
      for (const [color, [name, members]] of kinds.entries()) {
        const [{ line } = { line: [] }] = plot.grouped(members.map((one) => ({ ...one, name })), "name");
        if (line.length) lines.push({ name: span === latest ? name : "", points: line, line, color });
        if (line.length > 1 && !color) lines.push({ name: span === latest ? "Moore's law" : "", points: [], line: moore(line), dashed: true });
      }
    }
    const drawn = new Set(lines.flatMap((one) => one.points.map(({ key }) => key)));
    return [{ name: "", points: points.filter(({ key }) => !drawn.has(key)), line: [], color: -1 }, ...lines];
  }

  function moore(line) {
    const [first, last] = [line[0], line[line.length - 1]];
    return [first, { ...last, y: first.y / 2 ** ((last.x - first.x) / 2) }];
  }

  function draw() {
    const ranked = matches.filter((row) => row.trend && (row.accelerators || (row.nodes && !state.get("y")))).map(point);
    const latest = new Map();
    for (const { trend, span } of ranked) latest.set(trend, Math.max(span, latest.get(trend) || 0));
    const points = state.get("x") ? ranked.filter(({ trend, span }) => span === latest.get(trend)) : ranked;
    const names = [...latest.keys()];
    const category = plot.competing(ranked.filter(({ trend, span }) => span === latest.get(trend)))[0]?.status;
    if (!plot.show(points.length > 1)) return;
    const lined = points.map((one) => ({ ...one, of: `${one.trend} ${one.span}` }));
    const many = names.length > 1;
    const series = many ? plot.grouped(lined, "of") : state.get("x") ? plot.grouped(lined, "accelerator") : overRounds(lined, latest.get(names[0]), category);
    for (const one of many ? series : []) {
      const [{ trend, span }] = one.points;
      one.name = benchmarks[trend].title;
      one.order = [places.get(trend), span];
      one.points = one.points.filter((of) => of.own || one.line.includes(of)); // all would hide the lines
    }
    if (many) series.sort((a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1]); // as the cards
    const byUsage = points.toSorted((a, b) => a.usage.localeCompare(b.usage)); // of one day, the name of the Training round
    const ticks = [...new Map(byUsage.map((one) => [one.x, `${one.usage === "hpc" ? "HPC " : ""}${one.round}`]))].sort(([a], [b]) => a - b);
    const unit = state.get("y") ? "accelerator-minutes" : "minutes";
    plot.draw(byId("plot"), {
      title: `${many ? `${names.length} benchmarks` : benchmarks[names[0]].title}: ${unit} over ${state.get("x") || "rounds"}${many || state.get("x") ? "" : `, lines: ${category.replace("onprem", "on-premise")}`}`,
      x: state.get("x") ? { title: points.every((one) => one.accelerators) ? "accelerators" : "accelerators, or nodes without them" } : { title: "round, by day of submission", ticks }, y: { title: unit }, series, each: many,
    });
  }

  // ---- start ----

  function follow() {
    const text = location.hash.slice(1);
    if (text && !text.includes("=")) {
      if (!made) filter();
      byId(text)?.focus({ preventScroll: true });
      return;
    }
    read();
    fill();
    filter();
    const row = byKey.get(state.get("r"));
    if (row) open(row);
    else if (details.open) details.close();
    if (!row && text) byId("all").scrollIntoView({ behavior: "instant" });
  }

  head();
  controls();
  table.hidden = form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    set(Object.fromEntries(STATE.map((name) => [name, ""])));
    setTimeout(() => { fill(); filter(); });
  });
  form.addEventListener("input", ({ target: { id, value } }) => {
    if (id === "sort") { sortBy(value); return; }
    set({ [id]: value.trim() });
    fill();
    filter();
  });
  byId("csv").addEventListener("click", csv);
  byId("more").addEventListener("click", more);
  plot.offer(byId("plot"), filtered);
  // A link to a result or a benchmark keeps the filters.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const text = link ? link.getAttribute("href").slice(1) : "";
    if (!text.includes("=") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    set({ r: "", ...Object.fromEntries(new URLSearchParams(text)) });
    const row = byKey.get(state.get("r"));
    if (row) { open(row); return; }
    if (details.open) details.close();
    fill();
    filter();
    byId("all").scrollIntoView({ behavior: "instant" });
    byId("all").focus({ preventScroll: true });
  });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
  addEventListener("hashchange", follow);
  follow();
})();
