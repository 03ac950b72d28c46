(() => {
  const { byId, make } = charts;

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

  let prepared = null;

  async function draw(container) {
    if (container.dataset.drawn) return;
    container.dataset.drawn = "yes";
    try {
      prepared = prepared || charts.prepare();
      const payload = await prepared;
      // All frames first: together they decide how wide a chart is.
      const drawn = payload.charts[container.dataset.charts];
      const frames = drawn.map((chart) => [charts.frame(container, chart), chart]);
      for (const [target, chart] of frames) await charts.show(target, payload, chart);
    } catch (error) {
      container.append(make("p", `The charts cannot be drawn: ${error.message}`));
    }
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
