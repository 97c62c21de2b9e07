"""Public views of decisions: lists, whole rounds with all details, prices, positions and events.

Every function except :func:`experiences` takes ``sealed``. If an outside agent takes part,
unsettled decisions are left out of every answer, because a competitor could act on them. Pages are
files, so nothing may be written to them too early.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from itertools import pairwise
from typing import Any, Literal

import msgspec
from sqlalchemy import select

from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.measure import Measure
from tradeassay.metrics.intervals import rate_measure
from tradeassay_arena.season import Season
from tradeassay_arena.state.rows import Phase, SeasonEvent, Stage, Status, read_packet, read_slot
from tradeassay_arena.state.store import CALLS, Store, read_call
from tradeassay_arena.state.tables import decisions, events, rewards, rounds, slots
from tradeassay_bench.core.arena import Action, NewsShown, Packet
from tradeassay_bench.core.dialogue import AskModel, ModelReply

Shown = dict[str, Any]
"""The content of a page and of its ``index.json``, by name."""


class DecisionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in a list.

    ``moved`` is the asset's return after the decision, and ``earned`` the entry's return. With
    ``sealed``, the decision is not settled, and other agents could still profit from it. Neither
    the action nor the status is then displayed, because a failed decision means HOLD.
    """

    id: int
    entry: str
    asset: str
    session: str
    stage: Stage
    phase: Phase
    status: Status | Literal["sealed"]
    sealed: bool
    price: float
    action: Action | None = None
    confidence: float | None = None
    gist: str = ""
    position_before: int | None = None
    position: int | None = None
    moved: float | None = None
    earned: float | None = None
    fee: float | None = None
    nav: float | None = None
    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


_BRIEF = (
    "id entry asset session stage status action confidence reasoning position_before position "
    "earned fee nav "
    "calls input_tokens output_tokens usd"
).split()
_PRICES = rounds.c["phase", "price", "base_price", "next_price"]
_LINES = select(*slots.c[*_BRIEF], *_PRICES).join(rounds, slots.c.round == rounds.c.id)
_ASKED = msgspec.json.Decoder(AskModel)
_ANSWERED = msgspec.json.Decoder(ModelReply)
_ANY = msgspec.json.Decoder()


def newest_decisions(
    store: Store, season: Season, limit: int, *, sealed: bool, entry: str | None = None
) -> tuple[DecisionLine, ...]:
    """Return the newest decisions, newest first. ``entry`` selects one entry."""
    query = _LINES.where(slots.c.season == season.id, slots.c.status != "open")
    if entry is not None:
        query = query.where(slots.c.entry == entry)
    # By session first, which is the order of an index: the newest are found without sorting all
    # rows.
    found = store.rows(query.order_by(slots.c.session.desc(), slots.c.id.desc()).limit(limit))
    return tuple(_line(row, sealed) for row in found)


def holdings(store: Store, season: Season, *, sealed: bool) -> dict[str, dict[str, DecisionLine]]:
    """Return the newest executed decision of every entry on every asset, by entry and asset."""
    phases = ("settled",) if sealed else ("executed", "settled")
    found: dict[str, dict[str, DecisionLine]] = {}
    for asset in season.assets:
        mine = select(rounds.c.id).filter_by(season=season.id, asset=asset.symbol)
        id = store.scalar(
            mine.where(rounds.c.phase.in_(phases)).order_by(rounds.c.session.desc()).limit(1)
        )
        for row in store.rows(_LINES.where(slots.c.round == id)) if id is not None else ():
            found.setdefault(row.entry, {})[asset.symbol] = _line(row, sealed)
    return found


