"""Decisions as the public may see them: lists, a whole round with all that led to it, prices, positions, events.

Everything but an entry's own :func:`experiences` takes ``sealed``: where somebody decides outside, what is not
settled stays out of every answer, because a competitor could act on it. Pages are files, so nothing may reach them
before its time.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Any, Literal

import msgspec
from sqlalchemy import select

from tradeassay.arena.season import Season
from tradeassay.arena.state.rows import Phase, SeasonEvent, Stage, Status, read_packet, read_slot
from tradeassay.arena.state.store import Store, read_call
from tradeassay.arena.state.tables import calls, decisions, events, rewards, rounds, slots
from tradeassay.core.arena import Action, ChoiceFailure, Contribution, NewsShown, Packet
from tradeassay.core.dialogue import AskModel, ModelReply, ToolCall, Usage
from tradeassay.core.measure import Measure, plain_sum
from tradeassay.metrics.intervals import rate_measure

GIST = 280
"""How much of a reason a list shows."""

SESSIONS = 120
"""How many sessions of an asset its page draws; all others are linked."""


class DecisionLine(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in a list. ``moved`` is what the asset did afterwards, ``earned`` what the entry made of it.

    ``sealed``: it is not settled yet and others could still profit from it, so what was decided is not shown, nor
    whether it was: a decision that failed holds.
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


class MessageShown(msgspec.Struct, frozen=True, kw_only=True):
    """A message to a model; ``lines`` are places in the round's ``lines``, to be joined by line breaks."""

    role: str
    lines: tuple[int, ...]


