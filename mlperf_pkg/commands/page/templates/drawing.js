// The charts: drawn when they come into view.
(() => {
  const { make } = charts;
  let prepared = null;

  async function draw(container) {
    if (container.dataset.drawn) return;
    container.dataset.drawn = "yes";
    try {
      prepared = prepared || charts.prepare();
      const payload = await prepared;
      // All frames first: together they decide how wide a chart is.
      const frames = payload.charts[container.dataset.charts].map((chart) => [charts.frame(container, chart), chart]);
      for (const [target, chart] of frames) charts.offer(target, chart[1], await charts.show(target, payload, chart));
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
    if (details) details.addEventListener("toggle", () => { if (details.open) draw(container); });
  });
})();
