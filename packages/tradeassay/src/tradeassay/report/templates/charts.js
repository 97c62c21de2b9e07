"use strict";
// Charts are drawn on the server. This script hides lines, selects periods, marks trades on prices and displays values.
(function () {
  const all = window.shell.all;
  const NS = "http://www.w3.org/2000/svg";
  const view = (plot) => plot.querySelector("svg.data").getAttribute("viewBox").split(" ").map(Number);
  const dayName = (day) => new Date((day - 719163) * 864e5).toISOString().slice(0, 10);

  // Legends and periods: apply the state of the buttons to the charts of their cell --------------------------------
  function apply(cell) {
    const buttons = (group) => all(group + " button").filter((one) => (one.parentElement.dataset.for || "") === cell);
    const pressed = (one) => one.getAttribute("aria-pressed") === "true";
    const off = new Set(buttons(".legend").filter((one) => !pressed(one)).map((one) => one.dataset.entry));
    const chosen = buttons(".ranges").find(pressed);
    for (const plot of all(".plot").filter((one) => (one.dataset.cell || "") === cell)) {
      for (const one of all("[data-entry]", plot)) one.toggleAttribute("hidden", off.has(one.dataset.entry));
      const period = chosen && plot.querySelector('.period[data-days="' + chosen.dataset.days + '"]');
      if (!period) continue;
      for (const one of all(".period", plot)) one.toggleAttribute("hidden", one.dataset.days !== period.dataset.days);
      plot.querySelector("svg.data").setAttribute("viewBox", period.dataset.view);
    }
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".legend button, .ranges button");
    if (!button) return;
    const group = button.parentElement;
    if (group.matches(".ranges")) for (const one of group.children) one.setAttribute("aria-pressed", String(one === button));
    else button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    apply(group.dataset.for || "");
  });
  // The arena replaces charts by new ones. Keep the reader's selection.
  document.addEventListener("arena:settled", () => {
    for (const cell of new Set(all(".legend, .ranges").map((one) => one.dataset.for || ""))) apply(cell);
  });

  // Trades of the selected symbol on its price -------------------------------------------------------------------------
  function trades(select) {
    const place = document.getElementById(select.dataset.trades);
    const [sheet, some] = JSON.parse(place.dataset.traded)[select.selectedIndex];
    place.replaceChildren(document.getElementById(place.dataset.cell + "-p" + sheet).content.cloneNode(true));
    const plot = place.querySelector(".plot"), [left, top, wide, tall] = view(plot), unit = Number(plot.dataset.unit);
    for (const [tone, glyph, word] of [["buy", "▲", "bought"], ["sell", "▼", "sold"]]) {
      const side = some.filter((one) => (one[2] > 0) === (tone === "buy"));
      if (!side.length) continue;
      const text = document.createElementNS(NS, "text");
      text.setAttribute("class", "mark " + tone);
      text.setAttribute("x", side.map((one) => (100 * (one[0] - left) / wide).toFixed(2) + "%").join(" "));
      text.setAttribute("y", side.map((one) => (100 * (-one[1] / unit - top) / tall).toFixed(2) + "%").join(" "));
      text.dataset.points = JSON.stringify(side.map((one) => [one[0], word + " " + Math.abs(one[2]).toLocaleString("en") + " at " + one[1]]));
      text.textContent = glyph.repeat(side.length);
      plot.firstElementChild.appendChild(text);
    }
  }
  for (const select of all("select[data-trades]")) {
    select.addEventListener("change", () => trades(select));
    trades(select);
  }

  // Hovering: the day under the pointer, and the value of every line on it ------------------------------------------
  const read = new WeakMap();
  function points(path) {
    if (!read.has(path)) {
      const found = new Map();
      let x = 0, y = 0;
      for (const [, kind, across, up] of path.getAttribute("d").matchAll(/([Ml])(-?\d+) ?(-?\d+)/g)) {
        x = Number(across) + (kind === "l" ? x : 0);
        y = Number(up) + (kind === "l" ? y : 0);
        found.set(x, -y);
      }
      read.set(path, found);
    }
    return read.get(path);
  }
  function written(value, plot) {
    if (plot.dataset.form === "number") return Number(value.toPrecision(6)).toLocaleString("en");
    return (value > 0 && !plot.hasAttribute("data-stacked") ? "+" : "") + (100 * value).toFixed(1).replace("-", "\u2212") + "%";
  }
  function said(plot, day) {
    const unit = Number(plot.dataset.unit);
    const lines = all("svg.data [data-label]:not([hidden])", plot);
    const rows = [];
    lines.forEach((path, place) => {
      if (!points(path).has(day)) return;
      const below = plot.hasAttribute("data-stacked") && place + 1 < lines.length ? points(lines[place + 1]).get(day) || 0 : 0;
      const seen = (points(path).get(day) - below) * unit, value = "log" in plot.dataset ? Math.expm1(seen) : seen;
      rows.push({ value: value, text: path.dataset.label + "  " + written(value, plot), hue: getComputedStyle(path).color });
    });
    rows.sort((a, b) => b.value - a.value);
    for (const one of all(".period:not([hidden]) [data-points], svg > [data-points]", plot)) {
      for (const [when, words] of JSON.parse(one.dataset.points)) if (when === day) rows.push({ text: words, hue: getComputedStyle(one).fill });
    }
    return rows.slice(0, 14);
  }
  let over = null;
  function leave() {
    if (over) for (const one of all(".plot-tip, .plot-rule", over)) one.remove();
    over = null;
  }
  function piece(plot, kind, name) {
    const made = document.createElement(kind);
    made.className = name;
    plot.appendChild(made);
    return made;
  }
  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest && event.target.closest(".plot");
    leave();
    if (!plot) return;
    const frame = plot.firstElementChild.getBoundingClientRect(), outer = plot.getBoundingClientRect();
    const [left, , wide] = view(plot), share = (event.clientX - frame.left) / frame.width;
    if (share < -0.01 || share > 1.01) return;
    const days = new Set(all("svg.data [data-label]:not([hidden])", plot).flatMap((path) => Array.from(points(path).keys())));
    for (const one of all("[data-points]", plot)) for (const [when] of JSON.parse(one.dataset.points)) days.add(when);
    let day = null;
    for (const one of days) if (day === null || Math.abs(one - left - share * wide) < Math.abs(day - left - share * wide)) day = one;
    const rows = day === null ? [] : said(plot, day);
    if (!rows.length) return;
    over = plot;
    const x = frame.left - outer.left + (day - left) / wide * frame.width;
    piece(plot, "div", "plot-rule").style.left = x + "px";
    const tip = piece(plot, "div", "plot-tip");
    piece(tip, "strong", "").textContent = dayName(day);
    for (const row of rows) {
      const line = piece(tip, "div", "");
      line.style.color = row.hue;
      line.textContent = row.text;
    }
    tip.style.left = (x > outer.width / 2 ? Math.max(0, x - tip.offsetWidth - 10) : Math.min(x + 10, outer.width - tip.offsetWidth)) + "px";
  });
  document.addEventListener("pointerleave", leave);
})();
