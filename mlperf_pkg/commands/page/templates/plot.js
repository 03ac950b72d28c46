// Charts in SVG whose points are links: one large chart, the names of its lines at their ends, or small ones with one scale.
const plot = (() => {
  const COLORS = ["#3d7fc4", "#c2701c", "#2e8b57", "#8f63c4", "#2a8fa3", "#c95fa0", "#8a7a1f"];
  const [GREY, RED] = ["#85898f", "#d9534a"];
  const [TOP, BOTTOM, LEFT, LINE] = [50, 48, 56, 15]; // pixels
  const SMALL = { width: 130, height: 110, gap: 14, title: 20, ticks: 20 }; // pixels of a small chart
  const ROOM = 1.25; // times: free space around the points

  function add(parent, name, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    parent.append(element);
    return element;
  }

  function scale([least, most], [from, to], value) {
    const [low, high] = [value(least), value(most)];
    return (item) => Math.round((from + ((value(item) - low) / (high - low || 1)) * (to - from)) * 10) / 10;
  }

  // Values of a logarithmic axis: 1, 2 and 5 times powers of ten, more in a narrow range, fewer in a wide one.
  function decades(least, most) {
    const wide = most / least;
    const steps = wide > 2000 ? [1] : wide > 8 ? [1, 2, 5] : wide > 3 ? [1, 1.5, 2, 3, 4, 5, 7] : [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9];
    const ticks = [];
    for (let power = Math.floor(Math.log10(least)); 10 ** power <= most; power += 1) {
      for (const step of steps) ticks.push(Number((step * 10 ** power).toPrecision(3)));
    }
    return ticks.filter((tick) => least <= tick && tick <= most).map((tick) => [tick, tick.toLocaleString("en")]);
  }

  function powers(least, most, room) {
    const ticks = [];
    for (let tick = 1; tick <= most; tick *= 2) if (tick >= least) ticks.push([tick, tick.toLocaleString("en")]);
    const every = Math.ceil((ticks.length * 52) / room);
    return ticks.filter((_, index) => index % every === 0);
  }

  // Ticks of sizes: those of the points if they are few.
  function sizes(series, domain, room) {
    const own = [...new Set(series.flatMap(({ points }) => points.map(({ x }) => x)))];
    return own.length < 3 ? own.map((one) => [one, one.toLocaleString("en")]) : powers(...domain, room);
  }

  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

  // Lines and labels of the ticks in a box; labels of y are left out in a box that is not at the left.
  function axes(svg, ticks, { left, top, right, bottom }, [place, height], labelled = true) {
    const text = { fill: "currentColor", "font-size": 12 };
    for (const [value, label] of ticks.y) {
      add(svg, "path", { d: `M${left} ${height(value)}H${right}`, stroke: "currentColor", "stroke-opacity": 0.13 });
      if (labelled) add(svg, "text", { ...text, x: left - 6, y: height(value) + 4, "text-anchor": "end" }, label);
    }
    let free = 0;
    for (const [value, label] of ticks.x) {
      add(svg, "path", { d: `M${place(value)} ${top}V${bottom}`, stroke: "currentColor", "stroke-opacity": 0.08 });
      if (place(value) - 4 * label.length < free) continue; // it would overlap the one before
      free = place(value) + 4 * label.length;
      add(svg, "text", { ...text, x: place(value), y: bottom + 16, "text-anchor": "middle" }, label);
    }
  }

  function titles(svg, { title, x, y }, [left, right, bottom], width) {
    const text = { fill: "currentColor", "font-size": 12 };
    svg.prepend(add(svg, "text", { ...text, x: 10, y: 22, "font-size": 14, "font-weight": 600 }, cut(title, Math.floor(width / 8.5))));
    add(svg, "text", { ...text, x: (left + right) / 2, y: bottom - 10, "text-anchor": "middle" }, x.title);
    add(svg, "text", { ...text, x: 10, y: 40, "text-anchor": "start" }, y.title);
  }

  // A link for each point. One of them is in the order of the Tab key; arrows lead to the others.
  function mark(group, point, color, [left, top]) {
    const link = add(group, "a", { href: point.href, tabindex: -1, "aria-label": point.text.replaceAll("\n", ", ") });
    const look = point.open ? { fill: "none", stroke: color, "stroke-width": 1.5 } : { fill: color };
    add(link, "circle", { cx: left, cy: top, r: 10, fill: "transparent" }); // what a finger hits
    if (point.own) add(link, "path", { d: `M${left} ${top - 9}l9 9l-9 9l-9 -9z`, fill: color, stroke: "currentColor", "stroke-width": 2 });
    else add(link, "circle", { cx: left, cy: top, r: 4, ...look });
    if (point.fails) add(link, "path", { d: `M${left - 5} ${top - 5}l10 10m0 -10l-10 10`, stroke: RED, "stroke-width": 2.5 });
    const rest = (event) => charts.tell(point.text, event);
    link.addEventListener("pointermove", rest);
    link.addEventListener("focus", () => rest({ clientX: link.getBoundingClientRect().x, clientY: link.getBoundingClientRect().y }));
    for (const end of ["pointerleave", "blur"]) link.addEventListener(end, () => charts.tell(""));
  }

  // Names at the ends of lines, moved apart where they would overlap.
  function label(svg, ends, [right, bottom], room) {
    const shown = ends.slice(0, Math.floor((bottom - TOP) / LINE)).sort((a, b) => a.top - b.top);
    let free = TOP - LINE;
    for (const end of shown) free = end.at = Math.max(end.top, free + LINE);
    free = bottom + LINE;
    for (const end of shown.toReversed()) free = end.at = Math.min(end.at, free - LINE);
    for (const { name, color, left, top, at } of shown) {
      add(svg, "path", { d: `M${left + 6} ${top}L${right + 6} ${at}`, stroke: color, "stroke-opacity": 0.35, fill: "none" });
      add(svg, "text", { x: right + 10, y: at + 4, fill: "currentColor", "font-size": 12 }, cut(name, Math.floor(room / 6.6)));
    }
  }

  // The scales of all points and lines: x is logarithmic, as y is, unless it has ticks: [value, label].
  function domains(series, x) {
    const all = series.flatMap(({ points, line }) => [...points, ...line]);
    const range = (values) => [Math.min(...values), Math.max(...values)];
    const [xs, ys] = [range(all.map((point) => point.x)), range(all.map((point) => point.y))];
    const around = ([least, most]) => [least / ROOM, most * ROOM];
    return { x: x.ticks ? [xs[0] - 0.15, xs[1] + 0.15] : around(xs), y: around(ys) };
  }

  // Draws series in a box, and returns the ends of their lines.
  function lines(svg, series, [place, height]) {
    const ends = [];
    series.forEach(({ name, points, line, dashed, color: number }, index) => {
      const color = (!dashed && COLORS[(number ?? index) % COLORS.length]) || GREY;
      const group = add(svg, "g", {});
      const way = line.map((point, at) => `${at ? "L" : "M"}${place(point.x)} ${height(point.y)}`).join("");
      add(group, "path", { d: way || "M0 0", fill: "none", stroke: color, "stroke-width": dashed ? 1.2 : 1.8, ...(dashed ? { "stroke-dasharray": "5 4" } : {}) });
      for (const point of points) mark(group, point, color, [place(point.x), height(point.y)]);
      const last = line[line.length - 1] || points[0];
      if (name && last) ends.push({ name, color, left: place(last.x), top: height(last.y) });
    });
    return ends;
  }

  function large(svg, width, { x, series }) {
    const size = width < 600 ? 360 : 460;
    const room = Math.min(width * 0.28, 16 + 6.8 * Math.max(...series.map(({ name }) => name.length)));
    const box = { left: LEFT, top: TOP, right: width - room - 10, bottom: size - BOTTOM };
    const domain = domains(series, x);
    const places = [scale(domain.x, [box.left, box.right], x.ticks ? Number : Math.log), scale(domain.y, [box.bottom, box.top], Math.log)];
    axes(svg, { x: x.ticks || sizes(series, domain.x, box.right - box.left), y: decades(...domain.y) }, box, places);
    label(svg, lines(svg, series, places), [box.right, box.bottom], room);
    return [[box.left, box.right, size], size];
  }

  // A small chart for each name, which stands above it; all have the same scales.
  function small(svg, width, { x, series }) {
    const names = [...new Set(series.map(({ name }) => name))];
    const fitting = Math.floor((width - LEFT) / (SMALL.width + SMALL.gap));
    const columns = Math.max(1, Math.min(fitting, Math.ceil(Math.sqrt(2 * names.length)))); // about twice as wide as high
    const step = { x: (width - LEFT) / columns, y: SMALL.title + SMALL.height + SMALL.ticks + SMALL.gap };
    const domain = domains(series, x);
    const ticks = { x: x.ticks || sizes(series, domain.x, step.x - SMALL.gap), y: decades(domain.y[0], domain.y[1]) };
    ticks.y = ticks.y.filter((_, index) => index % Math.ceil((ticks.y.length * 16) / SMALL.height) === 0);
    names.forEach((name, index) => {
      const left = Math.round(LEFT + (index % columns) * step.x);
      const top = TOP + SMALL.title + Math.floor(index / columns) * step.y;
      const box = { left, top, right: Math.round(left + step.x - SMALL.gap), bottom: top + SMALL.height };
      const places = [scale(domain.x, [box.left, box.right], x.ticks ? Number : Math.log), scale(domain.y, [box.bottom, box.top], Math.log)];
      axes(svg, ticks, box, places, index % columns === 0);
      add(svg, "text", { x: box.left, y: box.top - 7, fill: "currentColor", "font-size": 12, "font-weight": 600 }, cut(name, Math.floor((box.right - box.left) / 7)));
      lines(svg, series.filter((one) => one.name === name).map((one) => ({ ...one, color: 0 })), places);
    });
    const size = TOP + Math.ceil(names.length / columns) * step.y + BOTTOM - SMALL.ticks;
    return [[LEFT, width, size], size];
  }

  // Draws series, the largest first: { name, points, line, dashed, color: number }, in which points are
  // { x, y, text, href, fails, open, own }; with ``each``, a small chart for each name.
  function draw(target, { title, x, y, series, each }) {
    const width = Math.max(300, target.clientWidth);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const [place, size] = (each ? small : large)(svg, width, { x, series });
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${size}`, role: "group", "aria-label": title, "font-family": "system-ui, sans-serif" })) svg.setAttribute(name, value);
    titles(svg, { title, x, y }, place, width);
    move(svg);
    charts.tell("");
    target.replaceChildren(svg);
  }

  // Draws the fastest of each x of some points without axes, in an SVG of 160 by 44; the scales are those of all points.
  function sketch(svg, points, all) {
    const domain = domains([{ points: all, line: [] }], {});
    const [place, height] = [scale(domain.x, [0, 160], Math.log), scale(domain.y, [44, 0], Math.log)];
    const line = fastest(points).map(({ x, y }) => [place(x), height(y)]);
    add(svg, "path", { d: `M${line.map((pair) => pair.join(" ")).join("L")}`, fill: "none", stroke: COLORS[0], "stroke-width": 1.5 });
    for (const [cx, cy] of line) add(svg, "circle", { cx, cy, r: 2, fill: COLORS[0] });
  }

  function move(svg) {
    const links = [...svg.querySelectorAll("a")];
    if (links.length) links[0].setAttribute("tabindex", 0);
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    svg.addEventListener("keydown", (event) => {
      const next = links[links.indexOf(document.activeElement) + steps[event.key]];
      if (!next) return;
      event.preventDefault();
      svg.querySelector("[tabindex='0']").setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });
  }

  // Groups points into series, the largest first; the line of one has the fastest of each x.
  function grouped(points, by) {
    const groups = new Map();
    for (const point of points) groups.set(point[by], [...(groups.get(point[by]) || []), point]);
    return [...groups].map(([name, members]) => ({ name, points: members, line: fastest(members) }))
      .sort((a, b) => b.points.length - a.points.length || (a.name < b.name ? -1 : 1));
  }

  // The points that compete: Closed ones, if any, of the category (status) with most of them.
  function competing(points) {
    const closed = points.filter((point) => !point.open);
    const pool = closed.length ? closed : points;
    const sizes = new Map();
    for (const { status } of pool) sizes.set(status, (sizes.get(status) || 0) + 1);
    const most = Math.max(...sizes.values());
    const [chosen] = [...sizes].find(([, size]) => size === most) || [];
    return pool.filter(({ status }) => status === chosen);
  }

  function fastest(points) {
    const best = new Map();
    for (const point of competing(points)) {
      const better = (one, other) => (one.rank ?? one.minutes) < (other.rank ?? other.minutes);
      if (!best.has(point.x) || better(point, best.get(point.x))) best.set(point.x, point);
    }
    return [...best.values()].sort((a, b) => a.x - b.x);
  }

  // ---- files ----

  // A drawing as a file; below it are what it is about and what must stand beside results.
  function picture(svg, about = "") {
    const copy = svg.cloneNode(true);
    const { color, backgroundColor } = getComputedStyle(document.body);
    copy.setAttribute("color", color);
    for (const link of copy.querySelectorAll("a")) link.removeAttribute("href");
    footnote(copy, about.trim().replace(/\s+/g, " "));
    const back = add(copy, "rect", { width: "100%", height: "100%", fill: backgroundColor });
    copy.prepend(back);
    return new XMLSerializer().serializeToString(copy);
  }

  function footnote(svg, about) {
    const { width, height } = svg.viewBox.baseVal;
    const most = Math.floor(width / 5.5);
    const paragraphs = [...document.querySelectorAll("#notice p")].map(({ textContent }) => textContent);
    const lines = [about, ...paragraphs].filter(Boolean).flatMap((paragraph) => {
      const wrapped = [""];
      for (const word of paragraph.split(" ")) {
        const line = `${wrapped.at(-1)} ${word}`.trim();
        if (line.length <= most) wrapped[wrapped.length - 1] = line;
        else wrapped.push(word);
      }
      return wrapped;
    });
    lines.forEach((line, index) => add(svg, "text", { x: 4, y: height + 16 + 14 * index, fill: "currentColor", "font-size": 10 }, line));
    const higher = height + 14 * lines.length + 16;
    svg.setAttribute("viewBox", `0 0 ${width} ${higher}`);
    if (svg.hasAttribute("height")) svg.setAttribute("height", higher); // of Vega
  }

  function png(svg, name) {
    const text = picture(svg);
    const [, , width, height] = /viewBox="([^"]*)"/.exec(text)[1].split(" ").map(Number);
    const image = new Image(2 * width, 2 * height);
    image.addEventListener("load", () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => charts.save(name, "image/png", blob));
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  }

  // Shows or hides the chart and its buttons.
  function show(visible) {
    for (const id of ["chart", "svg", "png"]) charts.byId(id).hidden = !visible;
    return visible;
  }

  // Makes the buttons SVG and PNG save what a chart shows; the names of files say what is filtered.
  function offer(target, filtered) {
    const name = () => [target.firstChild.getAttribute("aria-label"), ...filtered()].join(" ");
    charts.byId("svg").addEventListener("click", () => charts.save(`${name()}.svg`, "image/svg+xml", picture(target.firstChild)));
    charts.byId("png").addEventListener("click", () => png(target.firstChild, `${name()}.png`));
  }

  return { draw, sketch, grouped, competing, show, picture, offer };
})();
