"""Is the arena well? ``/healthz`` for whoever restarts it, ``/metrics`` for Prometheus, figures for the page
``/health``. All answer without a season.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from fastapi import APIRouter, Response
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from tradeassay.arena.queries.seasons import season_ids
from tradeassay.arena.rounds.health import Health, WorkerHealth, read_workers
from tradeassay.arena.rounds.held_bars import HeldBar, held_bars_of
from tradeassay.arena.rounds.prices import Revision, revisions
from tradeassay.arena.state.rows import Skipped
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import corrections, decisions, held_bars, rounds, skipped

DAY_S = 86_400.0


class ArenaHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Whether all is well (``ok``), why not, and how every worker is."""

    ok: bool
    database: str
    workers: tuple[WorkerHealth, ...]


def arena_health(store: Store, own: Health | None) -> ArenaHealth:
    """Return how the arena is. What this process knows about its own worker is newer than the record."""
    try:
        found = {(one.season, one.worker): one for one in read_workers(store)}
        database = "ok"
    except SQLAlchemyError as error:
        found, database = {}, f"unreachable: {type(error).__name__}"
    if own is not None:
        told = own.told()
        found[told.season, told.worker] = told
    every = tuple(found.values())
    played = {one.season for one in every if one.state in ("live", "replay")}
    # One that has been gone for a day while others play on was taken away, not lost.
    stalled = [
        one for one in every if one.state == "stalled" and (one.silent_s < DAY_S or one.season not in played)
    ]
    fine = database == "ok" and not stalled
    return ArenaHealth(ok=fine, database=database, workers=every)


class SeasonBooks(msgspec.Struct, frozen=True, kw_only=True):
    """What a season has on record: rounds by phase, slots by status, and what went wrong on the way."""

    season: str
    rounds: dict[str, int]
    slots: dict[str, int]
    corrections: int
    revisions: tuple[Revision, ...]
    held: tuple[HeldBar, ...]
    skipped: tuple[Skipped, ...]


def season_books(store: Store, newest: int = 20) -> tuple[SeasonBooks, ...]:
    """Return what every season has on record; of corrections, bars held back and sessions skipped the newest."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    every = season_ids(store)
    with store.read() as db:
        played = select(rounds.c.season, rounds.c.phase, func.count()).group_by(rounds.c.season, rounds.c.phase)
        for where, value, count in db.execute(played):
            counts.setdefault(("rounds", where), {})[value] = count
        for where, value, count in _slots(db):
            counts.setdefault(("slots", where), {})[value] = count
        query = select(corrections.c.season, func.count()).group_by(corrections.c.season)
        corrected = {id: count for id, count in db.execute(query)}
    return tuple(
        SeasonBooks(
            season=id,
            rounds=counts.get(("rounds", id), {}),
            slots=counts.get(("slots", id), {}),
            corrections=corrected.get(id, 0),
            revisions=revisions(store, id, newest) if corrected.get(id) else (),
            held=held_bars_of(store, id)[:newest],
            skipped=store.skipped(id)[-newest:],
        )
        for id in every
    )


def _slots(db: Connection) -> list[tuple[str, str, int]]:
    """Count the slots of every season by status; of rounds that are not settled only the open and the other ones.

    Who watches the numbers could tell from them how a competitor's decision ended: one that failed holds.
    """
    season, status = decisions.c.season, decisions.c.status
    every = select(season, status, func.count()).group_by(season, status)
    early = every.where(decisions.c.round.in_(select(rounds.c.id).where(rounds.c.phase != "settled")))
    found = {(where, what): count for where, what, count in db.execute(every)}
    for where, what, count in db.execute(early):
        if what != "open":
            found[where, what] = found.get((where, what), 0) - count
            found[where, "sealed"] = found.get((where, "sealed"), 0) + count
    return [(where, what, count) for (where, what), count in sorted(found.items()) if count]


def health_routes(store: Store, own: Callable[[], Health | None]) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz", responses={503: {"description": "Something is stalled; the body says what."}})
    async def healthz() -> Response:
        """Say whether the arena is well; 503 when it is not."""
        found = await run_in_threadpool(arena_health, store, own())
        headers = {"cache-control": "no-store"}
        return Response(msgspec.json.encode(found), 200 if found.ok else 503, headers, "application/json")

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Give the figures in the form that Prometheus reads."""
        text = await run_in_threadpool(lambda: "\n".join(_metrics(store, own())) + "\n")
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _metrics(store: Store, own: Health | None) -> Iterator[str]:
    health = arena_health(store, own)
    found: list[tuple[str, str, list[tuple[dict[str, str], float]]]] = [("up", "gauge", [({}, int(health.ok))])]
    named = [({"season": one.season, "worker": one.worker}, one) for one in health.workers]
    found += [
        ("worker_silent_seconds", "gauge", [(who, round(one.silent_s, 1)) for who, one in named]),
        ("worker_stalled", "gauge", [(who, int(one.state == "stalled")) for who, one in named]),
        ("worker_rounds_total", "counter", [(who, one.rounds) for who, one in named]),
        (
            "worker_troubles",
            "gauge",
            [({**who, "part": trouble.part}, trouble.count) for who, one in named for trouble in one.troubles],
        ),
    ]
    if health.database == "ok":
        with store.read() as db:
            counted = [("slots", "status", _slots(db))]
            for name, column in (
                ("rounds", rounds.c.phase),
                ("corrections", corrections.c.asset),
                ("skipped_sessions", skipped.c.asset),
                ("held_bars", held_bars.c.asset),
            ):
                season = column.table.c.season
                rows = db.execute(select(season, column, func.count()).group_by(season, column))
                counted.append((name, column.name, [(where, value, count) for where, value, count in rows]))
        found += [
            (name, "gauge", [({"season": where, label: value}, count) for where, value, count in rows])
            for name, label, rows in counted
        ]
    for name, kind, values in found:
        yield f"# TYPE tradeassay_{name} {kind}"
        for labels, value in values:
            written = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"tradeassay_{name}{f'{{{written}}}' if written else ''} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
