"""The way in for whatever shows the arena: every question about a season, answered in one place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, RLock, Thread

import msgspec
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.arena.queries import decisions as made
from tradeassay.arena.queries.cache import read_kept
from tradeassay.arena.queries.citations import CitedFigures, cited_figures
from tradeassay.arena.queries.current import SeasonNow, season_now
from tradeassay.arena.queries.decisions import Timeline, timeline
from tradeassay.arena.queries.information import EntryMemory, PacketsTold, entry_memory, given
from tradeassay.arena.queries.seasons import (
    Progress,
    SeasonBadges,
    SeasonFacts,
    Selection,
    badges_of,
    facts_of,
    progress_of,
    read_season,
    season_ids,
    select_from,
    settled_decisions,
)
from tradeassay.arena.queries.trades import EntryTrades
from tradeassay.arena.queries.view import SeasonView
from tradeassay.arena.season import Season
from tradeassay.arena.standings import BoardConfig, Standings
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.rows import SeasonEvent
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import events
from tradeassay.core.errors import UserError
from tradeassay.core.suggest import did_you_mean

MOST_EVENTS = 500
"""How many events one question may ask for."""

MOVED = "moved"
"""Stands for every kind of event but an agent's answer: what changes how far a season has come."""

_ANSWERS = frozenset(("decided", "failed"))
_ANY = msgspec.json.Decoder()


