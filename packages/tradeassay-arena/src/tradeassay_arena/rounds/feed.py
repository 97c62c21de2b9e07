"""Read sessions, prices and information for rounds, never later than the requested instant.

An asset whose ``dataset`` is ``live/<source>`` gets its days from that source (``live/yfinance``,
``live/ccxt``, see ``tradeassay data get``). The vendor is queried at every decision time. Its
answer is stored under a separate name with its hash, then read as of that time, so a round can be
inspected later. A vendor that has no bar yet is queried again until the time to decide is over.

Every answer also contains past closes (:meth:`LiveFeed.closes`), which reveal revisions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from tradeassay.core.errors import DataError, MissingExtra, UserError
from tradeassay_arena.rounds.prices import Close, Closes
from tradeassay_arena.season import LIVE_DELAY_S, PREFIX, Asset, PriceRules, Season
from tradeassay_bench.core.arena import NewsShown, PricePoint
from tradeassay_bench.core.errors import FutureDataError
from tradeassay_bench.core.orders import is_price
from tradeassay_bench.core.time import (
    DAY,
    SECOND,
    Clock,
    Instant,
    WallClock,
    iso,
    moment,
    parse_day,
    parse_iso,
)
from tradeassay_bench.core.view import Field
from tradeassay_bench.data import (
    AsOfView,
    Snapshot,
    fetch_dataset,
    load_dataset,
    open_snapshot,
    sources,
)
from tradeassay_bench.data.calendars import known_range, sessions_between
from tradeassay_bench.data.connectors.common import VendorResting
from tradeassay_bench.data.datasets import snapshot_folder
from tradeassay_bench.data.doctor import check_bars
from tradeassay_bench.data.source import CalendarName


class PlannedSession(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A session of an asset, at its decision time ``at``.

    ``place`` is the asset's index in the season. It orders sessions with the same time. With
    ``closing`` there is no decision: the price settles the asset's last decision. With ``review``
    there is no settlement either: the vendor is queried once more, because it may have revised its
    last prices.
    """

    at: Instant
    place: int
    asset: str
    session: str
    closing: bool = False
    review: bool = False


class AssetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The information about an asset that is known at one instant.

    ``history`` contains up to ten earlier prices. ``momentum`` is the return over 20 sessions, or
    None. ``urls`` are the addresses of news items by id. ``annual_at`` and ``quarterly_at`` are the
    publication times of the reports. ``bar`` is the vendor's bar, for a live asset.
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
    bar: VendorBar | None = None

    @property
    def needs_operator(self) -> bool:
        """Whether only an operator can accept the bar if it is doubtful.

        This is true if there is a second source, or if the close is at least three times or at most
        a third of the previous close. A later look does not confirm such a bar. Only a different
        bar can replace it.
        """
        bar = self.bar
        if bar is None or bar.second is not None or bar.previous is None:
            return bar is not None and bar.second is not None
        return not 1 / 3 < bar.close / bar.previous.close < 3


class VendorBar(msgspec.Struct, frozen=True, kw_only=True):
    """The vendor's bar of a session, the bar before it, and the close of a second source."""

    open: float
    high: float
    low: float
    close: float
    volume: float
    previous: VendorBar | None = None
    second: float | None = None


