"""Compute exchange calendars: the sessions of a market with their opening and closing instants.

This is the only module that uses ``exchange_calendars``, which depends on pandas. Both are imported
on first use.
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

from tradeassay.core.arrays import Bools, Days, Ints
from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.core.time import DAY, HOUR, MINUTE, parse_day
from tradeassay_bench.data.source import CalendarName

CALENDARS: tuple[CalendarName, ...] = ("XNYS", "XSHG", "24/7")


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of one market, oldest first. ``early`` marks sessions with an early close."""

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
        """Return the sessions in rows ``start`` to ``stop`` - 1."""
        rows = slice(start, stop)
        return Sessions(
            self.calendar,
            self.days[rows],
            self.open_time[rows],
            self.close_time[rows],
            self.early[rows],
        )


def matching_rows(axis: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> tuple[Ints, Bools]:
    """Return rows of a sorted axis and a mask: the positions of the values of ``other``.

    The mask has one entry per value of ``other``, False if the axis does not contain the value.
    """
    rows = np.searchsorted(axis, other)
    matches = rows < axis.size
    matches[matches] = axis[rows[matches]] == other[matches]
    return rows[matches], matches


def sessions_between(calendar: CalendarName, first: str | date, last: str | date) -> Sessions:
    """Return the sessions from ``first`` to ``last``, both inclusive.

    The calendar ``24/7`` has one session per UTC day. Raises :class:`UserError` for an unknown
    calendar, and :class:`DataError` for days on which the calendar's holidays are unknown.
    """
    start = parse_day(first) if isinstance(first, str) else first
    end = parse_day(last) if isinstance(last, str) else last
    if end < start:
        raise UserError(f"the last day {end} is before the first day {start}", hint="swap the two")
    if calendar == "24/7":
        days = np.arange(np.datetime64(start, "D"), np.datetime64(end, "D") + 1)
        opens = days.astype(np.int64) * DAY
        return Sessions("24/7", days, opens, opens + DAY, np.zeros(days.size, dtype=np.bool_))
    if calendar not in CALENDARS:
        raise UserError(f"unknown calendar '{calendar}'", hint=f"one of {', '.join(CALENDARS)}")
    earliest, latest = known_range(calendar)
    if (earliest is not None and str(start) < earliest) or (
        latest is not None and str(end) > latest
    ):
        raise DataError(
            f"the holidays of {calendar} are known from {earliest or 'any day'} to "
            f"{latest or 'any day'}, "
            f"not for all of {start} to {end}",
            hint="request fewer days, or install a newer exchange_calendars",
        )
    # The library takes as long for one year as for thirty. Most requests fall within these years,
    # so they share one cached range.
    years = _exchange_years(calendar, min(start.year, 2000), max(end.year, 2029))
    low = np.searchsorted(years.days, np.datetime64(start, "D"))
    high = np.searchsorted(years.days, np.datetime64(end, "D"), side="right")
    return years.part(int(low), int(high))


@lru_cache(maxsize=16)
def _exchange_years(calendar: CalendarName, first_year: int, last_year: int) -> Sessions:
    """Return the sessions of whole years, computed by ``exchange_calendars``."""
    # Whole years with explicit bounds. The library's default range depends on today's date, so the
    # result of a request would change over time.
    import exchange_calendars

    factory: Any = exchange_calendars
    low, high = f"{first_year}-01-01", f"{last_year}-12-31"
    earliest, latest = known_range(calendar)
    low, high = max(low, earliest or low), min(high, latest or high)
    with warnings.catch_warnings():
        # These warnings concern the library's own use of pandas. Our users cannot act on them.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message=".*drops timezone information.*")
        exchange = factory.get_calendar(calendar, start=low, end=high)
    days = exchange.sessions.values.astype("datetime64[D]")
    opens = exchange.opens.dt.tz_localize(None).values.astype("datetime64[ns]").astype(np.int64)
    closes = exchange.closes.dt.tz_localize(None).values.astype("datetime64[ns]").astype(np.int64)
    early = np.isin(days, exchange.early_closes.values.astype("datetime64[D]"))
    return Sessions(calendar, days, opens, closes, early)


def known_range(calendar: CalendarName) -> tuple[str | None, str | None]:
    """Return the first and last ISO day for which a calendar's holidays are known.

    A bound is None if the calendar has no limit in that direction.
    """
    if calendar == "24/7":
        return None, None
    # Read the bounds from the class. Creating a calendar would first compute its default range.
    module: Any = import_module(f"exchange_calendars.exchange_calendar_{calendar.lower()}")
    kind = getattr(module, f"{calendar}ExchangeCalendar")
    earliest, latest = kind.bound_min(), kind.bound_max()
    return (
        None if earliest is None else str(earliest.date()),
        None if latest is None else str(latest.date()),
    )


FIRST, LAST = date(2021, 1, 1), date(2024, 12, 31)
"""First and last day of ``closed_days.json``. Within them ``exchange_calendars`` is not needed."""


@cache
def _closed_days() -> dict[str, Days]:
    """Return the weekdays without a session by exchange.

    The key ``early`` maps to the days on which New York closes at 13:00.
    """
    closed: dict[str, list[str]] = json.loads(
        (files(__package__) / "closed_days.json").read_bytes()
    )
    return {name: np.array(days, dtype="datetime64[D]") for name, days in closed.items()}


def sessions_from(calendar: CalendarName, first: date, count: int) -> Sessions:
    """Return the first ``count`` sessions on or after ``first``.

    Raises :class:`DataError` if the exchange's holidays are unknown in that period.
    """
    # The A-share calendar has the most holidays, and still 242 sessions per year.
    last = first + timedelta(days=count if calendar == "24/7" else int(count * 1.53) + 25)
    if calendar != "24/7" and first >= FIRST and last <= LAST:
        return shipped_sessions(calendar, first, last).part(0, count)
    return sessions_between(calendar, first, last).part(0, count)


def shipped_sessions(calendar: CalendarName, first: date, last: date) -> Sessions:
    """Return sessions computed from the packaged list of closed days."""
    days = np.arange(np.datetime64(first, "D"), np.datetime64(last, "D") + 1)
    days = days[np.is_busday(days, holidays=_closed_days()[calendar])]
    midnight = days.astype(np.int64) * DAY
    if calendar == "XSHG":
        none = np.zeros(days.size, dtype=np.bool_)
        return Sessions(calendar, days, midnight + 90 * MINUTE, midnight + 7 * HOUR, none)
    early = np.isin(days, _closed_days()["early"])
    # US summer time lasts from the second Sunday of March to the first Sunday of November.
    months = days.astype("datetime64[Y]").astype("datetime64[M]")
    start = np.busday_offset(
        (months + 2).astype("datetime64[D]"), 1, roll="forward", weekmask="Sun"
    )
    end = np.busday_offset((months + 10).astype("datetime64[D]"), 0, roll="forward", weekmask="Sun")
    new_york = midnight + np.where((days >= start) & (days < end), 4, 5) * HOUR
    closes = new_york + np.where(early, 13, 16) * HOUR
    return Sessions(calendar, days, new_york + 9 * HOUR + 30 * MINUTE, closes, early)
