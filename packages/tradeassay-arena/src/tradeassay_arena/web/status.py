"""Report the health of the arena for supervisors, for Prometheus, and for the page ``/health``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from fastapi import APIRouter, Response
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from tradeassay_arena.queries.seasons import season_ids
from tradeassay_arena.rounds.health import Health, WorkerHealth, read_workers
from tradeassay_arena.rounds.prices import held_bars_of, revisions
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import decisions, metadata, rounds


class ArenaHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Whether everything works (``ok``), the reasons if not, and the state of every worker."""

    ok: bool
    database: str
    workers: tuple[WorkerHealth, ...]


def arena_health(store: Store, own: Health | None) -> ArenaHealth:
    """Return the health of the arena. For this process's own worker, ``own`` is newer than the
    database.
    """
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
    # A worker that is silent for a day while other workers play was removed, not lost.
    stalled = any(
        one.state == "stalled" and (one.silent_s < 86_400 or one.season not in played)
        for one in every
    )
    return ArenaHealth(ok=database == "ok" and not stalled, database=database, workers=every)


def season_books(store: Store) -> tuple[dict[str, Any], ...]:
    """Return the counts of every season: rounds by phase, slots by status, and troubles.

    The newest corrections, held bars and skipped sessions are included.
    """
    counts, books = _counts(store), []
    for id in season_ids(store):
        mine = {
            name: {what: n for where, what, n in found if where == id}
            for name, found in counts.items()
        }
        books.append(
            {
                "season": id,
                "rounds": mine["rounds"],
                "slots": mine["slots"],
                "corrections": sum(mine["corrections"].values()),
                "revisions": revisions(store, id, 20),
                "held": held_bars_of(store, id)[:20],
                "skipped": store.skipped(id)[-20:],
            }
        )
    return tuple(books)


def _counts(store: Store) -> dict[str, list[tuple[str, str, int]]]:
    """Count rows by season and by status, phase or asset.

    Slots of unsettled rounds are only counted as open or not open. A failed decision means HOLD, so
    its status would reveal a competitor's position.
    """
    counted = {}
    season, status = decisions.c.season, decisions.c.status
    every = select(season, status, func.count()).group_by(season, status)
    early = every.where(
        decisions.c.round.in_(select(rounds.c.id).where(rounds.c.phase != "settled"))
    )
    with store.read() as db:  # all counts at one moment
        for name, label in _COUNTED.items():
            by = (metadata.tables[name].c.season, metadata.tables[name].c[label])
            counted[name] = [
                tuple(row) for row in db.execute(select(*by, func.count()).group_by(*by))
            ]
        found = {(where, what): count for where, what, count in db.execute(every)}
        for where, what, count in db.execute(early):
            if what != "open":
                found[where, what] = found.get((where, what), 0) - count
                found[where, "sealed"] = found.get((where, "sealed"), 0) + count
    counted["slots"] = [
        (where, what, count) for (where, what), count in sorted(found.items()) if count
    ]
    return counted


_COUNTED = {
    "rounds": "phase",
    "corrections": "asset",
    "skipped_sessions": "asset",
    "held_bars": "asset",
}


def health_routes(store: Store, own: Callable[[], Health | None]) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get(
        "/healthz", responses={503: {"description": "Something is stalled; the body says what."}}
    )
    async def healthz() -> Response:
        """Return the health of the arena, with status 503 if a worker is stalled."""
        found = await run_in_threadpool(arena_health, store, own())
        headers = {"cache-control": "no-store"}
        return Response(
            msgspec.json.encode(found), 200 if found.ok else 503, headers, "application/json"
        )

    @router.get(
        "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}
    )
    async def metrics() -> Response:
        """Return the figures in Prometheus' format."""
        text = await run_in_threadpool(lambda: "\n".join(_metrics(store, own())) + "\n")
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _metrics(store: Store, own: Health | None) -> Iterator[str]:
    health = arena_health(store, own)
    found: list[tuple[str, str, list[tuple[dict[str, str], float]]]] = [
        ("up", "gauge", [({}, int(health.ok))])
    ]
    named = [({"season": one.season, "worker": one.worker}, one) for one in health.workers]
    troubles = []
    for who, one in named:
        for trouble in one.troubles:
            troubles.append(({**who, "part": trouble.part}, trouble.count))
    found += [
        ("worker_silent_seconds", "gauge", [(who, round(one.silent_s, 1)) for who, one in named]),
        ("worker_stalled", "gauge", [(who, int(one.state == "stalled")) for who, one in named]),
        ("worker_rounds_total", "counter", [(who, one.rounds) for who, one in named]),
        ("worker_troubles", "gauge", list(troubles)),
    ]
    if health.database == "ok":
        labels_of, counts = {"slots": "status", **_COUNTED}, _counts(store)
        found += [
            (
                name,
                "gauge",
                [({"season": where, label: value}, count) for where, value, count in counts[name]],
            )
            for name, label in labels_of.items()
        ]
    for name, kind, values in found:
        yield f"# TYPE tradeassay_{name} {kind}"
        for labels, value in values:
            plain = {k: v.translate({92: "\\\\", 34: '\\"', 10: " "}) for k, v in labels.items()}
            written = ",".join(f'{key}="{text}"' for key, text in plain.items())
            yield f"tradeassay_{name}{f'{{{written}}}' if written else ''} {value}"
