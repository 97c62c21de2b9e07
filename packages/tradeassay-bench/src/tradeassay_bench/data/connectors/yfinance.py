"""Connect to Yahoo through the yfinance library, one symbol at a time.

The library hides errors by default, stores answers in a process-wide cache, and loses the
``Retry-After`` header of a refusal. This module handles all three problems.

Yahoo divides every price before a split by the split's ratio, and multiplies volumes, using all
splits known at the time of the request. For an old session this is information from the future. If
*every* split up to the time of retrieval is known, the adjustment can be undone exactly, apart from
the vendor's rounding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from tradeassay.core.arrays import Days, Floats, Ints
from tradeassay.core.errors import UserError, require
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import MINUTE, moment, parse_day
from tradeassay_bench.core.view import CorporateAction, Field, Instrument
from tradeassay_bench.data.calendars import Sessions, matching_rows
from tradeassay_bench.data.connectors import common
from tradeassay_bench.data.source import Panel, SourceConfig, sources

SMALLEST_VISIBLE_RATIO = 1.3
"""Smallest ratio of a split that differs visibly from an ordinary overnight move."""


class VendorSplit(NamedTuple):
    """A split with ``ratio`` new shares per old share, from the open of ``day`` on."""

    day: np.datetime64
    ratio: float


def factor_after(days: Days, splits: Sequence[VendorSplit], *, same_day: bool = False) -> Floats:
    """Return the product of the ratios of all *later* splits for each day.

    An adjusted price times this factor is the price as traded. With ``same_day`` the splits of the
    day itself are included. Dividends need them, because our dividends are per share held before a
    split on the same day and the vendor's are per share after it.
    """
    factor = np.ones(days.size)
    for split in splits:
        factor[(days <= split.day) if same_day else (days < split.day)] *= split.ratio
    return factor


def not_applied(
    days: Days, opens: Floats, closes: Floats, splits: Sequence[VendorSplit]
) -> list[VendorSplit]:
    """Return the splits that the vendor lists but has not applied to its prices.

    Such a split leaves a jump of its ratio. Splits near 1:1 (:data:`SMALLEST_VISIBLE_RATIO`) and
    splits without a bar on both sides cannot be checked and are assumed to be applied.
    """
    forgotten: list[VendorSplit] = []
    for split in splits:
        after = int(np.searchsorted(days, split.day))
        is_visible = max(split.ratio, 1.0 / split.ratio) >= SMALLEST_VISIBLE_RATIO
        if not 0 < after < days.size or not is_visible:
            continue
        jump = float(np.log(closes[after - 1] / opens[after]))
        if abs(jump - np.log(split.ratio)) < abs(jump):
            forgotten.append(split)
    return forgotten


VENDOR = "Yahoo"
COLUMNS: dict[str, Field] = {
    "Open": "open",
    "High": "high",
    "Low": "low",
    "Close": "close",
    "Volume": "volume",
}


class YahooSeries(NamedTuple):
    """The daily data of one symbol in Yahoo's adjustment, divided by all later splits."""

    instrument: Instrument
    first_trade: str | None
    days: Days
    fields: dict[Field, Floats]
    splits: list[VendorSplit]
    dividends: list[tuple[np.datetime64, float]]
    capital_gains: bool


def browser_session(**options: Any) -> Any:
    """Return a session like the library's that also stores the status and ``Retry-After``."""
    requests: Any = require("curl_cffi.requests", "us")

    class RememberingSession(requests.Session):  # type: ignore[misc] # the base is an optional import
        last_status: int | None = None
        retry_after: str | None = None
        longest: float | None = None

        def request(self, *args: Any, **kwargs: Any) -> Any:
            if self.longest is not None:
                # The library requests its cookie with its own time-out, which may exceed ours.
                kwargs["timeout"] = min(kwargs.get("timeout") or self.longest, self.longest)
            self.last_status = None
            response = super().request(*args, **kwargs)
            self.last_status = response.status_code
            if response.status_code == 429:
                self.retry_after = response.headers.get("retry-after")
            return response

    return RememberingSession(**{"impersonate": "chrome", **options})


