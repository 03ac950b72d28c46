// Tables of results: filters, sorting, rows made when they are seen, CSV, and a state that is in the URL after "#?".
const table = (() => {
  const { byId, make, save } = charts;
  const CHUNK = 100; // rows
  const form = byId("filters");
  const more = byId("more");
  const state = new URLSearchParams();
  const listeners = [];

  const tables = [...document.querySelectorAll("table.sorted")].map((element) => {
    const heads = [...element.tHead.rows[0].cells];
    const rows = [...element.tBodies[0].rows].filter((row) => row.cells.length === heads.length);
    const titles = heads.map((head) => head.textContent);
    const results = rows.map((row) => {
      const cells = [...row.cells].map((cell) => cell.textContent.replace(" (unverified)", ""));
      return { row, cells, text: cells.join(" ").toLowerCase(), get: (title) => cells[titles.indexOf(title)] };
    });
    return { element, body: element.tBodies[0], heads, titles, results, shown: results };
  });
  const controls = [...form.elements].filter((control) => control.name);

  // ---- rows: only as many as have been scrolled to ----

  function render({ body, results, shown }, limit) {
    const rows = shown.slice(0, limit).map((result) => result.row);
    if (results.length) body.replaceChildren(...rows);
    if (more) {
      more.hidden = rows.length === shown.length;
      more.textContent = `Show all ${shown.length} results`;
    }
  }

  if (more) {
    const [{ body }] = tables;
    const watcher = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      render(tables[0], body.rows.length + CHUNK);
      watcher.unobserve(more);
      watcher.observe(more);
    }, { rootMargin: "600px" });
    watcher.observe(more);
    more.addEventListener("click", () => render(tables[0], Infinity));
    addEventListener("beforeprint", () => render(tables[0], Infinity));
  }

  // ---- sort and filter ----

  const number = (text) => parseFloat(text.replaceAll(",", ""));

  function compare(one, other, numbers, sign) {
    if (!numbers) return sign * one.localeCompare(other, "en", { numeric: true });
    const [a, b] = [number(one), number(other)];
    // Cells without a number come last in both orders.
    return Number.isNaN(a) || Number.isNaN(b) ? Number.isNaN(a) - Number.isNaN(b) : sign * (a - b);
  }

  function sort({ heads, titles, results }) {
    const down = state.has("down");
    const column = titles.indexOf(state.get("down") || state.get("up"));
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    if (column < 0) return;
    heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    const numbers = heads[column].classList.contains("n");
    results.sort((a, b) => compare(a.cells[column], b.cells[column], numbers, down ? -1 : 1));
  }

  function filter(one) {
    const words = (state.get("q") || "").toLowerCase().split(/\s+/);
    const wanted = controls.filter(({ name }) => one.titles.includes(name) && state.get(name))
      .map(({ name }) => [one.titles.indexOf(name), state.get(name)]);
    const failed = ["Official", "Rules"].find((name) => name.toLowerCase() === state.get("FAIL"));
    if (failed) wanted.push([one.titles.indexOf(failed), "FAIL"]);
    one.shown = one.results.filter(({ cells, text }) => words.every((word) => text.includes(word))
      && wanted.every(([at, value]) => cells[at] === value));
    render(one, CHUNK);
  }

  function update() {
    for (const one of tables) {
      sort(one);
      filter(one);
      if (tables.length > 1) one.element.closest("section").hidden = !one.shown.length;
    }
    // A system that is in several tables, such as those of scores and energy, counts once.
    const [shown, all] = ["shown", "results"].map((name) => (
      new Set(tables.flatMap((one) => one[name]).map(({ row }) => row.dataset.system ?? row)).size
    ));
    byId("count").textContent = `${shown} of ${all} ${form.dataset.noun}`;
    for (const listen of listeners) listen(tables.flatMap((one) => one.shown));
  }

  // ---- the state in the URL ----

  function set(changes) {
    for (const [name, value] of Object.entries(changes)) value ? state.set(name, value) : state.delete(name);
    const text = state.toString();
    history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
  }

  function read() {
    if (!location.hash.startsWith("#?")) return;
    for (const name of [...state.keys()]) state.delete(name);
    for (const [name, value] of new URLSearchParams(location.hash.slice(2))) state.set(name, value);
    for (const control of controls) control.value = state.get(control.name) || "";
    update();
  }

  // ---- CSV ----

  const NUMBER = /^[+-]?[\d,]*\.?\d+(e[+-]?\d+)?$/i;
  const plain = (text) => String(Number(text.replaceAll(",", "")));

  // The fields of a cell by column: a percentage and "3 of 12" have their numbers in columns of their own.
  function fields(title, isNumber, cell) {
    if (cell === "-") return {};
    const [, words, percent] = (title === "RCP margin" && /^(.*?) ?([+-]?[\d,.]+) %$/.exec(cell)) || [];
    if (percent) return { [title]: words, [`${title} (%)`]: plain(percent) };
    const [, part, whole] = ((isNumber || title === "Published rank") && /^([\d,]+)(?:\/| of )([\d,]+)$/.exec(cell)) || [];
    if (whole) return { [title]: plain(part), [`${title}, of`]: plain(whole) };
    return { [title]: isNumber && NUMBER.test(cell) ? plain(cell) : cell };
  }

  function quoted(text = "") {
    const safe = NUMBER.test(text) ? text : text.replace(/^(?=[\s"']*[=+\-@])/, "'"); // not a formula
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  // One table with one header: of several tables, each row names its own.
  function download() {
    const several = tables.length > 1;
    const rows = tables.flatMap(({ titles, heads, shown, element }) => shown.map(({ cells }) => Object.assign(
      several ? { Table: element.dataset.title } : {},
      ...cells.map((cell, at) => fields(titles[at], heads[at].classList.contains("n"), cell.trim().replace(/\s+/g, " "))),
    )));
    const used = new Set(rows.flatMap(Object.keys));
    const titles = new Set([...(several ? ["Table"] : []), ...tables.flatMap((one) => one.titles)]);
    const names = [...titles].flatMap((title) => [title, ...[`${title} (%)`, `${title}, of`].filter((name) => used.has(name))]);
    const lines = [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(quoted).join(","));
    save(`${[document.querySelector("h1").textContent.replaceAll("\u00ae", ""), ...filtered()].join(" ")}.csv`, "text/csv", `${lines.join("\r\n")}\r\n`);
  }

  // What is filtered, for the names of files: the values of all filters.
  function filtered() {
    return [...controls.filter(({ name }) => name !== "y"), { name: "FAIL" }].map(({ name }) => state.get(name))
      .filter((value, at, all) => value && all.indexOf(value) === at);
  }

  for (const { heads, titles } of tables) {
    heads.forEach((head, index) => {
      const button = make("button", titles[index]);
      button.type = "button";
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        set({ up: !down && titles[index], down: down && titles[index] });
        update();
      });
      head.replaceChildren(button);
    });
  }
  form.hidden = tables.reduce((sum, one) => sum + one.results.length, 0) < 2;
  form.addEventListener("input", ({ target }) => { set({ [target.name]: target.value }); update(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => {
    set(Object.fromEntries([...controls.map(({ name }) => [name, ""]), ["up", ""], ["down", ""]]));
    update();
  }));
  byId("csv").addEventListener("click", download);
  addEventListener("hashchange", read);
  for (const { element } of tables) element.classList.add("live");

  function start(...functions) {
    listeners.push(...functions);
    update();
    read();
  }

  return { state, set, start, filtered };
})();
