"use strict";
// Functions of every page: theme, tabs, sorting, filtering, and links into folded sections.
(function () {
  const root = document.documentElement;
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

  // Theme -------------------------------------------------------------------------------------------------------
  const system = () => (prefersDark.matches ? "dark" : "light");
  window.shell = { all: all };
  const button = document.getElementById("theme");
  function nameTheme() {
    const theme = root.dataset.theme || "auto";
    button.textContent = document.body.dataset[theme] || "Theme: " + theme;
  }
  button.addEventListener("click", () => {
    // The first click changes "auto" to the opposite theme, the second to the original theme, the third to "auto".
    const other = system() === "dark" ? "light" : "dark";
    const now = root.dataset.theme;
    const next = !now ? other : now === other ? system() : null;
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    try {
      if (next) localStorage.setItem("tradeassay-theme", next); else localStorage.removeItem("tradeassay-theme");
    } catch (error) { /* a page opened from a file may have no storage; the choice is then lost with the page */ }
    nameTheme();
  });
  nameTheme();

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

  // Links into a tab or into a folded section ---------------------------------------------------------------------
  function follow(id) {
    const target = id && document.getElementById(id);
    if (!target) return false;
    const panel = target.closest(".panel");
    if (panel && tabs.length) choose(panel.id);
    if (window.shell.turnTo) window.shell.turnTo(target);
    target.hidden = false;
    const fold = target.closest("details");
    if (fold) fold.open = true;
    target.scrollIntoView({ block: "start" });
    return true;
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]:not(.skip)');
    const id = link && link.getAttribute("href").slice(1);
    if (!link || !follow(id)) return;
    event.preventDefault();
    try { history.replaceState(null, "", "#" + id); } catch (error) { /* a page opened from a file cannot change its address */ }
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
    const head = table.querySelector('thead button[data-col="' + column + '"]');
    head.closest("th").setAttribute("aria-sort", descending ? "descending" : "ascending");
  }
  for (const head of all("table.board thead button")) {
    head.addEventListener("click", () => {
      const now = head.closest("th").getAttribute("aria-sort");
      const column = Number(head.dataset.col);
      sortBy(head.closest("table"), column, now ? now === "ascending" : column !== 0);
    });
  }
  for (const select of all("select[data-sort-for]")) {
    select.addEventListener("change", () => sortBy(document.getElementById(select.dataset.sortFor), Number(select.value), true));
  }

  // Long lists, some rows at a time -----------------------------------------------------------------------------------
  function pager(items, noun, most, told) {
    let found = items, page = 0;
    const bar = document.createElement("nav");
    bar.className = "pages";
    bar.setAttribute("aria-label", "Pages of " + noun);
    const turn = (text, step) => {
      const button = document.createElement("button");
      button.type = "button"; button.className = "ghost"; button.textContent = text;
      button.addEventListener("click", () => { page += step; show(); items[0].parentElement.scrollIntoView(); });
      return button;
    };
    const back = turn("Previous " + most, -1), on = turn("Next " + most, 1), where = document.createElement("span");
    bar.append(back, where, on);
    if (items.length > most) (items[0].closest(".scroll, ul") || items[items.length - 1]).after(bar);
    function show() {
      const pages = Math.max(1, Math.ceil(found.length / most));
      page = Math.min(Math.max(page, 0), pages - 1);
      const seen = new Set(found.slice(page * most, (page + 1) * most));
      for (const item of items) item.hidden = !seen.has(item);
      back.disabled = page === 0; on.disabled = page === pages - 1; bar.hidden = pages === 1;
      where.textContent = "page " + (page + 1) + " of " + pages;
      told(found.length, pages > 1 ? ", " + where.textContent : "");
    }
    return {
      list: (some) => { found = some; page = 0; show(); },
      has: (item) => found.includes(item),
      turnTo: (item) => { page = Math.floor(found.indexOf(item) / most); show(); },
    };
  }
  for (const list of all("[data-paged]")) {
    const rows = Array.from(list.children);
    pager(rows, list.dataset.paged, 25, () => {}).list(rows);
  }

  // Filtering a list of items by words ----------------------------------------------------------------------------
  const find = document.getElementById("find");
  if (find) {
    const items = all(".item"), same = (copy) => document.getElementById(copy.dataset.same).textContent;
    // A repeated text is stored once. The filter finds it at every place, and it is displayed when opened.
    const words = (item) => item.dataset.words || item.textContent + all("[data-same]", item).map(same).join("\n");
    const texts = items.map((item) => words(item).toLowerCase());
    document.addEventListener("toggle", (event) => {
      for (const copy of all("[data-same]", event.target)) copy.textContent = same(copy);
    }, true);
    const noun = find.dataset.noun;
    const book = pager(items, noun, 100, (count, place) => {
      document.getElementById("shown").textContent = count.toLocaleString("en") + " of " +
        items.length.toLocaleString("en") + " " + noun + place;
    });
    const filter = () => {
      const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      book.list(items.filter((item, place) => wanted.every((word) => texts[place].includes(word))));
    };
    find.addEventListener("input", filter);
    // For a link to an item on another page of the list, open that page first.
    window.shell.turnTo = (target) => {
      const item = target.closest(".item");
      if (!item || !item.hidden) return;
      if (!book.has(item)) { find.value = ""; filter(); }
      book.turnTo(item);
    };
    filter();
  }

  // Make elements wider than their frame focusable, so that the keyboard can scroll them.
  function reach() {
    for (const frame of all(".scroll")) {
      if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0; else frame.removeAttribute("tabindex");
    }
  }
  window.addEventListener("resize", reach);
  document.addEventListener("toggle", () => setTimeout(reach), true);
  document.addEventListener("click", () => setTimeout(reach));
  reach();

  window.addEventListener("hashchange", () => follow(location.hash.slice(1)));
  if (tabs.length) choose(tabs[0].getAttribute("aria-controls"));
  follow(location.hash.slice(1));
  root.dataset.ready = "yes";
})();