def read_round(
    store: Store, season: Season, asset: str, session: str, *, sealed: bool
) -> Shown | None:
    """Return a round: the common packet, and each entry's prompts, debate, decision and outcome.

    Returns None while the round may not be shown. Prompts repeat the same lines many times, so each
    distinct line is stored once in ``lines``, and a message lists its line numbers.
    """
    with store.read() as db:
        one = select(rounds).filter_by(season=season.id, asset=asset, session=session)
        round = db.execute(one).first()
        if round is None or round.phase == "opened" or (sealed and round.phase != "settled"):
            return None
        rows = db.execute(
            select(slots, *_PRICES).join(rounds).where(slots.c.round == round.id)
        ).all()
        made: dict[int, list[Shown]] = {row.id: [] for row in rows}
        known: dict[str, int] = {}  # The number of every distinct line of a prompt.
        for row in db.execute(CALLS, {"slots": list(made)}):
            call = read_call(row)  # The recorded question and reply.
            asked, reply = _ASKED.decode(call.request), _ANSWERED.decode(call.reply)
            messages = []
            for said in asked.messages:
                places = [known.setdefault(line, len(known)) for line in said.text.split("\n")]
                messages.append({"role": said.role, "lines": places})
            told = {
                "number": call.number,
                "purpose": call.purpose,
                "messages": messages,
                "text": reply.text,
            }
            told |= {"tool_calls": reply.calls, "usage": reply.usage, "error": reply.error}
            made[row.slot].append(told)
    order = {entry.id: place for place, entry in enumerate(season.all_entries)}
    read = [(row, read_slot(row)) for row in sorted(rows, key=lambda row: order[row.entry])]
    return {
        "asset": asset,
        "session": session,
        "decision_time": round.decision_time,
        "packet_sha256": round.packet_sha256,
        "packet": read_packet(round.packet),
        "decisions": [
            {
                "line": _line(row, sealed),
                "decided_at": slot.decided_at,
                "reasoning": slot.reasoning or "",
                "talk": slot.talk,
                "failures": slot.failures,
                "calls": made[slot.id],
            }
            for row, slot in read
        ],
        "lines": tuple(known),
    }


def _line(row: Any, sealed: bool) -> DecisionLine:
    names = "id entry asset session stage phase price".split()
    known = {name: getattr(row, name) for name in names}
    if sealed and row.phase != "settled":
        return DecisionLine(
            **known, status="open" if row.status == "open" else "sealed", sealed=True
        )
    gist = " ".join((row.reasoning or "").split())
    names = "status action confidence position_before position earned fee nav calls usd".split()
    return DecisionLine(
        **known,
        **{name: getattr(row, name) for name in names},
        sealed=False,
        gist=gist if len(gist) <= 280 else gist[:279] + "…",
        moved=None
        if row.next_price is None or not row.base_price
        else row.next_price / row.base_price - 1.0,
        tokens=None if row.input_tokens is None else row.input_tokens + (row.output_tokens or 0),
    )


class PriceNow(msgspec.Struct, frozen=True, kw_only=True):
    """An asset's newest price and its return since the session before."""

    asset: str
    session: str | None
    price: float | None
    moved: float | None


def newest_prices(store: Store, season: Season) -> tuple[PriceNow, ...]:
    """Return the newest price of every asset.

    ``moved`` is None if the previous round was not settled at this price.
    """
    prices = []
    for asset in season.assets:
        mine = select(rounds).filter_by(season=season.id, asset=asset.symbol)
        last, before = (*store.rows(mine.order_by(rounds.c.session.desc()).limit(2)), None, None)[
            :2
        ]
        moved = None
        if last is not None and before is not None and before.next_session == last.session:
            moved = (
                before.next_price / before.base_price - 1.0
            )  # Prices are per share of today, so that a split is not a move.
        session, price = (None, None) if last is None else (last.session, last.price)
        prices.append(PriceNow(asset=asset.symbol, session=session, price=price, moved=moved))
    return tuple(prices)


def who_decides(store: Store, season: str) -> dict[str, list[str]]:
    """Return, by asset, the entries that open rounds are waiting for."""
    open_ones = select(rounds.c.id).filter_by(season=season, phase="opened")
    waited = (
        select(decisions.c.asset, decisions.c.entry)
        .filter_by(status="open")
        .order_by(decisions.c.id)
    )
    found: dict[str, list[str]] = {}
    for symbol, entry in store.rows(waited.where(decisions.c.round.in_(open_ones))):
        found.setdefault(symbol, []).append(entry)
    return found


