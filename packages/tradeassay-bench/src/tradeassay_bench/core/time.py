"""Instants. Inside the house a time is an integer: nanoseconds since 1970-01-01T00:00Z.

Integers compare and slice fast and cannot be tz-naive. At the edges they become aware datetimes.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Protocol, TypeVar

from tradeassay.core.errors import UserError

_T = TypeVar("_T")

Instant = int
"""Nanoseconds since the epoch, UTC."""

SECOND: Instant = 1_000_000_000
MINUTE: Instant = 60 * SECOND
HOUR: Instant = 60 * MINUTE
DAY: Instant = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(moment: datetime) -> Instant:
    """Return the instant of an aware datetime; raises :class:`UserError` for a naive one."""
    if moment.tzinfo is None:
        raise UserError(
            f"time stamp {moment.isoformat()} has no time zone", hint="add one, e.g. +00:00"
        )
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds * 1_000


def midnight(day: date) -> Instant:
    return (day - date(1970, 1, 1)).days * DAY


def moment(at: Instant) -> datetime:
    """Return the aware UTC datetime of an instant (microseconds are kept, nanoseconds are cut)."""
    return _EPOCH + timedelta(microseconds=at // 1_000)


def iso(at: Instant) -> str:
    """Return an instant as ``2025-03-03T14:30:00Z`` (fractions only when there are any)."""
    return moment(at).isoformat().replace("+00:00", "Z")


def parse_iso(text: str) -> Instant:
    """Read what :func:`iso` writes, or any ISO time stamp with a zone; raises :class:`UserError`."""
    try:
        return instant(datetime.fromisoformat(text))
    except ValueError as error:
        raise UserError(
            f"'{text}' is not an ISO time stamp", hint="write e.g. 2025-03-03T14:30:00Z"
        ) from error


def parse_day(text: str) -> date:
    """Read a calendar day ``YYYY-MM-DD``; raises :class:`UserError`."""
    try:
        found = date.fromisoformat(text)
        if (
            found.isoformat() != text
        ):  # 20250303 and 2025-W10-1 are days of ISO too, and sort among others wrongly
            raise ValueError(text)
        return found
    except (TypeError, ValueError) as error:
        raise UserError(f"'{text}' is not a date", hint="write e.g. 2025-03-03") from error


def day_text(given: date | _T) -> str | _T:
    """Return a day as :func:`parse_day` reads it; dates and time stamps of numpy and pandas are days too."""
    return given if given is None or isinstance(given, str) else str(given)[:10]


class Clock(Protocol):
    """The source of the present time. Injected, so that no test or backtest reads the wall clock."""

    def now(self) -> Instant:
        """Return the present."""


class FixedClock:
    """A clock that stands still until it is moved forward."""

    def __init__(self, at: Instant) -> None:
        self._at = at

    def now(self) -> Instant:
        return self._at

    def advance(self, to: Instant) -> None:
        """Move forward; raises :class:`UserError` when ``to`` is earlier than now."""
        if to < self._at:
            raise UserError(f"a clock cannot go back from {iso(self._at)} to {iso(to)}")
        self._at = to


class WallClock:
    """The machine's own clock, for live use only."""

    def now(self) -> Instant:
        return instant(datetime.now(UTC))


def retry_after_seconds(header: object, clock: Clock) -> float | None:
    """Read an HTTP ``Retry-After`` header (seconds or a date); None when it is absent or unreadable."""
    from email.utils import (
        parsedate_to_datetime,
    )  # loads a mail reader, which only a busy server makes us need

    text = "" if header is None else str(header).strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    return None if then.tzinfo is None else max(0.0, (instant(then) - clock.now()) / SECOND)
