"""Sessions of the years that the ready-made worlds cover, without loading a calendar library.

The past does not change: these are the closed weekdays and early closes of 2021 to 2024. A test keeps them equal
to ``exchange_calendars``; any other year comes from ``data.calendars``. This keeps pandas out of the demo's
first second, and worlds the same whatever version of the library is installed.
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from tradeassay.core.time import DAY, HOUR, MINUTE
from tradeassay.core.view import Bools, Days
from tradeassay.data.calendars import Sessions, sessions_between
from tradeassay.data.panel import CalendarName

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
    """Return the first ``count`` sessions from ``first`` on.

    Raises :class:`~tradeassay.core.errors.DataError` where the exchange's holidays are not known.
    """
    # The A-share calendar, the one with most holidays, has 242 sessions in a year.
    last = first + timedelta(days=count if calendar == "24/7" else int(count * 1.53) + 25)
    inside = calendar in _CLOSED and first >= FIRST and last <= LAST
    found = _past(calendar, first, last) if inside else sessions_between(calendar, first, last)
    return Sessions(
        calendar, found.days[:count], found.open_time[:count], found.close_time[:count], found.early[:count]
    )


def _past(calendar: CalendarName, first: date, last: date) -> Sessions:
    days = np.arange(np.datetime64(first, "D"), np.datetime64(last, "D") + 1)
    days = days[np.is_busday(days, holidays=np.array(_CLOSED[calendar].split(), dtype="datetime64[D]"))]
    midnight = days.astype(np.int64) * DAY
    if calendar == "XSHG":
        none = np.zeros(days.size, dtype=np.bool_)
        return Sessions(calendar, days, midnight + 90 * MINUTE, midnight + 7 * HOUR, none)
    early = np.isin(days, np.array(_EARLY.split(), dtype="datetime64[D]"))
    new_york = midnight + np.where(_summer(days), 4, 5) * HOUR
    closes = new_york + np.where(early, 13, 16) * HOUR
    return Sessions(calendar, days, new_york + 9 * HOUR + 30 * MINUTE, closes, early)


def _summer(days: Days) -> Bools:
    """Return which days are on US summer time: from the second Sunday of March to the first of November."""
    months = days.astype("datetime64[Y]").astype("datetime64[M]")
    start = np.busday_offset((months + 2).astype("datetime64[D]"), 1, roll="forward", weekmask="Sun")
    end = np.busday_offset((months + 10).astype("datetime64[D]"), 0, roll="forward", weekmask="Sun")
    result: Bools = (days >= start) & (days < end)
    return result
