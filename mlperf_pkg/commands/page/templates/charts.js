"use strict";
// What the pages share: unpacking and drawing the charts of html.py.
const charts = (() => {
  const byId = (id) => document.getElementById(id);
  const make = (name, text) => Object.assign(document.createElement(name), { textContent: text });

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

  function frame(container, [, title, description]) {
    const [figure, caption, target] = ["figure", "figcaption", "div"].map((name) => make(name, ""));
    target.className = "chart";
    caption.append(make("b", title), ` ${description}`);
    figure.append(target, caption);
    container.append(figure);
    return target;
  }

  // The inverse of columns() in html.py.
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

  // Draws a chart and returns its view; complete() adds to a row what the page has elsewhere.
  async function show(target, payload, [spec, title, description, names], complete = (row) => row) {
    const datasets = {};
    for (const name of Object.keys(names)) datasets[name] = records(payload.data[names[name]]).map(complete);
    const { view } = await vegaEmbed(target, { ...payload.specs[spec], description: `${title}. ${description}`, datasets }, {
      actions: false, ast: true, config: payload.config, defaultStyle: false, renderer: "svg", tooltip: showTooltip,
    });
    return view;
  }

  function showTooltip(_, event, __, value) {
    const fields = value && typeof value === "object" ? Object.entries(value) : [];
    tell(fields.map(([name, field]) => `${name}: ${field}`).join("\n"), event);
  }

  // Shows text beside the pointer, or nothing.
  function tell(text, { clientX, clientY } = {}) {
    const tip = byId("tip");
    tip.hidden = !text;
    tip.textContent = text;
    if (!text) return;
    tip.style.left = `${Math.max(4, Math.min(clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(clientY + 12, innerHeight - tip.offsetHeight - 8))}px`;
  }
  addEventListener("scroll", () => { if (byId("tip")) byId("tip").hidden = true; }, { passive: true });

  const MAX_NAME = 120; // characters of a file name, without its ending

  function save(name, type, text) {
    const [, stem, ending] = /^(.*)([.][a-z]+)$/.exec(name.replace(/[^\w.-]+/g, "-"));
    const link = make("a", "");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = stem.slice(0, MAX_NAME) + ending;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function offer(target, title, view) {
    const about = target.closest(".set")?.querySelector("summary").textContent || "";
    const button = Object.assign(make("button", "SVG"), { type: "button", className: "svg" });
    button.setAttribute("aria-label", `Download as SVG: ${title}`);
    button.addEventListener("click", async () => {
      const drawn = new DOMParser().parseFromString(await view.toSVG(), "image/svg+xml").documentElement;
      save(`${title}.svg`, "image/svg+xml", plot.picture(drawn, `${title}. ${about}`));
    });
    target.parentNode.querySelector("figcaption").append(" ", button);
  }

  return { byId, make, unpack, prepare, frame, records, show, tell, save, offer };
})();
