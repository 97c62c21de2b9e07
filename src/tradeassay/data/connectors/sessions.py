"""The sessions a connector is asked for: those of a calendar that are over by now."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.time import Clock, Instant, iso, moment, parse_day
from tradeassay.data.calendars import Sessions, sessions_between
from tradeassay.data.panel import CalendarName, action_known_at


def sessions_asked(calendar: CalendarName, first: str, last: str | None, clock: Clock) -> Sessions:
    """Return the sessions from ``first`` to ``last`` (None = the last one that is over by now), never empty.

    Raises :class:`UserError` when there is none, or when ``last`` is not over yet: a bar that still moves
    would be stored as final.
    """
    now = clock.now()
    tomorrow = moment(now).date() + timedelta(days=1)
    end = parse_day(last) if last is not None else max(tomorrow, parse_day(first))
    found = sessions_between(calendar, first, end)
    over = int(np.searchsorted(found.close_time, now, side="right"))
    if last is not None and over < found.days.size:
        raise UserError(
            f"session {found.days[over]} of {calendar} is not over at {iso(now)}",
            mend=f"ask up to {found.days[over - 1]}" if over else "ask for days that are over",
        )
    if over == 0:
        raise UserError(
            f"{calendar} has no finished session from {first} to {last or 'now'}", mend="ask for other days"
        )
    return Sessions(
        calendar, found.days[:over], found.open_time[:over], found.close_time[:over], found.early[:over]
    )


def first_day(sessions: Sessions) -> str:
    """Return the first session's ISO day."""
    return str(sessions.days[0])


def last_day(sessions: Sessions) -> str:
    """Return the last session's ISO day."""
    return str(sessions.days[-1])


def action_time(sessions: Sessions, ex_date: str) -> Instant | None:
    """Return when an action of ``ex_date`` is known at the latest; None when it is outside the sessions.

    An ex-date without a session takes effect at the next one.
    """
    day = np.datetime64(ex_date, "D")
    if not sessions.days[0] <= day <= sessions.days[-1]:
        return None
    row = int(np.searchsorted(sessions.days, day))
    return action_known_at(int(sessions.open_time[row]))
