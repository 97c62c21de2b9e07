"""From wall times to sessions: the calendar, the zone, and whether the files are daily or intraday."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.time import DAY, MINUTE
from tradeassay.core.view import Days, Frequency, Ints
from tradeassay.data.calendars import known_range, sessions_between
from tradeassay.data.fault import Fault
from tradeassay.data.files.bars import LongBars
from tradeassay.data.files.codes import ashare_code
from tradeassay.data.files.config import FilesConfig
from tradeassay.data.panel import CalendarName

ZONES: dict[CalendarName, str] = {"XNYS": "America/New_York", "XSHG": "Asia/Shanghai", "24/7": "UTC"}
_HOURS: dict[CalendarName, tuple[int, int]] = {"XNYS": (570, 960), "XSHG": (570, 900), "24/7": (0, 1440)}
"""Usual opening and closing minute of the local day, for days the calendar does not know."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Where rows lie in time. ``day`` is each row's session day; ``close_time`` its bar's end (intraday only)."""

    calendar: CalendarName
    timezone: str
    frequency: Frequency
    day: Days
    close_time: Ints | None
    minutes_per_bar: int
    stamps: Literal["start", "end"]


def timing(bars: LongBars, config: FilesConfig) -> tuple[Timing, list[Fault]]:
    """Return where the rows lie in time, guessing what the configuration leaves open."""
    calendar = config.calendar or _guess_calendar(bars)
    zone = config.timezone or ZONES[calendar]
    _zone(zone)
    frequency = config.frequency or _guess_frequency(bars)
    if frequency == "1d":
        return Timing(calendar, zone, "1d", _session_days(bars, ZONES[calendar]), None, 1, "end"), []
    faults = _naive(bars, zone) if config.timezone is None else []
    instants = _instants(bars, zone)
    length = _bar_length(bars, instants)
    stamps = config.stamps or _guess_stamps(instants, length, calendar)
    close = instants + length * MINUTE if stamps == "start" else instants
    day = _local_days(close - 1, ZONES[calendar])
    return Timing(calendar, zone, "1m", day, close, length, stamps), faults


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
    days = np.unique(bars.stamps.local[bars.stamps.good] // DAY)
    weekend = (days + 3) % 7 >= 5  # the epoch was a Thursday
    return "24/7" if days.size and weekend.mean() > 0.2 else "XNYS"


def _guess_frequency(bars: LongBars) -> Frequency:
    good = bars.stamps.good
    symbol, local = bars.symbol[good], bars.stamps.local[good]
    order = np.lexsort((local, symbol))
    changed = np.diff(symbol[order]) != 0
    stamps = 1 + int((changed | (np.diff(local[order]) != 0)).sum())
    days = 1 + int((changed | (np.diff(local[order] // DAY) != 0)).sum())
    return "1m" if local.size and stamps > 1.5 * days else "1d"


def _session_days(bars: LongBars, zone: str) -> Days:
    stamps = bars.stamps
    day = stamps.local // DAY
    # A zoned stamp at midnight is a date, wherever its zone; at another time of day it is an instant.
    moved = stamps.zoned & ~stamps.midnight
    if moved.any():
        day = day.copy()
        day[moved] = _local_days(stamps.local[moved] - stamps.offset[moved], zone).astype(np.int64)
    return day.astype("datetime64[D]")


def _naive(bars: LongBars, zone: str) -> list[Fault]:
    naive = bars.stamps.good & ~bars.stamps.zoned
    faults = []
    for number in np.unique(bars.file[naive]).tolist():
        rows = bars.row[naive & (bars.file == number)]
        faults.append(
            Fault(
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
        raise UserError(f"no time zone '{name}'", mend="write e.g. UTC or America/New_York") from error


def to_utc(wall: Ints, zone: str) -> Ints:
    """Return the instants of local wall times; the offset is looked up once per hour that occurs."""
    place = _zone(zone)
    hours, where = np.unique(wall // (60 * MINUTE), return_inverse=True)
    offsets = [_offset(datetime.fromtimestamp(int(hour) * 3600, UTC).replace(tzinfo=place)) for hour in hours]
    result: Ints = wall - np.array(offsets, dtype=np.int64)[where.reshape(-1)]
    return result


def _local_days(instants: Ints, zone: str) -> Days:
    place = _zone(zone)
    hours, where = np.unique(instants // (60 * MINUTE), return_inverse=True)
    offsets = [_offset(datetime.fromtimestamp(int(hour) * 3600, UTC).astimezone(place)) for hour in hours]
    local = instants + np.array(offsets, dtype=np.int64)[where.reshape(-1)]
    return (local // DAY).astype("datetime64[D]")


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