class SnapshotFeed:
    """A feed from stored or synthetic days, read through as-of views.

    ``blocking`` is whether requests are slow, so that the feed must be queried in a thread.
    """

    blocking = False

    def __init__(self, snapshots: dict[str, Snapshot], home: Path | None = None) -> None:
        self._snapshots, self._home = snapshots, home

    @classmethod
    def open(cls, season: Season, home: Path | None = None) -> SnapshotFeed:
        """Return a feed with every data set of a season.

        Raises :class:`DataError` if a data set lacks a symbol.
        """
        found = {
            name: load_dataset(name, home) for name in {asset.dataset for asset in season.assets}
        }
        for asset in season.assets:
            known = found[asset.dataset].at(len(found[asset.dataset].sessions) - 1, "close").symbols
            if asset.symbol not in known:
                some = ", ".join(known[:8])
                raise DataError(
                    f"'{asset.dataset}' has no '{asset.symbol}'", hint=f"it has {some} ..."
                )
        return cls(found, home)

    def due(self, season: Season) -> tuple[PlannedSession, ...]:
        """Return all planned sessions of a season, in order.

        Each asset's last session is followed by a session that only settles.
        """
        found = []
        for place, asset in enumerate(season.assets):
            if asset.dataset not in self._snapshots:  # the asset was added while the season ran
                self._snapshots |= SnapshotFeed.open(season, self._home)._snapshots
            snapshot = self._snapshots[asset.dataset]
            rows = snapshot.rows(*season.days(asset))
            for row in range(rows.start, min(rows.stop + 1, len(snapshot.sessions))):
                day, closing = str(snapshot.sessions[row]), row == rows.stop
                at = snapshot.at(row, "close").clock + (season.on(day).delay_s or 0) * SECOND
                found.append(
                    PlannedSession(
                        at=at, place=place, asset=asset.symbol, session=day, closing=closing
                    )
                )
        return tuple(sorted(found))

    def facts(self, asset: Asset, session: str, at: Instant, news_days: int) -> AssetFacts | None:
        """Return the facts that are known at an instant, or None if the session has no price.

        ``news_days`` is the age in days of the oldest news.
        """
        snapshot = self._snapshots[asset.dataset]
        view = _at_close(snapshot, session, at)
        if view is None or asset.symbol not in view.symbols:
            return None
        closes = view.bars("close", 21)[:, view.column(asset.symbol)]
        if not is_price(closes[-1]):
            return None
        days = view.sessions(11)  # the AMA contract gives an agent ten earlier prices
        shown = zip(days[:-1], closes[-days.shape[0] : -1], strict=True)
        points = tuple(
            PricePoint(date=str(day), price=float(one)) for day, one in shown if is_price(one)
        )
        told = (
            view if view.clock == at else snapshot.as_of(at)
        )  # includes what was published after the close
        news = told.news(at - news_days * DAY, symbols=[asset.symbol], limit=20)
        month = closes.shape[0] == 21 and is_price(closes[0])
        reports: list[
            tuple[str | None, str | None]
        ] = []  # the newest annual and the newest quarterly report
        for yearly in (True, False):
            known = [
                f
                for f in told.fundamentals(asset.symbol)
                if f.period_end.endswith("-12-31") == yearly
            ]
            newest = max((f.period_end for f in known), default="")
            its = [f for f in known if f.period_end == newest]
            text = f"Period to {newest}. " + "; ".join(
                sorted(f"{f.field}: {f.value:g}" for f in its)
            )
            reports.append((text, iso(max(f.known_at for f in its))) if its else (None, None))
        (annual, annual_at), (quarterly, quarterly_at) = reports
        return AssetFacts(
            price=float(closes[-1]),
            history=points,
            momentum=float(closes[-1] / closes[0] - 1.0) if month else None,
            news=tuple(
                NewsShown(
                    id=n.id,
                    published_at=iso(n.published_at),
                    source=n.source,
                    title=n.title,
                    text=n.body,
                )
                for n in news
            ),
            annual_report=annual,
            quarterly_report=quarterly,
            urls={item.id: item.url for item in news if item.url},
            annual_at=annual_at,
            quarterly_at=quarterly_at,
        )

    def comparable(
        self, asset: Asset, session: str, at: Instant, *, dividends: bool
    ) -> float | None:
        """Return an earlier session's close, adjusted to a share as of ``at``, or None.

        The close is adjusted for splits, and with ``dividends`` for dividends too.
        """
        view = self._snapshots[asset.dataset].as_of(at)
        days = view.sessions()
        row = int(np.searchsorted(days, np.datetime64(session, "D")))
        if row == days.shape[0] or str(days[row]) != session:
            return None
        closes = view.bars("close", days.shape[0] - row, adjust="total" if dividends else "split")
        price = closes[0, view.column(asset.symbol)]
        return float(price) if np.isfinite(price) else None

    def closes(self, asset: Asset, session: str, *, dividends: bool) -> Closes:
        """Return no closes, because stored days do not change."""
        return {}

    def forget(self, asset: Asset) -> None:
        """Do nothing, because stored days are not queried again."""


