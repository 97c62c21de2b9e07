"""The JSON interface: everything the pages show, for programs."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from tradeassay.arena.queries.citations import CitedFigures
from tradeassay.arena.queries.current import SeasonNow
from tradeassay.arena.queries.decisions import (
    MOST,
    MOST_SESSIONS,
    DecisionLine,
    DecisionPage,
    DecisionRead,
    DecisionsWanted,
    Timeline,
    Which,
)
from tradeassay.arena.queries.information import EntryMemory, PacketsTold
from tradeassay.arena.queries.reader import EVERYTHING, MOST_EVENTS, SeasonReader
from tradeassay.arena.queries.seasons import SeasonFacts, SeasonRules, Selection, season_rules, select_from
from tradeassay.arena.queries.trades import EntryTrades
from tradeassay.arena.season import Entry, Season
from tradeassay.arena.standings import Behaviour, Standing, Standings, VarianceSplit
from tradeassay.arena.state.rows import SeasonEvent
from tradeassay.arena.stream import (
    ItemPage,
    ItemReview,
    StreamItem,
    StreamQuality,
    count_items,
    item_page,
    items,
    quality,
)
from tradeassay.arena.stream import ItemsWanted as Filters
from tradeassay.arena.web.context import House, NotHere, answers, asset_of, entry_of
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.report.charts import Equity


class SeasonList(msgspec.Struct, frozen=True, kw_only=True):
    """All seasons of this arena, newest first."""

    seasons: tuple[SeasonFacts, ...]


class EntryShown(msgspec.Struct, frozen=True, kw_only=True):
    """An entry: its place, how it trades, what it holds, and where it lies among random traders, by asset."""

    entry: Entry
    standing: Standing | None
    behaviour: Behaviour
    positions: tuple[DecisionLine, ...]
    luck: dict[str, Measure]


class FirstDay(msgspec.Struct, frozen=True, kw_only=True):
    """What everybody did on each asset's first counted session: asset -> entry -> action."""

    actions: dict[str, dict[str, str]]


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events, newest first; ``next`` is what to give as ``before`` for older ones."""

    items: tuple[SeasonEvent, ...]
    next: int | None


TYPES: tuple[Any, ...] = (
    SeasonList,
    SeasonFacts,
    Season,
    SeasonRules,
    Standings,
    Equity,
    VarianceSplit,
    EntryShown,
    FirstDay,
    DecisionPage,
    DecisionRead,
    EntryMemory,
    EntryTrades,
    SeasonNow,
    Timeline,
    PacketsTold,
    CitedFigures,
    EventPage,
)

Id = Annotated[str, Path(max_length=64, description="A season's id.")]
EntryId = Annotated[str, Path(max_length=64, description="An entry's id.")]
Names = Annotated[list[str], Query(max_length=64)]
Row = Annotated[
    int | None, Query(ge=1, le=2**31 - 1, description="Only what is older: `next` of the page before.")
]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A selection as it was asked for; it is checked against the season later."""

    entry: tuple[str, ...]
    architecture: tuple[str, ...]
    model: tuple[str, ...]
    asset: tuple[str, ...]
    first: str | None
    last: str | None

    def of(self, season: Season) -> Selection:
        """Return the checked selection; raises :class:`UserError`."""
        return select_from(
            season,
            entries=self.entry,
            architectures=self.architecture,
            models=self.model,
            assets=self.asset,
            first=self.first,
            last=self.last,
        )


def chosen(
    entry: Names = [],  # noqa: B006  # FastAPI copies defaults
    architecture: Names = [],  # noqa: B006
    model: Names = [],  # noqa: B006
    asset: Names = [],  # noqa: B006
    first: date | None = None,
    last: date | None = None,
) -> Chosen:
    """Read a selection from an address."""
    days = (None if day is None else day.isoformat() for day in (first, last))
    return Chosen(
        entry=tuple(entry), architecture=tuple(architecture), model=tuple(model), asset=tuple(asset),
        first=next(days), last=next(days),
    )  # fmt: skip


Choice = Annotated[Chosen, Depends(chosen)]


