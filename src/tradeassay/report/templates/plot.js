"use strict";
// Draws the few kinds of chart that a report has (lines, bands, stacked areas, markers) as SVG. It takes what charts.js
// would hand to plotly.js, which is forty times as large as all the rest of a page; pages that serve the arena keep that.
(function () {
  const NS = "http://www.w3.org/2000/svg";
  const DASH = { dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "12 4", longdashdot: "12 3 2 3" };
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const make = (kind, facts, inside) => {
    const made = document.createElementNS(NS, kind);
    for (const name of Object.keys(facts)) if (facts[name] !== undefined) made.setAttribute(name, facts[name]);
    if (inside) inside.appendChild(made);
    return made;
  };
  const words = (text, facts, inside) => { const made = make("text", facts, inside); made.textContent = unmarked(text); return made; };
  const unmarked = (text) => String(text).replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  const time = (day) => Date.parse(String(day).slice(0, 10) + "T00:00:00Z");
  const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

  // Ticks ------------------------------------------------------------------------------------------------------------
  function round(low, high, count) {
    const rough = (high - low) / Math.max(1, count);
    const power = Math.pow(10, Math.floor(Math.log10(rough || 1)));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) || power;
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k += 1) found.push(k * step);
    return { step: step, at: found };
  }
  function written(value, step, format) {
    const share = format && format.endsWith("%");
    const size = share ? step * 100 : step;
    const digits = Math.max(0, Math.min(4, Math.ceil(-Math.log10(size) - 1e-9)));
    const text = share ? (value * 100).toFixed(digits) + "%" : value.toLocaleString("en", { maximumFractionDigits: digits });
    return text.replace("-", "\u2212");
  }
  function dates(from, to, room) {
    const months = (to - from) / 2.63e9;
    const every = [1, 2, 3, 6, 12, 24, 60, 120].find((one) => months / one <= room) || 120;
    const found = [];
    const day = new Date(from);
    day.setUTCDate(1);
    for (let n = 0; n < 2000 && day.getTime() <= to; n += 1) {
      if (day.getTime() >= from && day.getUTCMonth() % Math.min(every, 12) === 0 && (every < 12 || day.getUTCFullYear() % (every / 12) === 0)) {
        const year = every >= 12 ? String(day.getUTCFullYear()) : MONTHS[day.getUTCMonth()] + " " + String(day.getUTCFullYear()).slice(2);
        found.push([day.getTime(), year]);
      }
      day.setUTCMonth(day.getUTCMonth() + 1);
    }
    return found;
  }

  // Drawing ----------------------------------------------------------------------------------------------------------
  function path(one, at) {
    let text = "", pen = false;
    one.y.forEach((value, place) => {
      if (!known(value)) { pen = false; return; }
      text += (pen ? "L" : "M") + at.x(one.x[place]) + " " + at.y(value);
      pen = true;
    });
    return text;
  }
  function area(xs, low, high, at) {
    const up = xs.map((x, k) => at.x(x) + " " + at.y(high[k])), down = xs.map((x, k) => at.x(x) + " " + at.y(low[k])).reverse();
    return "M" + up.concat(down).join("L") + "Z";
  }
  const SHAPES = {
    "triangle-up": (r) => "M0 " + -r + "L" + r + " " + r * 0.8 + "L" + -r + " " + r * 0.8 + "Z",
    "triangle-down": (r) => "M0 " + r + "L" + r + " " + -r * 0.8 + "L" + -r + " " + -r * 0.8 + "Z",
    "square": (r) => "M" + -r + " " + -r + "H" + r + "V" + r + "H" + -r + "Z",
    "diamond": (r) => "M0 " + -r * 1.2 + "L" + r * 1.2 + " 0L0 " + r * 1.2 + "L" + -r * 1.2 + " 0Z",
    "x": (r) => "M" + -r + " " + -r + "L" + r + " " + r + "M" + r + " " + -r + "L" + -r + " " + r,
    "cross": (r) => "M" + -r + " 0H" + r + "M0 " + -r + "V" + r,
    "circle": (r) => "M" + -r + " 0a" + r + " " + r + " 0 1 0 " + 2 * r + " 0a" + r + " " + r + " 0 1 0 " + -2 * r + " 0Z"
  };
  function mark(inside, x, y, facts) {
    const name = String(facts.symbol || "circle").replace("-open", "");
    const open = name === "x" || name === "cross" || /-open$/.test(facts.symbol || "");
    make("path", {
      d: (SHAPES[name] || SHAPES.circle)((facts.size || 8) / 2), transform: "translate(" + x + " " + y + ")",
      fill: open ? "none" : facts.color, stroke: open ? facts.color : (facts.line || {}).color, "stroke-width": open ? 1.6 : (facts.line || {}).width || 0
    }, inside);
  }
  function react(div, data, layout) {
    const wide = Math.max(div.clientWidth, 120), tall = Math.max(div.clientHeight, 120);
    const rim = layout.margin, colours = { grid: layout.yaxis.gridcolor, zero: layout.yaxis.zerolinecolor, ink: layout.font.color };
    const shown = data.filter((one) => one.visible !== false && one.y.length);
    const legend = layout.showlegend ? key(shown, wide - rim.l - rim.r) : { rows: 0, entries: [] };
    const bottom = tall - (layout.showlegend ? 26 + 17 * legend.rows : rim.b);
    const x0 = rim.l, x1 = wide - rim.r, y0 = rim.t;
    // Areas that are stacked reach from the sum of those before to the sum with their own.
    const sums = new Map();
    for (const one of shown) if (one.stackgroup) {
      const below = sums.get(one.stackgroup) || one.y.map(() => 0);
      one.low = below;
      one.high = below.map((value, k) => value + (one.y[k] || 0));
      sums.set(one.stackgroup, one.high);
    }
    const values = shown.flatMap((one) => (one.high || one.y).filter(known));
    const times = shown.flatMap((one) => one.x.map(time));
    let [from, to] = layout.xaxis.range ? layout.xaxis.range.map(time) : [Math.min(...times), Math.max(...times)];
    if (!(to > from)) to = from + 864e5;
    let low = Math.min(...values), high = Math.max(...values);
    if (layout.yaxis.rangemode === "tozero") { low = Math.min(low, 0); high = Math.max(high, 0); }
    if (!(high > low)) { high += Math.abs(high) * 0.01 || 0.01; low -= Math.abs(low) * 0.01 || 0.01; }
    const pad = (high - low) * 0.05;
    const range = layout.yaxis.range || [low === 0 ? 0 : low - pad, high === 0 ? 0 : high + pad];
    const fixed = (value) => Math.round(value * 10) / 10;
    const at = {
      x: (day) => fixed(x0 + (x1 - x0) * (time(day) - from) / (to - from)),
      y: (value) => fixed(bottom - (bottom - y0) * (value - range[0]) / (range[1] - range[0]))
    };
    const svg = make("svg", { class: "main-svg", width: wide, height: tall, viewBox: "0 0 " + wide + " " + tall });
    svg.style.fontSize = layout.font.size + "px";
    const ticks = round(range[0], range[1], Math.max(2, Math.floor((bottom - y0) / 50)));
    for (const value of ticks.at) {
      make("line", { x1: x0, x2: x1, y1: at.y(value), y2: at.y(value), stroke: Math.abs(value) < ticks.step * 1e-6 ? colours.zero : colours.grid }, svg);
      words(written(value, ticks.step, layout.yaxis.tickformat), { x: x0 - 6, y: at.y(value) + 4, "text-anchor": "end", fill: colours.ink }, svg);
    }
    for (const [when, name] of dates(from, to, Math.max(2, Math.floor((x1 - x0) / 80)))) {
      const x = fixed(x0 + (x1 - x0) * (when - from) / (to - from));
      make("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, stroke: colours.zero }, svg);
      words(name, { x: x, y: bottom + 17, "text-anchor": "middle", fill: colours.ink }, svg);
    }
    const clip = "clip-" + (react.count = (react.count || 0) + 1);
    make("rect", { x: x0, y: y0 - 6, width: Math.max(0, x1 - x0), height: Math.max(0, bottom - y0 + 12) }, make("clipPath", { id: clip }, svg));
    const inside = make("g", { "clip-path": "url(#" + clip + ")" }, svg);
    shown.forEach((one, place) => {
      const line = one.line || {};
      if (one.fill === "tonexty" && place) make("path", { d: area(one.x, shown[place - 1].y, one.y, at), fill: one.fillcolor, stroke: "none" }, inside);
      if (one.stackgroup) make("path", { d: area(one.x, one.low, one.high, at), fill: one.fillcolor, stroke: line.color, "stroke-width": line.width, "fill-opacity": 0.85 }, inside);
      else if (one.mode === "lines" && line.width !== 0) make("path", {
        d: path(one, at), fill: "none", stroke: line.color, "stroke-width": line.width || 2, "stroke-dasharray": DASH[line.dash], "stroke-linejoin": "round"
      }, inside);
      if (one.mode === "markers") one.y.forEach((value, k) => { if (known(value)) mark(inside, at.x(one.x[k]), at.y(value), one.marker); });
    });
    legend.entries.forEach((entry) => {
      const y = bottom + 34 + 17 * entry.row, x = x0 + entry.x, one = entry.of;
      if (one.mode === "markers") mark(svg, x + 8, y - 4, one.marker);
      else if (one.stackgroup) make("rect", { x: x, y: y - 9, width: 16, height: 10, fill: one.fillcolor }, svg);
      else make("line", { x1: x, x2: x + 16, y1: y - 4, y2: y - 4, stroke: one.line.color, "stroke-width": 2, "stroke-dasharray": DASH[one.line.dash] }, svg);
      words(one.name, { x: x + 21, y: y, fill: colours.ink }, svg);
    });
    const notes = make("g", { class: "annotations" }, svg);
    div.replaceChildren(svg);
    Object.assign(div, { data: data, layout: layout, _fullLayout: { yaxis: { range: range }, _size: { h: bottom - y0 } } });
    div._place = { svg: svg, notes: notes, x1: x1, y0: y0, bottom: bottom };
    hover(div, shown, layout, at, { x0: x0, x1: x1, y0: y0, bottom: bottom, from: from, to: to });
    return Promise.resolve(div);
  }
  function key(shown, room) {
    let row = 0, x = 0;
    const entries = shown.filter((one) => one.name && one.hoverinfo !== "skip").map((one) => {
      const width = 34 + 6.3 * String(one.name).length;
      if (x && x + width > room) { row += 1; x = 0; }
      const entry = { of: one, row: row, x: x };
      x += width;
      return entry;
    });
    return { rows: row + 1, entries: entries };
  }
  function relayout(div, change) {
    const { notes, x1, y0, bottom } = div._place;
    notes.replaceChildren();
    for (const note of change.annotations || []) {
      const y = bottom - note.y * (bottom - y0);
      words(note.text, { class: "annotation-text", x: x1 + note.xshift, y: y + 4, fill: note.font.color, "font-size": note.font.size }, notes);
    }
    return Promise.resolve(div);
  }

  // Hovering: the day under the pointer, and what every line says about it ------------------------------------------------
  function told(one, k) {
    const pattern = one.hovertemplate || "%{y}";
    const number = (value, format) => (format && format.endsWith("%"))
      ? (/^\+/.test(format) && value > 0 ? "+" : "") + (value * 100).toFixed(1) + "%" : Number(value.toPrecision(6)).toLocaleString("en");
    return pattern.replace("<extra></extra>", "").replace(/%\{x\|[^}]*\} ?/, "")
      .replace(/%\{y(?::([^}]*))?\}/, (_, format) => number(one.y[k], format))
      .replace("%{customdata}", () => number(one.customdata[k])).replace("%{text}", () => one.text[k]);
  }
  function hover(div, shown, layout, at, box) {
    const lines = shown.filter((one) => one.hoverinfo !== "skip");
    if (!lines.length) return;
    const rule = make("line", { y1: box.y0, y2: box.bottom, stroke: layout.yaxis.zerolinecolor, visibility: "hidden" }, div._place.svg);
    const tip = document.createElement("div");
    tip.className = "plot-tip";
    tip.hidden = true;
    div.appendChild(tip);
    const leave = () => { tip.hidden = true; rule.setAttribute("visibility", "hidden"); };
    div.onpointerleave = leave;
    div.onpointermove = (event) => {
      const frame = div.getBoundingClientRect(), x = event.clientX - frame.left;
      if (x < box.x0 - 4 || x > box.x1 + 4) { leave(); return; }
      const when = box.from + (box.to - box.from) * (x - box.x0) / (box.x1 - box.x0);
      let day = null, least = Infinity;
      for (const one of lines) for (const each of one.x) {
        const gap = Math.abs(time(each) - when);
        if (gap < least) { least = gap; day = each; }
      }
      const said = lines.map((one) => [one, one.x.indexOf(day)]).filter(([one, k]) => k >= 0 && known(one.y[k]));
      if (!said.length) { leave(); return; }
      tip.replaceChildren();
      const head = document.createElement("strong");
      head.textContent = String(day).slice(0, 10);
      tip.appendChild(head);
      const order = layout.hovermode === "closest" ? said : said.slice().sort((a, b) => b[0].y[b[1]] - a[0].y[a[1]]);
      for (const [one, k] of order.slice(0, 14)) {
        const row = document.createElement("div");
        row.style.color = (one.line && one.line.color) || (one.marker && one.marker.color) || "";
        const text = unmarked(told(one, k));
        row.textContent = /%\{x\|/.test(one.hovertemplate || "") ? text : unmarked(one.name) + "  " + text;
        tip.appendChild(row);
      }
      tip.hidden = false;
      const px = at.x(day);
      rule.setAttribute("x1", px);
      rule.setAttribute("x2", px);
      rule.setAttribute("visibility", "visible");
      tip.style.left = (px > frame.width / 2 ? Math.max(0, px - tip.offsetWidth - 10) : Math.min(px + 10, frame.width - tip.offsetWidth)) + "px";
      tip.style.top = box.y0 + "px";
    };
  }
  window.Plotly = { react: react, relayout: relayout };
})();
