"""Exchange sessions: the days a market is open and the instants at which it opens and closes.

The only place that knows ``exchange_calendars`` (and with it pandas); both are imported on use.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np

from tradeassay.core.errors import DataError, UserError
from tradeassay.core.time import DAY, HOUR, MINUTE, parse_day
from tradeassay.core.view import Bools, Days, Ints
from tradeassay.data.source import CalendarName

CALENDARS: tuple[CalendarName, ...] = ("XNYS", "XSHG", "24/7")


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of one market, oldest first. ``early`` marks days that close earlier than usual."""

    calendar: CalendarName
    days: Days
    open_time: Ints
    close_time: Ints
    early: Bools

    @property
    def first(self) -> str:
        return str(self.days[0])

    @property
    def last(self) -> str:
        return str(self.days[-1])

    def part(self, start: int, stop: int) -> Sessions:
        rows = slice(start, stop)
        return Sessions(
            self.calendar, self.days[rows], self.open_time[rows], self.close_time[rows], self.early[rows]
        )


def shared_rows(axis: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> tuple[Ints, Bools]:
    """Return the rows of a sorted axis whose values ``other`` has too, and which of ``other`` they are."""
    rows = np.searchsorted(axis, other)
    there = rows < axis.size
    there[there] = axis[rows[there]] == other[there]
    return rows[there], there


def sessions_between(calendar: CalendarName, first: str | date, last: str | date) -> Sessions:
    """Return the sessions from ``first`` to ``last``; ``24/7`` has one per UTC day. DataError where holidays are
    unknown."""
    start, end = (parse_day(day) if isinstance(day, str) else day for day in (first, last))
    if end < start:
        raise UserError(f"the last day {end} lies before the first day {start}", hint="exchange the two")
    if calendar == "24/7":
        days = np.arange(np.datetime64(start, "D"), np.datetime64(end, "D") + 1)
        opens = days.astype(np.int64) * DAY
        return Sessions("24/7", days, opens, opens + DAY, np.zeros(days.size, dtype=np.bool_))
    if calendar not in CALENDARS:
        raise UserError(f"no calendar '{calendar}'", hint=f"one of {', '.join(CALENDARS)}")
    earliest, latest = known_range(calendar)
    if (earliest is not None and str(start) < earliest) or (latest is not None and str(end) > latest):
        raise DataError(
            f"the holidays of {calendar} are known from {earliest or 'any day'} to {latest or 'any day'}, "
            f"not for all of {start} to {end}",
            hint="ask for fewer days, or install a newer exchange_calendars",
        )
    # The library takes as long for one year as for thirty, and most spans that are asked for lie in these.
    years = _exchange_years(calendar, min(start.year, 2000), max(end.year, 2029))
    low = np.searchsorted(years.days, np.datetime64(start, "D"))
    high = np.searchsorted(years.days, np.datetime64(end, "D"), side="right")
    return years.part(int(low), int(high))


@lru_cache(maxsize=16)
def _exchange_years(calendar: CalendarName, first_year: int, last_year: int) -> Sessions:
    # Whole years with explicit bounds: the library's default range ends a year after today and starts twenty
    # years before, so the same question would get different answers as time goes by.
    import exchange_calendars

    factory: Any = exchange_calendars
    low, high = f"{first_year}-01-01", f"{last_year}-12-31"
    earliest, latest = known_range(calendar)
    low, high = max(low, earliest or low), min(high, latest or high)
    with warnings.catch_warnings():
        # The library's own use of pandas, which its users can neither see nor change.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message=".*drops timezone information.*")
        found = factory.get_calendar(calendar, start=low, end=high)
    days = found.sessions.values.astype("datetime64[D]")
    opens = found.opens.dt.tz_localize(None).values.astype("datetime64[ns]").astype(np.int64)
    closes = found.closes.dt.tz_localize(None).values.astype("datetime64[ns]").astype(np.int64)
    early = np.isin(days, found.early_closes.values.astype("datetime64[D]"))
    return Sessions(calendar, days, opens, closes, early)


def known_range(calendar: CalendarName) -> tuple[str | None, str | None]:
    """Return the first and last ISO day for which a calendar's holidays are known (None = no bound)."""
    if calendar == "24/7":
        return None, None
    # The classes themselves: asking the library for a calendar would first work out its default range.
    module: Any = import_module(f"exchange_calendars.exchange_calendar_{calendar.lower()}")
    kind = getattr(module, f"{calendar}ExchangeCalendar")
    earliest, latest = kind.bound_min(), kind.bound_max()
    return (None if earliest is None else str(earliest.date()), None if latest is None else str(latest.date()))


FIRST, LAST = date(2021, 1, 1), date(2024, 12, 31)


@cache
def _closed() -> dict[str, Days]:
    """Return weekdays without a session by exchange; ``early`` are those on which New York closes at 13:00."""
    days: dict[str, list[str]] = json.loads((files(__package__) / "closed_days.json").read_bytes())
    return {name: np.array(some, dtype="datetime64[D]") for name, some in days.items()}


def sessions_from(calendar: CalendarName, first: date, count: int) -> Sessions:
    """Return the first ``count`` sessions from ``first`` on; DataError where the exchange's holidays are not
    known."""
    # The A-share calendar, the one with most holidays, has 242 sessions in a year.
    last = first + timedelta(days=count if calendar == "24/7" else int(count * 1.53) + 25)
    inside = calendar != "24/7" and first >= FIRST and last <= LAST
    found = _past(calendar, first, last) if inside else sessions_between(calendar, first, last)
    return found.part(0, count)


def _past(calendar: CalendarName, first: date, last: date) -> Sessions:
    days = np.arange(np.datetime64(first, "D"), np.datetime64(last, "D") + 1)
    days = days[np.is_busday(days, holidays=_closed()[calendar])]
    midnight = days.astype(np.int64) * DAY
    if calendar == "XSHG":
        none = np.zeros(days.size, dtype=np.bool_)
        return Sessions(calendar, days, midnight + 90 * MINUTE, midnight + 7 * HOUR, none)
    early = np.isin(days, _closed()["early"])
    # US summer time lasts from the second Sunday of March to the first of November.
    months = days.astype("datetime64[Y]").astype("datetime64[M]")
    start = np.busday_offset((months + 2).astype("datetime64[D]"), 1, roll="forward", weekmask="Sun")
    end = np.busday_offset((months + 10).astype("datetime64[D]"), 0, roll="forward", weekmask="Sun")
    new_york = midnight + np.where((days >= start) & (days < end), 4, 5) * HOUR
    closes = new_york + np.where(early, 13, 16) * HOUR
    return Sessions(calendar, days, new_york + 9 * HOUR + 30 * MINUTE, closes, early)
