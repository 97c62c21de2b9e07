"""Read bar files into one long table, date its rows, and place them on the grid of a panel.

Every row keeps its file and line for later faults. This module guesses the calendar, the time zone
and the frequency, and the guesses are reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tradeassay.core.arrays import Bools, Days, Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.tables.cells import stem_of
from tradeassay.tables.dates import is_day
from tradeassay.tables.faults import DataFault
from tradeassay_bench.core.time import DAY, MINUTE
from tradeassay_bench.core.view import FIELDS, Field, Frequency, Instrument
from tradeassay_bench.data.calendars import known_range, matching_rows, sessions_between
from tradeassay_bench.data.names import ashare_code, board_of
from tradeassay_bench.data.source import CalendarName, Listing, MinutePanel
from tradeassay_bench.data.tables.columns import ColumnMap, guess_columns
from tradeassay_bench.data.tables.files import FilesConfig, InstrumentKind
from tradeassay_bench.data.tables.typed import (
    RawTable,
    Stamps,
    read_stamps,
    read_table,
    same,
    to_floats,
)

Int32s = NDArray[np.int32]
"""Type of row, file and symbol numbers. These numbers are most of a large import, and 32 bits halve
their memory.
"""

SIDE_TABLES = {
    name: name for name in "actions memberships news fundamentals instruments indices".split()
}
"""The kind of a side file by its name without the file extension."""
SIDE_TABLES["membership"] = "memberships"
"""The kind of a side file by its name without the ending."""


@dataclass(frozen=True, slots=True)
class LongBars:
    """All rows of all bar files.

    ``symbol`` contains indices into ``symbols``, ``file`` indices into ``files``. ``present`` are
    the price and volume fields that at least one file has.
    """

    file: Int32s
    row: Int32s
    symbols: tuple[str, ...]
    symbol: Int32s
    stamps: Stamps
    values: dict[Field, Floats]
    adj_close: Floats | None
    halted: Bools
    present: frozenset[Field]
    files: tuple[str, ...] = ()
    columns: dict[str, ColumnMap] = field(default_factory=dict)

    @property
    def absent(self) -> tuple[Field, ...]:
        return tuple(name for name in FIELDS if name not in self.present)


_BATCH = 250
"""Number of files joined at a time. The memory of many small arrays would not be released."""


def read_bars(
    paths: Sequence[Path], root: Path, config: FilesConfig
) -> tuple[LongBars, list[DataFault]]:
    """Return one long table from bar files, and the faults of individual rows.

    Raises :class:`UserError` for a file that cannot be read as bars.
    """
    faults: list[DataFault] = []
    parts: list[LongBars] = []
    merged: list[LongBars] = []
    maps: dict[str, ColumnMap] = {}
    given = config.columns or {name: name for name in config.header if name != "ignore"}
    for number, path in enumerate(paths):
        label = str(path.relative_to(root)) if path != root else path.name
        table = read_table(path, label, config.header)
        maps[label] = guess_columns(tuple(table.columns), label, given)
        roles, count = maps[label].roles, len(table.rows)
        stamps, undated = read_stamps(table, roles["date"], roles.get("time"))
        names, codes = _symbols(table, roles.get("symbol"), stem_of(path))
        faults += [*table.faults, *undated]
        read: dict[str, Floats] = {}
        for role in (*FIELDS, "adj_close", "status"):
            if role in roles:
                read[role], cell_faults = to_floats(table, roles[role])
                faults += cell_faults
        units: tuple[tuple[Field, float | None], ...] = (
            ("volume", config.volume_unit),
            ("amount", config.amount_unit),
        )
        for name, unit in units:
            if name in read and unit is not None:
                read[name] = read[name] * unit
        empty = np.full(count, np.nan)
        parts.append(
            LongBars(
                file=np.full(count, number, dtype=np.int32),
                row=table.rows.astype(np.int32),
                symbols=tuple(names),
                symbol=codes,
                stamps=stamps,
                values={name: read.get(name, empty) for name in FIELDS},
                adj_close=read.get("adj_close"),
                halted=read["status"] == 0 if "status" in read else np.zeros(count, dtype=np.bool_),
                present=frozenset(name for name in FIELDS if name in read),
            )
        )
        if len(parts) == _BATCH:
            merged.append(_merged(parts))
            parts.clear()
    bars = replace(_merged([*merged, *parts]), files=tuple(maps), columns=_distinct_columns(maps))
    return bars, faults


def _distinct_columns(maps: Mapping[str, ColumnMap]) -> dict[str, ColumnMap]:
    """Return the distinct column maps, labelled with their first file and the number of others."""
    files_by_reading: dict[str, list[str]] = {}
    for label, columns in maps.items():
        files_by_reading.setdefault(str(columns), []).append(label)
    distinct = {}
    for first, *others in files_by_reading.values():
        label = f"{first} and {len(others)} more" if others else first
        distinct[label] = maps[first]
    return distinct


def _symbols(table: RawTable, column: str | None, stem: str) -> tuple[list[str], Int32s]:
    """Return a file's symbols and each row's index into them.

    If a file has no symbol column, its name (``stem``) is the symbol. Raises :class:`UserError` if
    the name or the column cannot be a symbol.
    """
    import pyarrow.compute as pc

    if column is None:
        if is_day(stem):
            raise UserError(
                f"{table.file} has no column of symbols, and its name is a date",
                hint="name the column, e.g. columns={'symbol': 'NAME'}, or name the file after its "
                "symbol",
            )
        return [stem], np.zeros(len(table.rows), dtype=np.int32)
    raw = table.columns[column]
    try:
        text = pc.utf8_trim_whitespace(raw.cast(pa.string()))
    except pa.ArrowException as error:
        problem = f"{table.file}: column {column} contains {raw.type}, not symbols"
        raise UserError(problem, hint="name another column with columns=") from error
    if pa.types.is_integer(raw.type):
        text = pc.utf8_lpad(text, 6, "0")  # an integer code has lost its leading zeros
    empty = np.flatnonzero(pc.fill_null(pc.equal(text, ""), True).to_numpy())
    if empty.size:
        problem = f"{table.file}:{table.rows[empty[0]]}: the row has no {column}"
        raise UserError(problem, hint="fill it or remove the row")
    encoded = text.combine_chunks().dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    dated = next((name for name in names if is_day(name)), None)
    if dated is not None:
        raise UserError(
            f"{table.file}: column {column} is read as symbols but contains the date '{dated}'",
            hint="name the columns, e.g. columns={'date': 'NAME', 'symbol': 'NAME'}",
        )
    return names, encoded.indices.to_numpy().astype(np.int32)


def _merged(parts: list[LongBars]) -> LongBars:
    """Return one table from several parts, with common symbol numbers.

    The values are moved out of the parts to save memory.
    """
    names = sorted(set(chain.from_iterable(part.symbols for part in parts)))
    place = {name: index for index, name in enumerate(names)}
    symbol = [
        np.array([place[name] for name in part.symbols], dtype=np.int32)[part.symbol]
        for part in parts
    ]
    adjusted = None
    if any(part.adj_close is not None for part in parts):
        adjusted = np.concatenate(
            [part.values["close"] if part.adj_close is None else part.adj_close for part in parts]
        )
    all_stamps = [part.stamps for part in parts]
    local = np.concatenate([stamps.local for stamps in all_stamps])
    offset, zoned = same(0, local.size), same(False, local.size)
    if any(stamps.zoned.any() for stamps in all_stamps):
        offset = np.concatenate([stamps.offset for stamps in all_stamps])
        zoned = np.concatenate([stamps.zoned for stamps in all_stamps])
    spellings: set[str] = set()
    for stamps in all_stamps:
        spellings.update(stamps.spelling.split(" and "))
    return LongBars(
        file=np.concatenate([part.file for part in parts]),
        row=np.concatenate([part.row for part in parts]),
        symbols=tuple(names),
        symbol=np.concatenate(symbol),
        stamps=Stamps(
            local,
            offset,
            zoned,
            np.concatenate([stamps.good for stamps in all_stamps]),
            " and ".join(sorted(spellings)),
        ),
        # Moved out of the parts field by field. A second copy of all fields would double the
        # memory.
        values={name: np.concatenate([part.values.pop(name) for part in parts]) for name in FIELDS},
        adj_close=adjusted,
        halted=np.concatenate([part.halted for part in parts]),
        present=frozenset[Field]().union(*(part.present for part in parts)),
    )


ZONES: dict[CalendarName, str] = {
    "XNYS": "America/New_York",
    "XSHG": "Asia/Shanghai",
    "24/7": "UTC",
}
_HOURS: dict[CalendarName, tuple[int, int]] = {
    "XNYS": (570, 960),
    "XSHG": (570, 900),
    "24/7": (0, 1440),
}
"""Usual opening and closing minute of the local day, for days outside the calendar."""


@dataclass(frozen=True, slots=True)
class BarTiming:
    """The times of rows.

    ``day`` is the session day of each row. ``close_time`` is the end of its bar, and None for daily
    bars.
    """

    calendar: CalendarName
    timezone: str
    day: Days
    close_time: Ints | None
    minutes_per_bar: int
    stamps: Literal["start", "end"]


def timing(bars: LongBars, config: FilesConfig) -> tuple[BarTiming, list[DataFault]]:
    """Return the times of the rows and their faults. Options that are None are guessed."""
    stamps = bars.stamps
    calendar = config.calendar or _guess_calendar(bars)
    zone = config.timezone or ZONES[calendar]
    _zone(zone)  # raises UserError for an unknown zone
    frequency = config.frequency or _guess_frequency(bars)
    if frequency == "1m":
        return _intraday(bars, config, calendar, zone)
    day = stamps.local // DAY
    # A stamp at midnight with a zone is a date in any zone. At another time of day it is an
    # instant.
    moved = stamps.zoned & (stamps.local % DAY != 0)
    if moved.any():
        day = day.copy()
        day[moved] = to_local(stamps.local[moved] - stamps.offset[moved], ZONES[calendar]) // DAY
    return BarTiming(calendar, zone, day.view("datetime64[D]"), None, 1, "end"), []


def _guess_calendar(bars: LongBars) -> CalendarName:
    """Return the calendar that fits the bars.

    The calendar is XSHG if most symbols are A-share codes, 24/7 if more than a fifth of the days
    are on weekends, and otherwise XNYS.
    """
    codes = [ashare_code(symbol) is not None for symbol in bars.symbols]
    if sum(codes) > len(codes) / 2:
        return "XSHG"
    days, _ = distinct_days((bars.stamps.local // DAY)[bars.stamps.good])
    weekend = (days + 3) % 7 >= 5  # day 0, 1970-01-01, was a Thursday
    return "24/7" if days.size and weekend.mean() > 0.2 else "XNYS"


def _guess_frequency(bars: LongBars) -> Frequency:
    """Return "1m" if the symbols have clearly more timestamps than days, else "1d"."""
    sample = bars.stamps.good & (bars.symbol < 1000)  # a thousand symbols are enough for a guess
    symbol, local = bars.symbol[sample], bars.stamps.local[sample]
    order = np.lexsort((local, symbol))
    changed = np.diff(symbol[order]) != 0
    times = 1 + int((changed | (np.diff(local[order]) != 0)).sum())
    dates = 1 + int((changed | (np.diff((local // DAY)[order]) != 0)).sum())
    return "1m" if local.size and times > 1.5 * dates else "1d"


def _intraday(
    bars: LongBars, config: FilesConfig, calendar: CalendarName, zone: str
) -> tuple[BarTiming, list[DataFault]]:
    """Return the times of intraday rows, and faults for timestamps without a time zone."""
    stamps, faults = bars.stamps, []
    instants: Ints = stamps.local - stamps.offset
    naive = stamps.good & ~stamps.zoned
    if naive.any():
        instants = instants.copy()
        instants[naive] = to_utc(stamps.local[naive], zone)
    for number in np.unique(bars.file[naive]).tolist() if config.timezone is None else ():
        rows = bars.row[naive & (bars.file == number)]
        reason = (
            f"{rows.size} timestamps have no time zone "
            f"({zone} would be assumed; confirm it with -p timezone={zone})"
        )
        file = bars.files[number]
        faults.append(
            DataFault(check="time stamp without zone", file=file, row=int(rows[0]), reason=reason)
        )
    # The length of a bar is the most frequent step between two bars of a symbol.
    order = np.lexsort((instants, bars.symbol))
    steps = np.diff(instants[order])[np.diff(bars.symbol[order]) == 0]
    values, counts = np.unique(steps[steps > 0], return_counts=True)
    length = max(1, int(values[np.argmax(counts)] // MINUTE)) if values.size else 1
    edge = config.stamps
    if edge is None:
        days = np.unique((to_local(instants, ZONES[calendar]) // DAY).astype("datetime64[D]"))
        opens, closes = session_times(calendar, days)
        at_open = np.isin(instants, opens).sum()
        at_close = np.isin(instants, closes).sum()
        edge = "end" if calendar != "24/7" and at_close > at_open else "start"
    close = instants + length * MINUTE if edge == "start" else instants
    day = to_local(close - 1, ZONES[calendar]) // DAY
    return BarTiming(calendar, zone, day.astype("datetime64[D]"), close, length, edge), faults


def session_times(calendar: CalendarName, days: Days) -> tuple[Ints, Ints]:
    """Return the opening and closing instants of days.

    Days outside the calendar have the usual hours.
    """
    earliest, latest = known_range(calendar)
    wall = days.astype(np.int64) * DAY
    opens, closes = (to_utc(wall + minute * MINUTE, ZONES[calendar]) for minute in _HOURS[calendar])
    known = days
    if earliest is not None:
        known = known[known >= np.datetime64(earliest)]
    if latest is not None:
        known = known[known <= np.datetime64(latest)]
    if known.size:
        sessions = sessions_between(calendar, str(known[0]), str(known[-1]))
        rows, matches = matching_rows(days, sessions.days)
        opens[rows], closes[rows] = sessions.open_time[matches], sessions.close_time[matches]
    return opens, closes


def distinct_days(days: Ints) -> tuple[Ints, Int32s]:
    """Return the sorted distinct days (numbers since 1970), and each day's index among them."""
    if not days.size:
        return days, days.astype(np.int32)
    first, last = int(days.min()), int(days.max())
    if last - first > 1_000_000:
        # An impossible date would make the lookup table below huge. Sorting is slower, but safe.
        distinct, place = np.unique(days, return_inverse=True)
        return distinct, place.reshape(-1).astype(np.int32)
    seen = np.zeros(last - first + 1, dtype=np.bool_)
    seen[days - first] = True
    lookup = (np.cumsum(seen) - 1).astype(np.int32)
    return np.flatnonzero(seen) + first, lookup[days - first]


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UserError(
            f"unknown time zone '{name}'", hint="write e.g. UTC or America/New_York"
        ) from error


