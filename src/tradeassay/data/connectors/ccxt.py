"""Crypto candles from any exchange that ccxt knows: one session per UTC day, optionally every minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tradeassay.core.errors import UserError
from tradeassay.core.instruments import Instrument
from tradeassay.core.time import MINUTE
from tradeassay.data.calendars import Sessions
from tradeassay.data.connectors.asked import ConnectorConfig, empty_answer, need_symbols, query_text, retrieved
from tradeassay.data.connectors.ccxt_wire import CryptoWire
from tradeassay.data.connectors.grid import Column, lay_out
from tradeassay.data.connectors.minutes import MinuteColumn, check_minutes, join_minutes
from tradeassay.data.connectors.patience import Runtime
from tradeassay.data.connectors.sessions import first_day, last_day, sessions_asked
from tradeassay.data.panel import Panel, PanelFacts
from tradeassay.data.source import SourceConfig, sources


class CcxtConfig(ConnectorConfig, frozen=True, kw_only=True):
    """``exchange`` is a ccxt id; ``minutes`` adds minute candles of the same days (1440 a day: many pages)."""

    exchange: str = "binance"
    minutes: bool = False


class CcxtSource:
    """Spot candles of one exchange. Exchanges publish no listing dates: a later first candle is ``partial``."""

    Config: ClassVar[type[SourceConfig]] = CcxtConfig
    summary: ClassVar[str] = "crypto spot candles, daily and by the minute, from any exchange of ccxt"
    extra: ClassVar[str | None] = "crypto"

    def __init__(
        self,
        config: CcxtConfig,
        *,
        runtime: Runtime | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Take a configuration; ``settings`` go to the exchange's constructor in ccxt."""
        self._config = config
        self._runtime = runtime or Runtime()
        self._settings = settings

    def load(self) -> Panel:
        """Fetch the panel; raises :class:`SourceError` naming the symbol that could not be had."""
        config = self._config
        need_symbols(config, "BTC/USDT")
        sessions = sessions_asked("24/7", config.first, config.last, self._runtime.clock)
        wire = CryptoWire(config.exchange, self._runtime, self._settings)
        try:
            instruments = wire.instruments(config.symbols)
            currency = _one_currency(instruments)
            columns = [_column(wire, instrument, sessions) for instrument in instruments]
            minutes = _minutes(wire, config.symbols, sessions) if config.minutes else []
        finally:
            wire.close()
        grid = lay_out(columns, sessions, vendor=config.exchange, allow_partial=config.allow_partial)
        partial = check_minutes(minutes, columns, vendor=config.exchange, allow_partial=config.allow_partial)
        facts = PanelFacts(
            kind="real",
            source=f"ccxt/{config.exchange}",
            query=query_text(config),
            currency=currency,
            calendar="24/7",
            adjusted="none",
            biases=(
                "symbols chosen at the time of retrieval: survivorship",
                f"prices and volumes of one exchange, {config.exchange}",
                *grid.notes,
                *partial,
            ),
            licence=f"Public market data of {config.exchange} through ccxt (MIT): the numbers are the exchange's, "
            "under the terms of its API; do not redistribute them.",
            retrieved_at=retrieved(self._runtime.clock),
        )
        return Panel(
            name=config.name or f"ccxt-{config.exchange}",
            facts=facts,
            listings=grid.listings,
            sessions=sessions.days,
            open_time=sessions.open_time,
            close_time=sessions.close_time,
            bars=grid.bars,
            suspended=grid.suspended,
            minutes=join_minutes(minutes, vendor=config.exchange) if minutes else None,
        )


def _one_currency(instruments: Sequence[Instrument]) -> str:
    currencies = {instrument.currency: instrument.symbol for instrument in instruments}
    if len(currencies) > 1:
        named = ", ".join(f"{symbol} in {currency}" for currency, symbol in sorted(currencies.items()))
        raise UserError(
            f"one panel has one currency, but {named}",
            mend="fetch them as separate panels",
        )
    return next(iter(currencies))


def _span(sessions: Sessions) -> tuple[int, int]:
    return int(sessions.open_time[0]), int(sessions.close_time[-1])


def _column(wire: CryptoWire, instrument: Instrument, sessions: Sessions) -> Column:
    candles = wire.candles(instrument.symbol, "1d", *_span(sessions))
    if candles.start.size == 0:
        raise empty_answer(
            wire.name,
            instrument.symbol,
            first_day(sessions),
            last_day(sessions),
            "some exchanges keep only their latest candles",
        )
    days = candles.start.astype("datetime64[ns]").astype("datetime64[D]")
    return Column(instrument=instrument, days=days, fields=candles.fields)


def _minutes(wire: CryptoWire, symbols: Sequence[str], sessions: Sessions) -> list[MinuteColumn]:
    columns: list[MinuteColumn] = []
    begin, end = _span(sessions)
    for symbol in symbols:
        candles = wire.candles(symbol, "1m", begin, end)
        if candles.start.size == 0:
            reason = "no minutes; some exchanges keep only their latest candles"
            raise empty_answer(wire.name, symbol, first_day(sessions), last_day(sessions), reason)
        columns.append(MinuteColumn(symbol, candles.start + MINUTE, candles.fields))
    return columns


sources.add("ccxt", CcxtSource)
