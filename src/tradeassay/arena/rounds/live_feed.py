"""Rounds on today's markets: a vendor is asked at every decision time, its answer stored, then read as of then.

An asset whose ``dataset`` is ``live/<source>`` gets its days from that source (``live/yfinance``, ``live/ccxt``;
what ``tradeassay data fetch`` knows). What was fetched for a round stays in the store under its own name, with
its hash, so that a round can be looked into later. A vendor that has no bar yet is asked again until the time to
decide is over.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tradeassay.arena.rounds.feed import Due, Facts, SnapshotFeed
from tradeassay.arena.season import Asset, Season
from tradeassay.core.errors import DataError, SourceError, UserError
from tradeassay.core.time import Clock, Instant, WallClock, moment, parse_day
from tradeassay.data import Snapshot, fetch_dataset, open_snapshot, sessions_between
from tradeassay.data.home import snapshot_folder
from tradeassay.data.panel import CalendarName

PREFIX = "live/"
DAYS_BACK = 60
DAYS_AHEAD = 366
"""How far sessions are planned when a season has no last day; a season that is started again plans further."""

Fetch = Callable[[str, str, dict[str, Any]], object]
"""Source, name of the data set to be written, options: fetches and stores it."""


def is_live(season: Season) -> bool:
    """Return whether a season is played on today's markets; raises :class:`UserError` when a part of it is."""
    live = [asset.dataset.startswith(PREFIX) for asset in season.assets]
    if any(live) and not all(live):
        raise UserError(
            f"season '{season.id}' mixes live assets with stored ones", mend=f"give all of them {PREFIX}<source>"
        )
    return all(live)


class LiveFeed:
    """Sessions from the exchanges' calendars, facts from a vendor, through the same as-of views as a replay."""

    def __init__(
        self, *, home: Path | None = None, clock: Clock | None = None, fetch: Fetch | None = None
    ) -> None:
        self._home = home
        self._clock = clock or WallClock()
        self._fetch = fetch or self._fetch_and_store
        self._snapshots: dict[tuple[str, str], Snapshot] = {}
        self.last_trouble = ""

    def due(self, season: Season) -> tuple[Due, ...]:
        """Return every session of every asset from the season's first day to its last, or a year ahead."""
        ahead = str((moment(self._clock.now()) + timedelta(days=DAYS_AHEAD)).date())
        last = ahead if season.last is None else season.last
        found = []
        for place, asset in enumerate(season.assets):
            calendar: CalendarName = "XNYS" if asset.kind == "stock" else "24/7"
            sessions = sessions_between(calendar, season.first, last)
            for day, at in zip(sessions.days, sessions.close_time, strict=True):
                found.append(Due(at=int(at), place=place, asset=asset.symbol, session=str(day)))
        return tuple(sorted(found))

    def facts(self, asset: Asset, session: str, at: Instant, news_days: int) -> Facts | None:
        """Return what is known at a decision time; None while the vendor has no bar of the session."""
        snapshot = self._at(asset, session)
        return None if snapshot is None else self._reader(asset, snapshot).facts(asset, session, at, news_days)

    def comparable(self, asset: Asset, session: str, at: Instant, *, dividends: bool) -> float | None:
        """Return an earlier session's price in terms of a share of ``at``, from the newest data fetched."""
        known = [day for symbol, day in self._snapshots if symbol == asset.symbol]
        if not known:
            return None
        snapshot = self._snapshots[asset.symbol, max(known)]
        return self._reader(asset, snapshot).comparable(asset, session, at, dividends=dividends)

    def _at(self, asset: Asset, session: str) -> Snapshot | None:
        key = (asset.symbol, session)
        if key not in self._snapshots:
            source = asset.dataset.removeprefix(PREFIX)
            plain = "".join(c if c.isalnum() else "-" for c in asset.symbol.lower())
            name = f"arena-live/{plain}-{session}"
            first = str(parse_day(session) - timedelta(days=DAYS_BACK))
            options = {"symbols": (asset.symbol,), "first": first, "last": session, "allow_partial": True}
            try:
                self._fetch(source, name, options)
                snapshot = open_snapshot(snapshot_folder(name, self._home))
            except (SourceError, DataError) as error:  # not there yet, or a vendor in trouble: asked again
                self.last_trouble = str(error)
                return None
            if np.datetime64(session, "D") not in snapshot.sessions:
                self.last_trouble = f"{source} has no bar of {asset.symbol} for {session} yet"
                return None
            self._snapshots[key] = snapshot
        return self._snapshots[key]

    def _fetch_and_store(self, source: str, name: str, options: dict[str, Any]) -> object:
        return fetch_dataset(source, name, options, home=self._home, allow_faults=True, replace_existing=True)

    def _reader(self, asset: Asset, snapshot: Snapshot) -> SnapshotFeed:
        return SnapshotFeed({asset.dataset: snapshot})
