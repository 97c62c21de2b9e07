"""Connect to crypto exchanges through ccxt: daily candles, and minutes on request.

A session is one UTC day. The connector first requests the markets, then the candles page by page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from tradeassay.core.arrays import Days, Floats, Ints
from tradeassay.core.errors import UserError, require
from tradeassay.core.registry import did_you_mean, refuse_unknown
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import (
    DAY,
    MINUTE,
    Instant,
    iso,
    midnight,
    parse_day,
    retry_after_seconds,
)
from tradeassay_bench.core.view import Field, Instrument
from tradeassay_bench.data.connectors import common
from tradeassay_bench.data.source import Panel, SourceConfig, sources

T = TypeVar("T")
Timeframe = Literal["1d", "1m"]
Candles = tuple[Ints, dict[Field, Floats]]
"""Candles as their opening instants in order, and one array per field."""
STEPS: dict[Timeframe, int] = {"1d": DAY, "1m": MINUTE}
MILLISECOND = 1_000_000
PAGE = 500
"""Number of candles per request if an exchange does not state its limit."""
FIELD_ORDER: tuple[Field, ...] = ("open", "high", "low", "close", "volume")


class CryptoWire:
    """A connection to one exchange.

    All failures of the connection are raised as :class:`SourceError`.
    """

    def __init__(
        self,
        name: str,
        runtime: common.Runtime,
        settings: Mapping[str, Any] | None,
        *,
        forgive: bool,
    ) -> None:
        library: Any = require("ccxt", "crypto")
        self._ccxt = library
        requests: Any = require("requests", "crypto")
        problem = f"ccxt has no exchange '{name}'"
        refuse_unknown(name, library.exchanges, problem, "see ccxt.exchanges for the names")
        self.name, self._runtime, self._forgive = name, runtime, forgive
        session = requests.Session()
        session.hooks["response"].append(_refuse_half_a_body)
        options = {
            "enableRateLimit": True,
            "timeout": int(runtime.retry.timeout * 1000),
            "session": session,
            # Only spot markets are read.
            "options": {"fetchMarkets": {"types": ["spot"]}, "defaultType": "spot"},
        }
        self._exchange: Any = getattr(self._ccxt, name)({**options, **(settings or {})})
        if not self._exchange.has.get("fetchOHLCV"):
            raise UserError(f"{name} has no candles through ccxt", hint="choose another exchange")

    def close(self) -> None:
        self._exchange.session.close()

    def instruments(self, symbols: tuple[str, ...]) -> list[Instrument]:
        """Return the spot instruments of symbols.

        Raises :class:`SourceError` for an unknown symbol.
        """
        markets = self._ask("its markets", self._exchange.load_markets)
        decimals = self._exchange.precisionMode == self._ccxt.DECIMAL_PLACES
        instruments: list[Instrument] = []
        for symbol in symbols:
            market = markets.get(symbol)
            if market is None or not market.get("spot"):
                spot = [name for name, one in markets.items() if one.get("spot")]
                hint = did_you_mean(symbol, spot, "write e.g. BTC/USDT")
                raise SourceError(f"{self.name} has no spot market {symbol}", hint=hint)
            try:
                lot = _smallest_unit(market["precision"]["amount"], decimals=decimals)
                tick = _smallest_unit(market["precision"]["price"], decimals=decimals)
                instrument = Instrument(
                    symbol=symbol,
                    name=symbol,
                    kind="crypto",
                    currency=market["quote"],
                    lot=lot,
                    step=lot,
                    tick=tick,
                )
            except (KeyError, TypeError, ValueError) as error:
                raise common.changed_format(
                    self.name, f"the market {symbol}", repr(error), "ccxt"
                ) from error
            instruments.append(instrument)
        return instruments

    def candles(self, symbol: str, timeframe: Timeframe, begin: Instant, end: Instant) -> Candles:
        """Return all candles from ``begin`` to before ``end``.

        Raises :class:`SourceError` if the history does not reach back to ``begin``, because some
        exchanges return only their newest candles, whatever the request.
        """
        step = STEPS[timeframe]
        features = (self._exchange.features or {}).get("spot") or {}
        limit = (features.get("fetchOHLCV") or {}).get("limit") or PAGE
        what, rows, since = (
            f"the {timeframe} candles of {symbol}",
            list[list[float | None]](),
            begin,
        )
        while since < end:
            asked = partial(
                self._exchange.fetch_ohlcv,
                symbol,
                timeframe,
                since=since // MILLISECOND,
                limit=limit,
            )
            page = self._ask(what, asked)
            empty = 0
            for row in page:
                known = [isinstance(value, int | float) for value in row[:6]]
                empty += not all(known)
                if (
                    len(row) < 6
                    or not known[0]
                    or empty > (len(page) // common.FORGIVEN if self._forgive else 0)
                ):
                    raise common.changed_format(self.name, what, f"a candle reads {row}", "ccxt")
            oldest, newest = (int(page[k][0]) * MILLISECOND if page else since for k in (0, -1))
            full = len(page) >= limit and oldest > since
            if not rows and full and newest >= self._runtime.clock.now() - 2 * step:
                raise SourceError(
                    f"{self.name} stores only its newest {len(page)} {timeframe} candles of "
                    f"{symbol}, from "
                    f"{iso(oldest)} on",
                    hint="request later days, or choose another exchange",
                )
            rows += [row for row in page if since <= row[0] * MILLISECOND < end]
            # An empty page is a period before the listing or without trades, and is skipped.
            since = newest + step if page and newest >= since else since + limit * step
        table = np.array([row[:6] for row in rows], dtype=np.float64).reshape(
            len(rows), 6
        )  # None becomes NaN
        start = table[:, 0].astype(np.int64) * MILLISECOND
        if bool((start % step).any()):
            problem = (
                f"{self.name}'s {timeframe} candles of {symbol} do not begin at full UTC steps"
            )
            raise SourceError(problem, hint="choose another exchange")
        return start, {name: table[:, index + 1] for index, name in enumerate(FIELD_ORDER)}

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        def once() -> T:
            try:
                return call()
            except Exception as error:
                raise self._translated(error, what) from error

        return common.ask_with_retries(once, vendor=self.name, what=what, runtime=self._runtime)

    def _translated(self, error: Exception, what: str) -> Exception:
        """Return our error for an exception from the library."""
        ccxt = self._ccxt
        text = " ".join(str(error).split())[:200]
        if isinstance(error, (common.Unanswered, SourceError)):
            return error
        if isinstance(error, (ccxt.RateLimitExceeded, ccxt.DDoSProtection)):
            headers = self._exchange.last_response_headers or {}
            wish = retry_after_seconds(headers.get("Retry-After"), self._runtime.clock)
            return common.Throttled(retry_after=wish)
        if isinstance(error, ccxt.RequestTimeout):
            return common.Unanswered(self._runtime.late)
        if isinstance(error, ccxt.NetworkError):
            broken = "IncompleteRead" in str(error.__cause__)
            return common.Unanswered(
                common.BROKE_OFF if broken else f"the connection failed: {text}"
            )
        if isinstance(error, ccxt.BaseError):
            return SourceError(f"{self.name} refused {what}: {text}", hint="see its message")
        return common.changed_format(self.name, what, repr(error), "ccxt")


def _smallest_unit(precision: Any, *, decimals: bool) -> float:
    """Return the smallest step of amounts or prices.

    ``precision`` is a number of decimals or the step itself. It is None if the exchange states
    neither.
    """
    if precision is None:
        return 1e-8
    return float(10.0**-precision if decimals else precision)


def _refuse_half_a_body(response: Any, *_args: Any, **_kwargs: Any) -> None:
    # ccxt returns a body that is not JSON as text, whose characters would be read as candles.
    if response.status_code == 200 and response.content.rstrip()[-1:] not in (b"}", b"]"):
        raise common.Unanswered(common.NOT_JSON)


class CcxtConfig(common.ConnectorConfig, frozen=True, kw_only=True):
    """The options of the ccxt connector.

    ``exchange`` is a ccxt id. ``minutes`` adds minute candles of the same days, which takes many
    requests.
    """

    exchange: str = "binance"
    minutes: bool = False


class CcxtSource(common.ConnectorSource):
    """A source of spot candles of one exchange.

    Exchanges publish no listing dates. A symbol whose first candle is late therefore needs
    ``allow_partial``.
    """

    Config: ClassVar[type[SourceConfig]] = CcxtConfig
    summary: ClassVar[str] = (
        "crypto spot candles, daily and by the minute, from any exchange of ccxt"
    )
    extra: ClassVar[str | None] = "crypto"

    def load(self) -> Panel:
        config = self._config
        common.need_symbols(config, "BTC/USDT")
        sessions = common.sessions_asked("24/7", config.first, config.last, self._runtime.clock)
        columns, minutes = [], []
        lacks: dict[Timeframe, str] = (
            {"1d": "", "1m": "no minutes; "} if config.minutes else {"1d": ""}
        )
        with closing(self._open(forgive=config.forgive)) as wire:
            instruments = wire.instruments(config.symbols)
            currency = common.one_currency({one.currency: one.symbol for one in instruments})
            for timeframe, lack in lacks.items():
                for one in instruments:
                    begin, end = int(sessions.open_time[0]), int(sessions.close_time[-1])
                    start, fields = wire.candles(one.symbol, timeframe, begin, end)
                    if start.size == 0:
                        reason = f"{lack}some exchanges keep only their latest candles"
                        days = (sessions.first, sessions.last)
                        raise common.empty_answer(wire.name, one.symbol, *days, reason)
                    if timeframe == "1d":
                        columns.append(common.Column(one, _days(start), fields))
                    else:
                        minutes.append(common.MinuteColumn(one.symbol, start + MINUTE, fields))
        licence = (
            f"Public market data of {config.exchange} through ccxt (MIT): the numbers are the "
            "exchange's, "
            "under the terms of its API; do not redistribute them."
        )
        vendor = common.Vendor(
            config.exchange, f"ccxt/{config.exchange}", "24/7", currency, licence
        )
        before = (common.SURVIVORS, f"prices and volumes of one exchange, {config.exchange}")
        return self.panel(vendor, columns, sessions, minutes=minutes, before=before)

    def growth_since(self, day: str) -> float | None:
        """Return the newest price divided by the close of a day, or None if either price is
        missing.

        The newest price may come from today's unfinished bar.
        """
        first, now = midnight(parse_day(day)), self._runtime.clock.now()
        with closing(self._open(forgive=True)) as wire:
            start, fields = wire.candles(self._config.symbols[0], "1d", first, now)
        return common.growth_since(_days(start), fields["close"], day)

    def _open(self, *, forgive: bool) -> CryptoWire:
        return CryptoWire(
            self._config.exchange, self._runtime, self._wire.get("settings"), forgive=forgive
        )


def _days(start: Ints) -> Days:
    return start.astype("datetime64[ns]").astype("datetime64[D]")


sources.add("ccxt", CcxtSource)
