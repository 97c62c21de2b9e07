"""Events over actions and price: what became known when, and what an entry did about it."""

from __future__ import annotations

import msgspec
from sqlalchemy import select

from tradeassay.arena.season import Season
from tradeassay.arena.state.records import Phase, Stage, Status, read_packet
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rounds, slots
from tradeassay.core.arena import Action

MOST_SESSIONS = 400
"""How many sessions one timeline may have."""


class TimelinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A session: its price at the decision, and what the entry did. ``sealed`` as in a decision."""

    session: str
    price: float
    stage: Stage
    phase: Phase
    decision: int | None
    status: Status | None
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
    first: str | None = None,
    last: str | None = None,
    limit: int = 120,
    sealed: bool,
) -> Timeline:
    """Return the newest ``limit`` sessions of an asset within a period, with one entry's actions."""
    limit = max(1, min(limit, MOST_SESSIONS))
    columns = (rounds.c.session, rounds.c.price, rounds.c.stage, rounds.c.phase, rounds.c.packet)
    mine = (slots.c.round == rounds.c.id) & (slots.c.entry == entry)
    query = select(
        *columns, slots.c.id, slots.c.status, slots.c.action, slots.c.position, slots.c.earned
    ).join_from(rounds, slots, mine, isouter=True)
    query = query.where(rounds.c.season == season.id, rounds.c.asset == asset)
    if first is not None:
        query = query.where(rounds.c.session >= first)
    if last is not None:
        query = query.where(rounds.c.session <= last)
    with store.read() as db:
        rows = db.execute(query.order_by(rounds.c.session.desc()).limit(limit + 1)).all()
    more = len(rows) > limit
    points: list[TimelinePoint] = []
    found: dict[str, TimelineEvent] = {}
    for row in reversed(rows[:limit]):
        shut = sealed and row.phase != "settled"
        points.append(
            TimelinePoint(
                session=row.session,
                price=row.price,
                stage=row.stage,
                phase=row.phase,
                decision=row.id,
                status=row.status,
                action=None if shut else row.action,
                position=None if shut else row.position,
                earned=None if shut else row.earned,
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
