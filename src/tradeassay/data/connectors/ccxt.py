"""Crypto candles from any exchange that ccxt knows: one session per UTC day, optionally every minute.

Markets are asked for first, then candles page by page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from tradeassay.core.errors import SourceError, UserError, require
from tradeassay.core.registry import did_you_mean, refuse_unknown
from tradeassay.core.time import DAY, MINUTE, Instant, iso, midnight, parse_day, retry_after_seconds
from tradeassay.core.view import Days, Field, Floats, Instrument, Ints
from tradeassay.data.calendars import Sessions
from tradeassay.data.connectors import common
from tradeassay.data.source import Panel, SourceConfig, sources

T = TypeVar("T")
Timeframe = Literal["1d", "1m"]
STEPS: dict[Timeframe, int] = {"1d": DAY, "1m": MINUTE}
MILLISECOND = 1_000_000
PAGE = 500
"""Candles per request when an exchange does not state its limit."""
FIELD_ORDER: tuple[Field, ...] = ("open", "high", "low", "close", "volume")


@dataclass(frozen=True, slots=True)
class Candles:
    """Opening instants in order, and one array per field."""

    start: Ints
    fields: dict[Field, Floats]


class CryptoWire:
    """A conversation with one exchange. Raises :class:`SourceError` for whatever goes wrong on it."""

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
        problem, otherwise = f"ccxt knows no exchange '{name}'", "see ccxt.exchanges for the names"
        refuse_unknown(name, library.exchanges, problem, otherwise)
        self.name = name
        self._runtime = runtime
        self._forgive = forgive
        session = requests.Session()
        session.hooks["response"].append(_refuse_half_a_body)
        options = {
            "enableRateLimit": True,
            "timeout": int(runtime.retry.timeout * 1000),
            "session": session,
            # Where an exchange has many kinds of market, only spot is read.
            "options": {"fetchMarkets": {"types": ["spot"]}, "defaultType": "spot"},
        }
        self._exchange: Any = getattr(self._ccxt, name)({**options, **(settings or {})})
        if not self._exchange.has.get("fetchOHLCV"):
            raise UserError(f"{name} gives no candles through ccxt", hint="choose another exchange")

    def close(self) -> None:
        self._exchange.session.close()

    def instruments(self, symbols: tuple[str, ...]) -> list[Instrument]:
        markets = self._ask("its markets", self._exchange.load_markets)
        found: list[Instrument] = []
        for symbol in symbols:
            market = markets.get(symbol)
            if market is None or not market.get("spot"):
                spot = [name for name, one in markets.items() if one.get("spot")]
                raise SourceError(
                    f"{self.name} has no spot market {symbol}",
                    hint=did_you_mean(symbol, spot, "write e.g. BTC/USDT"),
                )
            found.append(self._instrument(symbol, market))
        return found

    def _instrument(self, symbol: str, market: Mapping[str, Any]) -> Instrument:
        try:
            step, tick = (self._unit(market["precision"][kind]) for kind in ("amount", "price"))
            return Instrument(
                symbol=symbol, name=symbol, kind="crypto", currency=market["quote"], lot=step, step=step, tick=tick
            )
        except (KeyError, TypeError, ValueError) as error:
            raise common.changed_format(self.name, f"the market {symbol}", repr(error), "ccxt") from error

    def _unit(self, precision: float | None) -> float:
        if precision is None:
            return 1e-8
        decimals = self._exchange.precisionMode == self._ccxt.DECIMAL_PLACES
        return float(10.0**-precision) if decimals else float(precision)

    def candles(self, symbol: str, timeframe: Timeframe, begin: Instant, end: Instant) -> Candles:
        """Return every candle in [begin, end), page by page. A history that does not reach back to ``begin`` is
        refused: some exchanges answer with their newest candles whatever was asked for."""
        step = STEPS[timeframe]
        features = (self._exchange.features or {}).get("spot") or {}
        limit = (features.get("fetchOHLCV") or {}).get("limit") or PAGE
        rows: list[list[float]] = []
        since = begin
        while since < end:
            page = self._page(symbol, timeframe, since, limit)
            if not rows:
                self._refuse_newest_only(symbol, timeframe, page, since, limit)
            rows += [row for row in page if since <= row[0] * MILLISECOND < end]
            newest = int(page[-1][0]) * MILLISECOND if page else since
            # An empty page is a stretch before the listing or without a trade: look past it.
            since = newest + step if page and newest >= since else since + limit * step
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 6)
        start = table[:, 0].astype(np.int64) * MILLISECOND
        if bool((start % step).any()):
            raise SourceError(
                f"{self.name}'s {timeframe} candles of {symbol} do not begin at full UTC steps",
                hint="choose another exchange",
            )
        return Candles(start, {name: table[:, index + 1] for index, name in enumerate(FIELD_ORDER)})

    def _refuse_newest_only(
        self, symbol: str, timeframe: Timeframe, page: list[list[float]], since: Instant, limit: int
    ) -> None:
        step = STEPS[timeframe]
        if len(page) < limit or page[0][0] * MILLISECOND <= since:
            return
        if page[-1][0] * MILLISECOND >= self._runtime.clock.now() - 2 * step:
            oldest = iso(int(page[0][0]) * MILLISECOND)
            raise SourceError(
                f"{self.name} keeps only its newest {len(page)} {timeframe} candles of {symbol}, from {oldest} on",
                hint="ask for later days, or choose another exchange",
            )

    def _page(self, symbol: str, timeframe: Timeframe, since: Instant, limit: int) -> list[list[float]]:
        what = f"the {timeframe} candles of {symbol}"
        page = self._ask(
            what, lambda: self._exchange.fetch_ohlcv(symbol, timeframe, since=since // MILLISECOND, limit=limit)
        )
        empty = 0
        for row in page:
            known = [isinstance(value, int | float) for value in row[:6]]
            empty += not all(known)
            if len(row) < 6 or not known[0] or empty > (len(page) // common.FORGIVEN if self._forgive else 0):
                raise common.changed_format(self.name, what, f"a candle reads {row}", "ccxt")
        return [[math.nan if value is None else value for value in row[:6]] for row in page]

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        def once() -> T:
            try:
                return call()
            except Exception as error:
                raise self._translated(error, what) from error

        return common.ask_with_retries(once, vendor=self.name, what=what, runtime=self._runtime)

    def _translated(self, error: Exception, what: str) -> Exception:
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
            return common.Unanswered(common.BROKE_OFF if broken else f"the connection failed: {text}")
        if isinstance(error, ccxt.BaseError):
            return SourceError(f"{self.name} refused {what}: {text}", hint="see its message")
        return common.changed_format(self.name, what, repr(error), "ccxt")


def _refuse_half_a_body(response: Any, *_args: Any, **_kwargs: Any) -> None:
    # ccxt passes a body that is not JSON on as text, and reads candles out of its characters.
    if response.status_code == 200 and response.content.rstrip()[-1:] not in (b"}", b"]"):
        raise common.Unanswered(common.NOT_JSON)


class CcxtConfig(common.ConnectorConfig, frozen=True, kw_only=True):
    """``exchange`` is a ccxt id; ``minutes`` adds minute candles of the same days (1440 a day: many pages)."""

    exchange: str = "binance"
    minutes: bool = False


class CcxtSource(common.ConnectorSource):
    """Spot candles of one exchange. Exchanges publish no listing dates: a later first candle is ``partial``."""

    Config: ClassVar[type[SourceConfig]] = CcxtConfig
    summary: ClassVar[str] = "crypto spot candles, daily and by the minute, from any exchange of ccxt"
    extra: ClassVar[str | None] = "crypto"

    def load(self) -> Panel:
        config = self._config
        common.need_symbols(config, "BTC/USDT")
        sessions = common.sessions_asked("24/7", config.first, config.last, self._runtime.clock)
        wire = CryptoWire(config.exchange, self._runtime, self._wire.get("settings"), forgive=config.forgive)
        try:
            instruments = wire.instruments(config.symbols)
            currency = common.one_currency({one.currency: one.symbol for one in instruments})
            columns = [_column(wire, instrument, sessions) for instrument in instruments]
            minutes = [_minutes(wire, symbol, sessions) for symbol in config.symbols] if config.minutes else []
        finally:
            wire.close()
        licence = (
            f"Public market data of {config.exchange} through ccxt (MIT): the numbers are the exchange's, "
            "under the terms of its API; do not redistribute them."
        )
        vendor = common.Vendor(config.exchange, f"ccxt/{config.exchange}", "24/7", currency, licence)
        before = (common.SURVIVORS, f"prices and volumes of one exchange, {config.exchange}")
        return self.panel(vendor, columns, sessions, minutes=minutes, before=before)

    def growth_since(self, day: str) -> float | None:
        """Return the newest price over the close of a day, today's unfinished bar included; None without one."""
        wire = CryptoWire(self._config.exchange, self._runtime, self._wire.get("settings"), forgive=True)
        try:
            candles = wire.candles(
                self._config.symbols[0], "1d", midnight(parse_day(day)), self._runtime.clock.now()
            )
        finally:
            wire.close()
        return common.newest_over(_days(candles), candles.fields["close"], day)


def _days(candles: Candles) -> Days:
    return candles.start.astype("datetime64[ns]").astype("datetime64[D]")


def _candles(wire: CryptoWire, symbol: str, timeframe: Timeframe, sessions: Sessions, lack: str) -> Candles:
    begin, end = int(sessions.open_time[0]), int(sessions.close_time[-1])
    candles = wire.candles(symbol, timeframe, begin, end)
    if candles.start.size == 0:
        reason = f"{lack}some exchanges keep only their latest candles"
        raise common.empty_answer(wire.name, symbol, sessions.first, sessions.last, reason)
    return candles


def _column(wire: CryptoWire, instrument: Instrument, sessions: Sessions) -> common.Column:
    candles = _candles(wire, instrument.symbol, "1d", sessions, "")
    return common.Column(instrument=instrument, days=_days(candles), fields=candles.fields)


def _minutes(wire: CryptoWire, symbol: str, sessions: Sessions) -> common.MinuteColumn:
    candles = _candles(wire, symbol, "1m", sessions, "no minutes; ")
    return common.MinuteColumn(symbol, candles.start + MINUTE, candles.fields)


sources.add("ccxt", CcxtSource)
