"""Exchange sessions: the days a market is open and the instants at which it opens and closes.

The only place that knows ``exchange_calendars`` (and with it pandas); both are imported on use.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from importlib import import_module
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
_CLOSED: dict[CalendarName, str] = {
    "XNYS": """
    2021-01-01 2021-01-18 2021-02-15 2021-04-02 2021-05-31 2021-07-05 2021-09-06 2021-11-25 2021-12-24
    2022-01-17 2022-02-21 2022-04-15 2022-05-30 2022-06-20 2022-07-04 2022-09-05 2022-11-24 2022-12-26
    2023-01-02 2023-01-16 2023-02-20 2023-04-07 2023-05-29 2023-06-19 2023-07-04 2023-09-04 2023-11-23
    2023-12-25 2024-01-01 2024-01-15 2024-02-19 2024-03-29 2024-05-27 2024-06-19 2024-07-04 2024-09-02
    2024-11-28 2024-12-25
    """,
    "XSHG": """
    2021-01-01 2021-02-11 2021-02-12 2021-02-15 2021-02-16 2021-02-17 2021-04-05 2021-05-03 2021-05-04
    2021-05-05 2021-06-14 2021-09-20 2021-09-21 2021-10-01 2021-10-04 2021-10-05 2021-10-06 2021-10-07
    2022-01-03 2022-01-31 2022-02-01 2022-02-02 2022-02-03 2022-02-04 2022-04-04 2022-04-05 2022-05-02
    2022-05-03 2022-05-04 2022-06-03 2022-09-12 2022-10-03 2022-10-04 2022-10-05 2022-10-06 2022-10-07
    2023-01-02 2023-01-23 2023-01-24 2023-01-25 2023-01-26 2023-01-27 2023-04-05 2023-05-01 2023-05-02
    2023-05-03 2023-06-22 2023-06-23 2023-09-29 2023-10-02 2023-10-03 2023-10-04 2023-10-05 2023-10-06
    2024-01-01 2024-02-09 2024-02-12 2024-02-13 2024-02-14 2024-02-15 2024-02-16 2024-04-04 2024-04-05
    2024-05-01 2024-05-02 2024-05-03 2024-06-10 2024-09-16 2024-09-17 2024-10-01 2024-10-02 2024-10-03
    2024-10-04 2024-10-07
    """,
}
_EARLY = "2021-11-26 2022-11-25 2023-07-03 2023-11-24 2024-07-03 2024-11-29 2024-12-24"
"""Days on which New York closes at 13:00."""


def sessions_from(calendar: CalendarName, first: date, count: int) -> Sessions:
    """Return the first ``count`` sessions from ``first`` on; DataError where the exchange's holidays are not
    known."""
    # The A-share calendar, the one with most holidays, has 242 sessions in a year.
    last = first + timedelta(days=count if calendar == "24/7" else int(count * 1.53) + 25)
    inside = calendar in _CLOSED and first >= FIRST and last <= LAST
    found = _past(calendar, first, last) if inside else sessions_between(calendar, first, last)
    return found.part(0, count)


def _past(calendar: CalendarName, first: date, last: date) -> Sessions:
    days = np.arange(np.datetime64(first, "D"), np.datetime64(last, "D") + 1)
    days = days[np.is_busday(days, holidays=np.array(_CLOSED[calendar].split(), dtype="datetime64[D]"))]
    midnight = days.astype(np.int64) * DAY
    if calendar == "XSHG":
        none = np.zeros(days.size, dtype=np.bool_)
        return Sessions(calendar, days, midnight + 90 * MINUTE, midnight + 7 * HOUR, none)
    early = np.isin(days, np.array(_EARLY.split(), dtype="datetime64[D]"))
    # US summer time lasts from the second Sunday of March to the first of November.
    months = days.astype("datetime64[Y]").astype("datetime64[M]")
    start = np.busday_offset((months + 2).astype("datetime64[D]"), 1, roll="forward", weekmask="Sun")
    end = np.busday_offset((months + 10).astype("datetime64[D]"), 0, roll="forward", weekmask="Sun")
    new_york = midnight + np.where((days >= start) & (days < end), 4, 5) * HOUR
    closes = new_york + np.where(early, 13, 16) * HOUR
    return Sessions(calendar, days, new_york + 9 * HOUR + 30 * MINUTE, closes, early)
