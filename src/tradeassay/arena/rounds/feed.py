"""Where rounds get sessions, prices and information from. Nothing later than the requested instant gets out.

An asset whose ``dataset`` is ``live/<source>`` gets its days from that source (``live/yfinance``, ``live/ccxt``;
what ``tradeassay data fetch`` knows): the vendor is asked at every decision time, its answer stored, then read as
of then. What was fetched for a round stays in the store under its own name, with its hash, so that a round can be
inspected later. A vendor that has no bar yet is asked again until the time to decide is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from tradeassay.arena.season import Asset, Season
from tradeassay.core.arena import NewsShown, PricePoint
from tradeassay.core.errors import DataError, FutureDataError, SourceError, UserError
from tradeassay.core.time import DAY, Clock, Instant, WallClock, iso, moment, parse_day, parse_iso
from tradeassay.data import AsOfView, Snapshot, fetch_dataset, load_dataset, open_snapshot, sessions_between
from tradeassay.data.home import snapshot_folder
from tradeassay.data.panel import CalendarName

HISTORY = 10
"""How many earlier prices an agent is shown, as the AMA contract says."""


class Due(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A decision to be made: when, about which asset (its place in the season breaks ties), which session."""

    at: Instant
    place: int
    asset: str
    session: str


class AssetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a feed knows about an asset at one instant.

    ``urls`` says where a news item was found, by its id; ``annual_at``/``quarterly_at`` when a report came out.
    """

    price: float
    history: tuple[PricePoint, ...]
    momentum: float | None
    news: tuple[NewsShown, ...]
    annual_report: str | None
    quarterly_report: str | None
    urls: dict[str, str] = {}
    annual_at: str | None = None
    quarterly_at: str | None = None


class PriceFeed(Protocol):
    """A source of sessions and facts. ``facts`` at ``at`` must not contain anything that was not known then."""

    def due(self, season: Season) -> Sequence[Due]:
        """Return all decisions of a season as far as the calendar is known, in order."""
        ...

    def facts(self, asset: Asset, session: str, at: Instant, news_days: int) -> AssetFacts | None:
        """Return what is known at the close of a session, or None when it had no price."""
        ...

    def comparable(self, asset: Asset, session: str, at: Instant, *, dividends: bool) -> float | None:
        """Return an earlier session's price in terms of a share of ``at``: splits (and dividends) undone."""
        ...


class SnapshotFeed:
    """Facts out of stored or synthetic days, through as-of views only."""

    def __init__(self, snapshots: dict[str, Snapshot]) -> None:
        self._snapshots = snapshots

    @classmethod
    def open(cls, season: Season, home: Path | None = None) -> SnapshotFeed:
        """Open every data set a season names; raises :class:`DataError` for a symbol that is not in it."""
        found = {name: load_dataset(name, home) for name in {asset.dataset for asset in season.assets}}
        for asset in season.assets:
            snapshot = found[asset.dataset]
            known = snapshot.at(len(snapshot.sessions) - 1, "close").symbols
            if asset.symbol not in known:
                some = ", ".join(known[:8])
                raise DataError(f"'{asset.dataset}' has no '{asset.symbol}'", mend=f"it has {some} ...")
        return cls(found)

    @property
    def hashes(self) -> dict[str, str]:
        """The content hash of every data set."""
        return {name: snapshot.sha256 for name, snapshot in sorted(self._snapshots.items())}

    @property
    def synthetic(self) -> bool:
        """Whether any of the data is made up."""
        return any(snapshot.facts.kind == "synthetic" for snapshot in self._snapshots.values())

    def due(self, season: Season) -> tuple[Due, ...]:
        """Return the season's decisions: every session of every asset, at its close."""
        found = []
        for place, asset in enumerate(season.assets):
            snapshot = self._snapshots[asset.dataset]
            for row in snapshot.rows(season.first, season.last):
                at = snapshot.at(row, "close").clock
                found.append(Due(at=at, place=place, asset=asset.symbol, session=str(snapshot.sessions[row])))
        return tuple(sorted(found))

    def facts(self, asset: Asset, session: str, at: Instant, news_days: int) -> AssetFacts | None:
        """Return what is known at the close of a session; None when the asset was not traded in it."""
        snapshot = self._snapshots[asset.dataset]
        view = snapshot.as_of(at)
        days = view.sessions(HISTORY + 1)
        if asset.symbol not in view.symbols or str(days[-1]) != session:
            return None
        prices = view.bars("close", HISTORY + 1)[:, view.column(asset.symbol)]
        if not np.isfinite(prices[-1]):
            return None
        points = tuple(
            PricePoint(date=str(day), price=float(price))
            for day, price in zip(days[:-1], prices[:-1], strict=True)
            if np.isfinite(price)
        )
        news, urls = _news(view, asset.symbol, at, news_days)
        annual, annual_at = _report(view, asset.symbol, annual=True)
        quarterly, quarterly_at = _report(view, asset.symbol, annual=False)
        return AssetFacts(
            price=float(prices[-1]),
            history=points,
            momentum=_momentum(view, asset.symbol),
            news=news,
            annual_report=annual,
            quarterly_report=quarterly,
            urls=urls,
            annual_at=annual_at,
            quarterly_at=quarterly_at,
        )

    def comparable(self, asset: Asset, session: str, at: Instant, *, dividends: bool) -> float | None:
        """Return the close of an earlier session, adjusted for what happened to a share until ``at``."""
        view = self._snapshots[asset.dataset].as_of(at)
        row = int(np.searchsorted(view.sessions(), np.datetime64(session, "D")))
        lookback = view.sessions().shape[0] - row
        closes = view.bars("close", lookback, adjust="total" if dividends else "split")
        price = closes[0, view.column(asset.symbol)]
        return float(price) if np.isfinite(price) else None