def _at_close(snapshot: Snapshot, session: str, at: Instant) -> AsOfView | None:
    """Return the view at the close of a session.

    Returns None if the session is missing or closes after ``at``.
    """
    row = int(np.searchsorted(snapshot.sessions, np.datetime64(session, "D")))
    if row >= len(snapshot.sessions) or str(snapshot.sessions[row]) != session:
        return None
    view = snapshot.at(row, "close")
    return view if view.clock <= at else None


def refuse_future(facts: AssetFacts, at: Instant) -> None:
    """Raise :class:`FutureDataError` if a fact was published after the decision time.

    Times are compared as instants. As texts, a fraction of a second would sort before a full
    second.
    """
    stamped = [(f"news item {item.id}", item.published_at) for item in facts.news]
    stamped += [
        ("annual report", facts.annual_at or ""),
        ("quarterly report", facts.quarterly_at or ""),
    ]
    for what, stamp in stamped:
        if stamp and parse_iso(stamp) > at:
            raise FutureDataError(f"{what} was published {stamp}, after {iso(at)}")


Fetch = Callable[[str, str, dict[str, Any]], object]
"""Fetches a data set and stores it. Its arguments are the source, the stored name and options."""


def is_live(season: Season) -> bool:
    """Return whether a season's assets are live.

    Raises :class:`UserError` if only some assets are live.
    """
    live = [asset.dataset.startswith(PREFIX) for asset in season.assets]
    if any(live) and not all(live):
        hint = f"give all of them {PREFIX}<source>"
        raise UserError(f"season '{season.id}' mixes live and stored assets", hint=hint)
    return all(live)


def check_data(season: Season) -> None:
    """Raise an error if a season names a missing data set or an unusable live source.

    Synthetic worlds are not generated and vendors are not queried.
    """
    for name in sorted({asset.dataset for asset in season.assets}):
        if not name.startswith((PREFIX, "synthetic/")):
            load_dataset(name)
    live = [asset.dataset for asset in season.assets if asset.dataset.startswith(PREFIX)]
    for source in (
        name.removeprefix(PREFIX) for name in (*live, *(a.second for a in season.assets)) if name
    ):
        kind = sources.get(source)
        if not {"symbols", "first", "last"} <= set(kind.Config.__struct_fields__):
            what = f"source '{source}' cannot be asked for a symbol's days"
            raise UserError(what, hint="live/yfinance or live/ccxt can")
        if kind.extra is not None and find_spec(source) is None:
            hint = f"pip install 'tradeassay[{kind.extra}]'"
            raise MissingExtra(f"live/{source} needs the package '{source}'", hint=hint)


def parse_renamed(season: Season, given: Sequence[str]) -> dict[str, str]:
    """Return new symbols by old symbols, from texts of the form ``OLD=NEW``.

    Raises :class:`UserError` for a text of another form or an asset that the season lacks.
    """
    found = {}
    for text in given:
        old, _, new = text.partition("=")
        if not new.strip():
            raise UserError(f"expected OLD=NEW, got '{text}'", hint="for example: FB=META")
        found[season.asset(old.strip()).symbol] = new.strip()
    return found


def calendar_of(asset: Asset) -> CalendarName:
    """Return the calendar of a live asset.

    By default the calendar follows from the asset's kind, symbol and source.
    """
    if asset.calendar:
        return asset.calendar
    if asset.kind == "crypto":
        return "24/7"
    source = asset.dataset.removeprefix(PREFIX)
    chinese = asset.symbol.upper().endswith((".SS", ".SH", ".SZ")) or source in (
        "baostock",
        "ashare",
    )
    return "XSHG" if chinese else "XNYS"


