"use strict";
(function () {
  const payload = JSON.parse(document.getElementById("payload").textContent);
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const charts = Array.from(document.querySelectorAll("[data-waterfall]"));
  let forced = null;
  const dark = () => (forced || root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const button = document.getElementById("theme");
  function nameTheme() { button.textContent = "Theme: " + (root.dataset.theme || "auto"); }
  function setTheme(theme) {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    try {
      if (theme) localStorage.setItem("tradeassay-theme", theme); else localStorage.removeItem("tradeassay-theme");
    } catch (error) { /* a page opened from a file may have no storage; the choice then lasts as long as the page */ }
    nameTheme();
    drawAll();
  }
  button.addEventListener("click", () => {
    const system = prefersDark.matches ? "dark" : "light";
    const other = system === "dark" ? "light" : "dark";
    const now = root.dataset.theme;
    setTheme(!now ? other : now === other ? system : null);
  });
  prefersDark.addEventListener("change", drawAll);
  nameTheme();

  // Plotly reads a little markup in texts; a name is a name.
  const escapeText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  function draw(div) {
    const night = dark();
    const steps = payload[div.dataset.waterfall];
    const narrow = div.clientWidth < 480;
    const gain = night ? "#2f86c4" : "#3a9bdc", loss = night ? "#c8652a" : "#f08a4b", sum = night ? "#9ba7b6" : "#56606e";
    const line = night ? "#5b6675" : "#9aa4b1";
    const ink = night ? "#c5cdd8" : "#3f4855";
    const data = [{
      type: "waterfall", x: steps.map((step) => escapeText(step.label)), y: steps.map((step) => step.value),
      measure: steps.map((step) => step.kind), text: steps.map((step) => step.text), textposition: "outside",
      cliponaxis: false, constraintext: "none", textfont: { size: narrow ? 10 : 12, color: ink },
      increasing: { marker: { color: gain } }, decreasing: { marker: { color: loss } }, totals: { marker: { color: sum } },
      connector: { line: { color: line, width: 1, dash: "dot" } },
      hovertemplate: "%{x}: %{text}<extra></extra>"
    }];
    const axis = { automargin: true, fixedrange: true, linecolor: night ? "#2a323c" : "#dde2e8" };
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false, autosize: true, showlegend: false,
      font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 10 : 12, color: ink },
      margin: { l: 44, r: 8, t: 24, b: 30 },
      hoverlabel: { bgcolor: night ? "#222a34" : "#ffffff", bordercolor: night ? "#3a4552" : "#cfd6de",
        font: { color: night ? "#e7ebf0" : "#151a21", size: 12 } },
      xaxis: Object.assign({ type: "category", showgrid: false, tickangle: narrow ? -55 : "auto" }, axis),
      yaxis: Object.assign({ tickformat: ".0%", gridcolor: night ? "#262e38" : "#e8ecf0", zerolinecolor: line, zerolinewidth: 1 }, axis)
    };
    return Plotly.react(div, data, layout, { displayModeBar: false, responsive: true, showTips: false });
  }
  function drawAll() { return Promise.all(charts.map(draw)); }
  let waiting = 0;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 150); });
  window.addEventListener("beforeprint", () => { forced = "light"; drawAll(); });
  window.addEventListener("afterprint", () => { forced = null; drawAll(); });
  drawAll().then(() => { root.dataset.ready = "yes"; });
})();
