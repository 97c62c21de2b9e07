"""The seasons of a database: frozen specs and rules, badges, progress, and the part of one a reader selects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec
from sqlalchemy import func, select

from tradeassay.arena.agents import OUTSIDE
from tradeassay.arena.rounds.feed import PREFIX
from tradeassay.arena.rounds.health import WorkerHealth, read_workers
from tradeassay.arena.season import BASELINE, Entry, OptionalRules, Season
from tradeassay.arena.standings import Filter, Lines
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import corrections, rounds, seasons
from tradeassay.benchmarks.ama.rules import AmaRules
from tradeassay.core.badges import Convention
from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.time import parse_day

Origin = Literal["synthetic", "real", "unknown"]
Status = Literal["waiting", "live", "replay", "settling", "stalled", "stopped", "finished"]


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
    """How far a season is. ``session`` is the newest opened one; ``finished``: every asset's last round is closed.

    ``skipped`` counts the sessions that had no round at all, ``corrected`` the prices that a vendor changed
    afterwards. ``status`` is what a worker does about it now, by
    what was last heard of one, ``since`` when.
    """

    session: str | None
    rounds: int
    settled: int
    finished: bool
    skipped: int = 0
    corrected: int = 0
    status: Status = "waiting"
    since: str | None = None
    next_at: str | None = None


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
    """Return a season and whether it is replayed, or None when there is no such id."""
    with store.read() as db:
        spec = db.execute(select(seasons.c.spec).where(seasons.c.id == id)).scalar()
    if spec is None:
        return None
    season = msgspec.json.decode(spec, type=Season)
    return season, not all(asset.dataset.startswith(PREFIX) for asset in season.assets)


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
    """Return how far a season has come, and what its workers do."""
    query = select(rounds.c.asset, rounds.c.phase, func.count(), func.max(rounds.c.session))
    query = query.where(rounds.c.season == season.id).group_by(rounds.c.asset, rounds.c.phase)
    closed: dict[str, str] = {}
    total = settled = 0
    newest: str | None = None
    waiting = False
    with store.read() as db:
        for asset, phase, count, session in db.execute(query):
            total += count
            settled += count if phase == "settled" else 0
            waiting = waiting or phase == "opened"
            newest = session if newest is None else max(newest, session)
            if phase != "opened":
                closed[asset] = max(closed.get(asset, ""), session)
        mine = select(func.count()).where(corrections.c.season == season.id)
        corrected = int(db.execute(mine).scalar_one())
    ends = [(closed.get(asset.symbol, ""), season.days(asset)[1]) for asset in season.assets]
    decided = not waiting and all(last is not None and there >= last for there, last in ends)
    heard = read_workers(store, season.id)
    ended = any(one.state == "finished" for one in heard)
    at_work = any(one.state in ("live", "replay", "stalled") for one in heard)
    # The last decisions may be waiting for their price, and the vendor for a last look at it.
    finished = (decided and (ended or not at_work)) or (ended and not waiting and not at_work)
    status, since, next_at = _status(heard, finished, decided)
    return Progress(
        session=newest,
        rounds=total,
        settled=settled,
        finished=finished,
        skipped=len(store.skipped(season.id)),
        corrected=corrected,
        status=status,
        since=since,
        next_at=next_at,
    )


def _status(
    heard: tuple[WorkerHealth, ...], finished: bool, decided: bool
) -> tuple[Status, str | None, str | None]:
    """Return what can truly be said: over, at work, stalled, or that nobody is at it."""
    if finished:
        return "finished", None, None
    working = [one for one in heard if one.state in ("live", "replay")]
    if working:
        doing: Status = "live" if working[0].state == "live" else "replay"
        return "settling" if decided else doing, working[0].since, working[0].next_at
    stalled = [one for one in heard if one.state == "stalled"]
    if stalled:
        return "stalled", min(one.since for one in stalled), None
    if heard:
        return "stopped", max(one.since for one in heard), None
    return "waiting", None, None


def settled_decisions(store: Store, season: Season) -> int:
    """Return about how many decisions of a season are settled."""
    query = select(func.count()).where(rounds.c.season == season.id, rounds.c.phase == "settled")
    with store.read() as db:
        return int(db.execute(query).scalar_one()) * len(season.everyone)


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
    if dataset.startswith(("synthetic/", PREFIX)):
        return "real" if dataset.startswith(PREFIX) else "synthetic"
    from tradeassay.data import load_dataset

    try:
        return "synthetic" if load_dataset(dataset).facts.kind == "synthetic" else "real"
    except (TradeassayError, OSError):
        return "unknown"  # a database may be read on a machine that does not have the data


def check_choice(what: str, values: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
    """Raise :class:`UserError` for a value that is not among the known ones."""
    for value in values or ():
        if value not in known:
            raise UserError(f"no {what} '{value[:80]}' in this season", hint=f"one of {', '.join(known[:12])}")


class AssetRule(msgspec.Struct, frozen=True, kw_only=True):
    """An asset, where its prices come from and how many sessions make its year."""

    symbol: str
    kind: str
    dataset: str
    year: int


class SeasonRules(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides the standings, and the hash it is frozen under."""

    season: str
    sha256: str
    first: str
    last: str | None
    warmup: int
    cash: float
    window_s: int
    timeout_s: int
    news_days: int
    seed: int
    temperature: float
    max_tokens: int
    money: AmaRules
    optional: OptionalRules
    assets: tuple[AssetRule, ...]
    entries: tuple[Entry, ...]


