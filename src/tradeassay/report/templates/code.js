"use strict";
(function () {
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const items = Array.from(document.querySelectorAll(".item"));
  const find = document.getElementById("find");
  const shown = document.getElementById("shown");

  function nameTheme() { button.textContent = "Theme: " + (root.dataset.theme || "auto"); }
  button.addEventListener("click", () => {
    const system = prefersDark.matches ? "dark" : "light";
    const other = system === "dark" ? "light" : "dark";
    const now = root.dataset.theme;
    const theme = !now ? other : now === other ? system : null;
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    try {
      if (theme) localStorage.setItem("tradeassay-theme", theme); else localStorage.removeItem("tradeassay-theme");
    } catch (error) { /* a page opened from a file may have no storage */ }
    nameTheme();
  });
  nameTheme();

  function filter() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const item of items) {
      const text = item.dataset.words.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
      if (!item.hidden) count += 1;
    }
    shown.textContent = count + " of " + items.length + " items";
  }
  find.addEventListener("input", filter);
  filter();

  function follow() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target || target.tagName !== "DETAILS") return;
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", follow);
  follow();
  root.dataset.ready = "yes";
})();
