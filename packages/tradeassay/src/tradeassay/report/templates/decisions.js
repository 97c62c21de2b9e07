"use strict";
// Decisions are stored in packed form (decisions.py). This script lists and filters them and unpacks one when it is opened.
// Every text is inserted as text: no output of a model becomes markup.
(function () {
  const all = window.shell.all;
  const MOST = 12;
  function make(kind, name, text) {
    const made = document.createElement(kind);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function fold(name, title, gist) {
    const made = make("details", name), head = make("summary");
    head.append(make("b", "", title), make("span", "", gist || ""));
    made.append(head);
    return made;
  }
  function long(text, label) {
    const made = make("pre", "", text);
    made.tabIndex = 0; made.setAttribute("role", "group"); made.setAttribute("aria-label", label);
    return made;
  }
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
  const count = (n, noun) => n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");
  const tools = (row) => new Set((row.turns || []).flatMap((turn) => turn[4].map((call) => call[0])));
  const KINDS = {
    "failed": (row) => row.failed, "mistakes": (row) => (row.problems || []).length, "orders": (row) => (row.orders || []).length,
    "refused": (row) => (row.orders || []).some((one) => one[1] === "refused"), "none": (row) => !row.failed && !(row.orders || []).length,
    "spoken": (row) => (row.turns || []).length,
  };
  const ROLES = { system: "System prompt", user: "Prompt", assistant: "Earlier answer", tool: "Result" };

  function chips(row) {
    const found = [];
    const filled = (row.orders || []).filter((one) => one[1] === "filled" || one[1] === "partly").length;
    if (row.failed) found.push(make("span", "chip failed", "✕ no usable answer"));
    else if ((row.orders || []).length) found.push(make("span", "chip", count(row.orders.length + (row.more || 0), "order") + ", " + filled + " filled"));
    else found.push(make("span", "chip quiet", "no order"));
    if ((row.problems || []).length) found.push(make("span", "chip below", count(row.problems.length, "mistake")));
    if (row.why && row.why !== "latest" && row.why !== "mistakes") found.push(make("span", "chip quiet", row.why));
    if (row.tokens) found.push(make("small", "", row.tokens.toLocaleString("en") + " tokens"));
    return found;
  }
  function orders(row) {
    const scroll = make("div", "scroll"), table = make("table", "plain talk"), body = make("tbody"), head = make("tr");
    table.append(make("caption", "off", "Orders of " + row.session + " and what became of them"));
    for (const title of ["Order", "What became of it", "Confidence", "Why"]) {
      const cell = make("th", "", title); cell.scope = "col"; head.append(cell);
    }
    const top = make("thead"); top.append(head);
    for (const [words, tone, fate, confidence, why] of row.orders) {
      const line = make("tr"), first = make("th", "", words), became = make("td");
      first.scope = "row"; became.append(make("span", "fate " + tone, fate));
      line.append(first, became, make("td", "num", confidence || "–"), make("td", "", why));
      body.append(line);
    }
    table.append(top, body); scroll.append(table);
    return scroll;
  }
  function spoken(row, texts) {
    const list = make("ol", "turns"), text = (place) => (place < 0 ? "" : texts[place]);
    for (const [purpose, attempt, asked, said, calls, error] of row.turns) {
      const item = make("li");
      item.append(make("div", "stage", purpose + (attempt > 1 ? " " + attempt : "")));
      for (const [role, place] of asked) {
        const part = fold("part " + role, ROLES[role] || role, text(place).slice(0, 160));
        part.append(long(text(place), "Prompt")); item.append(part);
      }
      if (said >= 0) { const block = make("div", "answered"); block.append(make("b", "", "Answer"), long(text(said), "Answer")); item.append(block); }
      for (const [name, given, got, found] of calls) {
        const part = fold("part call", name.slice(0, 80), text(given).slice(0, 160));
        part.append(make("div", "label", "Called with" + (found !== "call" ? " (found in the text, " + found + ")" : "")), long(text(given), "Arguments"));
        if (got >= 0) part.append(make("div", "label", "Result"), long(text(got), "Result"));
        item.append(part);
      }
      if (error >= 0) item.append(make("p", "why", text(error)));
      if (said < 0 && !calls.length && error < 0) item.append(make("p", "hint", "An empty answer."));
      list.append(item);
    }
    return list;
  }
  function body(row, texts) {
    const made = make("div", "body");
    if (row.link) { const link = make("a", "", row.of); link.href = row.link; made.append(link); }
    if (row.reason) made.append(make("p", "said", row.reason));
    if ((row.orders || []).length) made.append(orders(row));
    if (row.more) made.append(make("p", "hint", "and " + count(row.more, "more order") + ", not shown"));
    if ((row.problems || []).length) {
      const list = make("ul", "problems");
      for (const one of row.problems) list.append(make("li", "", one));
      made.append(make("p", "h5", "What went wrong"), list);
    }
    if ((row.turns || []).length) {
      const head = make("p", "h5", "The conversation ");
      head.append(make("small", "", [count(row.turns.length, "question"), row.attempts > 1 ? row.attempts + " attempts at the last" : "",
        (row.tokens || 0).toLocaleString("en") + " tokens", row.cost].filter(Boolean).join(", ")));
      made.append(head, spoken(row, texts));
    } else if (row.tokens) made.append(make("p", "hint", "The conversation is in the run's folder."));
    return made;
  }

  const open = (viewer) => (viewer.opened = viewer.opened || read(viewer));
  async function read(viewer) {
    const { texts, rows } = await unpacked(viewer.querySelector("script").textContent);
    const list = viewer.querySelector(".decisions"), said = viewer.querySelector(".found");
    const words = rows.map((row) => [row.session, row.of, row.reason, ...(row.problems || []), ...(row.orders || []).flat(),
      ...(row.turns || []).flatMap((turn) => [turn[3], turn[5], ...turn[2].map((one) => one[1]), ...turn[4].flatMap((call) => [call[1], call[2]])]
        .filter((place) => place >= 0).map((place) => texts[place]))].join("\n").toLowerCase());
    let found = rows.map((_, place) => place), shown = 0;
    const more = make("button", "ghost", "");
    more.type = "button";
    function write(place) {
      const row = rows[place], item = make("details", "decision" + (row.failed ? " failed" : "")), head = make("summary");
      item.dataset.session = row.session;
      head.append(make("span", "day", row.session));
      if (row.of) head.append(make("small", "", row.of));
      head.append(...chips(row), make("span", "gist", row.reason || (row.problems || [])[0] || ""));
      item.append(head);
      item.addEventListener("toggle", () => { if (item.open && item.children.length === 1) item.append(body(row, texts)); });
      return item;
    }
    function grow() {
      list.append(...found.slice(shown, shown + MOST).map(write), more);
      shown = Math.min(found.length, shown + MOST);
      more.hidden = shown >= found.length;
      more.textContent = "Show " + Math.min(MOST, found.length - shown) + " more";
    }
    more.addEventListener("click", grow);
    const [kind, tool, find] = [viewer.querySelector("[data-kind]"), viewer.querySelector("[data-tool]"), viewer.querySelector("input")];
    function filter() {
      const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      found = rows.map((_, place) => place).filter((place) => (!kind.value || KINDS[kind.value](rows[place])) &&
        (!tool || !tool.value || tools(rows[place]).has(tool.value)) && wanted.every((word) => words[place].includes(word)));
      list.replaceChildren(); shown = 0; grow();
      said.textContent = found.length.toLocaleString("en") + " of " + count(rows.length, "decision");
    }
    for (const one of [kind, tool]) if (one) one.addEventListener("change", filter);
    find.addEventListener("input", filter);
    viewer.goTo = (session) => {
      kind.value = ""; find.value = session; filter();
      const item = list.querySelector("details");
      if (item) { item.open = true; item.scrollIntoView({ block: "start" }); }
    };
    filter();
    viewer.dataset.state = "open";
  }
  const viewers = all(".viewer");
  const seen = new IntersectionObserver((entries) => { for (const one of entries) if (one.isIntersecting) open(one.target); });
  for (const viewer of viewers) seen.observe(viewer);
  // #ACCOUNT@SESSION opens one decision.
  async function follow() {
    const [who, session] = decodeURIComponent(location.hash.slice(1)).split("@");
    const home = session && document.getElementById(who), viewer = home && home.querySelector(".viewer");
    if (!viewer) return;
    for (let fold = viewer.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    await open(viewer);
    viewer.goTo(session);
  }
  window.addEventListener("hashchange", follow);
  follow();
})();
