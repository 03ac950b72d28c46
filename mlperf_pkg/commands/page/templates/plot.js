// One large chart in SVG: its points are links, and the names of its lines stand at their ends.
const plot = (() => {
  const COLORS = ["#3d7fc4", "#c2701c", "#2e8b57", "#8f63c4", "#2a8fa3", "#c95fa0", "#8a7a1f"];
  const [GREY, RED] = ["#85898f", "#d9534a"];
  const [TOP, BOTTOM, LEFT, LINE] = [34, 42, 56, 15]; // pixels
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

  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

  function axes(svg, { x, y }, ticks, [right, bottom], [place, height]) {
    const text = { fill: "currentColor", "font-size": 12 };
    for (const [value, label] of ticks.y) {
      add(svg, "path", { d: `M${LEFT} ${height(value)}H${right}`, stroke: "currentColor", "stroke-opacity": 0.13 });
      add(svg, "text", { ...text, x: LEFT - 6, y: height(value) + 4, "text-anchor": "end" }, label);
    }
    let free = 0;
    for (const [value, label] of ticks.x) {
      add(svg, "path", { d: `M${place(value)} ${TOP}V${bottom}`, stroke: "currentColor", "stroke-opacity": 0.08 });
      if (place(value) - 4 * label.length < free) continue; // it would overlap the one before
      free = place(value) + 4 * label.length;
      add(svg, "text", { ...text, x: place(value), y: bottom + 16, "text-anchor": "middle" }, label);
    }
    add(svg, "text", { ...text, x: (LEFT + right) / 2, y: bottom + 34, "text-anchor": "middle" }, x.title);
    add(svg, "text", { ...text, x: LEFT, y: TOP - 8, "text-anchor": "start" }, y.title);
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

  // Draws series, the largest first: { name, points, line, dashed, color: number }, in which points are
  // { x, y, text, href, fails, open, own }. y is logarithmic; x is too, unless it has ticks: [value, label].
  function draw(target, { title, x, y, series }) {
    const width = Math.max(300, target.clientWidth);
    const size = width < 600 ? 360 : 460;
    const room = Math.min(width * 0.28, 16 + 6.8 * Math.max(...series.map(({ name }) => name.length)));
    const [right, bottom] = [width - room - 10, size - BOTTOM];
    const all = series.flatMap(({ points, line }) => [...points, ...line]);
    const range = (values) => [Math.min(...values), Math.max(...values)];
    const [xs, ys] = [range(all.map((point) => point.x)), range(all.map((point) => point.y))];
    const around = ([least, most]) => [least / ROOM, most * ROOM];
    const domains = { x: x.ticks ? [xs[0] - 0.15, xs[1] + 0.15] : around(xs), y: around(ys) };
    const place = scale(domains.x, [LEFT, right], x.ticks ? Number : Math.log);
    const height = scale(domains.y, [bottom, TOP], Math.log);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${size}`, role: "group", "aria-label": title, "font-family": "system-ui, sans-serif" })) svg.setAttribute(name, value);
    add(svg, "text", { x: 4, y: 13, fill: "currentColor", "font-size": 14, "font-weight": 600 }, cut(title, Math.floor(width / 8.5)));
    const ticks = { x: x.ticks || powers(...domains.x, right - LEFT), y: decades(...domains.y) };
    axes(svg, { x, y }, ticks, [right, bottom], [place, height]);
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
    label(svg, ends, [right, bottom], room);
    move(svg);
    charts.tell("");
    target.replaceChildren(svg);
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

  // Groups points into series, the largest first; the line of one has the fastest of each x, and only records with ``front``.
  function grouped(points, by, front = false) {
    const groups = new Map();
    for (const point of points) groups.set(point[by], [...(groups.get(point[by]) || []), point]);
    return [...groups].map(([name, members]) => ({ name, points: members, line: fastest(members, front) }))
      .sort((a, b) => b.points.length - a.points.length || (a.name < b.name ? -1 : 1));
  }

  function fastest(points, front) {
    const closed = points.filter((point) => !point.open);
    const best = new Map();
    for (const point of closed.length ? closed : points) {
      if (!best.has(point.x) || point.minutes < best.get(point.x).minutes) best.set(point.x, point);
    }
    const line = [...best.values()].sort((a, b) => a.x - b.x);
    let record = Infinity;
    return front ? line.filter(({ minutes }) => minutes < record && (record = minutes)) : line;
  }

  // ---- files --------------------------------------------------------------------------------

  function picture(svg) {
    const copy = svg.cloneNode(true);
    const { color, backgroundColor } = getComputedStyle(document.body);
    copy.setAttribute("color", color);
    for (const link of copy.querySelectorAll("a")) link.removeAttribute("href");
    footnote(copy);
    const back = add(copy, "rect", { width: "100%", height: "100%", fill: backgroundColor });
    copy.prepend(back);
    return new XMLSerializer().serializeToString(copy);
  }

  // Adds what must stand beside results below a picture, which is then higher.
  function footnote(svg) {
    const { width, height } = svg.viewBox.baseVal;
    const most = Math.floor(width / 5.5);
    const lines = [...document.querySelectorAll("#notice p")].flatMap(({ textContent }) => {
      const wrapped = [""];
      for (const word of textContent.split(" ")) {
        const line = `${wrapped.at(-1)} ${word}`.trim();
        if (line.length <= most) wrapped[wrapped.length - 1] = line;
        else wrapped.push(word);
      }
      return wrapped;
    });
    lines.forEach((line, index) => add(svg, "text", { x: 4, y: height + 16 + 14 * index, fill: "currentColor", "font-size": 10 }, line));
    svg.setAttribute("viewBox", `0 0 ${width} ${height + 14 * lines.length + 16}`);
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

  // Makes the buttons SVG and PNG save what a chart shows.
  function offer(target) {
    const name = () => target.firstChild.getAttribute("aria-label");
    charts.byId("svg").addEventListener("click", () => charts.save(`${name()}.svg`, "image/svg+xml", picture(target.firstChild)));
    charts.byId("png").addEventListener("click", () => png(target.firstChild, `${name()}.png`));
  }

  return { draw, grouped, show, offer };
})();