def season_rules(season: Season) -> SeasonRules:
    """Return the rules of a season."""
    names = "first last warmup cash window_s timeout_s news_days seed temperature max_tokens".split()
    plain: dict[str, Any] = {name: getattr(season, name) for name in names}
    return SeasonRules(
        season=season.id,
        sha256=season.sha256,
        **plain,
        money=season.money,
        optional=season.rules,
        assets=tuple(
            AssetRule(
                symbol=asset.symbol,
                kind=asset.kind,
                dataset=asset.dataset,
                year=season.money.periods_per_year(asset.kind),
            )
            for asset in season.assets
        ),
        entries=tuple(_without_secrets(entry) for entry in season.everyone),
    )


_OPEN = frozenset(("rule", "remembered", "rounds", "recall", "personas"))
"""Settings that are shown. An outside agent's may hold addresses or commands, which are nobody's business."""


def _without_secrets(entry: Entry) -> Entry:
    shown = {name: value for name, value in entry.params.items() if name in _OPEN}
    return msgspec.structs.replace(entry, params=shown)


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown; an empty tuple means everything. The baseline is always shown beside it."""

    entries: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None

    @property
    def period(self) -> Filter:
        """The part that only the database can answer: tokens and dollars are sums over the sessions asked for."""
        return Filter(first=self.first, last=self.last)

    def pick(self, season: Season, lines: Lines) -> Lines:
        """Return the selected lines, and the baseline's on the same assets."""
        wanted = Filter(
            entries=self.entries or None, architectures=self.architectures or None, models=self.models or None
        )
        taken = {entry.id for entry in season.everyone if wanted.takes(entry)} | {BASELINE}
        return {
            key: line
            for key, line in lines.items()
            if key[0] in taken and (not self.assets or key[1] in self.assets)
        }

    @property
    def query(self) -> str:
        """The selection as the query of an address, empty when everything is shown."""
        pairs: list[tuple[str, str]] = []
        for name, values in (
            ("entry", self.entries),
            ("architecture", self.architectures),
            ("model", self.models),
            ("asset", self.assets),
        ):
            pairs += [(name, value) for value in values]
        pairs += [(name, value) for name, value in (("first", self.first), ("last", self.last)) if value]
        return urlencode(pairs)


def select_from(
    season: Season,
    *,
    entries: Iterable[str] = (),
    architectures: Iterable[str] = (),
    models: Iterable[str] = (),
    assets: Iterable[str] = (),
    first: str | None = None,
    last: str | None = None,
) -> Selection:
    """Return a checked selection: sorted, without repetitions or blanks.

    Raises :class:`UserError` for a name the season does not have, or an invalid day.
    """
    made = Selection(
        entries=_clean(entries),
        architectures=_clean(architectures),
        models=_clean(models),
        assets=_clean(assets),
        first=_day(first),
        last=_day(last),
    )
    everyone = season.everyone
    check_choice("entry", made.entries, tuple(entry.id for entry in everyone))
    check_choice("architecture", made.architectures, tuple(sorted({entry.architecture for entry in everyone})))
    check_choice("model", made.models, tuple(sorted({entry.model for entry in everyone if entry.model})))
    check_choice("asset", made.assets, tuple(asset.symbol for asset in season.assets))
    if made.first and made.last and made.last < made.first:
        raise UserError("the period ends before it begins", hint="swap its two days")
    return made


def _clean(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value}))


def _day(text: str | None) -> str | None:
    return parse_day(text).isoformat() if text else None
