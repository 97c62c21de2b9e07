"use strict";
// Unfolding decisions, forms, and pages that follow what happens. Without it every page still shows its numbers.
(function () {
  const root = document.documentElement;
  const body = document.body;
  const all = window.shell.all;

  // Decisions unfold to everything that led to them -----------------------------------------------------------------
  document.addEventListener("toggle", (event) => {
    const one = event.target;
    if (!one.open || !one.matches || !one.matches("details[data-at]") || one.dataset.loaded) return;
    one.dataset.loaded = "yes";
    const place = one.querySelector(".body");
    const before = place.innerHTML;
    place.textContent = body.dataset.loading;
    fetch(one.dataset.at, { headers: { accept: "text/html" } })
      .then((answer) => { if (!answer.ok) throw new Error(String(answer.status)); return answer.text(); })
      .then((text) => { place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes); })
      .catch(() => { place.innerHTML = before; delete one.dataset.loaded; });
  }, true);

  // Forms of one choice need no button ----------------------------------------------------------------------------
  for (const form of all("form.narrow")) {
    form.addEventListener("change", (event) => { if (event.target.tagName === "SELECT") form.requestSubmit(); });
  }
  // Empty fields do not belong in an address that is passed on.
  for (const form of all("form[method=get]")) {
    form.addEventListener("submit", () => { for (const field of all("input,select", form)) if (!field.value) field.disabled = true; });
  }

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

  // Live: the server says that something happened, the page fetches itself and replaces what changed -------------------
  const season = body.dataset.season;
  const pulse = document.getElementById("pulse");
  if (season && pulse && window.EventSource) {
    let heard = Number(body.dataset.seq);
    let shown = heard;
    let settled = false;
    let busy = false;
    let rest = 1200;
    let timer = 0;
    const say = (state, word) => { if (pulse.dataset.state !== state) { pulse.dataset.state = state; pulse.textContent = word; } };
    const inUse = (place) => place.contains(document.activeElement) && document.activeElement !== place || place.querySelector("details[open]");
    const refresh = () => {
      timer = 0;
      if (document.hidden) return;
      busy = true;
      fetch(location.href, { headers: { accept: "text/html" } })
        .then((answer) => { if (!answer.ok) throw new Error(String(answer.status)); return answer.text(); })
        .then((text) => {
          const fresh = new DOMParser().parseFromString(text, "text/html");
          // What was not there at all before (the first standings, say) needs the whole page.
          if (all("[data-live]", fresh).length !== all("[data-live]").length) { location.reload(); return; }
          for (const place of all("[data-live]")) {
            const next = fresh.getElementById(place.id);
            if (!next || next.innerHTML === place.innerHTML || inUse(place)) continue;
            const known = new Set(all("[data-decision]", place).map((one) => one.dataset.decision));
            place.replaceChildren(...next.childNodes);
            for (const one of all("[data-decision]", place)) if (!known.has(one.dataset.decision)) one.classList.add("fresh");
          }
          shown = Number(fresh.body.dataset.seq);
          root.dataset.shown = String(shown);
          // While the view lags behind the events, the charts are loaded again with it.
          if (settled) { settled = heard > shown; document.dispatchEvent(new Event("arena:settled")); }
        })
        .catch(() => { rest = Math.min(rest * 2, 20000); })
        .finally(() => { busy = false; if (heard > shown) later(); });
    };
    const later = () => { if (!timer && !busy) timer = setTimeout(refresh, rest); };
    const source = new EventSource("/api/events/stream?season=" + encodeURIComponent(season) + "&after=" + heard);
    const hear = (event) => {
      heard = Math.max(heard, Number(event.lastEventId));
      rest = 1200;
      if (event.type === "settled" || event.type === "corrected") settled = true;
      later();
    };
    for (const kind of ["season", "opened", "decided", "failed", "missed", "closed", "executed", "settled", "corrected", "held", "word", "review", "stream"]) source.addEventListener(kind, hear);
    source.addEventListener("open", () => say("on", body.dataset.liveWord));
    source.addEventListener("error", () => say("lost", body.dataset.lostWord));
    // A season that stalls makes no events; its state is asked for now and then all the same.
    setInterval(() => { if (!timer && !busy) refresh(); }, 20000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && heard > shown) later(); });
    window.addEventListener("pagehide", () => source.close());
  }
})();