def entry_shown(reader: SeasonReader, id: str) -> EntryShown:
    """Return an entry as its page shows it; raises :class:`NotHere`."""
    entry = entry_of(reader, id)
    view = reader.view()
    rows = {row.entry: row for row in view.board(EVERYTHING).rows}
    places = {asset.symbol: view.luck(asset.symbol) for asset in reader.season.assets}
    return EntryShown(
        entry=next(shown for shown in season_rules(reader.season).entries if shown.id == entry.id),
        standing=rows.get(id),
        behaviour=view.behaviour(id, EVERYTHING),
        positions=reader.positions(id),
        luck={asset: found[id] for asset, found in places.items() if id in found},
    )


def api(house: House) -> APIRouter:
    """Return the routes below ``/api`` that answer with JSON."""
    router = APIRouter(prefix="/api", tags=["arena"])
    _standings(router, house)
    _entries(router, house)
    _season(router, house)
    return router


def _season(router: APIRouter, house: House) -> None:
    @router.get("/seasons", responses=answers(SeasonList, "All seasons.", missing=False))
    async def seasons(request: Request) -> Response:
        """List all seasons."""
        found = await run_in_threadpool(house.reader.seasons)
        return await house.answers.give(
            request,
            "seasons",
            found,
            lambda: (msgspec.json.encode(SeasonList(seasons=found)), "application/json"),
        )

    @router.get("/seasons/{season}", responses=answers(SeasonFacts, "A season."))
    async def one(request: Request, season: Id) -> Response:
        """Say where a season stands and where its numbers come from."""
        return await house.json(request, season, "facts", lambda reader: reader.facts())

    @router.get("/seasons/{season}/now", responses=answers(SeasonNow, "Last prices, and who decides."))
    async def now(request: Request, season: Id) -> Response:
        """Give the last prices, who decides now, and when the next round opens."""
        return await house.json(request, season, "now", lambda reader: reader.now())

    @router.get("/seasons/{season}/rules", responses=answers(SeasonRules, "The rules, from the frozen spec."))
    async def rules(request: Request, season: Id) -> Response:
        """Give the rules."""
        return await house.json(request, season, "rules", lambda reader: season_rules(reader.season))

    @router.get("/seasons/{season}/information", responses=answers(PacketsTold, "What agents were told."))
    async def information(request: Request, season: Id) -> Response:
        """Count and list what was in the packets of the newest rounds."""
        return await house.json(request, season, "information", lambda reader: reader.information())

    @router.get("/seasons/{season}/published", responses=answers(CitedFigures, "Published figures and ours."))
    async def published(request: Request, season: Id) -> Response:
        """Give the paper's figures with ours beside them, marked comparable or not."""
        return await house.json(request, season, "published", lambda reader: reader.cited())

    @router.get("/seasons/{season}/events", responses=answers(EventPage, "Events, newest first."))
    async def events(
        request: Request, season: Id, before: Row = None, limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = 50
    ) -> Response:
        """List what happened."""

        def make(reader: SeasonReader) -> EventPage:
            found = reader.events(before, limit)
            more = len(found) == limit and found[-1].seq > 1
            return EventPage(items=found, next=found[-1].seq if more else None)

        return await house.json(request, season, ("events", before, limit), make)


def _standings(router: APIRouter, house: House) -> None:
    @router.get("/seasons/{season}/standings", responses=answers(Standings, "The standings."))
    async def board(request: Request, season: Id, wanted: Choice) -> Response:
        """Rank the selected entries, with intervals and the probability of ranks."""
        return await house.json(
            request, season, ("board", wanted), lambda reader: reader.board(wanted.of(reader.season))
        )

    @router.get("/seasons/{season}/equity", responses=answers(Equity, "Accounts over time."))
    async def equity(request: Request, season: Id, wanted: Choice) -> Response:
        """Give the accounts of the selected entries, buy and hold, and the luck band."""
        return await house.json(
            request, season, ("equity", wanted), lambda reader: reader.view().equity(wanted.of(reader.season))
        )

    @router.get("/seasons/{season}/split", responses=answers(VarianceSplit, "Shares of variance."))
    async def split(request: Request, season: Id, wanted: Choice) -> Response:
        """Split the variance of returns into architecture, model, asset and interaction."""
        return await house.json(
            request, season, ("split", wanted), lambda reader: reader.view().split(wanted.of(reader.season))
        )

    @router.get("/seasons/{season}/first-day", responses=answers(FirstDay, "The first counted day."))
    async def first_day(request: Request, season: Id) -> Response:
        """Say how everybody began."""
        return await house.json(
            request, season, "first-day", lambda reader: FirstDay(actions=reader.view().first_day())
        )