def refuse_future(facts: AssetFacts, at: Instant) -> None:
    """Raise :class:`FutureDataError` when anything came out after the decision time. The last line of defence.

    Instants are compared, not their texts: a fraction of a second sorts before a full one as text.
    """
    stamped = [(f"news item {item.id}", item.published_at) for item in facts.news]
    stamped += [("annual report", facts.annual_at or ""), ("quarterly report", facts.quarterly_at or "")]
    for what, stamp in stamped:
        if stamp and parse_iso(stamp) > at:
            raise FutureDataError(f"{what} was published {stamp}, after {iso(at)}")


def _momentum(view: AsOfView, symbol: str) -> float | None:
    closes = view.bars("close", 21)[:, view.column(symbol)]
    if closes.shape[0] < 21 or not (np.isfinite(closes[0]) and closes[0] > 0):
        return None
    return float(closes[-1] / closes[0] - 1.0)


def _news(view: AsOfView, symbol: str, at: Instant, days: int) -> tuple[tuple[NewsShown, ...], dict[str, str]]:
    found = view.news(at - days * DAY, symbols=[symbol], limit=20)
    items = tuple(
        NewsShown(
            id=item.id,
            published_at=iso(item.published_at),
            source=item.source,
            title=item.title,
            text=item.body,
        )
        for item in found
    )
    return items, {item.id: item.url for item in found if item.url}


def _report(view: AsOfView, symbol: str, *, annual: bool) -> tuple[str | None, str | None]:
    """Return the newest report known by now and when it came out: of a year's end, or any other quarter's."""
    known = [f for f in view.fundamentals(symbol) if f.period_end.endswith("-12-31") == annual]
    if not known:
        return None, None
    newest = max(f.period_end for f in known)
    its = [f for f in known if f.period_end == newest]
    lines = sorted(f"{f.field}: {f.value:g}" for f in its)
    return f"Period to {newest}. " + "; ".join(lines), iso(max(f.known_at for f in its))


PREFIX = "live/"
DAYS_BACK = 60
DAYS_AHEAD = 366
"""How far sessions are planned when a season has no last day; a season that is started again plans further."""

Fetch = Callable[[str, str, dict[str, Any]], object]
"""Source, name of the data set to be written, options: fetches and stores it."""


def is_live(season: Season) -> bool:
    """Return whether a season is played on today's markets; raises :class:`UserError` when only part of it is."""
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

    def facts(self, asset: Asset, session: str, at: Instant, news_days: int) -> AssetFacts | None:
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
