// Links into closed sections. A fragment that begins with "?" is the state of the table.
(() => {
  const { byId } = charts;
  function follow() {
    const target = location.hash.startsWith("#?") ? null : byId(location.hash.slice(1));
    if (!target) return;
    if (target.tagName === "DETAILS") {
      target.hidden = target.closest(".group").hidden = false;
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
