"""The door for whoever shows the arena: every question about a season, answered from one place."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, Thread

import msgspec

from tradeassay.arena.reading import decisions as made
from tradeassay.arena.reading.cited import CitedFigures, cited_figures
from tradeassay.arena.reading.information import Given, given
from tradeassay.arena.reading.memory import EntryMemory, entry_memory
from tradeassay.arena.reading.pulse import Pulse
from tradeassay.arena.reading.seasons import (
    SeasonBadges,
    SeasonFacts,
    badges_of,
    facts_of,
    progress_of,
    read_season,
    season_ids,
)
from tradeassay.arena.reading.selection import Selection
from tradeassay.arena.reading.timeline import Timeline, timeline
from tradeassay.arena.reading.view import SeasonView
from tradeassay.arena.season import Season
from tradeassay.arena.standings import BoardConfig
from tradeassay.arena.state.records import Event
from tradeassay.arena.state.store import Store

REST = 4.0
"""A view is made anew at most so often that making views takes a fifth of the time."""

QUICK_S = 0.3
"""What takes less than this to compute is computed while the reader waits."""


class SeasonReader:
    """Answers about one season. Views change with settlements; everything else is read as it is now."""

    def __init__(
        self, store: Store, season: Season, badges: SeasonBadges, pulse: Pulse, config: BoardConfig | None
    ) -> None:
        self.season = season
        self.badges = badges
        self.store = store
        self._pulse = pulse
        self._config = config
        self._view = SeasonView(store, season, pulse.newest(season.id, "settled"), config)
        self._made_at = time.monotonic()
        self._lock = Lock()
        self._renewing = False
        self._facts: tuple[int, SeasonFacts] | None = None

    @property
    def seq(self) -> int:
        """The number of the season's newest event."""
        return self._pulse.newest(self.season.id)

    def view(self) -> SeasonView:
        """Return the season as of its newest settlement, or an older one while a new one would cost too much.

        A view that took long is replaced by one that is made beside it: readers see the old one meanwhile.
        """
        newest = self._pulse.newest(self.season.id, "settled")
        with self._lock:
            rested = time.monotonic() - self._made_at >= REST * self._view.cost_s
            if newest == self._view.version or not rested or self._renewing:
                return self._view
            if self._view.cost_s < QUICK_S:
                self._view = SeasonView(self.store, self.season, newest, self._config)
                self._made_at = time.monotonic()
            else:
                self._renewing = True
                Thread(target=self._renew, args=(newest,), daemon=True).start()
            return self._view

    def _renew(self, version: int) -> None:
        made = SeasonView(self.store, self.season, version, self._config)
        try:
            made.warm_like(self._view)
        finally:
            with self._lock:
                self._view, self._renewing = made, False
                self._made_at = time.monotonic()

    @property
    def shown_seq(self) -> int:
        """The newest event a page made now can show: an older one than :attr:`seq` while the view lags behind."""
        view = self.view()
        return self.seq if view.version == self._pulse.newest(self.season.id, "settled") else view.version

    @property
    def sealed(self) -> bool:
        """Whether what is not settled is hidden."""
        return self.badges.sealed

    def facts(self) -> SeasonFacts:
        """Return the season as lists show it."""
        seq = self.seq
        if self._facts is None or self._facts[0] != seq:
            self._facts = (seq, facts_of(self.season, self.badges, progress_of(self.store, self.season)))
        return self._facts[1]

    def decisions(self, wanted: made.Wanted) -> made.DecisionPage:
        """Return a page of decisions, the newest first."""
        return made.decision_page(self.store, self.season, wanted, sealed=self.sealed)

    def decision(self, id: int) -> made.Decision | None:
        """Return one decision with everything that led to it."""
        return made.one_decision(self.store, self.season, id, sealed=self.sealed)

    def positions(self, entry: str) -> tuple[made.DecisionLine, ...]:
        """Return an entry's newest executed decision on every asset: what it holds now."""
        return made.last_positions(self.store, self.season, entry, sealed=self.sealed)

    def holdings(self) -> dict[str, dict[str, int]]:
        """Return everybody's newest position on every asset: entry -> asset -> 1, 0 or -1."""
        return made.holdings(self.store, self.season, sealed=self.sealed)

    def memory(self, entry: str) -> EntryMemory:
        """Return what an entry remembers; closed while others who play could read it."""
        ended = self.facts().progress.finished
        return entry_memory(self.store, self.season, entry, sealed=self.sealed and not ended)

    def timeline(
        self, asset: str, entry: str, first: str | None = None, last: str | None = None, limit: int = 120
    ) -> Timeline:
        """Return events over actions and price."""
        return timeline(
            self.store, self.season, asset, entry, first=first, last=last, limit=limit, sealed=self.sealed
        )

    def information(self) -> Given:
        """Return what the packets of the newest rounds held."""
        return given(self.store, self.season)

    def cited(self) -> CitedFigures:
        """Return the published figures beside ours."""
        return cited_figures(self.view(), "real" if self.badges.data == "real" else "synthetic")

    def events(self, before: int | None, most: int) -> tuple[Event, ...]:
        """Return the newest events below a number, newest first."""
        return tuple(shown(event, self.sealed) for event in self._pulse.before(self.season.id, before, most))


class Reader:
    """All seasons of a database. ``kind_of`` tells a data set's kind where the store cannot be asked."""

    def __init__(
        self,
        store: Store,
        *,
        config: BoardConfig | None = None,
        pulse: Pulse | None = None,
        kind_of: Callable[[str], str] | None = None,
    ) -> None:
        self.store = store
        self.pulse = pulse or Pulse(store)
        self._config = config
        self._kind_of = kind_of
        self._seasons: dict[str, SeasonReader] = {}
        self._lock = Lock()

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all seasons, newest first."""
        return season_ids(self.store)

    def season(self, id: str) -> SeasonReader | None:
        """Return the reader of a season, or None when there is none of this id."""
        with self._lock:
            if id in self._seasons:
                return self._seasons[id]
            found = read_season(self.store, id)
            if found is None:
                return None
            season, replayed = found
            badges = badges_of(season, replayed, self._kind_of)
            self._seasons[id] = SeasonReader(self.store, season, badges, self.pulse, self._config)
            return self._seasons[id]

    def seasons(self) -> tuple[SeasonFacts, ...]:
        """Return all seasons as a list shows them."""
        found = (self.season(id) for id in self.ids())
        return tuple(reader.facts() for reader in found if reader is not None)

    def events_after(self, season: str | None, seq: int, most: int) -> tuple[Event, ...]:
        """Return events after a number, oldest first, with nothing in them that is sealed."""
        found = []
        for event in self.pulse.after(season, seq, most):
            reader = self.season(event.season)
            found.append(shown(event, reader is None or reader.sealed))
        return tuple(found)


def shown(event: Event, sealed: bool) -> Event:
    """Return an event as the public may see it: of a sealed decision only that it was made."""
    if not sealed or "action" not in event.body:
        return event
    return msgspec.structs.replace(event, body={k: v for k, v in event.body.items() if k != "action"})


EVERYTHING = Selection()
"""The selection of a reader who chose nothing."""