def _entries(router: APIRouter, house: House) -> None:
    @router.get("/seasons/{season}/entries/{entry}", responses=answers(EntryShown, "An entry."))
    async def one(request: Request, season: Id, entry: EntryId) -> Response:
        """Give an entry's place, behaviour, positions and luck."""
        return await house.json(request, season, ("entry", entry), lambda reader: entry_shown(reader, entry))

    @router.get("/seasons/{season}/entries/{entry}/trades", responses=answers(EntryTrades, "Its trades."))
    async def trades(request: Request, season: Id, entry: EntryId) -> Response:
        """Give an entry's trades with fees and results, and the share of them that paid."""
        return await house.json(
            request, season, ("trades", entry), lambda reader: reader.trades(entry_of(reader, entry).id)
        )

    @router.get("/seasons/{season}/entries/{entry}/memory", responses=answers(EntryMemory, "Its memory."))
    async def memory(request: Request, season: Id, entry: EntryId) -> Response:
        """Give what an entry remembers; closed while agents from outside play."""
        return await house.json(
            request, season, ("memory", entry), lambda reader: reader.memory(entry_of(reader, entry).id)
        )

    @router.get("/seasons/{season}/decisions", responses=answers(DecisionPage, "Decisions, newest first."))
    async def decisions(
        request: Request,
        season: Id,
        entry: Annotated[str | None, Query(max_length=64)] = None,
        asset: Annotated[str | None, Query(max_length=64)] = None,
        status: Which = "all",
        session: date | None = None,
        before: Row = None,
        limit: Annotated[int, Query(ge=1, le=MOST)] = 30,
    ) -> Response:
        """List decisions of an entry, an asset, a day or a status."""
        day = None if session is None else session.isoformat()
        wanted = DecisionsWanted(entry=entry, asset=asset, status=status, session=day, before=before, limit=limit)

        def make(reader: SeasonReader) -> DecisionPage:
            if entry is not None:
                entry_of(reader, entry)
            if asset is not None:
                asset_of(reader, asset)
            return reader.decisions(wanted)

        return await house.json(request, season, ("decisions", wanted), make)

    @router.get("/seasons/{season}/decisions/{id}", responses=answers(DecisionRead, "One decision."))
    async def decision(request: Request, season: Id, id: Annotated[int, Path(ge=1, le=2**31 - 1)]) -> Response:
        """Give one decision with its information, debate, prompts, answers and outcome."""

        def make(reader: SeasonReader) -> DecisionRead:
            found = reader.decision(id)
            if found is None:
                raise NotHere(f"season '{season}' has no decision {id}")
            return found

        return await house.json(request, season, ("decision", id), make)

    @router.get("/seasons/{season}/timeline", responses=answers(Timeline, "Events over actions and price."))
    async def timeline(
        request: Request,
        season: Id,
        asset: Annotated[str, Query(max_length=64)],
        entry: Annotated[str, Query(max_length=64)],
        first: date | None = None,
        last: date | None = None,
        limit: Annotated[int, Query(ge=1, le=MOST_SESSIONS)] = 120,
    ) -> Response:
        """Give an asset's prices and news with what one entry did."""
        days = None if first is None else first.isoformat(), None if last is None else last.isoformat()
        return await house.json(
            request,
            season,
            ("timeline", asset, entry, days, limit),
            lambda reader: reader.timeline(asset_of(reader, asset), entry_of(reader, entry).id, days, limit),
        )


Fate = Literal["published", "merged", "rejected"]


class ItemList(msgspec.Struct, frozen=True, kw_only=True):
    """News items, newest first, and how many there are in all."""

    items: tuple[StreamItem, ...]
    total: int


STREAM_TYPES: tuple[Any, ...] = (ItemList, ItemPage, StreamQuality, ItemReview)


def one_item(reader: SeasonReader, id: str) -> ItemPage:
    """Return an item of a season; raises :class:`NotHere`."""
    try:
        return item_page(reader.store, reader.season.id, id)
    except UserError as error:
        raise NotHere(error.message, hint=error.hint) from error


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
            wanted = Filters(asset=asset, session=day, status=status)
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
