"""Exchange sessions: the days a market is open and the instants at which it opens and closes.

The only place that knows ``exchange_calendars`` (and with it pandas); both are imported on use.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from tradeassay.core.errors import DataError, UserError
from tradeassay.core.time import DAY, parse_day
from tradeassay.core.view import Bools, Days, Ints
from tradeassay.data.panel import CalendarName

CALENDARS: tuple[CalendarName, ...] = ("XNYS", "XSHG", "24/7")


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of one market, oldest first. ``early`` marks days that close earlier than usual."""

    calendar: CalendarName
    days: Days
    open_time: Ints
    close_time: Ints
    early: Bools


def sessions_between(calendar: CalendarName, first: str | date, last: str | date) -> Sessions:
    """Return the sessions from ``first`` to ``last``, both included.

    ``24/7`` has a session per UTC day that closes at the instant the next one opens. Raises :class:`UserError`
    for an unknown calendar or reversed days, and :class:`DataError` where the exchange's holidays are not known.
    """
    start, end = _day(first), _day(last)
    if end < start:
        raise UserError(f"the last day {end} lies before the first day {start}", hint="exchange the two")
    if calendar == "24/7":
        return _around_the_clock(start, end)
    if calendar not in CALENDARS:
        raise UserError(f"no calendar '{calendar}'", hint=f"one of {', '.join(CALENDARS)}")
    earliest, latest = known_range(calendar)
    if (earliest is not None and str(start) < earliest) or (latest is not None and str(end) > latest):
        raise DataError(
            f"the holidays of {calendar} are known from {earliest or 'any day'} to {latest or 'any day'}, "
            f"not for all of {start} to {end}",
            hint="ask for fewer days, or install a newer exchange_calendars",
        )
    years = _exchange_years(calendar, start.year, end.year)
    low = np.searchsorted(years.days, np.datetime64(start, "D"))
    high = np.searchsorted(years.days, np.datetime64(end, "D"), side="right")
    return Sessions(
        calendar,
        years.days[low:high],
        years.open_time[low:high],
        years.close_time[low:high],
        years.early[low:high],
    )


def _day(value: str | date) -> date:
    return parse_day(value) if isinstance(value, str) else value


def _around_the_clock(start: date, end: date) -> Sessions:
    days = np.arange(np.datetime64(start, "D"), np.datetime64(end, "D") + 1)
    opens = days.astype(np.int64) * DAY
    return Sessions("24/7", days, opens, opens + DAY, np.zeros(days.size, dtype=np.bool_))


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
