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
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np

from tradeassay.core.errors import SourceError, require
from tradeassay.core.time import MINUTE
from tradeassay.core.view import Days, Field, Floats, Ints
from tradeassay.data.connectors import retry
from tradeassay.data.connectors.asked import changed_format, empty_answer

TELLABLE = 1.3
"""Splits closer to 1:1 than this ratio cannot be told from an ordinary overnight move."""


class VendorSplit(NamedTuple):
    """``ratio`` new shares per old share from the open of ``day`` on."""

    day: np.datetime64
    ratio: float


def factor_after(days: Days, splits: Sequence[VendorSplit]) -> Floats:
    """Return, for each day, the product of the ratios of all splits on *later* days.

    A vendor's adjusted price times this is the price as traded; its adjusted volume divided by this is the volume.
    """
    factor = np.ones(days.size)
    for split in splits:
        factor[days < split.day] *= split.ratio
    return factor


def factor_from(days: Days, splits: Sequence[VendorSplit]) -> Floats:
    """Return, for each day, the product of the ratios of all splits on that day or later.

    For dividends: ours are per share held before a split of the same day, the vendor's per share of that day.
    """
    factor = np.ones(days.size)
    for split in splits:
        factor[days <= split.day] *= split.ratio
    return factor


def not_applied(days: Days, opens: Floats, closes: Floats, splits: Sequence[VendorSplit]) -> list[VendorSplit]:
    """Return the splits that the vendor lists but has visibly not applied to its prices.

    An adjusted series runs smoothly across a split; a forgotten split leaves a jump of its ratio. Splits within
    :data:`TELLABLE` of 1:1 and splits without a bar on both sides are taken on trust.
    """
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
    """Return a ``curl_cffi`` session like the library's own that also remembers status and ``Retry-After``.

    ``options`` go to ``curl_cffi.requests.Session`` (proxies, a certificate bundle, curl options).
    """
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

    def __init__(self, library: Any, session: Any, runtime: retry.Runtime) -> None:
        self._library = library
        self._session = session
        self._runtime = runtime
        session.longest = runtime.retry.timeout

    def daily(self, symbol: str, first: date, until: date) -> YahooSeries:
        """Return the daily bars of [first, until) with all actions; raises :class:`SourceError`."""
        frame, meta = self._ask(symbol, first, until, "1d")
        try:
            return _daily_series(symbol, frame, meta)
        except (KeyError, TypeError, ValueError) as error:
            raise changed_format(VENDOR, f"the daily bars of {symbol}", repr(error), "yfinance") from error

    def minutes(self, symbol: str, first: date, until: date) -> tuple[Ints, dict[Field, Floats]]:
        """Return closing instants and fields of the minute bars of [first, until), regular hours only."""
        frame, _ = self._ask(symbol, first, until, "1m")
        try:
            frame = frame[frame[list(COLUMNS)[:4]].notna().any(axis=1)]
            starts: Ints = frame.index.as_unit("ns").asi8
            fields = {ours: frame[theirs].to_numpy(dtype=np.float64) for theirs, ours in COLUMNS.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise changed_format(VENDOR, f"the minutes of {symbol}", repr(error), "yfinance") from error
        return starts + MINUTE, fields

    def _ask(self, symbol: str, first: date, until: date, interval: str) -> tuple[Any, Any]:
        kind = "daily bars" if interval == "1d" else "minutes"
        return retry.ask_with_retries(
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
            raise empty_answer(VENDOR, symbol, str(first), str(until - timedelta(days=1)))
        return frame, meta

    def _translated(self, error: Exception, symbol: str, first: date, until: date) -> Exception:
        from curl_cffi.requests import exceptions as curl

        problems = self._library.exceptions
        status = self._session.last_status or 0
        asked = (VENDOR, symbol, str(first), str(until - timedelta(days=1)))
        if isinstance(error, problems.YFRateLimitError) or status == 429:
            return retry.Throttled(
                retry_after=retry.retry_after_seconds(self._session.retry_after, self._runtime.clock)
            )
        if isinstance(error, curl.Timeout):
            return retry.Unanswered(f"nothing came within {self._runtime.retry.timeout:g} s")
        if isinstance(error, curl.IncompleteRead):
            return retry.Unanswered("the answer broke off in the middle")
        if isinstance(error, problems.YFTickerMissingError) or status == 404:
            return empty_answer(*asked, _one_line(error))
        if status >= 500:
            return retry.Unanswered(f"HTTP {status}")
        if status >= 400:
            return SourceError(f"Yahoo refused the bars of {symbol}: HTTP {status}", hint="try again later")
        if isinstance(error, json.JSONDecodeError):
            return retry.Unanswered("the answer is not complete JSON")
        if isinstance(error, OSError):
            return retry.Unanswered(f"the connection failed: {_one_line(error)}")
        if isinstance(error, problems.YFException):
            return SourceError(f"yfinance could not fetch {symbol}: {_one_line(error)}", hint="see its message")
        return changed_format(VENDOR, f"the bars of {symbol}", repr(error), "yfinance")


@contextmanager
def conversation(runtime: retry.Runtime, make_session: Callable[[], Any] | None = None) -> Iterator[YahooWire]:
    """Open a conversation with Yahoo; the library's global settings are put back afterwards.

    Raises :class:`~tradeassay.core.errors.MissingExtra` when yfinance is not installed.
    """
    library: Any = require("yfinance", "us")
    require("yfinance.data", "us")
    session = (make_session or browser_session)()
    hidden = library.config.debug.hide_exceptions
    library.config.debug.hide_exceptions = False
    try:
        with retry.quietly("yfinance"):
            yield YahooWire(library, session, runtime)
    finally:
        library.config.debug.hide_exceptions = hidden
        session.close()


def _daily_series(symbol: str, frame: Any, meta: Any) -> YahooSeries:
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


def _events(days: Days, column: Any) -> list[tuple[np.datetime64, float]]:
    values = column.to_numpy(dtype=np.float64)
    return [(days[row], float(values[row])) for row in np.flatnonzero(np.nan_to_num(values))]


def _one_line(error: Exception) -> str:
    # libcurl ends each message with a pointer to its manual.
    return " ".join(str(error).split()).split(" See http")[0][:200]