class Pulse:
    """The numbers of the newest events, asked for at most every ``rest_s`` seconds by however many readers.

    One question for all seasons and kinds looks at what is newer than the last answer. Whoever comes while another
    thread asks is told what is known.
    """

    def __init__(self, store: Store, rest_s: float = 0.05, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._rest_s = rest_s
        self._now = now
        self._lock = Lock()
        self.asked_at: float | None = None
        self._known = 0
        self._found: dict[tuple[str | None, str | None], int] = {}

    @property
    def rested(self) -> bool:
        """Whether what is known is old enough to be asked for again."""
        return self.asked_at is None or self._now() - self.asked_at >= self._rest_s

    def newest(self, season: str | None, kind: str | None = None) -> int:
        """Return the number of the newest event of a season (None: of all) and a kind, 0 when there is none."""
        if self.rested and self._lock.acquire(blocking=self.asked_at is None):
            try:
                if self.rested:
                    self._ask()
            finally:
                self._lock.release()
        return self._found.get((season, kind), 0)

    def _ask(self) -> None:
        query = select(events.c.season, events.c.kind, func.max(events.c.seq)).where(events.c.seq > self._known)
        with self._store.read() as db:
            newer = db.execute(query.group_by(events.c.season, events.c.kind)).all()
        for season, kind, seq in newer:
            for key in ((season, kind), (season, None), (None, None)):
                self._found[key] = max(self._found.get(key, 0), seq)
            if kind not in _ANSWERS:
                self._found[season, MOVED] = max(self._found.get((season, MOVED), 0), seq)
        self._known = self._found.get((None, None), 0)
        self.asked_at = self._now()

    def settled(self, season: str) -> int:
        """Return the number of the newest event that changes standings: a settlement, or a correction."""
        return max(self.newest(season, "settled"), self.newest(season, "corrected"))

    def after(self, season: str | None, seq: int, most: int = MOST_EVENTS) -> tuple[SeasonEvent, ...]:
        """Return the events of a season (None: of all) after a number, oldest first."""
        query = select(events).where(events.c.seq > seq).order_by(events.c.seq).limit(min(most, MOST_EVENTS))
        return self._read(query if season is None else query.where(events.c.season == season))

    def before(self, season: str, seq: int | None, most: int) -> tuple[SeasonEvent, ...]:
        """Return the newest events of a season below a number (None: no bound), newest first."""
        query = select(events).where(events.c.season == season).order_by(events.c.seq.desc())
        query = query.limit(min(most, MOST_EVENTS))
        return self._read(query if seq is None else query.where(events.c.seq < seq))

    def _read(self, query: object) -> tuple[SeasonEvent, ...]:
        with self._store.read() as db:
            return tuple(
                SeasonEvent(seq=row.seq, season=row.season, kind=row.kind, at=row.at, body=_ANY.decode(row.body))
                for row in db.execute(query)  # type: ignore[call-overload]  # any of the selects above
            )


REST = 4.0
"""Views are remade only so often that making them takes at most a fifth of the time."""

STATUS_S = 10.0
"""How old the word about a season's workers may be: a stalled one makes no events."""

QUICK_S = 0.3
"""What takes less than this to compute is computed while the reader waits."""


LARGE = 20_000
"""Settled decisions that take longer to sum up than a reader should wait for the first page."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What a page depends on: events, the view at hand, and what the workers were last heard to do."""

    seq: int
    view: int | None
    settled: int
    progress: Progress

    @property
    def lagging(self) -> bool:
        """Whether the view at hand is older than the newest settlement."""
        return self.view is not None and self.view != self.settled


class SeasonReader:
    """Answers about one season. Views change with settlements; everything else is read as it is now.

    ``hurried``: where nothing is kept of a large season it is shown without standings, which says so, until they
    have been computed beside its readers.
    """

    def __init__(
        self,
        store: Store,
        season: Season,
        badges: SeasonBadges,
        pulse: Pulse,
        config: BoardConfig | None,
        *,
        hurried: bool = False,
    ) -> None:
        self.season = season
        self.badges = badges
        self.store = store
        self._pulse = pulse
        self._config = config
        self._hurried = hurried
        self._at_hand: SeasonView | None = None
        self._made_at = time.monotonic()
        self._lock = RLock()
        self._renewing = False
        self._kept: int | None = None
        self._facts: tuple[int, SeasonFacts] | None = None
        self._facts_at = 0.0

    @property
    def seq(self) -> int:
        """The number of the season's newest event."""
        return self._pulse.newest(self.season.id)

    @property
    def _view(self) -> SeasonView:
        """The view at hand. The first is made when somebody asks: from what is kept, empty, or of now."""
        with self._lock:
            if self._at_hand is None:
                made = SeasonView(self.store, self.season, self._pulse.settled(self.season.id), self._config)
                kept = read_kept(self.store, self.season.id, self._config or BoardConfig())
                self._made_at = time.monotonic()
                if kept is not None:
                    made.recall(kept)
                    self._kept = kept.version
                elif self._hurried and settled_decisions(self.store, self.season) > LARGE:
                    made.begin_empty(QUICK_S)
                    self._made_at = float("-inf")
                self._at_hand = made
            return self._at_hand

    @_view.setter
    def _view(self, made: SeasonView) -> None:
        self._at_hand = made

    def view(self) -> SeasonView:
        """Return the season as of its newest settlement, or an older one while a new one would cost too much.

        A view that took long is replaced by one made in the background; readers see the old one meanwhile.
        """
        newest = self._pulse.settled(self.season.id)
        with self._lock:
            old = self._view
            rested = time.monotonic() - self._made_at >= REST * old.cost_s
            if newest == old.version or not rested or self._renewing:
                return old
            if old.cost_s < QUICK_S:
                self._view = self._view.next(newest)
                self._made_at = time.monotonic()
            else:
                self._renewing = True
                Thread(target=self._renew, args=(newest,), daemon=True).start()
            return self._view

    def _renew(self, version: int) -> None:
        made = self._view.next(version)
        try:
            made.warm_like(self._view)
            made.keep()
            self._kept = version
        finally:
            with self._lock:
                self._view, self._renewing = made, False
                self._made_at = time.monotonic()

    @property
    def newest_settled(self) -> int:
        """The number of the newest event that changed the standings."""
        return self._pulse.settled(self.season.id)

    def board(self, wanted: Selection, view: SeasonView | None = None) -> Standings:
        """Return the standings of a view (None: the newest at hand), saying how many settled rounds they lack."""
        view = view or self.view()
        return msgspec.structs.replace(view.board(wanted), behind=self._behind(view.version))

    def _behind(self, version: int) -> int:
        """Return how many rounds were settled after a view was made."""
        if version >= self._pulse.settled(self.season.id):
            return 0
        newer = (events.c.season == self.season.id, events.c.seq > version, events.c.kind == "settled")
        with self.store.read() as db:
            return int(db.execute(select(func.count()).where(*newer)).scalar_one())

    def moment(self, *, viewed: bool = True) -> Moment:
        """Return what a page depends on now; without ``viewed`` the view at hand is left out."""
        settled = self._pulse.settled(self.season.id)
        view = self.view().version if viewed else None
        return Moment(seq=self.seq, view=view, settled=settled, progress=self.facts().progress)

    @property
    def shown_seq(self) -> int:
        """The newest event a page made now can show: an older one than :attr:`seq` while the view lags behind."""
        view, newest = self.view(), self._pulse.settled(self.season.id)
        return self.seq if view.version == newest else max(view.version, newest - 1)

    def keep(self) -> None:
        """Keep the standings for the next start, once for each settlement that cost something to compute."""
        view = self.view()
        if self._kept != view.version > 0 and view.cost_s > QUICK_S and not self._renewing:
            self._kept = view.version
            whole = self.rests
            Thread(target=lambda: view.keep(whole=whole), daemon=True).start()

    @property
    def rests(self) -> bool:
        """Whether settlements are days apart, or over: what costs much to compute is computed once then."""
        return self.facts().progress.status not in ("replay", "stalled", "settling")

    @property
    def sealed(self) -> bool:
        """Whether what is not settled is hidden."""
        return self.badges.sealed

    def facts(self) -> SeasonFacts:
        """Return the season as lists show it."""
        seq, now = self._pulse.newest(self.season.id, MOVED), time.monotonic()
        if self._facts is None or self._facts[0] != seq or now - self._facts_at > STATUS_S:
            self._facts = (seq, facts_of(self.season, self.badges, progress_of(self.store, self.season)))
            self._facts_at = now
        return self._facts[1]

    def decisions(self, wanted: made.DecisionsWanted) -> made.DecisionPage:
        """Return a page of decisions, the newest first."""
        return made.decision_page(self.store, self.season, wanted, sealed=self.sealed)

    def decision(self, id: int) -> made.DecisionRead | None:
        """Return one decision with everything that led to it."""
        return made.one_decision(self.store, self.season, id, sealed=self.sealed)

    def positions(self, entry: str) -> tuple[made.DecisionLine, ...]:
        """Return an entry's newest executed decision on every asset: what it holds now."""
        return made.last_positions(self.store, self.season, entry, sealed=self.sealed)

    def holdings(self) -> dict[str, dict[str, int]]:
        """Return everybody's newest position on every asset: entry -> asset -> 1, 0 or -1."""
        return made.holdings(self.store, self.season, sealed=self.sealed)

    def now(self) -> SeasonNow:
        """Return the last prices, who decides, and when somebody will."""
        return season_now(self.store, self.season, self.facts().progress.next_at)

    def trades(self, entry: str) -> EntryTrades:
        """Return an entry's trades with fees and results, in settled sessions."""
        return self.view().trades(entry)

    def memory(self, entry: str) -> EntryMemory:
        """Return what an entry remembers; closed while a decision that others could profit from is not settled."""
        progress = self.facts().progress
        ended = progress.finished and progress.settled == progress.rounds
        return entry_memory(self.store, self.season, entry, sealed=self.sealed and not ended)

    def timeline(
        self, asset: str, entry: str, period: tuple[str | None, str | None] = (None, None), limit: int = 120
    ) -> Timeline:
        """Return events over actions and price."""
        return timeline(self.store, self.season, asset, entry, period=period, limit=limit, sealed=self.sealed)

    def information(self) -> PacketsTold:
        """Return what the packets of the newest rounds held."""
        return given(self.store, self.season)

    def cited(self) -> CitedFigures:
        """Return the published figures beside ours."""
        return cited_figures(self.view(), "real" if self.badges.data == "real" else "synthetic")

    def events(self, before: int | None, most: int) -> tuple[SeasonEvent, ...]:
        """Return the newest events below a number, newest first."""
        return tuple(shown(event, self.sealed) for event in self._pulse.before(self.season.id, before, most))


class ArenaReader:
    """All seasons of a database. ``kind_of`` tells a data set's kind where the store cannot be asked.

    ``hurried`` as for :class:`SeasonReader`: for pages, whose readers come back by themselves.
    """

    def __init__(
        self,
        store: Store,
        *,
        config: BoardConfig | None = None,
        pulse: Pulse | None = None,
        kind_of: Callable[[str], str] | None = None,
        hurried: bool = False,
    ) -> None:
        self.store = store
        self._hurried = hurried
        self.pulse = pulse or Pulse(store)
        self._config = config
        self._kind_of = kind_of
        self._seasons: dict[str, SeasonReader] = {}
        self._lock = Lock()

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all seasons, newest first."""
        return season_ids(self.store)

    def season(self, id: str) -> SeasonReader | None:
        """Return the reader of a season, or None when there is no such id."""
        with self._lock:
            if id in self._seasons:
                return self._seasons[id]
            found = read_season(self.store, id)
            if found is None:
                return None
            season, replayed = found
            badges = badges_of(season, replayed, self._kind_of)
            self._seasons[id] = SeasonReader(
                self.store, season, badges, self.pulse, self._config, hurried=self._hurried
            )
            return self._seasons[id]

    def seasons(self) -> tuple[SeasonFacts, ...]:
        """Return all seasons as a list shows them."""
        found = (self.season(id) for id in self.ids())
        return tuple(reader.facts() for reader in found if reader is not None)

    def events_after(self, season: str | None, seq: int, most: int) -> tuple[SeasonEvent, ...]:
        """Return events after a number, oldest first, with everything sealed left out."""
        found = []
        for event in self.pulse.after(season, seq, most):
            reader = self.season(event.season)
            found.append(shown(event, reader is None or reader.sealed))
        return tuple(found)


_SECRET = frozenset(("action", "changed", "slots"))
"""What events say about decisions, one by one or counted."""


def shown(event: SeasonEvent, sealed: bool) -> SeasonEvent:
    """Return an event as the public may see it: of a sealed decision only that it was made, not how it ended."""
    if not sealed:
        return event
    kind, body = event.kind, {name: value for name, value in event.body.items() if name not in _SECRET}
    if kind == "failed":
        kind = "decided"
    elif kind == "missed" and "slots" in event.body:
        kind = "closed"
        body.pop("cause", None)
    return msgspec.structs.replace(event, kind=kind, body=body)


def keep_standings(store: Store, season: str) -> None:
    """Compute the standings of a season and keep them for the first page after a start, if they are not yet.

    A database that cannot be read or written is no reason to stop; the first reader waits then.
    """
    try:
        reader = ArenaReader(store).season(season)
        if reader is not None:
            newest = reader.view()
            if newest.version != reader.newest_settled:
                newest = newest.next(reader.newest_settled)
            newest.keep(whole=reader.rests)
    except SQLAlchemyError:
        pass


EVERYTHING = Selection()
"""The selection of a reader who chose nothing."""


def board_of(
    db: str,
    season: str | None = None,
    *,
    assets: Iterable[str] = (),
    models: Iterable[str] = (),
    architectures: Iterable[str] = (),
    first: str | None = None,
    last: str | None = None,
) -> Standings:
    """Return the standings of a season (None: the newest) in a database.

    Raises :class:`UserError` for a missing database, an unknown season, or a selection that does not fit.
    """
    with _opened(db, season) as found:
        chosen = select_from(
            found.season, assets=assets, models=models, architectures=architectures, first=first, last=last
        )
        return found.board(chosen)


def cited_of(db: str, season: str | None = None) -> CitedFigures:
    """Return the published figures beside those of a season (None: the newest) in a database; raises as above."""
    with _opened(db, season) as found:
        return found.cited()


@contextmanager
def opened_store(db: str, season: str | None = None) -> Iterator[Store]:
    """Open a database that is there; raises :class:`UserError` without one, or without the season."""
    if "://" not in db and not Path(db).is_file():
        raise UserError(f"there is no database '{db}'", hint="tradeassay arena run --replay synthetic makes one")
    store = Store(open_engine(db))
    try:
        ids = season_ids(store)
        if season is not None and season not in ids:
            hint = did_you_mean(season, ids, f"it has {', '.join(ids) or 'none yet'}")
            raise UserError(f"'{db}' has no season '{season}'", hint=hint)
        yield store
    finally:
        store.engine.dispose()


@contextmanager
def _opened(db: str, season: str | None) -> Iterator[SeasonReader]:
    with opened_store(db, season) as store:
        reader = ArenaReader(store)
        found = reader.season(season or next(iter(reader.ids()), ""))
        if found is None:
            raise UserError(f"'{db}' has no season", hint="tradeassay arena run plays one")
        yield found
