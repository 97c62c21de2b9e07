"""When the bars of a synthetic market open: weekdays and sessions for exchanges, every minute for crypto.

A bar's time is the instant at which it opens, in the exchange's own clock without a zone (UTC for crypto); a daily
bar has the midnight of its day. A bar is known when the next one opens.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.task import Timeframe

Clock = Literal["exchange", "futures", "always"]
Times = NDArray[np.datetime64]

MINUTES: Final[dict[Timeframe, int]] = {"1d": 1440, "1h": 60, "15m": 15, "5m": 5, "1m": 1}
"""Minutes from one bar's open to the next one's."""

OPEN_MINUTE: Final[dict[Clock, int]] = {"exchange": 570, "futures": 1080, "always": 0}
"""When a session opens: 09:30, 18:00 of the evening before, 00:00."""

SESSION_MINUTES: Final[dict[Clock, int]] = {"exchange": 390, "futures": 1380, "always": 1440}

_FIRST: Final[dict[bool, dict[Clock, str]]] = {
    True: {"exchange": "2016-01-04", "futures": "2016-01-04", "always": "2018-01-01"},
    False: {"exchange": "2023-01-03", "futures": "2023-01-03", "always": "2023-01-01"},
}
"""The first session of daily and of intraday bars."""


def bar_times(clock: Clock, timeframe: Timeframe, bars: int) -> Times:
    """Return the opening instants of the first ``bars`` bars."""
    per_session = bars_per_session(clock, timeframe)
    days = _sessions(clock, _FIRST[timeframe == "1d"][clock], -(-bars // per_session))
    if timeframe == "1d":
        return days[:bars].astype("M8[ns]")
    start = days.astype("M8[m]") + OPEN_MINUTE[clock]
    if clock == "futures":
        start -= 1440
    within = np.arange(per_session) * MINUTES[timeframe]
    times: Times = (start[:, None] + within).ravel()[:bars].astype("M8[ns]")
    return times


def bars_per_session(clock: Clock, timeframe: Timeframe) -> int:
    """Return how many bars one session has; the last one is shorter where a session is no multiple of it."""
    return 1 if timeframe == "1d" else -(-SESSION_MINUTES[clock] // MINUTES[timeframe])


def session_days(clock: Clock, times: Times) -> NDArray[np.datetime64]:
    """Return the session (its day) of every time; an evening of futures belongs to the next day's session."""
    shift = 1440 - OPEN_MINUTE["futures"] if clock == "futures" else 0
    days: NDArray[np.datetime64] = (times + np.timedelta64(shift, "m")).astype("M8[D]")
    return days


def _sessions(clock: Clock, first: str, count: int) -> NDArray[np.datetime64]:
    start = np.datetime64(first, "D")
    if clock == "always":
        return start + np.arange(count)
    years = range(start.astype(object).year, start.astype(object).year + count // 240 + 2)
    free = np.array([day for year in years for day in _holidays(year)], dtype="M8[D]")
    offsets = np.arange(count)
    days: NDArray[np.datetime64] = np.busday_offset(start, offsets, roll="forward", holidays=free)
    return days


@lru_cache(maxsize=256)
def _holidays(year: int) -> tuple[date, ...]:
    """Return the weekdays of a year on which a US-like exchange is closed."""
    fixed = [date(year, 1, 1), date(year, 6, 19), date(year, 7, 4), date(year, 12, 25)]
    moved = [day + timedelta({5: -1, 6: 1}.get(day.weekday(), 0)) for day in fixed]
    return (
        *moved,
        _weekday(year, 1, 0, 3),
        _weekday(year, 2, 0, 3),
        _weekday(year, 6, 0, 1) - timedelta(7),
        _weekday(year, 9, 0, 1),
        _weekday(year, 11, 3, 4),
    )


def _weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """Return the ``nth`` weekday (Monday 0) of a month."""
    first = date(year, month, 1)
    return first + timedelta((weekday - first.weekday()) % 7 + 7 * (nth - 1))
