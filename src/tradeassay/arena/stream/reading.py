"""What pages read of the stream: items with their provenance, filtered and paged."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import ColumnElement, func, select

from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import stream_items
from tradeassay.arena.stream.items import Kind, Status, StreamItem
from tradeassay.arena.stream.quality import ItemReview, reviews
from tradeassay.arena.stream.store import read_item
from tradeassay.core.errors import UserError


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where one telling of a story was found."""

    item: str
    source: str
    url: str
    published_at: str
    fetched_at: str
    content_sha256: str


class ItemPage(msgspec.Struct, frozen=True, kw_only=True):
    """An item with all its provenances (its own first), its reviews, and the items it and others contradict."""

    item: StreamItem
    provenances: tuple[Provenance, ...]
    reviews: tuple[ItemReview, ...]


class ItemsWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which items are asked for; None asks for all. Prices and filings are left out unless ``kind`` is None."""

    asset: str | None = None
    session: str | None = None
    status: Status | None = None
    kind: Kind | None = "news"


EVERY_NEWS = ItemsWanted()


def items(
    store: Store, season: str, wanted: ItemsWanted = EVERY_NEWS, *, limit: int = 100, offset: int = 0
) -> tuple[StreamItem, ...]:
    """Return items, newest first."""
    query = select(stream_items).where(*_where(season, wanted))
    query = query.order_by(stream_items.c.published_at.desc(), stream_items.c.id)
    with store.read() as db:
        return tuple(read_item(row) for row in db.execute(query.limit(limit).offset(offset)))


def count_items(store: Store, season: str, wanted: ItemsWanted = EVERY_NEWS) -> int:
    """Return how many items are wanted."""
    query = select(func.count()).select_from(stream_items).where(*_where(season, wanted))
    with store.read() as db:
        return int(db.execute(query).scalar_one())


def item_page(store: Store, season: str, id: str) -> ItemPage:
    """Return one item with everything that is known about it; raises :class:`UserError` for an unknown id."""
    mine = (stream_items.c.id == id) | (stream_items.c.merged_into == id)
    with store.read() as db:
        query = select(stream_items).where(stream_items.c.season == season, mine)
        found = [read_item(row) for row in db.execute(query.order_by(stream_items.c.published_at))]
    item = next((one for one in found if one.id == id), None)
    if item is None:
        raise UserError(f"season '{season}' has no item '{id[:40]}'", hint="take an id from the stream's page")
    others = [one for one in found if one.id != id]
    return ItemPage(
        item=item,
        provenances=tuple(_provenance(one) for one in (item, *others)),
        reviews=reviews(store, season, id),
    )


def _provenance(item: StreamItem) -> Provenance:
    return Provenance(
        item=item.id,
        source=item.source,
        url=item.url,
        published_at=item.published_at,
        fetched_at=item.fetched_at,
        content_sha256=item.content_sha256,
    )


def _where(season: str, wanted: ItemsWanted) -> list[ColumnElement[Any]]:
    asked = msgspec.structs.asdict(wanted)
    found = [stream_items.c.season == season]
    return found + [stream_items.c[name] == value for name, value in asked.items() if value is not None]
