"""Asking Yahoo through the yfinance library: one symbol at a time, every failure in plain words.

The library hides errors unless told otherwise, keeps answers in a process-wide cache, and loses the
``Retry-After`` header of a refusal. All three are handled here and nowhere else.

Yahoo divides every price before a split by its ratio (and multiplies volume), using all splits known when you
ask. Seen from an old day that is tomorrow's news. Given *every* split up to the moment of retrieval, the
adjustment can be undone exactly, apart from the vendor's rounding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from tradeassay.core.errors import SourceError, UserError, require
from tradeassay.core.time import MINUTE, moment, parse_day
from tradeassay.core.view import CorporateAction, Days, Field, Floats, Instrument, Ints
from tradeassay.data.calendars import Sessions, shared_rows
from tradeassay.data.connectors import common
from tradeassay.data.source import Panel, SourceConfig, sources

TELLABLE = 1.3
"""Splits closer to 1:1 than this ratio cannot be told from an ordinary overnight move."""


class VendorSplit(NamedTuple):
    """``ratio`` new shares per old share from the open of ``day`` on."""

    day: np.datetime64
    ratio: float


def factor_after(days: Days, splits: Sequence[VendorSplit], *, same_day: bool = False) -> Floats:
    """Return, for each day, the product of the ratios of all splits on *later* days: adjusted price times this is
    as traded. With ``same_day`` those of the day too: our dividends are per share held before a split of the same
    day, the vendor's per share of that day."""
    factor = np.ones(days.size)
    for split in splits:
        factor[(days <= split.day) if same_day else (days < split.day)] *= split.ratio
    return factor


def not_applied(days: Days, opens: Floats, closes: Floats, splits: Sequence[VendorSplit]) -> list[VendorSplit]:
    """Return the splits that the vendor lists but has not applied: a forgotten one leaves a jump of its ratio.
    Splits near 1:1 (:data:`TELLABLE`) or without a bar on both sides are taken on trust."""
    forgotten: list[VendorSplit] = []
    for split in splits:
        after = int(np.searchsorted(days, split.day))
        if not 0 < after < days.size or max(split.ratio, 1.0 / split.ratio) < TELLABLE:
            continue
        jump = float(np.log(closes[after - 1] / opens[after]))
        if abs(jump - np.log(split.ratio)) < abs(jump):
            forgotten.append(split)
    return forgotten


VENDOR = "Yahoo"
COLUMNS: dict[str, Field] = {"Open": "open", "High": "high", "Low": "low", "Close": "close", "Volume": "volume"}


@dataclass(frozen=True, slots=True)
class YahooSeries:
    """One symbol's daily answer, still as Yahoo adjusts it: prices and dividends divided by later splits."""

    symbol: str
    name: str
    kind: str
    currency: str
    first_trade: str | None
    days: Days
    fields: dict[Field, Floats]
    splits: tuple[VendorSplit, ...]
    dividends: tuple[tuple[np.datetime64, float], ...]
    capital_gains: bool


def browser_session(**options: Any) -> Any:
    """Return a ``curl_cffi`` session like the library's own that also remembers status and ``Retry-After``."""
    requests: Any = require("curl_cffi.requests", "us")

    class RememberingSession(requests.Session):  # type: ignore[misc] # the base is an optional import
        last_status: int | None = None
        retry_after: str | None = None
        longest: float | None = None

        def request(self, *args: Any, **kwargs: Any) -> Any:
            if self.longest is not None:
                # The library asks for its cookie with a time-out of its own, which may be longer than ours.
                kwargs["timeout"] = min(kwargs.get("timeout") or self.longest, self.longest)
            self.last_status = None
            response = super().request(*args, **kwargs)
            self.last_status = response.status_code
            if response.status_code == 429:
                self.retry_after = response.headers.get("retry-after")
            return response

    return RememberingSession(**{"impersonate": "chrome", **options})


