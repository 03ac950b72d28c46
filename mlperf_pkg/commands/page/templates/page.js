// Result sets, whose elements are made when they are opened, and links into closed sections. A fragment that begins with "?" is the state of the table.
(() => {
  const { byId } = charts;

  function fill(set) {
    for (const part of set.querySelectorAll("noscript")) {
      const parsed = new DOMParser().parseFromString(part.textContent, "text/html");
      part.replaceWith(...parsed.body.childNodes);
    }
  }
  document.addEventListener("toggle", ({ target }) => { if (target.open) fill(target); }, true);

  function follow() {
    const target = location.hash.startsWith("#?") ? null : byId(location.hash.slice(1));
    if (!target) return;
    if (target.tagName === "DETAILS") {
      target.hidden = target.closest(".group").hidden = false;
      target.open = true;
      fill(target);
      target.querySelector("summary").focus({ preventScroll: true });
    } else {
      target.focus({ preventScroll: true });
    }
    target.scrollIntoView({ behavior: "instant" });
  }
  addEventListener("hashchange", follow);
  follow();
})();
