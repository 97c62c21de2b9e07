"use strict";
// Charts of the arena: accounts with a luck band, and events over actions and price. Data comes from the JSON interface.
(function () {
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const CONFIG = { displayModeBar: false, responsive: true, showTips: false };
  const block = document.getElementById("look");
  const look = block ? JSON.parse(block.textContent) : {};
  const kept = new Map();
  const hidden = new Set();
  // Plotly reads a little markup in texts; a name is a name.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const small = (div) => div.clientWidth < 520;
  const pick = (style) => (dark() ? style.dark : style.light);
  const OTHER = { light: "#4b5563", dark: "#c3cad6", dash: "solid", width: 2 };

  function layout(div) {
    const night = dark();
    const axis = {
      gridcolor: night ? "#262e38" : "#e8ecf0", zerolinecolor: night ? "#5b6675" : "#9aa4b1", zerolinewidth: 1,
      linecolor: night ? "#2a323c" : "#dde2e8", tickcolor: night ? "#2a323c" : "#dde2e8", automargin: true, fixedrange: true
    };
    const made = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, dragmode: false, autosize: true,
      font: { family: getComputedStyle(document.body).fontFamily, size: small(div) ? 11 : 12, color: night ? "#c5cdd8" : "#3f4855" },
      margin: { l: small(div) ? 42 : 54, r: 12, t: 8, b: 30 },
      hoverlabel: { bgcolor: night ? "#222a34" : "#ffffff", bordercolor: night ? "#3a4552" : "#cfd6de",
        font: { color: night ? "#e7ebf0" : "#151a21", size: 12 } },
      xaxis: Object.assign({ type: "date", showgrid: false }, axis), yaxis: Object.assign({}, axis), hovermode: "closest"
    };
    if (small(div)) Object.assign(made.xaxis, { nticks: 4, tickangle: 0 });
    return made;
  }

  // Accounts ----------------------------------------------------------------------------------------------------
  function equity(div, found) {
    const made = layout(div);
    const data = [];
    if (found.band) {
      const fill = dark() ? "rgba(150,165,185,0.18)" : "rgba(100,115,135,0.15)";
      const edge = { x: found.days, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
      data.push(Object.assign({ y: found.band.low, meta: { role: "band" } }, edge));
      data.push(Object.assign({ y: found.band.high, fill: "tonexty", fillcolor: fill, meta: { role: "band" } }, edge));
    }
    for (const curve of found.curves.slice().reverse()) {
      const style = look[curve.entry] || OTHER;
      data.push({
        x: found.days, y: curve.returns, type: "scatter", mode: "lines", name: plain(curve.label),
        line: { color: pick(style), dash: style.dash, width: style.width || 2 },
        hovertemplate: "%{x|%Y-%m-%d} %{y:+.1%}", meta: { role: "entry", entry: curve.entry, label: labelOf(curve) },
        visible: hidden.has(curve.entry) ? false : true
      });
    }
    made.yaxis.tickformat = ".0%";
    made.margin.r = room(div, data);
    const last = found.days[found.days.length - 1];
    if (last) made.xaxis.range = [found.days[0], last];
    const days = Number(div.dataset.days || 0);
    if (days && last) zoom(made, data, last, days);
    return Promise.resolve(Plotly.react(div, data, made, CONFIG)).then(() => names(div));
  }
  function labelOf(curve) {
    const button = document.querySelector('.legend button[data-entry="' + CSS.escape(curve.entry) + '"]');
    return button ? button.textContent.trim() : curve.label;
  }
  function zoom(made, data, last, days) {
    const from = new Date(new Date(last).getTime() - days * 864e5).toISOString().slice(0, 10);
    made.xaxis.range = [from, last];
    let low = Infinity, high = -Infinity;
    for (const one of data) {
      if (one.visible === false || one.meta.role === "band") continue;
      one.y.forEach((value, place) => {
        if (value !== null && one.x[place] >= from) { low = Math.min(low, value); high = Math.max(high, value); }
      });
    }
    if (low <= high) { const pad = (high - low) * 0.08 || 0.01; made.yaxis.range = [low - pad, high + pad]; }
  }
  const pen = document.createElement("canvas").getContext("2d");
  const size = (div) => (small(div) ? 10 : 12);
  const cut = (div, text) => { const most = small(div) ? 12 : 26; return text.length > most ? text.slice(0, most - 1) + "…" : text; };
  function room(div, data) {
    pen.font = size(div) + "px " + getComputedStyle(document.body).fontFamily;
    const widths = data.filter((one) => one.meta.role === "entry").map((one) => pen.measureText(cut(div, one.meta.label)).width);
    return Math.ceil(Math.max(0, ...widths)) + 14;
  }
  // A line is named at its end; names that would cover one another are moved apart.
  function names(div) {
    const full = div._fullLayout;
    if (!full || !full.yaxis || !full._size) return;
    const [bottom, top] = full.yaxis.range;
    const height = full._size.h;
    const ends = div.data.filter((one) => one.meta.role === "entry" && one.visible !== false && one.y.length).map((one) => {
      let place = one.y.length - 1;
      while (place > 0 && one.y[place] === null) place -= 1;
      return { name: one.meta.label, colour: one.line.color, y: ((one.y[place] - bottom) / (top - bottom)) * height };
    });
    ends.sort((a, b) => a.y - b.y);
    const gap = Math.min(size(div) + 4, height / Math.max(1, ends.length));
    for (let round = 0; round < 80; round += 1) {
      let moved = false;
      for (let i = 1; i < ends.length; i += 1) {
        const need = gap - (ends[i].y - ends[i - 1].y);
        if (need > 0.1) { ends[i - 1].y -= need / 2; ends[i].y += need / 2; moved = true; }
      }
      for (const end of ends) end.y = Math.max(4, Math.min(height - 4, end.y));
      if (!moved) break;
    }
    Plotly.relayout(div, { annotations: ends.map((end) => ({
      xref: "paper", yref: "paper", x: 1, y: end.y / height, xanchor: "left", yanchor: "middle", xshift: 5, showarrow: false,
      text: plain(cut(div, end.name)), font: { color: end.colour, size: size(div) }
    })) });
    div.dataset.labelled = "yes";
  }

  // Events over actions and price ---------------------------------------------------------------------------------
  function timeline(div, found) {
    const night = dark();
    const colours = { BUY: night ? "#56b4e9" : "#0072b2", SELL: night ? "#f2854c" : "#c2410c", HOLD: night ? "#8894a4" : "#7a8594", bad: night ? "#ff8f8f" : "#b3261e", news: night ? "#efd04d" : "#8a6200" };
    const made = layout(div);
    made.showlegend = true;
    made.legend = { orientation: "h", y: -0.12, yanchor: "top", font: { size: 11 }, itemclick: false, itemdoubleclick: false };
    made.margin.b = 76;
    made.yaxis.domain = [0.16, 1];
    made.yaxis2 = { domain: [0, 0.1], visible: false, fixedrange: true, range: [-1, 1] };
    const x = found.points.map((point) => point.session);
    const data = [{ x: x, y: found.points.map((point) => point.price), type: "scatter", mode: "lines", name: div.dataset.price,
      line: { color: night ? "#c3cad6" : "#4b5563", width: 1.4 }, hovertemplate: "%{x|%Y-%m-%d} %{y}<extra></extra>" }];
    const good = (point) => point.status === "decided" && !point.sealed;
    const marks = [["BUY", div.dataset.bought, "triangle-up", (p) => good(p) && p.action === "BUY"],
      ["SELL", div.dataset.sold, "triangle-down", (p) => good(p) && p.action === "SELL"],
      ["HOLD", div.dataset.held, "circle-open", (p) => good(p) && p.action === "HOLD"],
      ["bad", div.dataset.failed, "x", (p) => p.status === "failed" || p.status === "missed"]];
    for (const [kind, name, symbol, test] of marks) {
      const some = found.points.filter(test);
      if (!some.length) continue;
      data.push({ x: some.map((p) => p.session), y: some.map((p) => p.price), type: "scatter", mode: "markers", name: name,
        marker: { symbol: symbol, size: kind === "HOLD" ? 6 : 9, color: colours[kind] }, hovertemplate: "%{x|%Y-%m-%d} " + name + " %{y}<extra></extra>" });
    }
    if (found.events.length) {
      data.push({ x: found.events.map((one) => one.session), y: found.events.map(() => 0), yaxis: "y2", type: "scatter", mode: "markers",
        name: div.dataset.news, marker: { symbol: "diamond", size: 8, color: colours.news }, text: found.events.map((one) => plain(one.title)),
        hovertemplate: "%{x|%Y-%m-%d} %{text}<extra></extra>" });
    }
    return Promise.resolve(Plotly.react(div, data, made, CONFIG)).then(() => { div.dataset.labelled = "yes"; });
  }

  const KINDS = { equity: equity, timeline: timeline };
  function draw(div) {
    const found = kept.get(div);
    if (found && div.clientWidth) KINDS[div.dataset.chart](div, found);
  }
  function load(div) {
    return fetch(div.dataset.src, { headers: { accept: "application/json" } })
      .then((answer) => { if (!answer.ok) throw new Error(String(answer.status)); return answer.json(); })
      .then((found) => { div.querySelectorAll(".failed-note").forEach((one) => one.remove()); kept.set(div, found); draw(div); })
      .catch(() => {
        if (kept.has(div) || div.querySelector(".failed-note")) return;
        const note = document.createElement("p");
        note.className = "failed-note";
        note.textContent = document.body.dataset.chartFailed;
        div.appendChild(note);
      });
  }
  const drawAll = () => { for (const div of kept.keys()) draw(div); };
  prefersDark.addEventListener("change", drawAll);
  document.addEventListener("arena:theme", drawAll);
  document.addEventListener("arena:settled", () => all(".chart[data-chart]").forEach(load));
  let waiting = 0;
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });
  for (const group of all(".ranges")) {
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      for (const one of all("button", group)) one.setAttribute("aria-pressed", String(one === button));
      for (const div of all('.chart[data-chart="equity"]')) { div.dataset.days = button.dataset.days; draw(div); }
    });
  }
  for (const group of all(".legend")) {
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const on = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!on));
      if (on) hidden.add(button.dataset.entry); else hidden.delete(button.dataset.entry);
      drawAll();
    });
  }
  all(".chart[data-chart]").forEach(load);
})();