def _planned(calendar: CalendarName, first: date, last: date) -> Iterator[tuple[date, Instant]]:
    """Yield the sessions of a calendar with their closing times.

    After the last year with known holidays, every weekday is a session with the usual closing time.
    A holiday among these weekdays has no bar and is skipped with that cause.
    """
    told = known_range(calendar)[1]
    end = last if told is None else min(last, parse_day(told))
    if first <= end:
        sessions = sessions_between(calendar, first, end)
        yield from zip(sessions.days.tolist(), sessions.close_time.tolist(), strict=True)
    if told is None or last <= end:
        return
    usual = sessions_between(calendar, parse_day(told) - timedelta(days=30), parse_day(told))
    zone = ZoneInfo("America/New_York" if calendar == "XNYS" else "Asia/Shanghai")
    close = moment(int(usual.close_time[~usual.early][-1])).astimezone(zone).time()
    for number in range((last - end).days):
        day = end + timedelta(days=number + 1)
        if day >= first and day.weekday() < 5:
            yield day, int(datetime.combine(day, close, zone).timestamp()) * SECOND


def calendars_end(season: Season, now: Instant) -> tuple[str, bool]:
    """Return a warning about calendars that end within a year, or an empty text.

    The second value is whether a calendar ends within 120 days. Calendars that cover the whole
    season are ignored.
    """
    today, found = moment(now).date(), {}
    for asset in season.assets:
        told = known_range(calendar_of(asset))[1]
        wanted = season.days(asset)[1]
        if told is not None and (wanted is None or wanted > told):
            found[calendar_of(asset)] = parse_day(told)
    ends = {name: day for name, day in found.items() if (day - today).days < 365}
    if not ends:
        return "", False
    told = ", ".join(f"{name} after {day}" for name, day in sorted(ends.items()))
    text = f"holidays are not known: {told}; every later weekday counts as a session"
    return f"{text}. Install a newer exchange_calendars", min(
        (day - today).days for day in ends.values()
    ) < 120


