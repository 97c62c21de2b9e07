"""Bar files as one long table, and the way from their wall times to sessions.

Every row knows its file and line, so that every later fault can be located. The calendar, the zone, and whether
the files are daily or intraday are guessed here and shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tradeassay.core.errors import UserError
from tradeassay.core.time import DAY, MINUTE
from tradeassay.core.view import FIELDS, Bools, Days, Field, Floats, Frequency, Ints
from tradeassay.data.calendars import known_range, sessions_between
from tradeassay.data.fault import DataFault
from tradeassay.data.files.codes import ashare_code
from tradeassay.data.files.import_config import ColumnMap, FilesConfig, guess_columns
from tradeassay.data.files.table import RawTable, read_table, stem_of
from tradeassay.data.files.values import Stamps, read_stamps, same, to_floats
from tradeassay.data.panel import CalendarName

Int32s = NDArray[np.int32]
"""Counts of rows, files and symbols: half the memory, which is most of that of a large import."""

SIDE_TABLES = ("actions", "membership", "memberships", "news", "fundamentals", "instruments", "indices")
"""File names (without ending) that are not bars."""


@dataclass(frozen=True, slots=True)
class LongBars:
    """All rows of all bar files. ``symbol`` holds numbers into ``symbols``, ``file`` numbers into ``files``.

    ``absent`` are the price and volume fields that no file has.
    """

    files: tuple[str, ...]
    file: Int32s
    row: Int32s
    symbols: tuple[str, ...]
    symbol: Int32s
    stamps: Stamps
    values: dict[Field, Floats]
    adj_close: Floats | None
    halted: Bools
    absent: tuple[Field, ...]
    columns: dict[str, ColumnMap]


def read_bars(paths: Sequence[Path], root: Path, config: FilesConfig) -> tuple[LongBars, list[DataFault]]:
    """Read bar files; raises :class:`UserError` when one cannot be understood, returns faults of single rows."""
    faults: list[DataFault] = []
    parts: list[_Part] = []
    merged: list[_Part] = []
    maps: dict[str, ColumnMap] = {}
    for number, path in enumerate(paths):
        label = str(path.relative_to(root)) if path != root else path.name
        table = read_table(path, label, config.header)
        columns = guess_columns(tuple(table.columns), label, config.columns or _roles(config.header))
        maps[label] = columns
        part, found = _read_part(table, columns, number, stem_of(path), config)
        parts.append(part)
        faults += [*table.faults, *found]
        if len(parts) == _TOGETHER:
            merged.append(_merged(parts))
            parts.clear()
    whole = _merged([*merged, *parts])
    bars = LongBars(
        files=tuple(maps),
        file=whole.file,
        row=whole.row,
        symbols=tuple(whole.names),
        symbol=whole.symbol,
        stamps=whole.stamps,
        values=whole.values,
        adj_close=whole.adj_close,
        halted=whole.halted,
        absent=tuple(field for field in FIELDS if field not in whole.present),
        columns=_summarised(maps),
    )
    return bars, faults


_TOGETHER = 250
"""Files that are joined as soon as they are read: memory of many small arrays is not given back when they go."""


def _roles(header: tuple[str, ...]) -> dict[str, str]:
    return {name: name for name in header if name != "ignore"}


@dataclass(frozen=True, slots=True)
class _Part:
    file: Int32s
    row: Int32s
    names: list[str]
    symbol: Int32s
    stamps: Stamps
    values: dict[Field, Floats]
    adj_close: Floats | None
    halted: Bools
    present: frozenset[Field]


def _read_part(
    table: RawTable, columns: ColumnMap, number: int, stem: str, config: FilesConfig
) -> tuple[_Part, list[DataFault]]:
    roles = columns.roles
    stamps, faults = read_stamps(table, roles["date"], roles.get("time"))
    names, codes = _symbols(table, roles.get("symbol"), stem)
    values: dict[Field, Floats] = {}
    for field in FIELDS:
        if field in roles:
            values[field], found = to_floats(table, roles[field])
            faults += found
    count = len(table.rows)
    adj_close = None
    if "adj_close" in roles:
        adj_close, found = to_floats(table, roles["adj_close"])
        faults += found
    halted = np.zeros(count, dtype=np.bool_)
    if "status" in roles:
        status, found = to_floats(table, roles["status"])
        halted = status == 0
        faults += found
    if "volume" in values and config.volume_unit != 1.0:
        values["volume"] = values["volume"] * config.volume_unit
    present = frozenset(values)
    empty = np.full(count, np.nan)
    values |= {field: empty for field in FIELDS if field not in values}
    files = np.full(count, number, dtype=np.int32)
    return _Part(
        files, table.rows.astype(np.int32), names, codes, stamps, values, adj_close, halted, present
    ), faults


def _symbols(table: RawTable, column: str | None, stem: str) -> tuple[list[str], Int32s]:
    if column is None:
        if is_date(stem):
            raise UserError(
                f"{table.file} has no column with symbols, and its name is a date",
                hint="name the column, e.g. --columns symbol=NAME; a file without one is named after its symbol",
            )
        return [stem], np.zeros(len(table.rows), dtype=np.int32)
    raw = table.columns[column]
    try:
        text = pc.utf8_trim_whitespace(raw.cast(pa.string()))
    except pa.ArrowException as error:
        raise UserError(
            f"{table.file}: column {column} holds {raw.type}, not symbols", hint="name another with --columns"
        ) from error
    if pa.types.is_integer(raw.type):
        text = pc.utf8_lpad(text, 6, "0")  # an integer code has lost its leading zeros
    encoded = text.combine_chunks().dictionary_encode()
    if encoded.null_count:
        row = int(table.rows[int(np.flatnonzero(encoded.is_null().to_numpy(zero_copy_only=False))[0])])
        raise UserError(f"{table.file}:{row}: the row has no {column}", hint="fill it or remove the row")
    names: list[str] = encoded.dictionary.to_pylist()
    if "" in names:
        row = int(table.rows[int(np.flatnonzero(encoded.indices.to_numpy() == names.index(""))[0])])
        raise UserError(f"{table.file}:{row}: the row has no {column}", hint="fill it or remove the row")
    dated = next((name for name in names if is_date(name)), None)
    if dated is not None:
        raise UserError(
            f"{table.file}: column {column} is taken for symbols and holds the date '{dated}'",
            hint="say which columns hold what, e.g. --columns date=NAME,symbol=NAME",
        )
    return names, encoded.indices.to_numpy().astype(np.int32)


_DATES = (
    re.compile(r"(?P<y>(?:19|20)\d\d)[-_/.]?(?P<m>\d\d)[-_/.]?(?P<d>\d\d)(?:[ T].*)?"),
    re.compile(r"(?P<m>\d\d?)[-_/.](?P<d>\d\d?)[-_/.](?P<y>(?:19|20)\d\d)"),
    re.compile(r"(?P<d>\d\d?)[-_/.](?P<m>\d\d?)[-_/.](?P<y>(?:19|20)\d\d)"),
)


def is_date(text: str) -> bool:
    """Say whether a text is a calendar day, which no symbol is."""
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            try:
                date(int(match["y"]), int(match["m"]), int(match["d"]))
            except ValueError:
                continue
            return True
    return False


def _merged(parts: list[_Part]) -> _Part:
    """Join parts into one, with the numbers of their symbols made common. Takes the values out of the parts."""
    names = sorted({name for part in parts for name in part.names})
    place = {name: index for index, name in enumerate(names)}
    symbol = [np.array([place[name] for name in part.names], dtype=np.int32)[part.symbol] for part in parts]
    adjusted = None
    if any(part.adj_close is not None for part in parts):
        adjusted = np.concatenate(
            [part.values["close"] if part.adj_close is None else part.adj_close for part in parts]
        )
    return _Part(
        file=np.concatenate([part.file for part in parts]),
        row=np.concatenate([part.row for part in parts]),
        names=names,
        symbol=np.concatenate(symbol),
        stamps=_all_stamps([part.stamps for part in parts]),
        # Taken out of the parts one by one: all fields twice would be most of the memory of a large import.
        values={field: np.concatenate([part.values.pop(field) for part in parts]) for field in FIELDS},
        adj_close=adjusted,
        halted=np.concatenate([part.halted for part in parts]),
        present=frozenset[Field]().union(*(part.present for part in parts)),
    )


def _all_stamps(parts: list[Stamps]) -> Stamps:
    spellings = sorted({spelling for part in parts for spelling in part.spelling.split(" and ")})
    local = np.concatenate([part.local for part in parts])
    if any(part.zoned.any() for part in parts):
        offset = np.concatenate([part.offset for part in parts])
        zoned = np.concatenate([part.zoned for part in parts])
    else:
        offset, zoned = same(0, local.size), same(False, local.size)
    good = np.concatenate([part.good for part in parts])
    return Stamps(local, offset, zoned, good, " and ".join(spellings))


def _summarised(maps: dict[str, ColumnMap]) -> dict[str, ColumnMap]:
    """Return one entry per distinct meaning, labelled with a file and how many more read the same way."""
    seen: dict[str, list[str]] = {}
    for label, columns in maps.items():
        seen.setdefault(str(columns), []).append(label)
    return {
        labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more": maps[labels[0]]
        for labels in seen.values()
    }


ZONES: dict[CalendarName, str] = {"XNYS": "America/New_York", "XSHG": "Asia/Shanghai", "24/7": "UTC"}
_HOURS: dict[CalendarName, tuple[int, int]] = {"XNYS": (570, 960), "XSHG": (570, 900), "24/7": (0, 1440)}
"""Usual opening and closing minute of the local day, for days the calendar does not know."""


@dataclass(frozen=True, slots=True)
class BarTiming:
    """Where rows lie in time. ``day`` is each row's session day; ``close_time`` its bar's end (intraday only)."""

    calendar: CalendarName
    timezone: str
    frequency: Frequency
    day: Days
    close_time: Ints | None
    minutes_per_bar: int
    stamps: Literal["start", "end"]


def timing(bars: LongBars, config: FilesConfig) -> tuple[BarTiming, list[DataFault]]:
    """Return where the rows lie in time, guessing what the configuration leaves open."""
    calendar = config.calendar or _guess_calendar(bars)
    zone = config.timezone or ZONES[calendar]
    _zone(zone)
    frequency = config.frequency or _guess_frequency(bars)
    if frequency == "1d":
        return BarTiming(calendar, zone, "1d", _session_days(bars, ZONES[calendar]), None, 1, "end"), []
    faults = _naive(bars, zone) if config.timezone is None else []
    instants = _instants(bars, zone)
    length = _bar_length(bars, instants)
    stamps = config.stamps or _guess_stamps(instants, length, calendar)
    close = instants + length * MINUTE if stamps == "start" else instants
    day = _local_days(close - 1, ZONES[calendar])
    return BarTiming(calendar, zone, "1m", day, close, length, stamps), faults


def session_times(calendar: CalendarName, days: Days) -> tuple[Ints, Ints]:
    """Return open and close instants of days; a day the calendar does not know gets the usual hours."""
    earliest, latest = known_range(calendar)
    opens, closes = _usual(calendar, days)
    known = days
    if earliest is not None:
        known = known[known >= np.datetime64(earliest)]
    if latest is not None:
        known = known[known <= np.datetime64(latest)]
    if known.size:
        found = sessions_between(calendar, str(known[0]), str(known[-1]))
        place = np.searchsorted(days, found.days)
        inside = place < days.size
        inside[inside] = days[place[inside]] == found.days[inside]
        opens[place[inside]], closes[place[inside]] = found.open_time[inside], found.close_time[inside]
    return opens, closes


def _usual(calendar: CalendarName, days: Days) -> tuple[Ints, Ints]:
    start, end = _HOURS[calendar]
    wall = days.astype(np.int64) * DAY
    return to_utc(wall + start * MINUTE, ZONES[calendar]), to_utc(wall + end * MINUTE, ZONES[calendar])


def _guess_calendar(bars: LongBars) -> CalendarName:
    codes = [ashare_code(symbol) is not None for symbol in bars.symbols]
    if codes and sum(codes) > len(codes) / 2:
        return "XSHG"
    days, _ = distinct_days((bars.stamps.local // DAY)[bars.stamps.good])
    weekend = (days + 3) % 7 >= 5  # the epoch was a Thursday
    return "24/7" if days.size and weekend.mean() > 0.2 else "XNYS"


def _guess_frequency(bars: LongBars) -> Frequency:
    # A thousand names show it as well as all of them.
    good = bars.stamps.good & (bars.symbol < 1000)
    symbol, local = bars.symbol[good], bars.stamps.local[good]
    order = np.lexsort((local, symbol))
    changed = np.diff(symbol[order]) != 0
    stamps = 1 + int((changed | (np.diff(local[order]) != 0)).sum())
    days = 1 + int((changed | (np.diff(local[order] // DAY) != 0)).sum())
    return "1m" if local.size and stamps > 1.5 * days else "1d"


def distinct_days(days: Ints) -> tuple[Ints, Int32s]:
    """Return the sorted distinct days (numbers since 1970), and the place of every given one among them."""
    if not days.size:
        return days, days.astype(np.int32)
    first, last = int(days.min()), int(days.max())
    if last - first > 1_000_000:  # a date that cannot be: sorting is slower and has no bounds
        found, place = np.unique(days, return_inverse=True)
        return found, place.reshape(-1).astype(np.int32)
    seen = np.zeros(last - first + 1, dtype=np.bool_)
    seen[days - first] = True
    lookup = (np.cumsum(seen) - 1).astype(np.int32)
    return np.flatnonzero(seen) + first, lookup[days - first]


def _session_days(bars: LongBars, zone: str) -> Days:
    stamps = bars.stamps
    day = stamps.local // DAY
    # A zoned stamp at midnight is a date, whatever its zone; at any other time of day it is an instant.
    moved = stamps.zoned & ~stamps.midnight
    if moved.any():
        day = day.copy()
        day[moved] = _local_days(stamps.local[moved] - stamps.offset[moved], zone).astype(np.int64)
    return day.view("datetime64[D]")


def _naive(bars: LongBars, zone: str) -> list[DataFault]:
    naive = bars.stamps.good & ~bars.stamps.zoned
    faults = []
    for number in np.unique(bars.file[naive]).tolist():
        rows = bars.row[naive & (bars.file == number)]
        faults.append(
            DataFault(
                check="time stamp without zone",
                file=bars.files[number],
                row=int(rows[0]),
                reason=f"{rows.size} time stamps have no time zone ({zone} would be assumed; "
                f"say so with -o timezone={zone})",
            )
        )
    return faults


def _instants(bars: LongBars, zone: str) -> Ints:
    stamps = bars.stamps
    utc: Ints = stamps.local - stamps.offset
    naive = stamps.good & ~stamps.zoned
    if naive.any():
        utc = utc.copy()
        utc[naive] = to_utc(stamps.local[naive], zone)
    return utc


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UserError(f"no time zone '{name}'", hint="write e.g. UTC or America/New_York") from error


def to_utc(wall: Ints, zone: str) -> Ints:
    """Return the instants of local wall times; the offset is looked up once per hour that occurs."""
    place = _zone(zone)
    hours, where = np.unique(wall // (60 * MINUTE), return_inverse=True)
    offsets = [_offset(datetime.fromtimestamp(int(hour) * 3600, UTC).replace(tzinfo=place)) for hour in hours]
    result: Ints = wall - np.array(offsets, dtype=np.int64)[where.reshape(-1)]
    return result


def to_local(instants: Ints, zone: str) -> Ints:
    """Return the local wall times of instants."""
    place = _zone(zone)
    hours, where = np.unique(instants // (60 * MINUTE), return_inverse=True)
    offsets = [_offset(datetime.fromtimestamp(int(hour) * 3600, UTC).astimezone(place)) for hour in hours]
    local: Ints = instants + np.array(offsets, dtype=np.int64)[where.reshape(-1)]
    return local


def _local_days(instants: Ints, zone: str) -> Days:
    return (to_local(instants, zone) // DAY).astype("datetime64[D]")


def _offset(moment: datetime) -> int:
    shift = moment.utcoffset() or timedelta(0)
    return (shift // timedelta(microseconds=1)) * 1000


def _bar_length(bars: LongBars, instants: Ints) -> int:
    order = np.lexsort((instants, bars.symbol))
    steps = np.diff(instants[order])[np.diff(bars.symbol[order]) == 0]
    steps = steps[steps > 0]
    if not steps.size:
        return 1
    values, counts = np.unique(steps, return_counts=True)
    return max(1, int(values[np.argmax(counts)] // MINUTE))


def _guess_stamps(instants: Ints, length: int, calendar: CalendarName) -> Literal["start", "end"]:
    if calendar == "24/7":
        return "start"
    days = np.unique(_local_days(instants, ZONES[calendar]))
    opens, closes = session_times(calendar, days)
    at_open, at_close = np.isin(instants, opens).sum(), np.isin(instants, closes).sum()
    return "end" if at_close > at_open else "start"