class CallShown(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model, word for word, and the answer."""

    number: int
    purpose: str
    messages: tuple[MessageShown, ...]
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    error: str | None


class DecisionRead(msgspec.Struct, frozen=True, kw_only=True):
    """One decision with all that led to it."""

    line: DecisionLine
    decided_at: str | None
    reasoning: str
    talk: tuple[Contribution, ...]
    failures: tuple[ChoiceFailure, ...]
    calls: tuple[CallShown, ...]


class RoundRead(msgspec.Struct, frozen=True, kw_only=True):
    """One asset's session: what everybody was told, and what each entry made of it.

    Prompts repeat each other a hundredfold, so their text is kept once, line by line, in ``lines``.
    """

    asset: str
    session: str
    decision_time: str
    packet_sha256: str
    packet: Packet
    decisions: tuple[DecisionRead, ...]
    lines: tuple[str, ...]


_BRIEF = (
    "id entry asset session stage status action confidence reasoning position_before position earned fee nav "
    "calls input_tokens output_tokens usd"
).split()
_PRICES = tuple(rounds.c[name] for name in ("phase", "price", "base_price", "next_price"))
_LINES = select(*(slots.c[name] for name in _BRIEF), *_PRICES).join(rounds, slots.c.round == rounds.c.id)
_ASKED = msgspec.json.Decoder(AskModel)
_ANSWERED = msgspec.json.Decoder(ModelReply)
_ANY = msgspec.json.Decoder()


def newest_decisions(
    store: Store, season: Season, limit: int, *, sealed: bool, entry: str | None = None
) -> tuple[DecisionLine, ...]:
    """Return the newest decisions, of one entry where it is named, newest first."""
    query = _LINES.where(slots.c.season == season.id, slots.c.status != "open")
    if entry is not None:
        query = query.where(slots.c.entry == entry)
    # By session first: that is the order of an index, so that the newest are found without sorting all others.
    with store.read() as db:
        found = db.execute(query.order_by(slots.c.session.desc(), slots.c.id.desc()).limit(limit))
        return tuple(_line(row, sealed) for row in found)


def holdings(store: Store, season: Season, *, sealed: bool) -> dict[str, dict[str, DecisionLine]]:
    """Return everybody's newest executed decision on every asset, which says what they hold: entry -> asset."""
    phases = ("settled",) if sealed else ("executed", "settled")
    found: dict[str, dict[str, DecisionLine]] = {}
    with store.read() as db:
        for asset in season.assets:
            mine = (rounds.c.season == season.id, rounds.c.asset == asset.symbol, rounds.c.phase.in_(phases))
            newest = select(rounds.c.id).where(*mine).order_by(rounds.c.session.desc()).limit(1)
            id = db.execute(newest).scalar()
            for row in db.execute(_LINES.where(slots.c.round == id)) if id is not None else ():
                found.setdefault(row.entry, {})[asset.symbol] = _line(row, sealed)
    return found


def read_round(store: Store, season: Season, asset: str, session: str, *, sealed: bool) -> RoundRead | None:
    """Return a round with every decision's prompts, debate and outcome; None while it may not be shown."""
    where = (rounds.c.season == season.id, rounds.c.asset == asset, rounds.c.session == session)
    with store.read() as db:
        round = db.execute(select(rounds).where(*where)).first()
        if round is None or round.phase == "opened" or (sealed and round.phase != "settled"):
            return None
        rows = db.execute(select(slots, *_PRICES).join(rounds).where(slots.c.round == round.id)).all()
        ids = [row.id for row in rows]
        made: dict[int, list[CallShown]] = {id: [] for id in ids}
        known: dict[str, int] = {}  # every line of every prompt, once
        asked = select(calls).where(calls.c.slot.in_(ids)).order_by(calls.c.slot, calls.c.number)
        for row in db.execute(asked):
            made[row.slot].append(_call(row, known))
    order = {entry.id: place for place, entry in enumerate(season.everyone)}
    read = [(row, read_slot(row)) for row in sorted(rows, key=lambda row: order[row.entry])]
    return RoundRead(
        asset=asset,
        session=session,
        decision_time=round.decision_time,
        packet_sha256=round.packet_sha256,
        packet=read_packet(round.packet),
        decisions=tuple(
            DecisionRead(
                line=_line(row, sealed),
                decided_at=slot.decided_at,
                reasoning=slot.reasoning or "",
                talk=slot.talk,
                failures=slot.failures,
                calls=tuple(made[slot.id]),
            )
            for row, slot in read
        ),
        lines=tuple(known),
    )


def _call(row: Any, known: dict[str, int]) -> CallShown:
    call = read_call(row)
    asked, reply = _ASKED.decode(call.request), _ANSWERED.decode(call.reply)
    return CallShown(
        number=call.number,
        purpose=call.purpose,
        messages=tuple(
            MessageShown(
                role=one.role, lines=tuple(known.setdefault(line, len(known)) for line in one.text.split("\n"))
            )
            for one in asked.messages
        ),
        text=reply.text,
        tool_calls=reply.calls,
        usage=reply.usage,
        error=reply.error,
    )


def _line(row: Any, sealed: bool) -> DecisionLine:
    names = "id entry asset session stage phase price".split()
    known = {name: getattr(row, name) for name in names}
    if sealed and row.phase != "settled":
        return DecisionLine(**known, status="open" if row.status == "open" else "sealed", sealed=True)
    gist = " ".join((row.reasoning or "").split())
    names = "status action confidence position_before position earned fee nav calls usd".split()
    return DecisionLine(
        **known,
        **{name: getattr(row, name) for name in names},
        sealed=False,
        gist=gist if len(gist) <= GIST else gist[: GIST - 1] + "…",
        moved=None if row.next_price is None or not row.base_price else row.next_price / row.base_price - 1.0,
        tokens=None if row.input_tokens is None else row.input_tokens + (row.output_tokens or 0),
    )


class PriceNow(msgspec.Struct, frozen=True, kw_only=True):
    """An asset's newest price and what it moved since the session before."""

    asset: str
    session: str | None
    price: float | None
    moved: float | None


def newest_prices(store: Store, season: Season) -> tuple[PriceNow, ...]:
    prices = []
    with store.read() as db:
        for asset in season.assets:
            mine = (rounds.c.season == season.id, rounds.c.asset == asset.symbol)
            found = db.execute(select(rounds).where(*mine).order_by(rounds.c.session.desc()).limit(2)).all()
            last, before = (*found, None, None)[:2]
            moved = None
            if last is not None and before is not None and before.next_session == last.session:
                moved = before.next_price / before.base_price - 1.0  # in shares of today: a split is no move
            prices.append(
                PriceNow(
                    asset=asset.symbol,
                    session=None if last is None else last.session,
                    price=None if last is None else last.price,
                    moved=moved,
                )
            )
    return tuple(prices)


def who_decides(store: Store, season: str) -> dict[str, tuple[str, ...]]:
    """Return the entries whose answers open rounds wait for, by asset. Who decides is no secret."""
    open_ones = select(rounds.c.id).where(rounds.c.season == season, rounds.c.phase == "opened")
    waited = select(decisions.c.asset, decisions.c.entry).where(
        decisions.c.round.in_(open_ones), decisions.c.status == "open"
    )
    found: dict[str, tuple[str, ...]] = {}
    with store.read() as db:
        for symbol, entry in db.execute(waited.order_by(decisions.c.id)):
            found[symbol] = (*found.get(symbol, ()), entry)
    return found


class TimelinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A session of an asset: its price at the decision, and what every entry did (empty while sealed)."""

    session: str
    price: float
    stage: Stage
    phase: Phase
    sealed: bool
    acts: dict[str, str]


class TimelineNews(NewsShown, frozen=True, kw_only=True):
    """A news item, at the first session whose packet had it."""

    session: str


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """An asset's newest sessions, oldest first, the news of their packets, and the days of all its sessions.

    ``acts`` of a point are actions, or ``failed`` and ``missed``.
    """

    asset: str
    points: tuple[TimelinePoint, ...]
    news: tuple[TimelineNews, ...]
    sessions: tuple[str, ...]


def timeline(store: Store, season: Season, asset: str, *, sealed: bool, limit: int = SESSIONS) -> Timeline:
    """Return news over actions and price of an asset. ``sessions`` has only those whose round may be shown."""
    mine = (rounds.c.season == season.id, rounds.c.asset == asset)
    columns = ("id", "session", "price", "stage", "phase", "packet")
    query = select(*(rounds.c[name] for name in columns)).where(*mine)
    phases = ("settled",) if sealed else ("executed", "settled")
    every = select(rounds.c.session).where(*mine, rounds.c.phase.in_(phases)).order_by(rounds.c.session)
    with store.read() as db:
        rows = db.execute(query.order_by(rounds.c.session.desc()).limit(limit)).all()
        days = tuple(db.execute(every).scalars())
        acts: dict[int, dict[str, str]] = {}
        done = select(decisions.c.round, decisions.c.entry, decisions.c.status, decisions.c.action)
        for round, entry, status, action in db.execute(done.where(decisions.c.round.in_([r.id for r in rows]))):
            if status != "open":
                acts.setdefault(round, {})[entry] = action if status == "decided" else status
    points, news = [], dict[str, TimelineNews]()
    for row in reversed(rows):
        shut = sealed and row.phase != "settled"
        points.append(
            TimelinePoint(
                session=row.session,
                price=row.price,
                stage=row.stage,
                phase=row.phase,
                sealed=shut,
                acts={} if shut else acts.get(row.id, {}),
            )
        )
        for item in read_packet(row.packet).news:
            news.setdefault(item.id, TimelineNews(session=row.session, **msgspec.structs.asdict(item)))
    return Timeline(asset=asset, points=tuple(points), news=tuple(news.values()), sessions=days)


_SECRET = frozenset(("action", "changed", "slots"))
"""What events say about decisions, one by one or counted."""


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """How often an entry was right where it stated a confidence from ``low`` to ``high``, and the mean of that."""

    low: float
    high: float
    stated: float
    right: Measure


_STATED = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01)


def calibration(store: Store, season: str, entry: str) -> tuple[Calibrated, ...]:
    """Return what stated confidences are worth: of BUY and SELL in settled sessions that count, and that moved."""
    columns = (decisions.c.confidence, decisions.c.action, rounds.c.base_price, rounds.c.next_price)
    query = select(*columns).join(rounds, rounds.c.id == decisions.c.round)
    mine = (decisions.c.season == season, decisions.c.entry == entry, decisions.c.confidence.is_not(None))
    counts = (rounds.c.phase == "settled", rounds.c.stage == "live", decisions.c.action.in_(("BUY", "SELL")))
    with store.read() as db:
        rows = db.execute(query.where(*mine, *counts).order_by(decisions.c.id)).all()
    told = [(row[0], (row[1] == "BUY") == (row[3] > row[2])) for row in rows if row[2] != row[3]]
    made = []
    for low, high in pairwise(_STATED):
        here = [(stated, right) for stated, right in told if low <= stated < high]
        if here:
            stated = plain_sum(one for one, _ in here) / len(here)
            right = rate_measure(sum(right for _, right in here), len(here), nothing="")
            made.append(Calibrated(low=low, high=min(high, 1.0), stated=stated, right=right))
    return tuple(made)


def newest_events(
    store: Store, season: str, limit: int, *, sealed: bool, kinds: Collection[str] | None = None
) -> tuple[SeasonEvent, ...]:
    """Return what happened last, newest first, as the public may see it."""
    query = select(events).where(events.c.season == season).order_by(events.c.seq.desc()).limit(limit)
    if kinds is not None:
        query = query.where(events.c.kind.in_(kinds))
    with store.read() as db:
        found = [
            SeasonEvent(seq=row.seq, season=row.season, kind=row.kind, at=row.at, body=_ANY.decode(row.body))
            for row in db.execute(query)
        ]
    return tuple(public_event(one) if sealed else one for one in found)


def public_event(event: SeasonEvent) -> SeasonEvent:
    """Return an event of a sealed season: of a decision only that it was made, not how it ended."""
    kind, body = event.kind, {name: value for name, value in event.body.items() if name not in _SECRET}
    if kind == "failed":
        kind = "decided"
    elif kind == "missed" and "slots" in event.body:
        kind = "closed"
        body.pop("cause", None)
    return msgspec.structs.replace(event, kind=kind, body=body)


class Experience(msgspec.Struct, frozen=True):
    """One settled decision: what everybody could know, what this entry did, what it was paid."""

    packet: Packet
    action: Action
    position: int
    reward: float


def experiences(store: Store, season: str, entry: str, *, after: int = 0) -> tuple[Experience, ...]:
    """Return an entry's experiences whose slot is greater than ``after``, oldest first.

    Empty in seasons without the rule ``feedback``.
    """
    query = (
        select(rounds.c.packet, slots.c.action, slots.c.position, rewards.c.reward)
        .join(slots, slots.c.id == rewards.c.slot)
        .join(rounds, rounds.c.id == slots.c.round)
        .where(rewards.c.season == season, rewards.c.entry == entry, rewards.c.slot > after)
        .order_by(rewards.c.slot)
    )
    with store.read() as db:
        rows = db.execute(query).all()
    return tuple(
        Experience(read_packet(row.packet), row.action or "HOLD", row.position or 0, row.reward) for row in rows
    )