class YahooWire:
    """A connection to Yahoo. Use it inside :func:`conversation`."""

    def __init__(self, library: Any, session: Any, runtime: common.Runtime) -> None:
        self._library, self._session, self._runtime = library, session, runtime
        session.longest = runtime.retry.timeout

    def daily(self, symbol: str, first: date, until: date) -> YahooSeries:
        """Return the daily bars and events of a symbol from ``first`` to before ``until``."""
        what = f"the daily bars of {symbol}"
        frame, meta = self._ask(what, symbol, first, until, "1d")
        try:
            days: Days = np.array([stamp.date() for stamp in frame.index], dtype="datetime64[D]")
            fields = {
                ours: frame[theirs].to_numpy(dtype=np.float64) for theirs, ours in COLUMNS.items()
            }
            # A row without any price contains an event on a day without a bar.
            priced = np.any([np.isfinite(fields[name]) for name in common.PRICES], axis=0)
            events = []
            for title in ("Stock Splits", "Dividends"):
                values = frame[title].to_numpy(dtype=np.float64)
                events.append(
                    [
                        (days[row], float(values[row]))
                        for row in np.flatnonzero(np.nan_to_num(values))
                    ]
                )
            instrument = Instrument(
                symbol=symbol,
                name=str(meta.get("longName") or meta.get("shortName") or ""),
                kind="index" if meta["instrumentType"] in ("ETF", "MUTUALFUND") else "stock",
                currency=str(meta["currency"]),
            )
            first_trade = meta["firstTradeDate"]
            return YahooSeries(
                instrument,
                None if first_trade is None else str(first_trade.date()),
                days[priced],
                {name: values[priced] for name, values in fields.items()},
                [VendorSplit(day, ratio) for day, ratio in events[0]],
                events[1],
                "Capital Gains" in frame and bool((frame["Capital Gains"] > 0).any()),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise common.changed_format(VENDOR, what, repr(error), "yfinance") from error

    def minutes(self, symbol: str, first: date, until: date) -> tuple[Ints, dict[Field, Floats]]:
        """Return the closing instants and fields of a symbol's minute bars."""
        what = f"the minutes of {symbol}"
        frame, _ = self._ask(what, symbol, first, until, "1m")
        try:
            frame = frame[frame[list(COLUMNS)[:4]].notna().any(axis=1)]
            starts: Ints = frame.index.as_unit("ns").asi8
            fields = {
                ours: frame[theirs].to_numpy(dtype=np.float64) for theirs, ours in COLUMNS.items()
            }
        except (KeyError, TypeError, ValueError) as error:
            raise common.changed_format(VENDOR, what, repr(error), "yfinance") from error
        return starts + MINUTE, fields

    def _ask(
        self, what: str, symbol: str, first: date, until: date, interval: str
    ) -> tuple[Any, Any]:
        last = str(until - timedelta(days=1))

        def once() -> tuple[Any, Any]:
            try:
                # The library caches answers about past ranges, including broken ones.
                self._library.data.YfData.cache_get.cache_clear()
                ticker = self._library.Ticker(symbol, session=self._session)
                frame = ticker.history(
                    start=first.isoformat(),
                    end=until.isoformat(),
                    interval=interval,
                    auto_adjust=False,
                    back_adjust=False,
                    repair=False,
                    actions=True,
                    timeout=self._runtime.retry.timeout,
                )
                meta = ticker.history_metadata
            except Exception as error:
                raise self._translated(error, symbol, str(first), last) from error
            if frame.empty:
                raise common.empty_answer(VENDOR, symbol, str(first), last)
            return frame, meta

        return common.ask_with_retries(once, vendor=VENDOR, what=what, runtime=self._runtime)

    def _translated(self, error: Exception, symbol: str, first: str, last: str) -> Exception:
        """Return our error for an exception from the library."""
        from curl_cffi.requests import exceptions as curl

        problems = self._library.exceptions
        status = (
            429 if isinstance(error, problems.YFRateLimitError) else self._session.last_status or 0
        )
        # libcurl ends each message with a pointer to its manual.
        text = " ".join(str(error).split()).split(" See http")[0][:200]
        if isinstance(error, curl.Timeout) and status != 429:
            return common.Unanswered(self._runtime.late)
        if isinstance(error, curl.IncompleteRead):
            return common.Unanswered(common.BROKE_OFF)
        if isinstance(error, problems.YFTickerMissingError) or status == 404:
            return common.empty_answer(VENDOR, symbol, first, last, text)
        about = (VENDOR, f"the bars of {symbol}")
        fault = common.http_fault(status, self._session.retry_after, about, self._runtime)
        if fault is not None:
            return fault
        if isinstance(error, json.JSONDecodeError):
            return common.Unanswered(common.NOT_JSON)
        if isinstance(error, OSError):
            return common.Unanswered(f"the connection failed: {text}")
        if isinstance(error, problems.YFException):
            return SourceError(f"yfinance could not fetch {symbol}: {text}", hint="see its message")
        return common.changed_format(*about, repr(error), "yfinance")


@contextmanager
def conversation(
    runtime: common.Runtime, make_session: Callable[[], Any] | None = None
) -> Iterator[YahooWire]:
    """Yield a connection to Yahoo, and restore the library's global settings afterwards."""
    library: Any = require("yfinance", "us")
    require("yfinance.data", "us")
    session = (make_session or browser_session)()
    hidden = library.config.debug.hide_exceptions
    library.config.debug.hide_exceptions = False
    try:
        with common.silenced("yfinance"):
            yield YahooWire(library, session, runtime)
    finally:
        library.config.debug.hide_exceptions = hidden
        session.close()


DECIMALS = 4
"""Decimals of a stored price. Yahoo sends 32-bit prices. Four decimals remove the noise of these
numbers and preserve every price of a US exchange.
"""
MINUTE_HISTORY_DAYS = 29
MINUTE_REQUEST_DAYS = 7
LICENCE = (
    "Yahoo Finance through yfinance (Apache-2.0): the data is Yahoo's and its suppliers', for "
    "personal use under "
    "Yahoo's terms of service; do not redistribute the numbers."
)


class YFinanceConfig(common.ConnectorConfig, frozen=True, kw_only=True):
    """The options of the Yahoo connector.

    ``indices`` are index symbols, such as ``^GSPC``, whose closing levels are stored. ``minutes``
    adds minute bars, which Yahoo stores for only 30 days.
    """

    indices: tuple[str, ...] = ()
    minutes: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        common.refuse_duplicates((*self.symbols, *self.indices))


class YFinanceSource(common.ConnectorSource):
    """A source of US stocks and funds: daily bars as traded, splits, dividends, recent minutes."""

    Config: ClassVar[type[SourceConfig]] = YFinanceConfig
    summary: ClassVar[str] = (
        "US stocks and funds from Yahoo: daily bars as traded, splits, dividends, recent minutes"
    )
    extra: ClassVar[str | None] = "us"

    def load(self) -> Panel:
        config, clock = self._config, self._runtime.clock
        common.need_symbols(config, "AAPL")
        sessions = common.sessions_asked("XNYS", config.first, config.last, clock)
        first, today = parse_day(sessions.first), moment(clock.now()).date()
        oldest, until = today - timedelta(days=MINUTE_HISTORY_DAYS), today + timedelta(days=1)
        if config.minutes and first < oldest:
            problem = f"Yahoo stores minute bars for 30 days, and {first} is older"
            raise UserError(problem, hint=f"use first={oldest} or later, or drop minutes")
        with conversation(self._runtime, self._wire.get("session")) as wire:
            series = [wire.daily(symbol, first, until) for symbol in config.symbols]
            for stock in series:
                opens, closes = stock.fields["open"], stock.fields["close"]
                for split in not_applied(stock.days, opens, closes, stock.splits):
                    raise SourceError(
                        f"Yahoo lists a split {split.ratio:g}:1 of {stock.instrument.symbol} on "
                        f"{split.day}, "
                        "but its prices before that day are not adjusted for it",
                        hint="drop the symbol, or fetch it again in a few days",
                    )
            indices = {
                name: _levels(wire.daily(name, first, until), sessions) for name in config.indices
            }
            minutes = []
            if config.minutes:
                minutes = [_minutes(wire, stock, sessions) for stock in series]
        # These sentences become biases, which are part of a dataset's hash.
        names_by_note = {
            "capital-gain distributions are not stored": [
                stock.instrument.symbol for stock in series if stock.capital_gains
            ],
            "index levels with gaps": [
                name for name, levels in indices.items() if bool(np.isnan(levels).any())
            ],
        }
        currency = common.one_currency(
            {stock.instrument.currency: stock.instrument.symbol for stock in series}
        )
        columns = []
        for stock in series:
            completed = stock.days <= sessions.days[-1]
            days = stock.days[completed]
            fields = {name: values[completed] for name, values in stock.fields.items()}
            traded = _as_traded(fields, factor_after(days, stock.splits))
            columns.append(common.Column(stock.instrument, days, traded, listed=stock.first_trade))
        panel = self.panel(
            common.Vendor(VENDOR, "yfinance", "XNYS", currency, LICENCE),
            columns,
            sessions,
            minutes=minutes,
            before=(common.SURVIVORS,),
            after=[
                f"{note}: {common.shorten(names)}" for note, names in names_by_note.items() if names
            ],
        )
        return replace(panel, actions=_actions(series, sessions), indices=indices)

    def growth_since(self, day: str) -> float | None:
        """Return the newest price divided by the close of a day, or None if either price is
        missing.

        The newest price may come from today's unfinished bar.
        """
        until = moment(self._runtime.clock.now()).date() + timedelta(days=1)
        with conversation(self._runtime, self._wire.get("session")) as wire:
            series = wire.daily(self._config.symbols[0], parse_day(day), until)
        return common.growth_since(series.days, series.fields["close"], day)


def _as_traded(fields: dict[Field, Floats], factor: Floats) -> dict[Field, Floats]:
    """Return fields as traded from adjusted fields and the factor of later splits."""
    traded = {name: np.round(fields[name] * factor, DECIMALS) for name in common.PRICES}
    traded["volume"] = np.rint(fields["volume"] / factor)
    return traded


def _actions(series: Sequence[YahooSeries], sessions: Sessions) -> tuple[CorporateAction, ...]:
    """Return the splits and dividends within the sessions, sorted by ex-date."""
    actions: list[CorporateAction] = []
    for stock in series:
        ex_dates = np.array([day for day, _ in stock.dividends], dtype="datetime64[D]")
        scale = factor_after(ex_dates, stock.splits, same_day=True).tolist()
        events: list[tuple[Literal["split", "dividend"], np.datetime64, float]]
        events = [("split", split.day, split.ratio) for split in stock.splits]
        for (day, amount), factor in zip(stock.dividends, scale, strict=True):
            events.append(("dividend", day, round(amount * factor, 6)))
        for kind, day, value in events:
            known_at = common.action_time(sessions, str(day))
            if known_at is not None:
                action = CorporateAction(
                    kind=kind,
                    value=value,
                    symbol=stock.instrument.symbol,
                    ex_date=str(day),
                    known_at=known_at,
                )
                actions.append(action)
    return tuple(sorted(actions, key=lambda action: (action.ex_date, action.symbol, action.kind)))


def _levels(series: YahooSeries, sessions: Sessions) -> Floats:
    """Return an index's closing levels on the sessions, NaN for a missing session."""
    levels = np.full(sessions.days.size, np.nan)
    rows, matches = matching_rows(sessions.days, series.days)
    levels[rows] = np.round(series.fields["close"][matches], DECIMALS)
    return levels


def _minutes(wire: YahooWire, series: YahooSeries, sessions: Sessions) -> common.MinuteColumn:
    """Return a symbol's minute bars as traded, fetched a week at a time."""
    times, parts = [], []
    start, end = parse_day(sessions.first), parse_day(sessions.last) + timedelta(days=1)
    while start < end:
        stop = min(start + timedelta(days=MINUTE_REQUEST_DAYS), end)
        # Yahoo answers a request for a period without a session with an error.
        in_period = (sessions.days >= np.datetime64(start)) & (sessions.days < np.datetime64(stop))
        if bool(in_period.any()):
            part_times, fields = wire.minutes(series.instrument.symbol, start, stop)
            times.append(part_times)
            parts.append(fields)
        start = stop
    close_time = np.concatenate(times)
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # Minute prices are not always adjusted like daily prices. Use the interpretation nearer to the
    # day's close.
    days = (close_time - 1).astype("datetime64[ns]").astype("datetime64[D]")
    factor = factor_after(days, series.splits)
    daily = series.fields["close"][
        np.minimum(np.searchsorted(series.days, days), series.days.size - 1)
    ]
    traded = np.abs(np.log(joined["close"] / (daily * factor))) < np.abs(
        np.log(joined["close"] / daily)
    )
    fields = _as_traded(joined, np.where(traded, 1.0, factor))
    return common.MinuteColumn(series.instrument.symbol, close_time, fields)


sources.add("yfinance", YFinanceSource)
