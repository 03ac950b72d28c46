"use strict";
// A review: a search of the rows of all its tables. Tables with a match are opened, those without one are hidden.
(() => {
  const form = document.getElementById("filters");
  const query = document.getElementById("q");
  const tables = [...document.querySelectorAll("main details")].map((element) => ({
    element, open: element.open,
    rows: [...element.querySelectorAll("tbody tr")].map((row) => ({ row, text: row.textContent.toLowerCase() })),
  }));

  function search() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { element, open, rows } of tables) {
      const matches = rows.filter(({ row, text }) => {
        row.hidden = !words.every((word) => text.includes(word));
        return !row.hidden;
      });
      element.hidden = words.length > 0 && !matches.length;
      element.open = words.length > 0 ? matches.length > 0 : open;
      shown += matches.length;
    }
    for (const section of document.querySelectorAll("main > section")) {
      section.hidden = words.length > 0 && !section.querySelector("details:not([hidden])");
    }
    document.getElementById("count").textContent = words.length ? `${shown} rows` : "";
  }

  form.hidden = false;
  query.addEventListener("input", search);
  form.addEventListener("submit", (event) => event.preventDefault());
})();
