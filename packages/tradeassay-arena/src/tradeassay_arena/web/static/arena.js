"use strict";
// Unfolding decisions and prompts, the chart of one agent's actions, experts' verdicts, and pages that follow what happens
// by polling a small file. Without it every page still shows its numbers.
(function () {
  const body = document.body;
  const all = window.shell.all;
  const block = (id) => { const found = document.getElementById(id); return found ? JSON.parse(found.textContent) : {}; };
  const words = block("words");
  const say = (key, values) => (words[key] || "").replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const when = (text) => (text && text[10] === "T" ? text.slice(0, 10) + " " + text.slice(11, 16) + " UTC" : text || "");
  const ask = (address, how) => fetch(address, how).then((answer) => { if (!answer.ok) throw new Error(String(answer.status)); return answer; });
  const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

  // A reader of Chinese who comes to the front door is led to the Chinese pages --------------------------------------
  if (location.pathname === "/" && /^zh/.test(navigator.language)) location.replace("/zh/");

  // Decisions unfold to what their round's page says about them, prompts to what the JSON beside it has --------------
  const rounds = new Map();
  const prompt = (found, call, place) => {
    const part = (label, text) => {
      const head = document.createElement("p"), said = document.createElement("pre");
      head.className = "label";
      head.textContent = label;
      said.tabIndex = 0;
      said.textContent = text;
      place.append(head, said);
    };
    for (const one of call.messages) part(words["prompt." + one.role] || one.role, one.lines.map((line) => found.lines[line]).join("\n"));
    const tools = call.tool_calls.map((tool) => "\n\n" + tool.name + " " + JSON.stringify(tool.arguments)).join("");
    part(words[call.error ? "prompt.failed" : "prompt.answer"], (call.error || call.text) + tools);
  };
  document.addEventListener("toggle", (event) => {
    const one = event.target;
    if (!one.open || !one.matches || one.dataset.loaded || !one.matches("details[data-at],details[data-call]")) return;
    one.dataset.loaded = "yes";
    if (one.dataset.at) {
      const place = one.querySelector(".body");
      const before = place.innerHTML;
      place.textContent = body.dataset.loading;
      ask(one.dataset.at).then((answer) => answer.text()).then((text) => {
        const fresh = parsed(text);
        const made = fresh.getElementById(one.dataset.entry).querySelector(".decision-body");
        for (const call of all("[data-call]", made)) call.dataset.json = fresh.body.dataset.json;
        place.replaceChildren(made);
      }).catch(() => { place.innerHTML = before; delete one.dataset.loaded; });
      return;
    }
    const address = one.dataset.json || body.dataset.json;
    if (!rounds.has(address)) rounds.set(address, ask(address).then((answer) => answer.json()));
    rounds.get(address).then((found) => {
      const mine = found.decisions.find((made) => made.line.entry === one.dataset.call);
      all(":scope > p", one).forEach((note) => note.remove());
      prompt(found, mine.calls[Number(one.dataset.number)], one);
    }).catch(() => { rounds.delete(address); delete one.dataset.loaded; });
  }, true);

  // An asset's page: the actions of the agent that is chosen are put on the price ---------------------------------------
  const whose = document.getElementById("whose");
  const drawActs = () => {
    const plot = document.querySelector("#actions .plot");
    if (!plot) return;
    const found = block("acts");
    const acts = found.acts[whose.value] || "";
    const [left, top, wide, tall] = plot.querySelector("svg.data").getAttribute("viewBox").split(" ").map(Number);
    const ordinal = (day) => Date.parse(day) / 864e5 + 719163;
    for (const old of all("[data-act]", plot)) old.remove();
    for (const [letters, [label, glyph, tone]] of Object.entries(found.kinds)) {
      const places = found.days.map((_, place) => place).filter((place) => letters.includes(acts[place]));
      if (!places.length) continue;
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      const spots = places.map((place) => [ordinal(found.days[place]), found.prices[place] / Number(plot.dataset.unit)]);
      text.setAttribute("class", "mark " + tone);
      text.setAttribute("x", spots.map(([day]) => (100 * (day - left) / wide).toFixed(2) + "%").join(" "));
      text.setAttribute("y", spots.map(([, price]) => (100 * (-price - top) / tall).toFixed(2) + "%").join(" "));
      text.dataset.points = JSON.stringify(spots.map(([day]) => [day, label]));
      text.dataset.act = letters;
      text.textContent = glyph.repeat(places.length);
      plot.firstElementChild.appendChild(text);
    }
  };
  if (whose) { whose.addEventListener("change", drawActs); drawActs(); }

  // Experts judge an item: JSON, with their key, which stays in this tab ----------------------------------------------
  for (const form of all("form.judge")) {
    const key = form.querySelector("[name=key]");
    try { key.value = sessionStorage.getItem("tradeassay-expert") || ""; } catch (error) { /* typed each time then */ }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const told = form.querySelector("[role=status]");
      const sent = { key: key.value, verdict: event.submitter.value, note: form.querySelector("[name=note]").value };
      fetch(form.action, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(sent) })
        .then((answer) => answer.json().then((found) => {
          if (!answer.ok) throw new Error(found.detail);
          try { sessionStorage.setItem("tradeassay-expert", key.value); } catch (error) { /* as above */ }
          told.textContent = form.dataset.done;
        }))
        .catch((error) => { told.textContent = error.message; });
    });
  }

  // The owner of an agent asks how it stands: its token stays in this tab -----------------------------------------------
  for (const form of all("form.seat")) form.addEventListener("submit", (event) => {
    event.preventDefault();
    const told = form.querySelector("[role=status]"), facts = document.getElementById("seat-facts");
    fetch("/agents/me/status", { headers: { authorization: "Bearer " + form.querySelector("[name=token]").value.trim() } })
      .then((answer) => answer.json().then((found) => {
        facts.hidden = !answer.ok;
        told.textContent = answer.ok ? "" : found.detail;
        for (const place of all("[data-field]", facts)) {
          const value = place.dataset.field.split(".").reduce((one, name) => (one || {})[name], found);
          place.textContent = place.dataset[value] || (typeof value === "string" ? when(value) : value === undefined || value === null ? "–" : String(value));
        }
      }))
      .catch((error) => { told.textContent = error.message; });
  });

  // Following: a small file says what workers do and which pages are others now; the page fetches itself then ---------
  const pulse = document.getElementById("pulse");
  const SILENT_MS = 90000;
  const stateOf = (state) => {
    const silent = state.beat && Date.now() - Date.parse(state.beat) > SILENT_MS;
    return silent && state.status !== "stalled" ? { status: "stalled", since: state.beat } : state;
  };
  const next = (state, now) => {
    const place = document.getElementById("next");
    if (!place) return;
    const names = block("names");
    const count = Object.keys(names).length;
    const deciding = Object.entries(now.deciding).map(([asset, who]) =>
      asset + ": " + (who.length === count ? say("now.all", { count: count }) : who.map((one) => names[one]).join(", ")));
    const at = when(state.next_at);
    if (deciding.length) place.textContent = words["now.deciding"] + " " + deciding.join("; ");
    else if (state.status === "finished") place.textContent = state.unsettled ? say("now.over_open", { count: state.unsettled }) : words["now.over"];
    else if (state.status === "settling") place.textContent = say("now.settling", { at: at });
    else if (at && Date.parse(state.next_at) > Date.now() && state.status === "live") place.textContent = words["now.next"] + " " + say("now.next_at", { count: count, at: at });
    else if (at && state.status === "replay") place.textContent = words["now.next"] + " " + say("now.next_at", { count: count, at: at });
    else if (state.status === "waiting") place.textContent = say("now.waiting", { first: place.dataset.first });
    else place.textContent = state.status === "live" ? "" : words["now.nobody"];
  };
  const inUse = (place) => place.contains(document.activeElement) && document.activeElement !== place || place.querySelector("details[open]");
  const refresh = (version) => ask(location.href, { cache: "no-cache" }).then((answer) => answer.text()).then((text) => {
    const fresh = parsed(text);
    // What was not there at all before (the first standings, say) needs the whole page.
    if (all("[data-live]", fresh).length !== all("[data-live]").length) { location.reload(); return; }
    for (const place of all("[data-live]")) {
      const newer = fresh.getElementById(place.id);
      if (!newer || newer.innerHTML === place.innerHTML || inUse(place)) continue;
      const known = new Set(all("[data-decision]", place).map((one) => one.dataset.decision));
      place.replaceChildren(...newer.childNodes);
      for (const one of all("[data-decision]", place)) if (!known.has(one.dataset.decision)) one.classList.add("fresh");
    }
    body.dataset.version = version;
    document.dispatchEvent(new Event("arena:settled"));  // legends and periods are applied to the fresh charts
    if (whose) drawActs();
  });
  let rest = 15000;
  const follow = () => ask(body.dataset.now, { cache: "no-cache" }).then((answer) => answer.json()).then((now) => {
    let busy = false;
    for (const place of all("[data-state]:not(.pulse)")) {
      const state = now.states[place.dataset.state] && stateOf(now.states[place.dataset.state]);
      if (!state) continue;
      place.className = "state " + state.status;
      place.textContent = say("state." + state.status, { since: when(state.since) });
      busy = busy || state.status === "replay";
      if (place.dataset.state === body.dataset.season) next(state, now);
    }
    for (const form of all("form.judge")) form.hidden = !now.judged;
    for (const place of all("[data-moving]")) {
      const moved = (now.provisional || {})[place.dataset.moving];
      place.className = "moving " + (moved > 0 ? "gain" : moved < 0 ? "lossy" : "");
      place.textContent = moved === undefined ? "" : say("now.provisional", { moved: (moved > 0 ? "+" : "") + (100 * moved).toFixed(2) + "%", at: when(now.priced_at) });
    }
    rest = busy ? 2000 : 15000;  // a replay's day takes seconds, a real one a day
    if (pulse.dataset.state !== "on") { pulse.dataset.state = "on"; pulse.textContent = words["site.following"]; }
    // A page that was translated when it was asked for has the version of the English one.
    const version = now.pages[location.pathname] || now.pages[location.pathname.replace(/^\/zh\//, "/")];
    return version && version !== body.dataset.version ? refresh(version) : undefined;
  }).catch(() => {
    rest = Math.min(rest * 2, 60000);
    if (pulse.dataset.state !== "lost") { pulse.dataset.state = "lost"; pulse.textContent = words["site.lost"]; }
  });
  if (pulse && body.dataset.now) {
    const turn = () => (document.hidden ? Promise.resolve() : follow()).then(() => setTimeout(turn, rest));
    turn();
    document.addEventListener("visibilitychange", () => { if (!document.hidden) follow(); });
  }
})();
