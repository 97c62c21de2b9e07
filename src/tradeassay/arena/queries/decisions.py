"""Decisions as they were made: lists, one with everything that led to it, and a timeline over price and news."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from sqlalchemy import Select, select

from tradeassay.arena.season import Season
from tradeassay.arena.state.rows import Phase, Stage, Status, read_packet, read_slot
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rounds, slots
from tradeassay.core.arena import Action, ChoiceFailure, Contribution, Packet
from tradeassay.core.dialogue import AskModel, Message, ModelReply, ToolCall, Usage

GIST = 280
"""How much of a reason a list shows."""

MOST = 200
"""How many decisions one page of a list may have."""

Which = Literal["all", "decided", "failed", "missed"]


SealedStatus = Status | Literal["sealed"]
"""How a decision ended; ``sealed`` where that is not told yet."""


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
    status: SealedStatus
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


class DecisionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions, the newest first; ``next`` is what to give as ``before`` for older ones."""

    items: tuple[DecisionLine, ...]
    next: int | None


class CallShown(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model, word for word, and the answer."""

    number: int
    purpose: str
    messages: tuple[Message, ...]
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    error: str | None


class DecisionRead(msgspec.Struct, frozen=True, kw_only=True):
    """One decision with all that led to it; the parts are empty while it is sealed."""

    line: DecisionLine
    decision_time: str
    decided_at: str | None
    packet_sha256: str
    packet: Packet | None
    reasoning: str
    talk: tuple[Contribution, ...]
    failures: tuple[ChoiceFailure, ...]
    calls: tuple[CallShown, ...]


_BRIEF = (
    "id entry asset session stage status action confidence reasoning position_before position earned fee nav "
    "calls input_tokens output_tokens usd"
).split()
_COLUMNS: tuple[Any, ...] = (
    *(slots.c[name] for name in _BRIEF),
    rounds.c.phase,
    rounds.c.price,
    rounds.c.base_price,
    rounds.c.next_price,
)
_ASKED = msgspec.json.Decoder(AskModel)
_ANSWERED = msgspec.json.Decoder(ModelReply)


class DecisionsWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which decisions: None and ``all`` take every one; ``before`` is the ``next`` of the page before."""

    entry: str | None = None
    asset: str | None = None
    status: Which = "all"
    session: str | None = None
    before: int | None = None
    limit: int = 30


def decision_page(store: Store, season: Season, wanted: DecisionsWanted, *, sealed: bool) -> DecisionPage:
    """Return decisions, the newest first. ``sealed`` hides what is not settled yet."""
    limit = max(1, min(wanted.limit, MOST))
    query = _lines().where(slots.c.season == season.id, slots.c.status != "open")
    for column, value in (
        (slots.c.entry, wanted.entry),
        (slots.c.asset, wanted.asset),
        (slots.c.session, wanted.session),
        (slots.c.status, None if wanted.status == "all" else wanted.status),
    ):
        if value is not None:
            query = query.where(column == value)
    if sealed and wanted.status != "all":
        query = query.where(rounds.c.phase == "settled")  # how the others ended is not told
    # By session first: that is the order of an index, so that the newest are found without sorting all others.
    query = query.order_by(slots.c.session.desc(), slots.c.id.desc()).limit(limit + 1)
    with store.read() as db:
        if wanted.before is not None:
            mark = db.execute(select(slots.c.session).where(slots.c.id == wanted.before)).scalar()
            if mark is None:
                return DecisionPage(items=(), next=None)
            same = (slots.c.session == mark) & (slots.c.id < wanted.before)
            query = query.where((slots.c.session < mark) | same)
        found = [_line(row, sealed) for row in db.execute(query)]
    more = len(found) > limit
    return DecisionPage(items=tuple(found[:limit]), next=found[limit - 1].id if more else None)


def last_positions(store: Store, season: Season, entry: str, *, sealed: bool) -> tuple[DecisionLine, ...]:
    """Return an entry's newest executed decision on every asset: what it holds now."""
    found = []
    with store.read() as db:
        for asset in season.assets:
            query = _lines().where(
                slots.c.season == season.id,
                slots.c.entry == entry,
                slots.c.asset == asset.symbol,
                slots.c.position.is_not(None),
            )
            if sealed:
                query = query.where(rounds.c.phase == "settled")
            row = db.execute(query.order_by(slots.c.session.desc()).limit(1)).first()
            if row is not None:
                found.append(_line(row, sealed))
    return tuple(found)


def holdings(store: Store, season: Season, *, sealed: bool) -> dict[str, dict[str, int]]:
    """Return everybody's newest position on every asset: entry -> asset -> 1, 0 or -1."""
    phases = ("settled",) if sealed else ("executed", "settled")
    found: dict[str, dict[str, int]] = {}
    with store.read() as db:
        for asset in season.assets:
            mine = (rounds.c.season == season.id, rounds.c.asset == asset.symbol, rounds.c.phase.in_(phases))
            newest = select(rounds.c.id).where(*mine).order_by(rounds.c.session.desc()).limit(1)
            id = db.execute(newest).scalar()
            if id is None:
                continue
            for entry, position in db.execute(select(slots.c.entry, slots.c.position).where(slots.c.round == id)):
                found.setdefault(entry, {})[asset.symbol] = position
    return found


def one_decision(store: Store, season: Season, id: int, *, sealed: bool) -> DecisionRead | None:
    """Return a decision with its prompt, its debate and its calls; None when the season has no such id."""
    query = select(slots, rounds.c.phase, rounds.c.price, rounds.c.base_price, rounds.c.next_price)
    query = query.add_columns(rounds.c.decision_time, rounds.c.packet, rounds.c.packet_sha256)
    query = query.join(rounds, slots.c.round == rounds.c.id)
    with store.read() as db:
        row = db.execute(query.where(slots.c.id == id, slots.c.season == season.id)).first()
    if row is None:
        return None
    line = _line(row, sealed)
    slot = read_slot(row)
    shut = line.sealed
    return DecisionRead(
        line=line,
        decision_time=row.decision_time,
        decided_at=None if shut else row.decided_at,
        packet_sha256=row.packet_sha256,
        packet=None if shut else read_packet(row.packet),
        reasoning="" if shut else slot.reasoning or "",
        talk=() if shut else slot.talk,
        failures=() if shut else slot.failures,
        calls=() if shut else _calls(store, id),
    )


def _lines() -> Select[Any]:
    return select(*_COLUMNS).join(rounds, slots.c.round == rounds.c.id)


def _line(row: Any, sealed: bool) -> DecisionLine:
    known = {
        "id": row.id,
        "entry": row.entry,
        "asset": row.asset,
        "session": row.session,
        "stage": row.stage,
        "phase": row.phase,
        "price": row.price,
    }
    if sealed and row.phase != "settled":
        return DecisionLine(**known, status=_sealed(row.status), sealed=True)
    moved = None if row.next_price is None or not row.base_price else row.next_price / row.base_price - 1.0
    tokens = None if row.input_tokens is None else row.input_tokens + (row.output_tokens or 0)
    names = "action confidence position_before position earned fee nav calls usd".split()
    return DecisionLine(
        **known,
        status=row.status,
        **{name: getattr(row, name) for name in names},
        sealed=False,
        gist=_gist(row.reasoning or ""),
        moved=moved,
        tokens=tokens,
    )


def _sealed(status: Status) -> SealedStatus:
    return "open" if status == "open" else "sealed"


def _gist(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= GIST else text[: GIST - 1] + "…"


def _calls(store: Store, slot: int) -> tuple[CallShown, ...]:
    shown = []
    for call in store.calls(slot):
        asked, reply = _ASKED.decode(call.request), _ANSWERED.decode(call.reply)
        shown.append(
            CallShown(
                number=call.number,
                purpose=call.purpose,
                messages=asked.messages,
                text=reply.text,
                tool_calls=reply.calls,
                usage=reply.usage,
                error=reply.error,
            )
        )
    return tuple(shown)


MOST_SESSIONS = 400
"""How many sessions one timeline may have."""


class TimelinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A session: its price at the decision, and what the entry did. ``sealed`` as in a decision."""

    session: str
    price: float
    stage: Stage
    phase: Phase
    decision: int | None
    status: SealedStatus | None
    action: Action | None
    position: int | None
    earned: float | None
    sealed: bool


class TimelineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A news item, at the first session whose packet had it."""

    session: str
    id: str
    published_at: str
    source: str
    title: str
    text: str


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """One asset and one entry, oldest session first; ``more``: earlier sessions exist."""

    asset: str
    entry: str
    points: tuple[TimelinePoint, ...]
    events: tuple[TimelineEvent, ...]
    more: bool


def timeline(
    store: Store,
    season: Season,
    asset: str,
    entry: str,
    *,
    period: tuple[str | None, str | None] = (None, None),
    limit: int = 120,
    sealed: bool,
) -> Timeline:
    """Return the newest ``limit`` sessions of an asset within a period, with one entry's actions."""
    first, last = period
    limit = max(1, min(limit, MOST_SESSIONS))
    columns = (rounds.c.session, rounds.c.price, rounds.c.stage, rounds.c.phase, rounds.c.packet)
    query = select(rounds.c.id, *columns).where(rounds.c.season == season.id, rounds.c.asset == asset)
    if first is not None:
        query = query.where(rounds.c.session >= first)
    if last is not None:
        query = query.where(rounds.c.session <= last)
    done = (slots.c.round, slots.c.id, slots.c.status, slots.c.action, slots.c.position, slots.c.earned)
    with store.read() as db:
        rows = db.execute(query.order_by(rounds.c.session.desc()).limit(limit + 1)).all()
        # Not joined: a database would put the whole view together before it looks for these.
        mine = select(*done).where(slots.c.round.in_([row.id for row in rows]), slots.c.entry == entry)
        decided = {row.round: row for row in db.execute(mine)}
    more = len(rows) > limit
    points: list[TimelinePoint] = []
    found: dict[str, TimelineEvent] = {}
    for row in reversed(rows[:limit]):
        shut = sealed and row.phase != "settled"
        slot = decided.get(row.id)
        points.append(
            TimelinePoint(
                session=row.session,
                price=row.price,
                stage=row.stage,
                phase=row.phase,
                decision=None if slot is None else slot.id,
                status=None if slot is None else _sealed(slot.status) if shut else slot.status,
                action=None if shut or slot is None else slot.action,
                position=None if shut or slot is None else slot.position,
                earned=None if shut or slot is None else slot.earned,
                sealed=shut,
            )
        )
        for item in read_packet(row.packet).news:
            found.setdefault(
                item.id,
                TimelineEvent(
                    session=row.session,
                    id=item.id,
                    published_at=item.published_at,
                    source=item.source,
                    title=item.title,
                    text=item.text,
                ),
            )
    return Timeline(asset=asset, entry=entry, points=tuple(points), events=tuple(found.values()), more=more)
