"""US stocks and funds from Yahoo Finance, brought back to the prices that were traded.

Yahoo's open, high, low, close, volume and dividends are adjusted for every split up to today, even when
adjustment is switched off in the library. This source therefore asks from the first day wanted up to *now*,
collects all the splits in between, undoes them, and checks at each split that there was something to undo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, ClassVar, Literal

import numpy as np

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.instruments import CorporateAction, Instrument
from tradeassay.core.time import moment, parse_day
from tradeassay.core.view import Field, Floats, Ints
from tradeassay.data.calendars import Sessions
from tradeassay.data.connectors import asked
from tradeassay.data.connectors.grid import (
    PRICES,
    Column,
    MinuteColumn,
    Vendor,
    check_minutes,
    join_minutes,
    lay_out,
    one_currency,
    shorten,
    vendor_panel,
)
from tradeassay.data.connectors.retry import Runtime
from tradeassay.data.connectors.yfinance_wire import (
    VENDOR,
    YahooSeries,
    YahooWire,
    conversation,
    factor_after,
    factor_from,
    not_applied,
)
from tradeassay.data.panel import Panel
from tradeassay.data.source import SourceConfig, sources

DECIMALS = 4
"""Yahoo sends 32-bit prices; four decimals remove their noise and keep every price a US exchange quotes."""

MINUTE_HISTORY_DAYS = 29
MINUTE_REQUEST_DAYS = 7

LICENCE = (
    "Yahoo Finance through yfinance (Apache-2.0): the data is Yahoo's and its suppliers', for personal use under "
    "Yahoo's terms of service; do not redistribute the numbers."
)


class YFinanceConfig(asked.ConnectorConfig, frozen=True, kw_only=True):
    """``indices`` are index symbols whose closing levels are kept (``^GSPC``); ``minutes`` adds minute bars.

    Yahoo keeps minute bars for 30 days only.
    """

    indices: tuple[str, ...] = ()
    minutes: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        asked.refuse_doubles((*self.symbols, *self.indices))


class YFinanceSource:
    """Daily bars, splits and dividends of US stocks and funds, as traded; optionally the latest minutes."""

    Config: ClassVar[type[SourceConfig]] = YFinanceConfig
    summary: ClassVar[str] = (
        "US stocks and funds from Yahoo: daily bars as traded, splits, dividends, recent minutes"
    )
    extra: ClassVar[str | None] = "us"

    def __init__(
        self, config: YFinanceConfig, *, runtime: Runtime | None = None, session: Callable[[], Any] | None = None
    ) -> None:
        """Take a configuration; ``session`` makes the HTTP session (see ``browser_session``)."""
        self._config = config
        self._runtime = runtime or Runtime()
        self._session = session

    def load(self) -> Panel:
        """Fetch the panel; raises :class:`SourceError` naming the symbol that could not be fetched."""
        config, clock = self._config, self._runtime.clock
        asked.need_symbols(config, "AAPL")
        sessions = asked.sessions_asked("XNYS", config.first, config.last, clock)
        if config.minutes:
            _refuse_old_minutes(sessions, moment(clock.now()).date())
        first, until = parse_day(asked.first_day(sessions)), moment(clock.now()).date() + timedelta(days=1)
        with conversation(self._runtime, self._session) as wire:
            series = [_checked(wire.daily(symbol, first, until)) for symbol in config.symbols]
            indices = {name: _levels(wire.daily(name, first, until), sessions) for name in config.indices}
            minutes = _minutes(wire, series, sessions) if config.minutes else []
        return self._panel(series, sessions, indices, minutes)

    def _panel(
        self,
        series: Sequence[YahooSeries],
        sessions: Sessions,
        indices: dict[str, Floats],
        minutes: Sequence[MinuteColumn],
    ) -> Panel:
        config = self._config
        columns = [_column(one, sessions) for one in series]
        grid = lay_out(
            columns, sessions, vendor=VENDOR, allow_partial=config.allow_partial, forgive=config.forgive
        )
        partial = check_minutes(minutes, columns, vendor=VENDOR, allow_partial=config.allow_partial)
        gains = [one.symbol for one in series if one.capital_gains]
        holes = [name for name, levels in indices.items() if bool(np.isnan(levels).any())]
        biases = (
            "symbols chosen at the time of retrieval: survivorship",
            *grid.notes,
            *partial,
            *([f"capital-gain distributions are not stored: {shorten(gains)}"] if gains else []),
            *([f"index levels with gaps: {shorten(holes)}"] if holes else []),
        )
        currency = one_currency({one.currency: one.symbol for one in series})
        vendor = Vendor("yfinance", "XNYS", currency, LICENCE)
        return replace(
            vendor_panel(vendor, config, grid, sessions, biases, self._runtime.clock),
            minutes=join_minutes(minutes, vendor=VENDOR) if minutes else None,
            actions=_actions(series, sessions),
            indices=indices,
        )


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


def _column(series: YahooSeries, sessions: Sessions) -> Column:
    wanted = series.days <= sessions.days[-1]
    days = series.days[wanted]
    factor = factor_after(days, series.splits)
    fields = {name: values[wanted] for name, values in series.fields.items()}
    return Column(
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
    traded = {name: np.round(fields[name] * factor, DECIMALS) for name in PRICES}
    traded["volume"] = np.rint(fields["volume"] / factor)
    return traded


def _actions(series: Sequence[YahooSeries], sessions: Sessions) -> tuple[CorporateAction, ...]:
    actions: list[CorporateAction] = []
    for one in series:
        paid = np.array([day for day, _ in one.dividends], dtype="datetime64[D]")
        scale = factor_from(paid, one.splits)
        found: list[tuple[Literal["split", "dividend"], np.datetime64, float]]
        found = [("split", split.day, split.ratio) for split in one.splits]
        found += [
            ("dividend", day, round(amount * float(factor), 6))
            for (day, amount), factor in zip(one.dividends, scale, strict=True)
        ]
        for kind, day, value in found:
            known_at = asked.action_time(sessions, str(day))
            if known_at is not None:
                action = CorporateAction(
                    symbol=one.symbol, kind=kind, ex_date=str(day), known_at=known_at, value=value
                )
                actions.append(action)
    return tuple(sorted(actions, key=lambda action: (action.ex_date, action.symbol, action.kind)))


def _levels(series: YahooSeries, sessions: Sessions) -> Floats:
    levels = np.full(sessions.days.size, np.nan)
    rows = np.searchsorted(sessions.days, series.days)
    inside = rows < sessions.days.size
    inside[inside] = sessions.days[rows[inside]] == series.days[inside]
    levels[rows[inside]] = np.round(series.fields["close"][inside], DECIMALS)
    return levels


def _refuse_old_minutes(sessions: Sessions, today: date) -> None:
    oldest = today - timedelta(days=MINUTE_HISTORY_DAYS)
    if parse_day(asked.first_day(sessions)) < oldest:
        raise UserError(
            f"Yahoo keeps minute bars for 30 days, and {asked.first_day(sessions)} is older",
            hint=f"ask with first={oldest} or later, or without minutes",
        )


def _minutes(wire: YahooWire, series: Sequence[YahooSeries], sessions: Sessions) -> list[MinuteColumn]:
    columns: list[MinuteColumn] = []
    end = parse_day(asked.last_day(sessions)) + timedelta(days=1)
    for one in series:
        times, parts = [], []
        start = parse_day(asked.first_day(sessions))
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
        columns.append(MinuteColumn(one.symbol, close_time, _as_traded(joined, factor)))
    return columns


def _minute_factor(series: YahooSeries, close_time: Ints, closes: Floats) -> Floats:
    """Return what minute prices must be multiplied by: the split factor where Yahoo has adjusted them, else 1.

    Minutes are not always adjusted along with the days; their closes lie near the daily close in one of the two.
    """
    days = (close_time - 1).astype("datetime64[ns]").astype("datetime64[D]")
    factor = factor_after(days, series.splits)
    rows = np.minimum(np.searchsorted(series.days, days), series.days.size - 1)
    daily = series.fields["close"][rows]
    traded = np.abs(np.log(closes / (daily * factor))) < np.abs(np.log(closes / daily))
    return np.where(traded, 1.0, factor)


sources.add("yfinance", YFinanceSource)
