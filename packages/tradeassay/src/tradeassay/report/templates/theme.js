"use strict";
(function () {
  var stored = null;
  try { stored = localStorage.getItem("tradeassay-theme"); } catch (error) { stored = null; }
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
  document.documentElement.classList.add("js");
})();