def to_utc(wall: Ints, zone: str) -> Ints:
    """Return the UTC instants of local wall times."""
    return wall - _offsets(wall, zone, local=True)


def to_local(instants: Ints, zone: str) -> Ints:
    """Return the local wall times of UTC instants."""
    return instants + _offsets(instants, zone, local=False)


def _offsets(times: Ints, zone: str, *, local: bool) -> Ints:
    """Return the zone's offset from UTC at each time, in nanoseconds.

    Times in the same hour share one lookup.
    """
    zone_info = _zone(zone)
    hours, where = np.unique(times // (60 * MINUTE), return_inverse=True)
    by_hour = []
    for hour in hours.tolist():
        moment = datetime.fromtimestamp(hour * 3600, UTC)
        zoned = moment.replace(tzinfo=zone_info) if local else moment.astimezone(zone_info)
        shift = zoned.utcoffset() or timedelta(0)
        by_hour.append((shift // timedelta(microseconds=1)) * 1000)
    offsets: Ints = np.array(by_hour, dtype=np.int64)[where.reshape(-1)]
    return offsets


CURRENCY: dict[CalendarName, str] = {"XNYS": "USD", "XSHG": "CNY", "24/7": "USDT"}

_PRICES: tuple[Field, ...] = ("open", "high", "low", "close")
_TOTALS: tuple[Field, ...] = ("volume", "amount")


@dataclass(frozen=True, slots=True)
class BarGrid:
    """Bars on a grid of sessions and symbols.

    ``origin`` is each bar's row in the long table, or -1 without a bar.
    """

    sessions: Days
    symbols: tuple[str, ...]
    bars: dict[Field, Floats]
    suspended: Bools
    origin: Int32s


def _kept_rows(bars: LongBars, key: Ints) -> tuple[Ints, list[DataFault]]:
    """Return the rows to use, and faults for repeated and unsorted rows.

    Rows with an unreadable date, and rows that repeat an earlier (symbol, time), are not used.
    """
    good = np.flatnonzero(bars.stamps.good)
    if not good.size:
        raise UserError("no readable row in any file", hint="check the date column")
    if good.size == key.size:
        # Most imports are in order, with one block of rows per symbol, and need no sorting.
        border = (np.diff(bars.file) != 0) | (np.diff(bars.symbol) != 0)
        pieces = bars.symbol[np.concatenate(([0], np.flatnonzero(border) + 1))]
        if np.unique(pieces).size == pieces.size and bool((border | (np.diff(key) > 0)).all()):
            return good, []
    order = good[np.lexsort((good, key[good], bars.symbol[good]))]
    same = (np.diff(key[order]) == 0) & (np.diff(bars.symbol[order]) == 0)
    again = np.zeros(key.size, dtype=np.bool_)
    again[order[1:][same]] = True
    by_file = good[np.lexsort((good, bars.symbol[good], bars.file[good]))]
    joined = (np.diff(bars.file[by_file]) == 0) & (np.diff(bars.symbol[by_file]) == 0)
    steps, later = np.diff(key[by_file]), by_file[1:]
    back = later[joined & (steps < 0)]
    # Files in descending order are common and are not disordered.
    back = back[np.isin(bars.file[back], bars.file[later[joined & (steps > 0)]])]
    faults = []
    for rows, check, reason in (
        (np.flatnonzero(again), "duplicate", "a second bar of {} at the same time"),
        (back, "unsorted", "earlier than the row before it ({})"),
    ):
        for row in rows.tolist():
            text = reason.format(bars.symbols[bars.symbol[row]])
            file = bars.files[bars.file[row]]
            faults.append(DataFault(check=check, file=file, row=int(bars.row[row]), reason=text))
    return np.flatnonzero(bars.stamps.good & ~again), faults


def daily_grid(bars: LongBars, timing: BarTiming) -> tuple[BarGrid, list[DataFault]]:
    """Return daily rows on a grid, and their faults.

    If a day has several rows, the first row is kept and the other rows are faults.
    """
    keep, faults = _kept_rows(bars, timing.day.view(np.int64))
    keep = keep.astype(np.int32)
    days, row = distinct_days(timing.day.view(np.int64)[keep])
    sessions = days.astype("datetime64[D]")
    column = bars.symbol[keep]
    shape = (sessions.size, len(bars.symbols))
    origin = np.full(shape, -1, dtype=np.int32)
    origin[row, column] = keep
    grid: dict[Field, Floats] = {}
    for name in FIELDS:
        grid[name] = np.full(shape, np.nan)
        # With adjusted closes, complete() needs the rows again. Otherwise their memory is released.
        rows = bars.values[name] if bars.adj_close is not None else bars.values.pop(name)
        grid[name][row, column] = rows[keep]
        del rows
    halted = np.zeros(shape, dtype=np.bool_)
    halted[row, column] = bars.halted[keep]
    return BarGrid(sessions, bars.symbols, grid, halted, origin), faults


def minute_grid(bars: LongBars, timing: BarTiming) -> tuple[BarGrid, MinutePanel, list[DataFault]]:
    """Return daily bars built from intraday rows, the intraday bars on a grid, and their faults."""
    assert timing.close_time is not None
    keep, faults = _kept_rows(bars, timing.close_time)
    times, row = np.unique(timing.close_time[keep], return_inverse=True)
    shape = (times.size, len(bars.symbols))
    minutes: dict[Field, Floats] = {}
    for name in FIELDS:
        minutes[name] = np.full(shape, np.nan)
        minutes[name][row.reshape(-1), bars.symbol[keep]] = bars.values[name][keep]
    day = np.empty(times.size, dtype="datetime64[D]")
    day[row.reshape(-1)] = timing.day[keep]
    sessions, first = np.unique(day, return_index=True)
    daily = days_of_minutes(minutes, first)
    origin = np.full((sessions.size, len(bars.symbols)), -1, dtype=np.int32)
    grid = BarGrid(sessions, bars.symbols, daily, np.zeros(origin.shape, dtype=np.bool_), origin)
    return grid, MinutePanel(bars.symbols, times, minutes), faults


def days_of_minutes(minutes: Mapping[Field, Floats], first: Ints) -> dict[Field, Floats]:
    """Return daily bars built from intraday bars. ``first`` contains the first row of each day."""
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
    """Return the grid with missing fields filled, and notes on the rules that were used."""
    values, notes = dict(grid.bars), []
    if config.prices == "adjusted" and bars.adj_close is not None:
        factor = np.full(grid.origin.shape, np.nan)
        has_bar = grid.origin >= 0
        factor[has_bar] = (bars.adj_close / bars.values["close"])[grid.origin[has_bar]]
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
    suspended = grid.suspended
    if calendar == "XSHG":
        # A-share files mark a suspension by a missing row or by a row without volume.
        present = np.isfinite(values["close"])
        rows, count = np.arange(grid.sessions.size)[:, None], grid.sessions.size
        first = np.where(present.any(axis=0), present.argmax(axis=0), count)
        hole = ~present & (rows > first) & (rows < count - 1 - present[::-1].argmax(axis=0))
        suspended = suspended | (present & (values["volume"] == 0)) | hole
        if suspended.any():
            notes.append(
                f"{int(suspended.sum())} suspensions: {int(hole.sum())} sessions without a row "
                "between a name's "
                f"first and last bar, {int((suspended & ~hole).sum())} rows without trade"
            )
    if suspended.any():
        for field in FIELDS:
            values[field] = np.where(suspended, np.nan, values[field])
    return BarGrid(grid.sessions, grid.symbols, values, suspended, grid.origin), notes


def fill_prices(values: dict[Field, Floats], bars: LongBars) -> None:
    """Fill prices that are missing in all files, in place.

    A missing open is set to the close. A missing high or low is set to the larger or smaller of
    open and close.
    """
    if "open" in bars.absent:
        values["open"] = values["close"].copy()
    if "high" in bars.absent:
        values["high"] = np.fmax(values["open"], values["close"])
    if "low" in bars.absent:
        values["low"] = np.fmin(values["open"], values["close"])


def listings_of(
    grid: BarGrid, calendar: CalendarName, config: FilesConfig, known: dict[str, Listing]
) -> tuple[tuple[Listing, ...], list[str]]:
    """Return the listings of a grid's symbols, and a note on inferred delistings, if any.

    ``known`` contains the listings of an instruments file. They override dates inferred from the
    bars.
    """
    present = np.isfinite(grid.bars["close"]) | grid.suspended
    listings, inferred = [], 0
    for column, symbol in enumerate(grid.symbols):
        rows = np.flatnonzero(present[:, column])
        first, last = (int(rows[0]), int(rows[-1])) if rows.size else (0, grid.sessions.size - 1)
        listing = known.get(symbol)
        if listing is None:
            listing = Listing(instrument=default_instrument(symbol, calendar, config), listed="")
        if not listing.listed:
            listing = msgspec.structs.replace(listing, listed=str(grid.sessions[first]))
        missing_at_end = grid.sessions.size - 1 - last
        ends_early = config.delist_after is not None and missing_at_end > config.delist_after
        if ends_early and listing.delisted is None:
            listing = msgspec.structs.replace(listing, delisted=str(grid.sessions[last]))
            inferred += 1
        listings.append(listing)
    notes = [f"{inferred} delistings are inferred from a name's last bar"] if inferred else []
    return tuple(listings), notes


def default_instrument(symbol: str, calendar: CalendarName, config: FilesConfig) -> Instrument:
    """Return the default instrument for a symbol that is in no instruments file."""
    kind: InstrumentKind = config.kind or ("crypto" if calendar == "24/7" else "stock")
    currency = config.currency or CURRENCY[calendar]
    plain = Instrument(symbol=symbol, name=symbol, kind=kind, currency=currency)
    if kind == "crypto":
        return msgspec.structs.replace(plain, lot=1e-8, step=1e-8, tick=1e-8)
    if calendar == "XSHG" and kind == "stock":
        return msgspec.structs.replace(plain, lot=100.0, board=board_of(symbol))
    return plain
