"""Represent instants as integers: nanoseconds since 1970-01-01T00:00Z.

Integers are fast to compare and slice, and always mean UTC. They are converted to aware datetimes
for input and output.
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
    """Return the instant of an aware datetime.

    Raises :class:`UserError` for a naive datetime.
    """
    if moment.tzinfo is None:
        raise UserError(
            f"timestamp {moment.isoformat()} has no time zone", hint="add one, e.g. +00:00"
        )
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds * 1_000


def midnight(day: date) -> Instant:
    """Return the instant of a day's midnight in UTC."""
    return (day - date(1970, 1, 1)).days * DAY


def moment(at: Instant) -> datetime:
    """Return the aware UTC datetime of an instant, truncated to microseconds."""
    return _EPOCH + timedelta(microseconds=at // 1_000)


def iso(at: Instant) -> str:
    """Return an instant as ``2025-03-03T14:30:00Z``, with a fraction only if it is not zero."""
    return moment(at).isoformat().replace("+00:00", "Z")


def parse_iso(text: str) -> Instant:
    """Return the instant of an ISO timestamp with a time zone, such as the output of :func:`iso`.

    Raises :class:`UserError` for any other text.
    """
    try:
        return instant(datetime.fromisoformat(text))
    except ValueError as error:
        raise UserError(
            f"'{text}' is not an ISO timestamp", hint="write e.g. 2025-03-03T14:30:00Z"
        ) from error


def parse_day(text: str) -> date:
    """Return the date of a text ``YYYY-MM-DD``.

    Raises :class:`UserError` for any other text.
    """
    try:
        found = date.fromisoformat(text)
        if (
            found.isoformat() != text
        ):  # 20250303 and 2025-W10-1 are valid ISO dates too, but sort incorrectly among other
            # dates.
            raise ValueError(text)
        return found
    except (TypeError, ValueError) as error:
        raise UserError(f"'{text}' is not a date", hint="write e.g. 2025-03-03") from error


def day_text(given: date | _T) -> str | _T:
    """Return a date as text for :func:`parse_day`. None and texts are returned unchanged.

    Timestamps of numpy and pandas are accepted as dates.
    """
    return given if given is None or isinstance(given, str) else str(given)[:10]


class Clock(Protocol):
    """A source of the current time, passed to functions so that no test reads the wall clock."""

    def now(self) -> Instant:
        """Return the current time."""


class FixedClock:
    """A clock that changes only when it is moved forward."""

    def __init__(self, at: Instant) -> None:
        self._at = at

    def now(self) -> Instant:
        return self._at

    def advance(self, to: Instant) -> None:
        """Move the clock forward.

        Raises :class:`UserError` if ``to`` is before the current time.
        """
        if to < self._at:
            raise UserError(f"a clock cannot move back from {iso(self._at)} to {iso(to)}")
        self._at = to


class WallClock:
    """The machine's clock, for live use only."""

    def now(self) -> Instant:
        return instant(datetime.now(UTC))


def retry_after_seconds(header: object, clock: Clock) -> float | None:
    """Return the delay of an HTTP ``Retry-After`` header (seconds or a date) in seconds.

    Return None if the header is absent or unreadable.
    """
    from email.utils import (
        parsedate_to_datetime,
    )  # imports an email parser, which only a busy server makes necessary

    text = "" if header is None else str(header).strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    return None if then.tzinfo is None else max(0.0, (instant(then) - clock.now()) / SECOND)
