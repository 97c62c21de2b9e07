"""The information agents were given: what was in their packets, counted."""

from __future__ import annotations

from collections import Counter

import msgspec
from sqlalchemy import select

from tradeassay.arena.season import Season
from tradeassay.arena.state.records import read_packet
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rounds
from tradeassay.core.arena import NewsItem

ROUNDS = 400
"""How many of the newest rounds are looked at."""

LATEST = 40
"""How many items are shown."""


class SourceCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many different items a source gave."""

    source: str
    items: int


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the packets of the newest rounds held. ``late`` counts items published after the decision: always 0.

    ``empty`` is the share of packets without a single item.
    """

    rounds: int
    items: int
    empty: float | None
    late: int
    sources: tuple[SourceCount, ...]
    latest: tuple[NewsItem, ...]


def given(store: Store, season: Season) -> Given:
    """Return the information of the newest rounds."""
    query = select(rounds.c.packet).where(rounds.c.season == season.id).order_by(rounds.c.id.desc()).limit(ROUNDS)
    with store.read() as db:
        packets = [read_packet(text) for text in db.execute(query).scalars()]
    items: dict[str, NewsItem] = {}
    late = 0
    for packet in packets:
        for item in packet.news:
            items.setdefault(item.id, item)
            late += item.published_at > packet.decided_at
    sources = Counter(item.source for item in items.values())
    newest = sorted(items.values(), key=lambda item: (item.published_at, item.id), reverse=True)
    return Given(
        rounds=len(packets),
        items=len(items),
        empty=sum(not packet.news for packet in packets) / len(packets) if packets else None,
        late=late,
        sources=tuple(SourceCount(source=name, items=n) for name, n in sources.most_common()),
        latest=tuple(newest[:LATEST]),
    )
