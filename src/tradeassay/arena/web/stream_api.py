"""The information stream for programs: its figures, its items with their provenance."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from tradeassay.arena.reading.reader import SeasonReader
from tradeassay.arena.stream import (
    ItemPage,
    Review,
    StreamItem,
    StreamQuality,
    Wanted,
    count_items,
    item_page,
    items,
    quality,
)
from tradeassay.arena.web.house import House, NotHere, asset_of
from tradeassay.arena.web.schema import answers
from tradeassay.core.errors import UserError

Fate = Literal["published", "merged", "rejected"]


class ItemList(msgspec.Struct, frozen=True, kw_only=True):
    """News items, newest first, and how many there are in all."""

    items: tuple[StreamItem, ...]
    total: int


STREAM_TYPES: tuple[Any, ...] = (ItemList, ItemPage, StreamQuality, Review)


def one_item(reader: SeasonReader, id: str) -> ItemPage:
    """Return an item of a season; raises :class:`NotHere`."""
    try:
        return item_page(reader.store, reader.season.id, id)
    except UserError as error:
        raise NotHere(error.message, mend=error.mend) from error


def stream_api(house: House) -> APIRouter:
    """Return the routes of the stream."""
    router = APIRouter(prefix="/api", tags=["arena"])

    @router.get("/seasons/{season}/stream", responses=answers(StreamQuality, "The stream's quality."))
    async def figures(request: Request, season: Annotated[str, Path(max_length=64)]) -> Response:
        """Give what came in, what was held back and why, how good the checks are, what experts say."""
        return await house.json(request, season, "stream", lambda reader: quality(reader.store, reader.season.id))

    @router.get("/seasons/{season}/items", responses=answers(ItemList, "News items."))
    async def listed(
        request: Request,
        season: Annotated[str, Path(max_length=64)],
        asset: Annotated[str | None, Query(max_length=64)] = None,
        status: Fate | None = None,
        session: date | None = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """List news items with what became of them."""
        day = None if session is None else session.isoformat()

        def make(reader: SeasonReader) -> ItemList:
            if asset is not None:
                asset_of(reader, asset)
            id = reader.season.id
            wanted = Wanted(asset=asset, session=day, status=status)
            found = items(reader.store, id, wanted, limit=limit, offset=offset)
            return ItemList(items=found, total=count_items(reader.store, id, wanted))

        return await house.json(request, season, ("items", asset, status, day, limit, offset), make)

    @router.get("/seasons/{season}/items/{item}", responses=answers(ItemPage, "One item."))
    async def one(
        request: Request,
        season: Annotated[str, Path(max_length=64)],
        item: Annotated[str, Path(max_length=64)],
    ) -> Response:
        """Give an item with its provenances, checks and reviews."""
        return await house.json(request, season, ("item", item), lambda reader: one_item(reader, item))

    return router
