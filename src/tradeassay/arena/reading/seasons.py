"""The seasons of a database: their frozen specs, where their numbers come from, and how far they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from sqlalchemy import func, select

from tradeassay.arena.agents import OUTSIDE
from tradeassay.arena.season import BASELINE, Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rounds, seasons
from tradeassay.core.badges import Convention
from tradeassay.core.errors import TradeassayError, UserError

Origin = Literal["synthetic", "real", "unknown"]
_EPOCH = "1970-01-01"


class SeasonBadges(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader must know before believing a number of a season.

    ``sealed``: somebody decides outside and could read these pages, so decisions appear once they are settled and
    memories stay closed.
    """

    data: Origin
    convention: Convention
    time: Literal["replay", "live"]
    sealed: bool


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a season is. ``session`` is the newest opened one; ``finished``: its last day is settled or open."""

    session: str | None
    rounds: int
    settled: int
    finished: bool


class SeasonFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A season as the list shows it."""

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
    """Return the ids of all seasons, the newest first."""
    query = select(seasons.c.id).order_by(seasons.c.created_at.desc(), seasons.c.id)
    with store.read() as db:
        return tuple(db.execute(query).scalars())


def read_season(store: Store, id: str) -> tuple[Season, bool] | None:
    """Return a season and whether it is replayed, or None when there is none of this id.

    A replay's clock begins at the epoch, and so does the date under which it was written down.
    """
    with store.read() as db:
        row = db.execute(select(seasons.c.spec, seasons.c.created_at).where(seasons.c.id == id)).first()
    if row is None:
        return None
    return msgspec.json.decode(row.spec, type=Season), str(row.created_at).startswith(_EPOCH)


def badges_of(season: Season, replayed: bool, kind_of: Callable[[str], str] | None = None) -> SeasonBadges:
    """Return a season's badges; ``kind_of`` gives a data set's kind (None: the store is asked)."""
    kinds = {(kind_of or _kind)(name) for name in {asset.dataset for asset in season.assets}}
    data: Origin = "unknown"
    if "synthetic" in kinds:
        data = "synthetic"
    elif kinds == {"real"}:
        data = "real"
    return SeasonBadges(
        data=data,
        convention=season.convention,
        time="replay" if replayed else "live",
        sealed=any(entry.architecture in OUTSIDE for entry in season.entries),
    )


def progress_of(store: Store, season: Season) -> Progress:
    """Return how far a season is."""
    query = select(rounds.c.phase, func.count(), func.max(rounds.c.session)).where(rounds.c.season == season.id)
    with store.read() as db:
        found = {phase: (count, newest) for phase, count, newest in db.execute(query.group_by(rounds.c.phase))}
    session = max((newest for _, newest in found.values()), default=None)
    return Progress(
        session=session,
        rounds=sum(count for count, _ in found.values()),
        settled=found.get("settled", (0, None))[0],
        finished=season.last is not None and session is not None and session >= season.last,
    )


def facts_of(season: Season, badges: SeasonBadges, progress: Progress) -> SeasonFacts:
    """Return a season as lists show it."""
    return SeasonFacts(
        id=season.id,
        title=season.title or season.id,
        sha256=season.sha256,
        first=season.first,
        last=season.last,
        assets=tuple(asset.symbol for asset in season.assets),
        entries=sum(entry.id != BASELINE for entry in season.everyone),
        badges=badges,
        progress=progress,
    )


def _kind(dataset: str) -> str:
    if dataset.startswith("synthetic/"):
        return "synthetic"
    from tradeassay.data import load_dataset

    try:
        return "synthetic" if load_dataset(dataset).facts.kind == "synthetic" else "real"
    except (TradeassayError, OSError):
        return "unknown"  # a database may be read on a machine that does not have the data


def check_choice(what: str, values: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
    """Raise :class:`UserError` for a value that is not among the known ones."""
    for value in values or ():
        if value not in known:
            raise UserError(f"no {what} '{value[:80]}' in this season", mend=f"one of {', '.join(known[:12])}")
