"use strict";
(function () {
  const payload = JSON.parse(document.getElementById("payload").textContent);
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const drawn = new Map();
  const hidden = {};
  let forced = null;

  // Theme -------------------------------------------------------------------------------------------------------
  const dark = () => (forced || root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const themeButton = document.getElementById("theme");
  function nameTheme() {
    themeButton.textContent = "Theme: " + (root.dataset.theme || "auto");
  }
  function setTheme(theme) {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    try {
      if (theme) localStorage.setItem("tradeassay-theme", theme); else localStorage.removeItem("tradeassay-theme");
    } catch (error) { /* a page opened from a file may have no storage; the choice then lasts as long as the page */ }
    nameTheme();
    redrawAll();
  }
  themeButton.addEventListener("click", () => {
    // First click leaves "auto" for the opposite of what is shown, the second for what was shown, the third returns.
    const system = prefersDark.matches ? "dark" : "light";
    const other = system === "dark" ? "light" : "dark";
    const now = root.dataset.theme;
    setTheme(!now ? other : now === other ? system : null);
  });
  prefersDark.addEventListener("change", redrawAll);
  nameTheme();

  // Charts ------------------------------------------------------------------------------------------------------
  function colour(cell, reference) {
    const pair = cell.colours[reference];
    return pair ? pair[dark() ? 1 : 0] : reference;
  }
  function trace(cell, source, xs) {
    const made = Object.assign({}, source);
    const x = xs[source.xs];
    if (x) made.x = source.at ? source.at.map((place) => x[place]) : x;
    delete made.xs;
    delete made.at;
    for (const part of ["line", "marker"]) {
      if (source[part]) made[part] = Object.assign({}, source[part], { color: colour(cell, source[part].color) });
    }
    if (source.stackgroup) made.fillcolor = made.line.color;
    if (source.fillpattern) {
      made.fillpattern = Object.assign({ bgcolor: made.line.color, fgcolor: "rgba(0,0,0,0.3)" }, source.fillpattern);
    }
    made.showlegend = false;
    return made;
  }
  function layout(extra, div) {
    const night = dark();
    const axis = {
      gridcolor: night ? "#262e38" : "#e8ecf0", zerolinecolor: night ? "#5b6675" : "#9aa4b1", zerolinewidth: 1,
      linecolor: night ? "#2a323c" : "#dde2e8", tickcolor: night ? "#2a323c" : "#dde2e8", automargin: true,
      fixedrange: true
    };
    const made = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: night ? "#c5cdd8" : "#3f4855" },
      margin: { l: 46, r: 12, t: 8, b: 30 }, dragmode: false, autosize: true,
      hoverlabel: { bgcolor: night ? "#222a34" : "#ffffff", bordercolor: night ? "#3a4552" : "#cfd6de",
        font: { color: night ? "#e7ebf0" : "#151a21", size: 12 } },
      xaxis: Object.assign({ type: "date", showgrid: false }, axis),
      yaxis: Object.assign({}, axis, extra.yaxis || {}),
      hovermode: extra.hovermode || "closest"
    };
    if (extra.legend) {
      made.showlegend = true;
      made.legend = { orientation: "h", y: -0.12, yanchor: "top", font: { size: 11 }, itemclick: false, itemdoubleclick: false };
      made.margin.b = 78;
    }
    if (div.clientWidth < 480) {
      Object.assign(made.xaxis, { nticks: 3, tickangle: 0, tickformat: "%b %y" });
      made.font.size = 11;
      made.hovermode = made.hovermode === "x unified" ? "x" : made.hovermode;
    }
    return made;
  }
  const CONFIG = { displayModeBar: false, responsive: true, showTips: false };

  function specOf(div) {
    const cell = payload[div.dataset.cell];
    const kind = div.dataset.chart;
    if (kind === "equity" || kind === "underwater") {
      const traces = cell[kind].data.map((one) => trace(cell, one, { path: cell.dates }));
      const off = hidden[div.dataset.cell] || new Set();
      for (const one of traces) if (one.meta && off.has(one.meta.agent)) one.visible = false;
      const made = layout(cell[kind].layout, div);
      // Both charts leave room for the names, so that their dates stand above one another.
      made.margin.r = labelRoom(div, traces);
      made.margin.l = div.clientWidth < 480 ? 40 : 52;
      made.yaxis.automargin = false;
      made.xaxis.range = [cell.dates[0], cell.dates[cell.dates.length - 1]];
      const days = Number(div.dataset.days || 0);
      if (days) zoom(made, traces, cell.dates, days);
      return { data: traces, layout: made };
    }
    const agent = cell.agents[div.dataset.agentId];
    if (kind === "holdings") {
      const x = agent.holdings.keep.map((place) => cell.sessions[place]);
      const traces = agent.holdings.data.map((one) => Object.assign(trace(cell, one, { holdings: x }), { showlegend: true }));
      return { data: traces, layout: layout(agent.holdings.layout, div) };
    }
    return tradesSpec(div, cell, agent.trades);
  }
  function zoom(made, traces, dates, days) {
    const end = new Date(dates[dates.length - 1]);
    const from = new Date(end.getTime() - days * 864e5).toISOString().slice(0, 10);
    made.xaxis.range = [from, dates[dates.length - 1]];
    let low = Infinity, high = -Infinity;
    for (const one of traces) {
      if (one.visible === false) continue;
      one.y.forEach((value, place) => {
        if (value !== null && one.x[place] >= from) { low = Math.min(low, value); high = Math.max(high, value); }
      });
    }
    if (low <= high) {
      const pad = (high - low) * 0.06 || 0.01;
      made.yaxis.range = [low - pad, Math.min(high + pad, made.yaxis.rangemode === "tozero" ? 0 : Infinity)];
      delete made.yaxis.rangemode;
    }
  }
  function tradesSpec(div, cell, trades) {
    const select = document.querySelector('select[data-trades="' + div.dataset.agentId + '"]');
    const entry = trades.symbols[select ? select.selectedIndex : 0];
    const data = [];
    if (entry.priced) {
      data.push({ type: "scatter", mode: "lines", name: "close", x: cell.sessions, y: cell.prices[entry.symbol],
        line: { color: colour(cell, "@price"), width: 1.4 }, hovertemplate: "%{x|%Y-%m-%d} close %{y}<extra></extra>" });
    }
    for (const [side, name, symbol] of [["buys", "bought", "triangle-up"], ["sells", "sold", "triangle-down"]]) {
      if (!entry[side].length) continue;
      data.push({ type: "scatter", mode: "markers", name: name, x: entry[side].map((one) => one[0]), y: entry[side].map((one) => one[1]),
        customdata: entry[side].map((one) => one[2]),
        marker: { symbol: symbol, size: 10, color: colour(cell, side === "buys" ? "@buy" : "@sell"),
          line: { width: 1, color: dark() ? "#161b22" : "#ffffff" } },
        hovertemplate: "%{x|%Y-%m-%d} " + name + " %{customdata} at %{y}<extra></extra>" });
    }
    return { data: data, layout: layout({ legend: true }, div) };
  }

  // A line is named at its end, so that no one has to match colours with a legend.
  const short = (name, room) => (name.length > room ? name.slice(0, room - 1) + "…" : name);
  const nameLength = (div) => (div.clientWidth < 480 ? 11 : 22);
  const named = (one) => one.meta && (one.meta.role === "agent" || one.meta.role === "index");
  const pen = document.createElement("canvas").getContext("2d");
  function labelRoom(div, traces) {
    pen.font = labelSize(div) + "px " + getComputedStyle(document.body).fontFamily;
    const widths = traces.filter(named)
      .map((one) => pen.measureText(short(one.meta.agent || one.meta.label, nameLength(div))).width);
    return Math.ceil(Math.max(0, ...widths)) + 14;
  }
  const labelSize = (div) => (div.clientWidth < 480 ? 10 : 12);
  function labelEnds(div) {
    const full = div._fullLayout;
    if (!full || !full.yaxis || !full._size) return;
    const [bottom, top] = full.yaxis.range;
    const height = full._size.h;
    const until = full.xaxis.range[1];
    const ends = [];
    for (const one of div.data) {
      if (!named(one) || one.visible === false) continue;
      let place = one.y.length - 1;
      while (place > 0 && (one.y[place] === null || String(one.x[place]) > String(until).slice(0, 10) + "z")) place -= 1;
      ends.push({ name: one.meta.agent || one.meta.label, colour: one.line.color, y: ((one.y[place] - bottom) / (top - bottom)) * height });
    }
    ends.sort((a, b) => a.y - b.y);
    const gap = Math.min(labelSize(div) + 4, height / Math.max(1, ends.length));
    for (let round = 0; round < 60; round += 1) {
      let moved = false;
      for (let i = 1; i < ends.length; i += 1) {
        const need = gap - (ends[i].y - ends[i - 1].y);
        if (need > 0.1) { ends[i - 1].y -= need / 2; ends[i].y += need / 2; moved = true; }
      }
      for (const end of ends) end.y = Math.max(4, Math.min(height - 4, end.y));
      if (!moved) break;
    }
    const annotations = ends.map((end) => ({
      xref: "paper", yref: "paper", x: 1, y: end.y / height, xanchor: "left", yanchor: "middle", xshift: 5, showarrow: false,
      text: escapeText(short(end.name, nameLength(div))), font: { color: end.colour, size: labelSize(div) }
    }));
    div.dataset.labelled = "yes";
    Plotly.relayout(div, { annotations: annotations });
  }
  // Plotly reads a little markup in texts; a name is a name.
  const escapeText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function draw(div) {
    if (!visible(div)) {
      // Out of sight it keeps an old theme or width; forgotten, it is drawn anew when it is seen again.
      drawn.delete(div);
      return;
    }
    const spec = specOf(div);
    for (const one of spec.data) one.name = escapeText(one.name);
    const done = Plotly.react(div, spec.data, spec.layout, CONFIG);
    drawn.set(div, div.clientWidth);
    if (div.dataset.chart === "equity") Promise.resolve(done).then(() => labelEnds(div));
  }
  function redrawAll() { for (const div of drawn.keys()) draw(div); }
  // A closed <details> still gives its content a size; charts in it wait until it is opened.
  const visible = (div) => div.clientWidth > 0 && !div.closest("details:not([open])");
  function drawWithin(element) {
    for (const div of all(".chart", element)) if (drawn.get(div) !== div.clientWidth) draw(div);
  }
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const [div, width] of drawn) if (div.clientWidth && div.clientWidth !== width) draw(div);
    }, 150);
  });
  function chartsOf(cell) {
    return all('.chart[data-cell="' + cell + '"]').filter((div) => /^(equity|underwater)$/.test(div.dataset.chart));
  }
  for (const group of all(".legend")) {
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const off = (hidden[group.dataset.for] = hidden[group.dataset.for] || new Set());
      const on = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!on));
      if (on) off.add(button.dataset.agent); else off.delete(button.dataset.agent);
      chartsOf(group.dataset.for).forEach(draw);
    });
  }
  for (const group of all(".ranges")) {
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      for (const one of all("button", group)) one.setAttribute("aria-pressed", String(one === button));
      for (const div of chartsOf(group.dataset.for)) { div.dataset.days = button.dataset.days; draw(div); }
    });
  }
  for (const select of all("select[data-trades]")) {
    select.addEventListener("change", () => draw(document.querySelector('.chart[data-chart="trades"][data-agent-id="' + select.dataset.trades + '"]')));
  }
  for (const one of all("details")) one.addEventListener("toggle", () => { if (one.open) drawWithin(one); });

  // Tabs --------------------------------------------------------------------------------------------------------
  const tabs = all('[role="tab"]');
  function choose(id, focus) {
    for (const tab of tabs) {
      const on = tab.getAttribute("aria-controls") === id;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !on;
      if (on && focus) tab.focus();
    }
    drawWithin(document.getElementById(id));
  }
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => choose(tab.getAttribute("aria-controls")));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1
        : step ? (place + step + tabs.length) % tabs.length : null;
      if (next === null) return;
      event.preventDefault();
      choose(tabs[next].getAttribute("aria-controls"), true);
    });
  });
  function follow(id) {
    const target = id && document.getElementById(id);
    if (!target) return false;
    const panel = target.closest(".panel");
    if (panel && tabs.length) choose(panel.id);
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView({ block: "start" });
    return true;
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && follow(link.getAttribute("href").slice(1))) event.preventDefault();
  });

  // Sorting -----------------------------------------------------------------------------------------------------
  function sortBy(table, column, descending) {
    const body = table.tBodies[0];
    const key = (row) => {
      const cell = row.cells[column + 1];
      return cell === undefined || cell.dataset.v === undefined || cell.dataset.v === "" ? null : cell.dataset.v;
    };
    const rows = Array.from(body.rows);
    rows.sort((a, b) => {
      const one = key(a), two = key(b);
      if (one === null || two === null) return (one === null) - (two === null);
      const way = column === 0 ? one.localeCompare(two) : Number(one) - Number(two);
      return descending ? -way : way;
    });
    rows.forEach((row) => body.appendChild(row));
    for (const head of all("thead th", table)) head.removeAttribute("aria-sort");
    const button = table.querySelector('thead button[data-col="' + column + '"]');
    button.closest("th").setAttribute("aria-sort", descending ? "descending" : "ascending");
  }
  for (const table of all("table.board")) {
    for (const button of all("thead button", table)) {
      button.addEventListener("click", () => {
        const now = button.closest("th").getAttribute("aria-sort");
        const column = Number(button.dataset.col);
        sortBy(table, column, now ? now === "ascending" : column !== 0);
      });
    }
  }
  for (const select of all("select[data-sort-for]")) {
    select.addEventListener("change", () => sortBy(document.getElementById(select.dataset.sortFor), Number(select.value), true));
  }

  // Printing: everything visible, on white ------------------------------------------------------------------------
  window.addEventListener("beforeprint", () => {
    forced = "light";
    for (const panel of all(".panel")) { panel.dataset.was = panel.hidden ? "hidden" : ""; panel.hidden = false; }
    drawWithin(document);
    redrawAll();
  });
  window.addEventListener("afterprint", () => {
    forced = null;
    for (const panel of all(".panel")) panel.hidden = panel.dataset.was === "hidden";
    redrawAll();
  });

  if (tabs.length) choose(tabs[0].getAttribute("aria-controls"));
  if (!follow(location.hash.slice(1))) drawWithin(document);
  root.dataset.ready = "yes";
})();