def timeline(store: Store, season: Season, asset: str, *, sealed: bool) -> Shown:
    """Return an asset's newest sessions, oldest first, with the news of their packets.

    Each item appears at its first session. ``sessions`` are the days of all rounds that may be
    shown. ``acts`` of a point are the entries' actions, or ``failed``, ``missed``. They are empty
    while sealed.
    """
    mine = {"season": season.id, "asset": asset}
    newest = select(*rounds.c["id", "session", "price", "stage", "phase", "packet"]).filter_by(
        **mine
    )
    phases = ("settled",) if sealed else ("executed", "settled")
    every = select(rounds.c.session).filter_by(**mine).where(rounds.c.phase.in_(phases))
    rows = store.rows(
        newest.order_by(rounds.c.session.desc()).limit(120)
    )  # Pages of other rounds are linked.
    days = [day for (day,) in store.rows(every.order_by(rounds.c.session))]
    acts: dict[int, dict[str, str]] = {}
    done = select(*decisions.c["round", "entry", "status", "action"])
    for round, entry, status, action in store.rows(
        done.where(decisions.c.round.in_([r.id for r in rows]))
    ):
        if status != "open":
            acts.setdefault(round, {})[entry] = action if status == "decided" else status
    points, news = [], dict[str, Shown]()
    for row in reversed(rows):
        shut = sealed and row.phase != "settled"
        place = {"session": row.session, "price": row.price, "stage": row.stage, "phase": row.phase}
        points.append({**place, "sealed": shut, "acts": {} if shut else acts.get(row.id, {})})
        for item in read_packet(row.packet).news:
            news.setdefault(item.id, {**msgspec.structs.asdict(item), "session": row.session})
    return {"asset": asset, "points": points, "news": list(news.values()), "sessions": days}


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """The share of right decisions of an entry at one level of confidence.

    ``low`` and ``high`` bound the confidence. The mean confidence is included.
    """

    low: float
    high: float
    stated: float
    right: Measure


def calibration(store: Store, season: str, entry: str) -> tuple[Calibrated, ...]:
    """Return the accuracy of an entry's stated confidences, by level.

    Only BUY and SELL in settled live sessions with a price change are included.
    """
    columns = (*decisions.c["confidence", "action"], *rounds.c["base_price", "next_price"])
    query = select(*columns).join(rounds, rounds.c.id == decisions.c.round).order_by(decisions.c.id)
    mine = (
        decisions.c.season == season,
        decisions.c.entry == entry,
        decisions.c.confidence.is_not(None),
    )
    counts = (
        rounds.c.phase == "settled",
        rounds.c.stage == "live",
        decisions.c.action.in_(("BUY", "SELL")),
    )
    rows = store.rows(query.where(*mine, *counts))
    told = [(row[0], (row[1] == "BUY") == (row[3] > row[2])) for row in rows if row[2] != row[3]]
    made = []
    for low, high in pairwise((0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)):
        here = [(stated, right) for stated, right in told if low <= stated < high]
        if here:
            stated = math.fsum(one for one, _ in here) / len(here)
            right = rate_measure(sum(right for _, right in here), len(here), nothing="")
            made.append(Calibrated(low=low, high=min(high, 1.0), stated=stated, right=right))
    return tuple(made)


def newest_events(
    store: Store, season: Season, limit: int, *, sealed: bool, kinds: Collection[str] | None = None
) -> tuple[SeasonEvent, ...]:
    """Return the newest public events, newest first."""
    query = select(events).filter_by(season=season.id).order_by(events.c.seq.desc()).limit(limit)
    if kinds is not None:
        query = query.where(events.c.kind.in_(kinds))
    found = [
        SeasonEvent(**{**row._mapping, "body": _ANY.decode(row.body)}) for row in store.rows(query)
    ]
    return tuple(public_event(one) if sealed else one for one in found)


