"""The information agents had, counted over their packets, and what they remember, in a form a person can read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from sqlalchemy import select

from tradeassay.arena.season import Season
from tradeassay.arena.state.rows import read_packet
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rounds
from tradeassay.core.arena import NewsShown
from tradeassay.core.errors import UNDECODABLE

ROUNDS = 400
"""How many of the newest rounds are looked at."""

LATEST = 40
"""How many items are shown."""


class SourceCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many different items a source gave."""

    source: str
    items: int


class PacketSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the packets of the newest rounds held. ``late`` counts items published after the decision: always 0.

    ``empty`` is the share of packets without a single item.
    """

    rounds: int
    items: int
    empty: float | None
    late: int
    sources: tuple[SourceCount, ...]
    latest: tuple[NewsShown, ...]


def packet_summary(store: Store, season: Season) -> PacketSummary:
    query = select(rounds.c.packet).where(rounds.c.season == season.id).order_by(rounds.c.id.desc()).limit(ROUNDS)
    with store.read() as db:
        packets = [read_packet(text) for text in db.execute(query).scalars()]
    items: dict[str, NewsShown] = {}
    late = 0
    for packet in packets:
        for item in packet.news:
            items.setdefault(item.id, item)
            late += item.published_at > packet.decided_at
    sources = Counter(item.source for item in items.values())
    newest = sorted(items.values(), key=lambda item: (item.published_at, item.id), reverse=True)
    return PacketSummary(
        rounds=len(packets),
        items=len(items),
        empty=sum(not packet.news for packet in packets) / len(packets) if packets else None,
        late=late,
        sources=tuple(SourceCount(source=name, items=n) for name, n in sources.most_common()),
        latest=tuple(newest[:LATEST]),
    )


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """One remembered thing: its layer or kind, when it was made, how much it matters."""

    group: str
    text: str
    when: str = ""
    importance: float | None = None


class AssetMemory(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's memory about an asset. ``raw`` is the whole of it as JSON where it is JSON."""

    asset: str
    items: tuple[Remembered, ...]
    size: int
    raw: str


class EntryMemory(msgspec.Struct, frozen=True, kw_only=True):
    """An entry's memories; ``sealed``: others who play could read them, so they stay closed until the end."""

    entry: str
    sealed: bool
    assets: tuple[AssetMemory, ...]


def entry_memory(store: Store, season: Season, entry: str, *, sealed: bool) -> EntryMemory:
    """Return what an entry remembers about every asset, those without a memory left out."""
    found = []
    for asset in () if sealed else season.assets:
        body = store.memory(season.id, entry, asset.symbol)
        if body is None:
            continue
        try:
            items = _remembered(msgspec.json.decode(body))
            raw = msgspec.json.format(body, indent=2).decode()
        except UNDECODABLE:
            items, raw = (), body.decode("utf-8", "replace")
        found.append(AssetMemory(asset=asset.symbol, items=items, size=len(body), raw=raw))
    return EntryMemory(entry=entry, sealed=sealed, assets=tuple(found))


def _remembered(value: Any) -> tuple[Remembered, ...]:
    """Return the parts of the shapes our architectures write: layered items, or a journal of own decisions."""
    found = []
    for name in ("items", "entries"):
        listed = value.get(name) if isinstance(value, dict) else None
        for item in listed if isinstance(listed, list) else ():
            if not isinstance(item, dict):
                continue
            weight, earned = item.get("importance"), item.get("earned")
            outcome = f" ({earned:+.2%})" if isinstance(earned, int | float) else ""
            journal = f"{item.get('action', '')}{outcome}: {item.get('reasoning', '')}"
            found.append(
                Remembered(
                    group="journal" if name == "entries" else str(item.get("layer", "")),
                    text=journal if name == "entries" else str(item.get("text", "")),
                    when=str(item.get("date" if name == "entries" else "made", "")),
                    importance=float(weight) if isinstance(weight, int | float) else None,
                )
            )
    return tuple(found)
