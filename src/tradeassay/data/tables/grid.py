"""Long rows to a panel: sessions, columns, suspensions, and a map back from each bar to its file and line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import FIELDS, Bools, Days, Field, Floats, Instrument, Ints
from tradeassay.data.fault import DataFault
from tradeassay.data.names import board_of
from tradeassay.data.panel import CalendarName, Listing, MinutePanel
from tradeassay.data.tables.bars import BarTiming, Int32s, LongBars, distinct_days
from tradeassay.data.tables.columns import FilesConfig, InstrumentKind

CURRENCY: dict[CalendarName, str] = {"XNYS": "USD", "XSHG": "CNY", "24/7": "USDT"}

_PRICES: tuple[Field, ...] = ("open", "high", "low", "close")
_TOTALS: tuple[Field, ...] = ("volume", "amount")


@dataclass(frozen=True, slots=True)
class BarGrid:
    """Bars on a grid of sessions and symbols. ``origin`` is the long row of each bar, -1 where there is none."""

    sessions: Days
    symbols: tuple[str, ...]
    bars: dict[Field, Floats]
    suspended: Bools
    origin: Int32s


def _kept_rows(bars: LongBars, key: Ints) -> tuple[Ints, list[DataFault]]:
    """Return the rows that can be read and do not repeat an earlier (symbol, time), with faults for the others."""
    again, faults = _repeated(bars, key)
    keep = np.flatnonzero(bars.stamps.good & ~again)
    if not keep.size:
        raise UserError("no readable row in any file", hint="check the date column")
    return keep, faults


def _repeated(bars: LongBars, key: Ints) -> tuple[Bools, list[DataFault]]:
    if _in_order(bars, key):
        return np.zeros(key.size, dtype=np.bool_), []
    good = np.flatnonzero(bars.stamps.good)
    order = good[np.lexsort((good, key[good], bars.symbol[good]))]
    same = (np.diff(key[order]) == 0) & (np.diff(bars.symbol[order]) == 0)
    again = np.zeros(key.size, dtype=np.bool_)
    again[order[1:][same]] = True

    def fault(row: int, check: str, reason: str) -> DataFault:
        return DataFault(check=check, file=bars.files[bars.file[row]], row=int(bars.row[row]), reason=reason)

    faults = [
        fault(row, "duplicate", f"a second bar of {bars.symbols[bars.symbol[row]]} at the same time")
        for row in np.flatnonzero(again).tolist()
    ]
    by_file = good[np.lexsort((good, bars.symbol[good], bars.file[good]))]
    joined = (np.diff(bars.file[by_file]) == 0) & (np.diff(bars.symbol[by_file]) == 0)
    back = joined & (np.diff(key[by_file]) < 0)
    # A file that runs backwards throughout is a common convention, not disorder.
    descending = {
        int(number)
        for number in np.unique(bars.file[by_file[1:][back]])
        if not (joined & (np.diff(key[by_file]) > 0))[bars.file[by_file[1:]] == number].any()
    }
    faults += [
        fault(row, "unsorted", f"earlier than the row before it ({bars.symbols[bars.symbol[row]]})")
        for row in by_file[1:][back].tolist()
        if int(bars.file[row]) not in descending
    ]
    return again, faults


def _in_order(bars: LongBars, key: Ints) -> bool:
    if not bars.stamps.good.all():
        return False
    border = (np.diff(bars.file) != 0) | (np.diff(bars.symbol) != 0)
    starts = np.concatenate(([0], np.flatnonzero(border) + 1))
    pieces = bars.symbol[starts] if bars.symbol.size else bars.symbol
    return np.unique(pieces).size == pieces.size and bool((border | (np.diff(key) > 0)).all())


def daily_grid(bars: LongBars, timing: BarTiming) -> tuple[BarGrid, list[DataFault]]:
    """Return daily rows on a grid; the first of several rows for one day is kept and the others are faults."""
    keep, faults = _kept_rows(bars, timing.day.view(np.int64))
    keep = keep.astype(np.int32)
    days, row = distinct_days(timing.day.view(np.int64)[keep])
    sessions = days.astype("datetime64[D]")
    column = bars.symbol[keep]
    shape = (sessions.size, len(bars.symbols))
    origin = np.full(shape, -1, dtype=np.int32)
    origin[row, column] = keep
    grid: dict[Field, Floats] = {}
    for field in FIELDS:
        grid[field] = np.full(shape, np.nan)
        # Adjusted closes are worked in later and need the rows again; otherwise they are done with here.
        rows = bars.values[field] if bars.adj_close is not None else bars.values.pop(field)
        grid[field][row, column] = rows[keep]
        del rows
    halted = np.zeros(shape, dtype=np.bool_)
    halted[row, column] = bars.halted[keep]
    return BarGrid(sessions, bars.symbols, grid, halted, origin), faults


def minute_grid(bars: LongBars, timing: BarTiming) -> tuple[BarGrid, MinutePanel, list[DataFault]]:
    """Return intraday rows on a grid, and the daily bars they add up to."""
    assert timing.close_time is not None
    keep, faults = _kept_rows(bars, timing.close_time)
    times, row = np.unique(timing.close_time[keep], return_inverse=True)
    shape = (times.size, len(bars.symbols))
    minutes: dict[Field, Floats] = {}
    for field in FIELDS:
        minutes[field] = np.full(shape, np.nan)
        minutes[field][row.reshape(-1), bars.symbol[keep]] = bars.values[field][keep]
    day = np.empty(times.size, dtype="datetime64[D]")
    day[row.reshape(-1)] = timing.day[keep]
    sessions, first = np.unique(day, return_index=True)
    daily = days_of_minutes(minutes, first)
    origin = np.full((sessions.size, len(bars.symbols)), -1, dtype=np.int32)
    grid = BarGrid(sessions, bars.symbols, daily, np.zeros(origin.shape, dtype=np.bool_), origin)
    return grid, MinutePanel(bars.symbols, times, minutes), faults


def days_of_minutes(minutes: Mapping[Field, Floats], first: Ints) -> dict[Field, Floats]:
    """Return daily bars made from intraday ones; ``first`` holds the first row of every day."""
    present = np.isfinite(minutes["close"])
    any_bar = np.logical_or.reduceat(present, first, axis=0)
    result: dict[Field, Floats] = {
        "high": np.fmax.reduceat(minutes["high"], first, axis=0),
        "low": np.fmin.reduceat(minutes["low"], first, axis=0),
    }
    for total in _TOTALS:
        known = np.logical_or.reduceat(np.isfinite(minutes[total]), first, axis=0)
        summed = np.add.reduceat(np.nan_to_num(minutes[total], nan=0.0), first, axis=0)
        result[total] = np.where(known, summed, np.nan)
    rows = np.arange(present.shape[0])[:, None]
    last = np.maximum.reduceat(np.where(present, rows, -1), first, axis=0)
    start = np.minimum.reduceat(np.where(present, rows, present.shape[0]), first, axis=0)
    edges: tuple[tuple[Field, Ints], ...] = (("open", start), ("close", last))
    for edge, where in edges:
        picked = np.take_along_axis(minutes[edge], np.clip(where, 0, present.shape[0] - 1), axis=0)
        result[edge] = np.where(any_bar, picked, np.nan)
    return {field: result[field] for field in FIELDS}


def complete(
    grid: BarGrid, bars: LongBars, calendar: CalendarName, config: FilesConfig
) -> tuple[BarGrid, list[str]]:
    """Return the grid with absent fields filled by stated rules, and sentences that say so."""
    values, notes = dict(grid.bars), []
    if config.prices == "adjusted" and bars.adj_close is not None:
        factor = np.full(grid.origin.shape, np.nan)
        there = grid.origin >= 0
        factor[there] = (bars.adj_close / bars.values["close"])[grid.origin[there]]
        for price in _PRICES:
            values[price] = values[price] * factor
    fill_prices(values, bars)
    prices = [field for field in ("open", "high", "low") if field in bars.absent]
    if len(prices) == 3:
        notes.append("only closing prices: open, high and low are set equal to the close")
    elif prices:
        notes.append(f"no {' or '.join(prices)} in the files: taken from the open and close")
    if "volume" in bars.absent:
        notes.append("no volume in the files")
    if "amount" in bars.absent and "volume" not in bars.absent:
        sane = (values["volume"] >= 0) & (values["close"] > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            product = values["volume"] * values["close"]
        values["amount"] = np.where(sane & np.isfinite(product), product, np.nan)
        notes.append("no traded amount in the files: taken as volume times close")
    suspended, extra = _suspensions(grid, values, calendar)
    if suspended.any():
        for field in FIELDS:
            values[field] = np.where(suspended, np.nan, values[field])
    return BarGrid(grid.sessions, grid.symbols, values, suspended, grid.origin), notes + extra


def fill_prices(values: dict[Field, Floats], bars: LongBars) -> None:
    """Put prices that no file has in place: the open is the close, the high and low are the ends of both."""
    if "open" in bars.absent:
        values["open"] = values["close"].copy()
    if "high" in bars.absent:
        values["high"] = np.fmax(values["open"], values["close"])
    if "low" in bars.absent:
        values["low"] = np.fmin(values["open"], values["close"])


def _suspensions(grid: BarGrid, values: dict[Field, Floats], calendar: CalendarName) -> tuple[Bools, list[str]]:
    suspended = grid.suspended.copy()
    if calendar != "XSHG":
        return suspended, []
    present = np.isfinite(values["close"])
    idle = present & (values["volume"] == 0)
    rows = np.arange(grid.sessions.size)[:, None]
    first = np.where(present.any(axis=0), present.argmax(axis=0), grid.sessions.size)
    last = grid.sessions.size - 1 - present[::-1].argmax(axis=0)
    hole = ~present & (rows > first) & (rows < last)
    suspended |= idle | hole
    if not suspended.any():
        return suspended, []
    return suspended, [
        f"{int(suspended.sum())} suspensions: {int(hole.sum())} sessions without a row between a name's first and "
        f"last bar, {int((suspended & ~hole).sum())} rows without trade"
    ]


def listings_of(
    grid: BarGrid, calendar: CalendarName, config: FilesConfig, known: dict[str, Listing]
) -> tuple[tuple[Listing, ...], list[str]]:
    """Return the listings of a grid's symbols; ``known`` (an instruments file) wins over what bars suggest."""
    seen = np.isfinite(grid.bars["close"]) | grid.suspended
    result, inferred = [], 0
    for column, symbol in enumerate(grid.symbols):
        rows = np.flatnonzero(seen[:, column])
        first, last = (int(rows[0]), int(rows[-1])) if rows.size else (0, grid.sessions.size - 1)
        gone = config.delist_after is not None and grid.sessions.size - 1 - last > config.delist_after
        stated = known.get(symbol)
        if stated is not None and stated.delisted is not None:
            gone = False
        inferred += gone
        listing = Listing(
            instrument=default_instrument(symbol, calendar, config) if stated is None else stated.instrument,
            listed=stated.listed if stated is not None and stated.listed else str(grid.sessions[first]),
            delisted=str(grid.sessions[last]) if gone else (None if stated is None else stated.delisted),
        )
        result.append(listing)
    return tuple(result), [f"{inferred} delistings are inferred from a name's last bar"] if inferred else []


def default_instrument(symbol: str, calendar: CalendarName, config: FilesConfig) -> Instrument:
    """Return what can be said about a symbol without an instruments file."""
    kind: InstrumentKind = config.kind or ("crypto" if calendar == "24/7" else "stock")
    currency = config.currency or CURRENCY[calendar]
    plain = Instrument(symbol=symbol, name=symbol, kind=kind, currency=currency)
    if kind == "crypto":
        return msgspec.structs.replace(plain, lot=1e-8, step=1e-8, tick=1e-8)
    if calendar == "XSHG" and kind == "stock":
        return msgspec.structs.replace(plain, lot=100.0, board=board_of(symbol))
    return plain
