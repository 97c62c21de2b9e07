"use strict";
// Charts. What a report draws is in the page; what the arena draws is in a block of the page or comes from its JSON.
(function () {
  const { all, dark } = window.shell;
  const read = (id) => { const block = document.getElementById(id); return block ? JSON.parse(block.textContent) : {}; };
  const payload = read("payload");
  const served = read("look");
  const CONFIG = { displayModeBar: false, responsive: true, showTips: false };
  const COLOURS = {
    price: ["#4b5563", "#c3cad6"], buy: ["#0072b2", "#56b4e9"], sell: ["#c2410c", "#f2854c"], hold: ["#7a8594", "#8894a4"],
    bad: ["#b3261e", "#ff8f8f"], news: ["#8a6200", "#efd04d"], rest: ["#aab2bd", "#5f6b7a"], edge: ["#ffffff", "#161b22"],
    gain: ["#3a9bdc", "#2f86c4"], loss: ["#f08a4b", "#c8652a"], sum: ["#56606e", "#9ba7b6"], zero: ["#9aa4b1", "#5b6675"],
    grid: ["#e8ecf0", "#262e38"], axis: ["#dde2e8", "#2a323c"], text: ["#3f4855", "#c5cdd8"], ink: ["#151a21", "#e7ebf0"],
    paper: ["#ffffff", "#222a34"], border: ["#cfd6de", "#3a4552"], band: ["rgba(100,115,135,0.15)", "rgba(150,165,185,0.18)"]
  };
  const colour = (name) => COLOURS[name][dark() ? 1 : 0];
  const pick = (style) => (dark() ? style.dark : style.light);
  const PLAIN = { light: COLOURS.price[0], dark: COLOURS.price[1], dash: "solid", width: 2, marker: "" };
  const DAY = "%{x|%Y-%m-%d} ";
  // Plotly reads a little markup in texts; a name is a name.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const small = (div) => div.clientWidth < 500;
  const hidden = new Map();
  const hiddenIn = (cell) => { if (!hidden.has(cell)) hidden.set(cell, new Set()); return hidden.get(cell); };

  function layout(div, legend) {
    const axis = {
      gridcolor: colour("grid"), zerolinecolor: colour("zero"), zerolinewidth: 1, linecolor: colour("axis"),
      tickcolor: colour("axis"), automargin: true, fixedrange: true
    };
    const made = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: Boolean(legend), dragmode: false, autosize: true,
      font: { family: getComputedStyle(document.body).fontFamily, size: small(div) ? 11 : 12, color: colour("text") },
      margin: { l: small(div) ? 42 : 52, r: 12, t: 8, b: legend ? 78 : 30 },
      hoverlabel: { bgcolor: colour("paper"), bordercolor: colour("border"), font: { color: colour("ink"), size: 12 } },
      xaxis: Object.assign({ type: "date", showgrid: false }, axis), yaxis: Object.assign({}, axis), hovermode: "closest"
    };
    if (legend) made.legend = { orientation: "h", y: -0.12, yanchor: "top", font: { size: 11 }, itemclick: false, itemdoubleclick: false };
    const chinese = document.documentElement.lang.startsWith("zh");
    if (chinese) made.xaxis.tickformat = "%Y-%m-%d";
    if (small(div)) Object.assign(made.xaxis, { nticks: 3, tickangle: 0, tickformat: chinese ? "%Y-%m" : "%b %y" });
    return made;
  }

  // Accounts: one line each, named at its end; a few markers on a line show whose it is without its colour ------------
  function lines(div, found, look) {
    const made = layout(div);
    const off = hiddenIn(div.dataset.cell);
    const bands = [], marks = [], traces = [];
    if (found.band) {
      const edge = { x: found.days, mode: "lines", line: { width: 0 }, hoverinfo: "skip", meta: { role: "band" } };
      bands.push(Object.assign({ y: found.band.low }, edge));
      bands.push(Object.assign({ y: found.band.high, fill: "tonexty", fillcolor: colour("band") }, edge));
    }
    found.curves.slice().reverse().forEach((curve, place) => {
      const style = look[curve.entry] || PLAIN;
      const role = curve.entry === "@index" ? "index" : "entry";
      const common = { type: "scatter", name: plain(curve.label), visible: !off.has(curve.entry) };
      const line = { color: pick(style), dash: style.dash, width: style.width || 2 };
      traces.push(Object.assign({
        x: found.days, y: curve.returns, mode: "lines", line: line, hovertemplate: "%{y:+.1%}",
        meta: { role: role, entry: curve.entry, label: labelOf(curve) }
      }, common));
      if (!style.marker) return;
      // Staggered, so that markers of neighbouring lines do not sit on one another.
      const every = Math.max(1, Math.floor(found.days.length / 9));
      const spots = found.days.map((day, at) => at).filter((at) => at % every === (place * 5) % every);
      marks.push(Object.assign({
        x: spots.map((at) => found.days[at]), y: spots.map((at) => curve.returns[at]), mode: "markers", line: { color: line.color },
        marker: { color: line.color, size: 7, symbol: style.marker }, hoverinfo: "skip", meta: { role: "marks", entry: curve.entry }
      }, common));
    });
    const data = bands.concat(marks, traces);
    made.yaxis.tickformat = ".0%";
    made.yaxis.automargin = false;
    made.hovermode = small(div) ? "x" : "x unified";
    if (div.dataset.chart === "underwater") made.yaxis.rangemode = "tozero";
    // All charts of accounts leave room for the names, so that their dates stand above one another.
    made.margin.r = labelRoom(div, traces);
    const last = found.days[found.days.length - 1];
    if (last) made.xaxis.range = [found.days[0], last];
    const days = Number(div.dataset.days || 0);
    if (days && last) zoom(made, data, last, days);
    fewDays(div, made.xaxis);
    const done = Promise.resolve(Plotly.react(div, data, made, CONFIG));
    return div.dataset.chart === "equity" ? done.then(() => labelEnds(div)) : done;
  }
  // Over a few weeks a tick is a day, and no day has two.
  function fewDays(div, axis) {
    const [from, to] = (axis.range || []).map((day) => new Date(day).getTime());
    const span = (to - from) / 864e5;
    if (!(span > 0 && span <= 60)) return;
    Object.assign(axis, { tick0: from, dtick: 864e5 * Math.ceil(span / (small(div) ? 3 : 8)) });
    if (small(div)) axis.tickformat = document.documentElement.lang.startsWith("zh") ? "%m-%d" : "%b %-d";
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
    if (low > high) return;
    const pad = (high - low) * 0.07 || 0.01;
    made.yaxis.range = [low - pad, Math.min(high + pad, made.yaxis.rangemode === "tozero" ? 0 : Infinity)];
    delete made.yaxis.rangemode;
  }
  const pen = document.createElement("canvas").getContext("2d");
  const size = (div) => (small(div) ? 10 : 12);
  const cut = (div, text) => { const most = small(div) ? 11 : 24; return text.length > most ? text.slice(0, most - 1) + "…" : text; };
  const named = (one) => one.meta.role === "entry" || one.meta.role === "index";
  function labelRoom(div, traces) {
    pen.font = size(div) + "px " + getComputedStyle(document.body).fontFamily;
    const widths = traces.filter(named).map((one) => pen.measureText(cut(div, one.meta.label)).width);
    return Math.ceil(Math.max(0, ...widths)) + 14;
  }
  // Names that would cover one another are moved apart.
  function labelEnds(div) {
    const full = div._fullLayout;
    if (!full || !full.yaxis || !full._size) return;
    const [bottom, top] = full.yaxis.range;
    const height = full._size.h;
    const ends = div.data.filter((one) => named(one) && one.visible !== false && one.y.length).map((one) => {
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
    const notes = ends.map((end) => ({
      xref: "paper", yref: "paper", x: 1, y: end.y / height, xanchor: "left", yanchor: "middle", xshift: 5, showarrow: false,
      text: plain(cut(div, end.name)), font: { color: end.colour, size: size(div) }
    }));
    div.dataset.labelled = "yes";
    return Plotly.relayout(div, { annotations: notes });
  }

  // What an agent held --------------------------------------------------------------------------------------------
  const PATTERNS = ["", "/", "", "\\", "", ".", "", "-", "", "x"];
  function holdings(div, found, sessions) {
    const made = layout(div, true);
    made.hovermode = small(div) ? "x" : "x unified";
    Object.assign(made.yaxis, { tickformat: ".0%", rangemode: "tozero" });
    const x = found.places.map((place) => sessions[place]);
    const data = found.names.map((name, place) => {
      const rest = found.others && place === found.names.length - 1;
      const hue = rest ? colour("rest") : pick(payload.slots[place % payload.slots.length]);
      const area = found.short ? {} : {
        stackgroup: "held", fillcolor: hue,
        fillpattern: { shape: rest ? "" : PATTERNS[place % PATTERNS.length], size: 7, solidity: 0.18, bgcolor: hue, fgcolor: "rgba(0,0,0,0.3)" }
      };
      return Object.assign({ type: "scatter", mode: "lines", name: plain(name), x: x, y: found.weights[place],
        line: { color: hue, width: found.short ? 1.5 : 0.6 }, hovertemplate: "%{y:.1%}" }, area);
    });
    return Plotly.react(div, data, made, CONFIG);
  }

  // Marks on a price: trades of an agent, or decisions of an entry with the news it had ----------------------------------
  const priceLine = (x, y, name) => ({ type: "scatter", mode: "lines", name: name, x: x, y: y,
    line: { color: colour("price"), width: 1.4 }, hovertemplate: DAY + name + " %{y}<extra></extra>" });
  const markers = (x, y, name, symbol, hue, more) => Object.assign({ type: "scatter", mode: "markers", name: name, x: x, y: y,
    marker: { symbol: symbol, size: 9, color: colour(hue), line: { width: 1, color: colour("edge") } },
    hovertemplate: DAY + name + " %{y}<extra></extra>" }, more);
  function trades(div, symbols, cell) {
    const select = document.querySelector('select[data-trades="' + div.dataset.agentId + '"]');
    const found = symbols[select ? select.selectedIndex : 0];
    const prices = cell.prices[found.symbol];
    const data = prices ? [priceLine(cell.priced.map((place) => cell.sessions[place]), prices, "close")] : [];
    for (const [side, name, symbol, hue] of [["buys", "bought", "triangle-up", "buy"], ["sells", "sold", "triangle-down", "sell"]]) {
      const some = found[side];
      if (some.length) data.push(markers(some.map((one) => one[0]), some.map((one) => one[1]), name, symbol, hue,
        { customdata: some.map((one) => one[2]), hovertemplate: DAY + name + " %{customdata} at %{y}<extra></extra>" }));
    }
    return Plotly.react(div, data, layout(div, true), CONFIG);
  }
  function timeline(div, found) {
    const made = layout(div, true);
    made.yaxis.domain = [0.16, 1];
    made.yaxis2 = { domain: [0, 0.1], visible: false, fixedrange: true, range: [-1, 1] };
    const words = div.dataset;
    const data = [priceLine(found.points.map((one) => one.session), found.points.map((one) => one.price), words.price)];
    const did = (action) => (one) => one.status === "decided" && !one.sealed && one.action === action;
    const kinds = [["buy", words.bought, "triangle-up", did("BUY")], ["sell", words.sold, "triangle-down", did("SELL")],
      ["hold", words.held, "circle-open", did("HOLD")], ["bad", words.failed, "x", (one) => one.status === "failed" || one.status === "missed"]];
    for (const [hue, name, symbol, test] of kinds) {
      const some = found.points.filter(test);
      if (some.length) data.push(markers(some.map((one) => one.session), some.map((one) => one.price), name, symbol, hue));
    }
    if (found.events.length) data.push(markers(found.events.map((one) => one.session), found.events.map(() => 0), words.news, "diamond", "news",
      { yaxis: "y2", text: found.events.map((one) => plain(one.title)), hovertemplate: DAY + "%{text}<extra></extra>" }));
    return Promise.resolve(Plotly.react(div, data, made, CONFIG)).then(() => { div.dataset.labelled = "yes"; });
  }

  // Drawing: what is seen is drawn, what is out of sight waits -----------------------------------------------------------
  const drawn = new Map();
  const fetched = new Map();
  // A closed <details> still gives its content a size; charts in it wait until it is opened.
  const visible = (div) => div.clientWidth > 0 && !div.closest("details:not([open])");
  function drawNow(div) {
    const kind = div.dataset.chart;
    if (fetched.has(div)) return kind === "timeline" ? timeline(div, fetched.get(div)) : lines(div, fetched.get(div), served);
    const cell = payload.cells[div.dataset.cell];
    if (kind === "holdings") return holdings(div, cell.agents[div.dataset.agentId].holdings, cell.sessions);
    if (kind === "trades") return trades(div, cell.agents[div.dataset.agentId].trades, cell);
    return lines(div, cell[kind], cell.look);
  }
  function draw(div) {
    // Out of sight it keeps an old theme or width; forgotten, it is drawn anew when it is seen again.
    if (!visible(div)) { drawn.delete(div); return; }
    drawn.set(div, div.clientWidth);
    drawNow(div);
  }
  function load(div) {
    if (div.dataset.block) { fetched.set(div, read(div.dataset.block)); draw(div); return; }
    fetch(div.dataset.src, { headers: { accept: "application/json" } })
      .then((answer) => { if (!answer.ok) throw new Error(String(answer.status)); return answer.json(); })
      .then((found) => { all(".failed-note", div).forEach((one) => one.remove()); fetched.set(div, found); draw(div); })
      .catch(() => {
        if (fetched.has(div) || div.querySelector(".failed-note")) return;
        const note = document.createElement("p");
        note.className = "failed-note";
        note.textContent = document.body.dataset.chartFailed;
        div.appendChild(note);
      });
  }
  const comes = (div) => div.dataset.src || div.dataset.block;
  const charts = (within) => all(".chart[data-chart]", within);
  const drawWithin = (element) => {
    for (const div of charts(element)) if ((!comes(div) || fetched.has(div)) && drawn.get(div) !== div.clientWidth) draw(div);
  };
  document.addEventListener("shell:redraw", () => { for (const div of Array.from(drawn.keys())) draw(div); });
  document.addEventListener("shell:seen", (event) => drawWithin(event.detail));
  document.addEventListener("arena:settled", () => charts().filter(comes).forEach(load));
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { for (const [div, width] of drawn) if (div.clientWidth && div.clientWidth !== width) draw(div); }, 150);
  });
  const accounts = (cell) => charts().filter((div) => div.dataset.cell === cell && /^(equity|underwater)$/.test(div.dataset.chart));
  const pressed = (group, act) => group.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) act(button, group.dataset.for);
  });
  for (const group of all(".legend")) pressed(group, (button, cell) => {
    const off = hiddenIn(cell);
    const on = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!on));
    if (on) off.add(button.dataset.entry); else off.delete(button.dataset.entry);
    accounts(cell).forEach(draw);
  });
  for (const group of all(".ranges")) pressed(group, (button, cell) => {
    for (const one of all("button", group)) one.setAttribute("aria-pressed", String(one === button));
    for (const div of accounts(cell)) { div.dataset.days = button.dataset.days; draw(div); }
  });
  for (const select of all("select[data-trades]")) {
    select.addEventListener("change", () => draw(document.querySelector('.chart[data-chart="trades"][data-agent-id="' + select.dataset.trades + '"]')));
  }
  charts().filter(comes).forEach(load);
  drawWithin(document);
})();
