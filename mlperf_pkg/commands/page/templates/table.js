// The table of results: filters, sorting, rows made when they are seen, CSV, and state in the URL.
(() => {
  const { byId, make, save } = charts;
  const CHUNK = 100; // rows

  const table = byId("table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const titles = heads.map((head) => head.textContent);
  const form = byId("filters");
  const more = byId("more");
  const selects = [...form.querySelectorAll("[data-column]")];
  const results = [...body.rows].filter((row) => row.dataset.set).map((row) => {
    const cells = [...row.cells].map((cell) => cell.textContent);
    return { row, cells, text: cells.join(" ").toLowerCase(), set: byId(row.dataset.set) };
  });
  const order = { column: -1, down: false };
  let shown = results;

  // ---- rows: only as many as have been scrolled to -------------------------------------------

  function render(limit) {
    const rows = shown.slice(0, limit).map((result) => result.row);
    if (results.length) body.replaceChildren(...rows);
    more.hidden = rows.length === shown.length;
    more.textContent = `Show all ${shown.length} results`;
  }

  const watcher = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      body.append(...shown.slice(body.rows.length, body.rows.length + CHUNK).map((result) => result.row));
      more.hidden = body.rows.length === shown.length;
      watcher.unobserve(more);
      watcher.observe(more);
    }
  }, { rootMargin: "600px" });
  watcher.observe(more);
  more.addEventListener("click", () => render(Infinity));
  addEventListener("beforeprint", () => render(Infinity));

  // ---- sort and filter -----------------------------------------------------------------------

  const number = (text) => parseFloat(text.replaceAll(",", ""));

  function compare(one, other, numbers) {
    if (!numbers) return one.localeCompare(other, "en", { numeric: true });
    const [a, b] = [number(one), number(other)];
    // Cells without a number come last in both orders.
    return Number.isNaN(a) || Number.isNaN(b) ? (Number.isNaN(a) - Number.isNaN(b)) * (order.down ? -1 : 1) : a - b;
  }

  function sort(column, down) {
    Object.assign(order, { column, down });
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    if (column < 0) return;
    heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    const numbers = heads[column].classList.contains("n");
    results.sort((a, b) => compare(a.cells[column], b.cells[column], numbers) * (down ? -1 : 1));
  }

  function filter() {
    const words = byId("search").value.toLowerCase().split(/\s+/);
    const wanted = selects.filter((select) => select.value)
      .map((select) => [titles.indexOf(select.dataset.column), select.value]);
    const verdict = byId("verdict").value;
    if (verdict) wanted.push([titles.indexOf(verdict === "rules" ? "Rules" : "Official"), "FAIL"]);
    shown = results.filter(({ cells, text }) => words.every((word) => text.includes(word))
      && wanted.every(([at, value]) => cells[at] === value));
    render(CHUNK);
    byId("count").textContent = `${shown.length} of ${results.length} result sets`;
    const visible = new Set(shown);
    for (const result of results) result.set.hidden = !visible.has(result);
    for (const group of document.querySelectorAll(".group")) {
      group.hidden = !group.querySelector(".set:not([hidden])");
    }
  }

  // ---- the state in the URL ------------------------------------------------------------------

  function store() {
    const state = new URLSearchParams();
    if (byId("search").value) state.set("q", byId("search").value);
    for (const select of selects) if (select.value) state.set(select.dataset.column, select.value);
    if (byId("verdict").value) state.set("FAIL", byId("verdict").value);
    if (order.column >= 0) state.set(order.down ? "down" : "up", titles[order.column]);
    const text = state.toString();
    history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
  }

  function restore() {
    if (!location.hash.startsWith("#?")) return;
    const state = new URLSearchParams(location.hash.slice(2));
    byId("search").value = state.get("q") || "";
    for (const select of selects) select.value = state.get(select.dataset.column) || "";
    byId("verdict").value = state.get("FAIL") || "";
    sort(titles.indexOf(state.get("down") || state.get("up")), state.has("down"));
    filter();
  }

  // ---- CSV -----------------------------------------------------------------------------------

  function field(text) {
    const plain = text === "-" ? "" : text.replace(/^(?=[\s"']*[=+\-@])/, "'"); // not a formula
    return /[",\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  }

  function download() {
    const lines = [titles, ...shown.map((result) => result.cells)].map((cells) => cells.map(field).join(","));
    save(`${document.querySelector("h1").textContent}.csv`, "text/csv", `${lines.join("\r\n")}\r\n`);
  }

  heads.forEach((head, index) => {
    const button = make("button", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => {
      sort(index, head.getAttribute("aria-sort") === "ascending");
      filter();
      store();
    });
    head.replaceChildren(button);
  });
  form.hidden = results.length < 2;
  form.addEventListener("input", () => { filter(); store(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { filter(); store(); }));
  byId("csv").addEventListener("click", download);
  addEventListener("hashchange", restore);
  table.classList.add("live");
  filter();
  restore();
})();
