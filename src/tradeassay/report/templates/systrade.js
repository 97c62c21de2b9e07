"use strict";
(function () {
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
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
  root.dataset.ready = "yes";
})();