def public_event(event: SeasonEvent) -> SeasonEvent:
    """Return an event of a sealed season without the results of decisions."""
    secret = ("action", "changed", "slots")  # results of decisions
    kind, body = (
        event.kind,
        {name: value for name, value in event.body.items() if name not in secret},
    )
    if kind == "failed":
        kind = "decided"
    elif kind == "missed" and "slots" in event.body:
        kind = "closed"
        body.pop("cause", None)
    return msgspec.structs.replace(event, kind=kind, body=body)


class Experience(msgspec.Struct, frozen=True):
    """One settled decision: the packet, the entry's decision, and its reward."""

    packet: Packet
    action: Action
    position: int
    reward: float


def experiences(store: Store, season: str, entry: str) -> tuple[Experience, ...]:
    """Return an entry's experiences, oldest first.

    Empty in seasons without the rule ``feedback``.
    """
    mine = (rewards.c.season == season, rewards.c.entry == entry)
    query = select(rounds.c.packet, slots.c.action, slots.c.position, rewards.c.reward).where(*mine)
    query = query.join(slots, slots.c.id == rewards.c.slot).join(
        rounds, rounds.c.id == slots.c.round
    )
    return tuple(
        Experience(read_packet(row.packet), row.action or "HOLD", row.position or 0, row.reward)
        for row in store.rows(query.order_by(rewards.c.slot))
    )


def packet_summary(store: Store, season: Season) -> Shown:
    """Return counts of the contents of the newest rounds' packets.

    ``late`` is the number of items published after the decision, which is always 0. ``empty`` is
    the share of packets without any item.
    """
    query = (
        select(rounds.c.packet).filter_by(season=season.id).order_by(rounds.c.id.desc()).limit(400)
    )
    packets = [read_packet(text) for (text,) in store.rows(query)]
    items: dict[str, NewsShown] = {}
    for packet in packets:
        for item in packet.news:
            items.setdefault(item.id, item)
    sources = Counter(item.source for item in items.values())
    newest = sorted(items.values(), key=lambda item: (item.published_at, item.id), reverse=True)
    late = 0
    for packet in packets:
        late += sum(item.published_at > packet.decided_at for item in packet.news)
    return {
        "rounds": len(packets),
        "items": len(items),
        "empty": sum(not packet.news for packet in packets) / len(packets) if packets else None,
        "late": late,
        "sources": [{"source": name, "items": n} for name, n in sources.most_common()],
        "latest": newest[:40],
    }


def entry_memory(store: Store, season: Season, entry: str, *, sealed: bool) -> Shown:
    """Return an entry's memory of every asset in readable form.

    Assets without a memory are left out. With ``sealed``, the memory is hidden until the season
    ends, because other agents could read it.
    """
    found = []
    for asset in () if sealed else season.assets:
        body = store.memory(season.id, entry, asset.symbol)
        if body is None:
            continue
        try:
            items = _remembered(msgspec.json.decode(body))
            raw = msgspec.json.format(body, indent=2).decode()
        except UNDECODABLE:
            items, raw = [], body.decode("utf-8", "replace")
        found.append({"asset": asset.symbol, "items": items, "size": len(body), "raw": raw})
    return {"entry": entry, "sealed": sealed, "assets": found}


def _remembered(value: Any) -> list[Shown]:
    """Return the readable parts of a memory: layered items, or a diary of the entry's decisions."""
    found = []
    for name in ("items", "entries"):
        listed = value.get(name) if isinstance(value, dict) else None
        for item in listed if isinstance(listed, list) else ():
            if not isinstance(item, dict):
                continue
            weight, earned = item.get("importance"), item.get("earned")
            group, text, when = (
                str(item.get("layer", "")),
                str(item.get("text", "")),
                item.get("made", ""),
            )
            if name == "entries":
                outcome = f" ({earned:+.2%})" if isinstance(earned, int | float) else ""
                text = f"{item.get('action', '')}{outcome}: {item.get('reasoning', '')}"
                group, when = "journal", item.get("date", "")
            importance = float(weight) if isinstance(weight, int | float) else None
            found.append(
                {"group": group, "text": text, "when": str(when), "importance": importance}
            )
    return found