class YahooWire:
    """A conversation with Yahoo. Use inside :func:`conversation`."""

    def __init__(self, library: Any, session: Any, runtime: common.Runtime) -> None:
        self._library = library
        self._session = session
        self._runtime = runtime
        session.longest = runtime.retry.timeout

    def daily(self, symbol: str, first: date, until: date) -> YahooSeries:
        frame, meta = self._ask(symbol, first, until, "1d")
        try:
            days: Days = np.array([stamp.date() for stamp in frame.index], dtype="datetime64[D]")
            fields = {ours: frame[theirs].to_numpy(dtype=np.float64) for theirs, ours in COLUMNS.items()}
            # Rows without any price only carry an event on a day without a bar.
            priced = np.any([np.isfinite(fields[name]) for name in ("open", "high", "low", "close")], axis=0)
            first_trade = meta["firstTradeDate"]
            return YahooSeries(
                symbol=symbol,
                name=str(meta.get("longName") or meta.get("shortName") or ""),
                kind=str(meta["instrumentType"]),
                currency=str(meta["currency"]),
                first_trade=None if first_trade is None else str(first_trade.date()),
                days=days[priced],
                fields={name: values[priced] for name, values in fields.items()},
                splits=tuple(VendorSplit(day, ratio) for day, ratio in _events(days, frame["Stock Splits"])),
                dividends=tuple(_events(days, frame["Dividends"])),
                capital_gains="Capital Gains" in frame and bool((frame["Capital Gains"] > 0).any()),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise common.changed_format(VENDOR, f"the daily bars of {symbol}", repr(error), "yfinance") from error

    def minutes(self, symbol: str, first: date, until: date) -> tuple[Ints, dict[Field, Floats]]:
        frame, _ = self._ask(symbol, first, until, "1m")
        try:
            frame = frame[frame[list(COLUMNS)[:4]].notna().any(axis=1)]
            starts: Ints = frame.index.as_unit("ns").asi8
            fields = {ours: frame[theirs].to_numpy(dtype=np.float64) for theirs, ours in COLUMNS.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise common.changed_format(VENDOR, f"the minutes of {symbol}", repr(error), "yfinance") from error
        return starts + MINUTE, fields

    def _ask(self, symbol: str, first: date, until: date, interval: str) -> tuple[Any, Any]:
        kind = "daily bars" if interval == "1d" else "minutes"
        return common.ask_with_retries(
            lambda: self._once(symbol, first, until, interval),
            vendor=VENDOR,
            what=f"the {kind} of {symbol}",
            runtime=self._runtime,
        )

    def _once(self, symbol: str, first: date, until: date, interval: str) -> tuple[Any, Any]:
        try:
            # Past ranges are answered from a cache inside the library, broken answers included.
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
            raise self._translated(error, symbol, first, until) from error
        if frame.empty:
            raise common.empty_answer(VENDOR, symbol, str(first), str(until - timedelta(days=1)))
        return frame, meta

    def _translated(self, error: Exception, symbol: str, first: date, until: date) -> Exception:
        from curl_cffi.requests import exceptions as curl

        problems = self._library.exceptions
        status = self._session.last_status or 0
        last = str(until - timedelta(days=1))
        if isinstance(error, problems.YFRateLimitError):
            status = 429
        if isinstance(error, curl.Timeout) and status != 429:
            return common.Unanswered(self._runtime.late)
        if isinstance(error, curl.IncompleteRead):
            return common.Unanswered(common.BROKE_OFF)
        if isinstance(error, problems.YFTickerMissingError) or status == 404:
            return common.empty_answer(VENDOR, symbol, str(first), last, _one_line(error))
        about = (VENDOR, f"the bars of {symbol}")
        if (fault := common.http_fault(status, self._session.retry_after, about, self._runtime)) is not None:
            return fault
        if isinstance(error, json.JSONDecodeError):
            return common.Unanswered(common.NOT_JSON)
        if isinstance(error, OSError):
            return common.Unanswered(f"the connection failed: {_one_line(error)}")
        if isinstance(error, problems.YFException):
            return SourceError(f"yfinance could not fetch {symbol}: {_one_line(error)}", hint="see its message")
        return common.changed_format(VENDOR, f"the bars of {symbol}", repr(error), "yfinance")


@contextmanager
def conversation(runtime: common.Runtime, make_session: Callable[[], Any] | None = None) -> Iterator[YahooWire]:
    """Open a conversation with Yahoo; the library's global settings are put back afterwards."""
    library: Any = require("yfinance", "us")
    require("yfinance.data", "us")
    session = (make_session or browser_session)()
    hidden = library.config.debug.hide_exceptions
    library.config.debug.hide_exceptions = False
    try:
        with common.quietly("yfinance"):
            yield YahooWire(library, session, runtime)
    finally:
        library.config.debug.hide_exceptions = hidden
        session.close()


def _events(days: Days, column: Any) -> list[tuple[np.datetime64, float]]:
    values = column.to_numpy(dtype=np.float64)
    return [(days[row], float(values[row])) for row in np.flatnonzero(np.nan_to_num(values))]


def _one_line(error: Exception) -> str:
    # libcurl ends each message with a pointer to its manual.
    return " ".join(str(error).split()).split(" See http")[0][:200]


DECIMALS = 4
"""Yahoo sends 32-bit prices; four decimals remove their noise and keep every price a US exchange quotes."""

MINUTE_HISTORY_DAYS = 29
MINUTE_REQUEST_DAYS = 7

LICENCE = (
    "Yahoo Finance through yfinance (Apache-2.0): the data is Yahoo's and its suppliers', for personal use under "
    "Yahoo's terms of service; do not redistribute the numbers."
)


class YFinanceConfig(common.ConnectorConfig, frozen=True, kw_only=True):
    """``indices`` are index symbols whose closing levels are kept (``^GSPC``); ``minutes`` adds minute bars. Yahoo
    keeps minute bars for 30 days only."""

    indices: tuple[str, ...] = ()
    minutes: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        common.refuse_doubles((*self.symbols, *self.indices))


class YFinanceSource(common.ConnectorSource):
    """Daily bars, splits and dividends of US stocks and funds, as traded; optionally the latest minutes."""

    Config: ClassVar[type[SourceConfig]] = YFinanceConfig
    summary: ClassVar[str] = (
        "US stocks and funds from Yahoo: daily bars as traded, splits, dividends, recent minutes"
    )
    extra: ClassVar[str | None] = "us"

    def load(self) -> Panel:
        config, clock = self._config, self._runtime.clock
        common.need_symbols(config, "AAPL")
        sessions = common.sessions_asked("XNYS", config.first, config.last, clock)
        if config.minutes:
            today = moment(clock.now()).date()
            oldest = today - timedelta(days=MINUTE_HISTORY_DAYS)
            if parse_day(sessions.first) < oldest:
                raise UserError(
                    f"Yahoo keeps minute bars for 30 days, and {sessions.first} is older",
                    hint=f"ask with first={oldest} or later, or without minutes",
                )
        first, until = parse_day(sessions.first), moment(clock.now()).date() + timedelta(days=1)
        with conversation(self._runtime, self._wire.get("session")) as wire:
            series = [_checked(wire.daily(symbol, first, until)) for symbol in config.symbols]
            indices = {name: _levels(wire.daily(name, first, until), sessions) for name in config.indices}
            minutes = _minutes(wire, series, sessions) if config.minutes else []
        lost = {
            "capital-gain distributions are not stored": [one.symbol for one in series if one.capital_gains],
            "index levels with gaps": [name for name, levels in indices.items() if bool(np.isnan(levels).any())],
        }
        currency = common.one_currency({one.currency: one.symbol for one in series})
        panel = self.panel(
            common.Vendor(VENDOR, "yfinance", "XNYS", currency, LICENCE),
            [_column(one, sessions) for one in series],
            sessions,
            minutes=minutes,
            before=(common.SURVIVORS,),
            after=[f"{what}: {common.shorten(names)}" for what, names in lost.items() if names],
        )
        return replace(panel, actions=_actions(series, sessions), indices=indices)

    def growth_since(self, day: str) -> float | None:
        """Return the newest price over the close of a day, today's unfinished bar included; None without one."""
        until = moment(self._runtime.clock.now()).date() + timedelta(days=1)
        with conversation(self._runtime, self._wire.get("session")) as wire:
            series = wire.daily(self._config.symbols[0], parse_day(day), until)
        return common.newest_over(series.days, series.fields["close"], day)


def _checked(series: YahooSeries) -> YahooSeries:
    """Return the series if every listed split is visibly reflected in it; raises :class:`SourceError` if not."""
    forgotten = not_applied(series.days, series.fields["open"], series.fields["close"], series.splits)
    if forgotten:
        raise SourceError(
            f"Yahoo lists a split {forgotten[0].ratio:g}:1 of {series.symbol} on {forgotten[0].day}, "
            "but its prices before that day are not adjusted for it",
            hint="leave the symbol out or fetch it again in a few days, when Yahoo has mended it",
        )
    return series


def _column(series: YahooSeries, sessions: Sessions) -> common.Column:
    wanted = series.days <= sessions.days[-1]
    days = series.days[wanted]
    factor = factor_after(days, series.splits)
    fields = {name: values[wanted] for name, values in series.fields.items()}
    return common.Column(
        instrument=Instrument(
            symbol=series.symbol,
            name=series.name,
            kind="index" if series.kind in ("ETF", "MUTUALFUND") else "stock",
            currency=series.currency,
        ),
        days=days,
        fields=_as_traded(fields, factor),
        listed=series.first_trade,
    )


def _as_traded(fields: dict[Field, Floats], factor: Floats) -> dict[Field, Floats]:
    traded = {name: np.round(fields[name] * factor, DECIMALS) for name in common.PRICES}
    traded["volume"] = np.rint(fields["volume"] / factor)
    return traded


def _actions(series: Sequence[YahooSeries], sessions: Sessions) -> tuple[CorporateAction, ...]:
    actions: list[CorporateAction] = []
    for one in series:
        paid = np.array([day for day, _ in one.dividends], dtype="datetime64[D]")
        scale = factor_after(paid, one.splits, same_day=True)
        found: list[tuple[Literal["split", "dividend"], np.datetime64, float]]
        found = [("split", split.day, split.ratio) for split in one.splits]
        found += [
            ("dividend", day, round(amount * float(factor), 6))
            for (day, amount), factor in zip(one.dividends, scale, strict=True)
        ]
        for kind, day, value in found:
            known_at = common.action_time(sessions, str(day))
            if known_at is not None:
                action = CorporateAction(
                    symbol=one.symbol, kind=kind, ex_date=str(day), known_at=known_at, value=value
                )
                actions.append(action)
    return tuple(sorted(actions, key=lambda action: (action.ex_date, action.symbol, action.kind)))


def _levels(series: YahooSeries, sessions: Sessions) -> Floats:
    levels = np.full(sessions.days.size, np.nan)
    rows, there = shared_rows(sessions.days, series.days)
    levels[rows] = np.round(series.fields["close"][there], DECIMALS)
    return levels


def _minutes(wire: YahooWire, series: Sequence[YahooSeries], sessions: Sessions) -> list[common.MinuteColumn]:
    columns: list[common.MinuteColumn] = []
    end = parse_day(sessions.last) + timedelta(days=1)
    for one in series:
        times, parts = [], []
        start = parse_day(sessions.first)
        while start < end:
            stop = min(start + timedelta(days=MINUTE_REQUEST_DAYS), end)
            # A stretch of weekends and holidays only has no minutes, and asking for it is an error.
            if bool(((sessions.days >= np.datetime64(start)) & (sessions.days < np.datetime64(stop))).any()):
                close_time, fields = wire.minutes(one.symbol, start, stop)
                times.append(close_time)
                parts.append(fields)
            start = stop
        close_time = np.concatenate(times)
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        factor = _minute_factor(one, close_time, joined["close"])
        columns.append(common.MinuteColumn(one.symbol, close_time, _as_traded(joined, factor)))
    return columns


def _minute_factor(series: YahooSeries, close_time: Ints, closes: Floats) -> Floats:
    """Return what minute prices must be multiplied by: they are not always adjusted along with the days."""
    days = (close_time - 1).astype("datetime64[ns]").astype("datetime64[D]")
    factor = factor_after(days, series.splits)
    rows = np.minimum(np.searchsorted(series.days, days), series.days.size - 1)
    daily = series.fields["close"][rows]
    traded = np.abs(np.log(closes / (daily * factor))) < np.abs(np.log(closes / daily))
    return np.where(traded, 1.0, factor)


sources.add("yfinance", YFinanceSource)
