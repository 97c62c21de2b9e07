"""Read the seasons of a database: specs and rules, badges, progress, and states of workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import DatabaseError

from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.measure import Convention
from tradeassay.core.registry import did_you_mean
from tradeassay_arena.agents import OUTSIDE
from tradeassay_arena.rounds.health import read_workers
from tradeassay_arena.season import BASELINE, PREFIX, Season, amended
from tradeassay_arena.state.engine import (
    readable_by_others,
    reading_engine,
    unlocked,
    unreadable,
    warn_readable_by_others,
)
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import corrections, door_applicants, events, rounds, seasons
from tradeassay_bench.core.time import SECOND, iso

Origin = Literal["synthetic", "real", "unknown"]
Status = Literal["waiting", "live", "replay", "settling", "stalled", "stopped", "finished"]


class SeasonBadges(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a reader needs before trusting a season's numbers.

    ``sealed``: an outside agent could read these pages, so decisions appear after settlement and
    memories stay hidden. ``note`` states why there are no ranks, or that decisions are made at the
    price of their fill.
    """

    data: Origin
    convention: Convention
    time: Literal["replay", "live"]
    sealed: bool
    note: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a season, from its journal.

    ``session`` is the newest opened session. ``decided`` is whether the last round of every asset
    is closed. ``skipped`` is the number of sessions without a round. ``corrected`` is the number of
    prices that a vendor changed later.
    """

    session: str | None
    rounds: int
    open: int
    settled: int
    decided: bool
    skipped: int
    corrected: int


class SeasonState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a season, from its workers' last reports.

    ``beat`` is the time of the last report, so that a page can display "stalled" without a server.
    ``unsettled`` is the number of rounds of a finished season that never received a price.
    """

    status: Status = "waiting"
    since: str | None = None
    next_at: str | None = None
    beat: str | None = None
    unsettled: int = 0


class SeasonFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A season in the list of seasons."""

    id: str
    title: str
    sha256: str
    first: str
    last: str | None
    assets: tuple[str, ...]
    entries: int
    badges: SeasonBadges
    progress: Progress


def season_ids(store: Store) -> tuple[str, ...]:
    """Return the ids of all seasons, newest first.

    The journal decides the order, because a replay has no wall time.
    """
    begun = (events.c.season == seasons.c.id) & (events.c.kind == "season")
    query = (
        select(seasons.c.id).outerjoin(events, begun).order_by(events.c.seq.desc(), seasons.c.id)
    )
    return tuple(id for (id,) in store.rows(query))


def read_season(store: Store, id: str) -> Season | None:
    """Return an amended season, or None for an unknown id."""
    spec = store.scalar(select(seasons.c.spec).filter_by(id=id))
    return (
        None
        if spec is None
        else amended(msgspec.json.decode(spec, type=Season), store.amendments(id))
    )


@contextmanager
def opened_store(db: str, opened: Callable[[str], Engine] = reading_engine) -> Iterator[Store]:
    """Open an existing database for reading. ``opened`` is the function that opens the engine.

    Warns about an SQLite file whose contacts other users may read. Raises :class:`UserError` for a
    missing file, a file that is not an arena's database, a damaged file, and a file that changed
    while it was read without a lock.
    """
    file = Path(db)
    if "://" not in db and not file.is_file():
        raise UserError(
            f"there is no database '{db}'",
            hint="make one with tradeassay arena run --replay synthetic",
        )
    lockless = opened is reading_engine and "://" not in db and unlocked(file)
    before = _changed_at(file) if lockless else None
    store = Store(opened(db))
    try:
        mode = readable_by_others(file) if opened is reading_engine and "://" not in db else None
        if mode is not None and store.scalar(select(func.count(door_applicants.c.id))):
            warn_readable_by_others(file, mode)
        yield store
    except DatabaseError as error:
        if before is not None and _changed_at(file) != before:
            raise _changed(db) from error
        raise unreadable(db, error) from error
    finally:
        store.engine.dispose()
    if before is not None and _changed_at(file) != before:
        raise _changed(db)


def _changed_at(file: Path) -> tuple[int, int]:
    facts = file.stat()
    return facts.st_mtime_ns, facts.st_size


def _changed(db: str) -> UserError:
    return UserError(f"'{db}' was changed while it was read", hint="run the command again")


@contextmanager
def opened_season(
    db: str, id: str | None = None, opened: Callable[[str], Engine] = reading_engine
) -> Iterator[tuple[Store, Season]]:
    """Open a database and one of its seasons (None: the newest) for reading.

    Raises like :func:`opened_store`, and :class:`UserError` for an unknown season.
    """
    with opened_store(db, opened) as store:
        ids = season_ids(store)
        season = read_season(store, next(iter(ids), "") if id is None else id)
        if season is None:
            hint = "tradeassay arena run plays one"
            if ids:
                hint = did_you_mean(id or "", ids, f"it has {', '.join(ids)}")
            raise UserError(f"'{db}' has no season" + (f" '{id}'" if id else ""), hint=hint)
        yield store, season


def badges_of(season: Season) -> SeasonBadges:
    """Return the badges of a season: its data, convention and time, and whether it is sealed."""
    kinds = {_kind(name) for name in {asset.dataset for asset in season.assets}}
    data: Origin = "unknown"
    if "synthetic" in kinds:
        data = "synthetic"
    elif kinds == {"real"}:
        data = "real"
    return SeasonBadges(
        data=data,
        convention=season.convention,
        time="live" if season.live else "replay",
        sealed=any(entry.architecture in OUTSIDE for entry in season.entries),
        note=season.price_note,
    )


def progress_of(store: Store, season: Season) -> Progress:
    """Return the progress of a season, from its rounds in the database."""
    query = select(rounds.c.asset, rounds.c.phase, func.count(), func.max(rounds.c.session))
    rows = store.rows(query.filter_by(season=season.id).group_by(rounds.c.asset, rounds.c.phase))
    closed: dict[str, str] = {}
    for asset, phase, _, session in rows:
        if phase != "opened":
            closed[asset] = max(closed.get(asset, ""), session)
    waiting, settled = (
        sum(row[2] for row in rows if row.phase == name) for name in ("opened", "settled")
    )
    ends = [(closed.get(asset.symbol, ""), season.days(asset)[1]) for asset in season.assets]
    return Progress(
        session=max((row[3] for row in rows), default=None),
        rounds=sum(row[2] for row in rows),
        open=waiting,
        settled=settled,
        decided=not waiting and all(last is not None and there >= last for there, last in ends),
        skipped=len(store.skipped(season.id)),
        corrected=store.scalar(select(func.count(corrections.c.id)).filter_by(season=season.id)),
    )


def state_of(store: Store, season: Season) -> SeasonState:
    """Return the present state of a season: finished, playing, stalled, or stopped."""
    progress, now = progress_of(store, season), time.time()
    heard = read_workers(store, season.id, now)
    working = [one for one in heard if one.state in ("live", "replay")]
    stalled = [one for one in heard if one.state == "stalled"]
    ended = any(one.state == "finished" for one in heard)
    # The last decisions may be waiting for their price, or for the vendor's last revision.
    idle, left = not working and not stalled, progress.rounds - progress.settled
    if (progress.decided and (ended or (idle and not left))) or (
        ended and idle and not progress.open
    ):
        return SeasonState(status="finished", unsettled=left)
    if not heard:
        return SeasonState()
    beat = iso(int(now - min(one.silent_s for one in heard)) * SECOND)
    if working:
        doing: Status = "live" if working[0].state == "live" else "replay"
        past = doing == "live" and (working[0].next_at or "") < iso(
            int(now) * SECOND
        )  # A round is being decided.
        return SeasonState(
            status="settling" if progress.decided else doing,
            since=working[0].since,
            next_at=None if past else working[0].next_at,
            beat=beat,
        )
    if stalled:
        return SeasonState(status="stalled", since=min(one.since for one in stalled), beat=beat)
    return SeasonState(status="stopped", since=max(one.since for one in heard))


def facts_of(store: Store, season: Season, badges: SeasonBadges) -> SeasonFacts:
    """Return a season's entry in the list of seasons."""
    return SeasonFacts(
        id=season.id,
        title=season.title or season.id,
        sha256=season.sha256,
        first=season.first,
        last=season.last,
        assets=tuple(asset.symbol for asset in season.assets),
        entries=sum(entry.id != BASELINE for entry in season.all_entries),
        badges=badges,
        progress=progress_of(store, season),
    )


def _kind(dataset: str) -> str:
    if dataset.startswith(PREFIX):
        return "real"
    if dataset.startswith("synthetic/"):
        return "synthetic"
    from tradeassay_bench.data import load_dataset

    try:
        return "synthetic" if load_dataset(dataset).facts.kind == "synthetic" else "real"
    except (TradeassayError, OSError):
        return "unknown"  # This machine may not have the data.


def season_rules(season: Season) -> dict[str, Any]:
    """Return all settings that determine the standings, and their hash."""
    names = (
        "first last warmup warmup_position cash window_s timeout_s news_days seed temperature "
        "max_tokens"
    ).split()
    season = msgspec.structs.replace(season.on("9"), entries=season.entries, assets=season.assets)
    # Only some settings: those of outside agents may contain private addresses or commands.
    open_ones = ("rule", "remembered", "rounds", "recall", "personas")
    assets, entries = [], []
    for asset in season.assets:
        about = {name: getattr(asset, name) for name in ("symbol", "kind", "dataset")}
        assets.append({**about, "year": season.money.periods_per_year(asset.kind)})
    for entry in season.all_entries:
        shown = {name: value for name, value in entry.params.items() if name in open_ones}
        entries.append(msgspec.structs.replace(entry, params=shown))
    return {
        "season": season.id,
        "sha256": season.sha256,
        **{name: getattr(season, name) for name in names},
        "money": season.money,
        "optional": season.rules,
        "assets": assets,
        "entries": entries,
        "amendments": season.amendments,
    }