class LiveFeed:
    """A feed with sessions from exchange calendars and facts from a vendor.

    Facts are read through the same as-of views as in a replay. ``owner`` is part of the names of
    stored answers, so two seasons or workers never write the same files. ``first`` is the season's
    first day. ``renamed`` maps the season's symbols to the vendor's present symbols. If a vendor
    asks for a pause, requests to it pause for all assets. The feed is thread-safe.
    """

    def __init__(
        self,
        *,
        home: Path | None = None,
        clock: Clock | None = None,
        fetch: Fetch | None = None,
        owner: str = "arena",
        first: str | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self._home, self._clock, self._first, self._renamed = (
            home,
            clock or WallClock(),
            first,
            renamed or {},
        )
        self._fetch, self.blocking = fetch, fetch is None
        self._owner = "".join(c if c.isalnum() else "-" for c in owner.lower())
        self._snapshots: dict[str, tuple[str, Snapshot]] = {}
        self._rests: dict[str, Instant] = {}
        self._lock = Lock()
        self.last_trouble = ""

    def due(self, season: Season) -> tuple[PlannedSession, ...]:
        """Return the planned sessions of every asset, in order, up to 30 days ahead.

        An asset's last session is followed by two more sessions. The first only settles. The second
        only looks for revisions.
        """
        ahead = (moment(self._clock.now()) + timedelta(days=30)).date()
        found = []
        for place, asset in enumerate(season.assets):
            calendar = calendar_of(asset)
            first, last = season.days(asset)
            # The session after the last one settles it. Exchanges close for at most ten days.
            until = ahead if last is None else min(parse_day(last) + timedelta(days=14), ahead)
            over = 0
            for day, at in _planned(calendar, parse_day(first), until):
                over += last is not None and str(day) > last
                kind = {"closing": over > 0, "review": over > 1}
                delay = season.on(str(day)).delay_s
                at += (LIVE_DELAY_S if delay is None else delay) * SECOND
                found.append(
                    PlannedSession(at=at, place=place, asset=asset.symbol, session=str(day), **kind)
                )
                if over == 2:
                    break
        return tuple(sorted(found))

    def facts(self, asset: Asset, session: str, at: Instant, news_days: int) -> AssetFacts | None:
        """Return the vendor's facts as of an instant, or None if the session has no price yet.

        ``last_trouble`` then has the reason.
        """
        asset = self._named(asset)
        known = self._snapshots.get(asset.symbol)
        if known is None or known[0] != session:
            looked = self._look(asset, asset.dataset.removeprefix(PREFIX), session)
            if looked is None:
                return None
            with self._lock:
                known = (session, looked)
                self._snapshots[asset.symbol] = known
        snapshot = known[1]
        found = SnapshotFeed({asset.dataset: snapshot}).facts(asset, session, at, news_days)
        if found is None:
            self.last_trouble = f"{asset.dataset} has no price of {asset.symbol} for {session} yet"
            self.forget(asset)
            return None
        return msgspec.structs.replace(found, bar=self._bar(asset, snapshot, session))

    def comparable(
        self, asset: Asset, session: str, at: Instant, *, dividends: bool
    ) -> float | None:
        asset = self._named(asset)
        known = self._snapshots.get(asset.symbol)
        if known is None:
            return None
        return SnapshotFeed({asset.dataset: known[1]}).comparable(
            asset, session, at, dividends=dividends
        )

    def closes(self, asset: Asset, session: str, *, dividends: bool) -> Closes:
        """Return the closes up to a session, from the vendor's last answer about that session."""
        asset = self._named(asset)
        known = self._snapshots.get(asset.symbol)
        if known is None or known[0] != session:
            return {}
        view = _at_close(known[1], session, known[1].at(len(known[1].sessions) - 1, "close").clock)
        if view is None or asset.symbol not in view.symbols:
            return {}
        column = view.column(asset.symbol)
        plain = view.bars("close", adjust="none")[:, column]
        adjusted = view.bars("close", adjust="total" if dividends else "split")[:, column]
        return {
            str(day): Close(close=float(close), adjusted=float(other))
            for day, close, other in zip(view.sessions(), plain, adjusted, strict=True)
            if is_price(close) and is_price(other)
        }

    def growth_since(self, asset: Asset, session: str) -> float | None:
        """Return the vendor's newest price divided by its close of a session, or None."""
        asset, source = self._named(asset), asset.dataset.removeprefix(PREFIX)
        kind: Any = sources.get(source)
        if not hasattr(kind, "growth_since") or self._clock.now() < self._rests.get(source, 0):
            return None
        try:
            ready = kind(kind.Config(symbols=(asset.symbol,), first=session, last=session))
            ready.go_by(self._clock)
            grown: float | None = ready.growth_since(session)
            return grown
        except (DataError, UserError) as error:
            self._note(source, error)
            return None

    def _note(self, source: str, error: Exception) -> None:
        """Pause requests to a vendor if it asked for a pause."""
        if isinstance(error, VendorResting):
            self._rests[source] = self._clock.now() + int(error.seconds * SECOND)

    def forget(self, asset: Asset) -> None:
        """Discard the vendor's answer, so that the vendor is queried again."""
        with self._lock:
            self._snapshots.pop(self._named(asset).symbol, None)

    def _named(self, asset: Asset) -> Asset:
        """Return an asset under the vendor's present symbol."""
        return msgspec.structs.replace(asset, symbol=self._renamed.get(asset.symbol, asset.symbol))

    def _look(self, asset: Asset, source: str, session: str, mark: str = "") -> Snapshot | None:
        """Query a vendor up to a session, and return the stored answer.

        Returns None if the vendor pauses, fails or has no bar of the session. ``last_trouble`` then
        has the reason.
        """
        if self._clock.now() < self._rests.get(source, 0):
            self.last_trouble = (
                f"{source} is left alone until {iso(self._rests[source])}, as it asked"
            )
            return None
        plain = "".join(c if c.isalnum() else "-" for c in asset.symbol.lower())
        stem = f"arena-live/{self._owner}-{plain}{mark}"
        name = f"{stem}-{session}"
        # Back to the asset's first day, but at least two months and at most two years: older prices
        # are final.
        back = (parse_day(session) - parse_day(asset.first or self._first or session)).days
        first = str(parse_day(session) - timedelta(days=max(60, min(back, 730))))
        asked: dict[str, Any] = {"symbols": (asset.symbol,), "first": first, "last": session}
        asked |= {"allow_partial": True, "forgive": True}
        try:
            if self._fetch is not None:
                self._fetch(source, name, asked)
            else:
                known = sources.get(source).Config.__struct_fields__
                asked = {option: value for option, value in asked.items() if option in known}
                at, by = self._home, self._clock
                fetch_dataset(
                    source, name, asked, home=at, clock=by, allow_faults=True, replace_existing=True
                )
            folder = snapshot_folder(name, self._home)
            snapshot = open_snapshot(folder)
        # There is no bar yet, the vendor has a problem, or the clock was set back: try again later.
        except (DataError, UserError) as error:
            self.last_trouble = str(error)
            self._note(source, error)
            return None
        if np.datetime64(session, "D") not in snapshot.sessions:
            self.last_trouble = f"{source} has no bar of {asset.symbol} for {session} yet"
            return None
        # The journal has the prices. Answers about earlier sessions would fill the disk.
        for older in folder.parent.glob(f"{Path(stem).name}-????-??-??"):
            if older != folder:
                shutil.rmtree(older, ignore_errors=True)
        return snapshot

    def _bar(self, asset: Asset, snapshot: Snapshot, session: str) -> VendorBar | None:
        """Return the session's bar and the bar before it, per share of that session."""
        row = int(np.searchsorted(snapshot.sessions, np.datetime64(session, "D")))
        view = snapshot.at(row, "close")
        column = view.column(asset.symbol)
        fields: tuple[Field, ...] = ("open", "high", "low", "close", "volume")
        values = {name: view.bars(name)[:, column] for name in fields}
        # The last bar that exists: a vendor may lack yesterday's.
        told = [place for place, close in enumerate(values["close"][:-1]) if is_price(close)][-1:]
        made = [
            msgspec.convert({n: float(values[n][place]) for n in fields}, VendorBar)
            for place in (-1, *told)
        ]
        second = None
        if asset.second:
            other = self._look(asset, asset.second.removeprefix(PREFIX), session, "-second")
            if other is not None:
                facts = SnapshotFeed({asset.dataset: other}).facts(asset, session, view.clock, 0)
                second = None if facts is None else facts.price
        return msgspec.structs.replace(
            made[0], previous=made[1] if len(made) > 1 else None, second=second
        )


PriceFeed = SnapshotFeed | LiveFeed


def doubt(
    asset: Asset, facts: AssetFacts, rules: PriceRules, decided: float | None = None
) -> str | None:
    """Return the reason why a bar is doubtful, or None.

    The bar gets the checks of the data doctor. It is then compared with the second source if there
    is one, and with the previous close otherwise. ``decided`` is the price of the last round's
    decision. A bar that is close to this price is accepted, because then the previous bar is wrong.
    """
    bar = facts.bar
    if bar is None:
        return None
    fields = ("open", "high", "low", "close", "volume")
    arrays = {name: np.array([getattr(bar, name)]) for name in fields}
    for found in check_bars({**arrays, "amount": np.array([np.nan])}):  # type: ignore[dict-item]  # the doctor's own fields
        if found.mask[0]:
            return found.reason(0)
    before = bar.previous
    # Checked first: on a quiet day the second source is as close to a copy of yesterday as to
    # today. A bar with a range is a copy even if its volume differs.
    names = fields[:4] if bar.high > bar.low else fields
    if (
        before is not None
        and bar.volume > 0
        and all(getattr(bar, n) == getattr(before, n) for n in names)
    ):
        return "the bar repeats the one before it, figure by figure"
    if bar.second is not None:
        apart = abs(bar.close / bar.second - 1.0)
        if apart > rules.apart:
            return (
                f"{bar.close:g} is {apart:.1%} away from {bar.second:g}, which {asset.second} says"
            )
        return None
    if before is None:
        return None
    limit = rules.jump(asset.kind)
    jump = bar.close / before.close - 1.0
    if abs(jump) > limit and (decided is None or abs(bar.close / decided - 1.0) > limit):
        return (
            f"{bar.close:g} is {jump:+.0%} from the close before, {before.close:g}; "
            f"{limit:.0%} "
            "is the limit"
        )
    return None
