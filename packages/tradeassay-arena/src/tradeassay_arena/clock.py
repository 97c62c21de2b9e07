"""Provide the arena's clocks: the wall clock, and a replay at any speed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable

from tradeassay.core.errors import UserError
from tradeassay_bench.core.time import DAY, HOUR, MINUTE, SECOND, Clock, Instant, WallClock

Sleep = Callable[[float], Awaitable[None]]


def since_boot() -> float:
    """Return the seconds since the machine started, from a clock that cannot be set.

    Time in which the machine slept is included on systems that count it.
    """
    kind = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if kind is None else time.clock_gettime(kind)


BELIEVE_S = 300.0
"""Time in seconds that a newly set time must last before it is used."""


class LiveClock:
    """The machine's clock, checked against ``steady``, a clock in seconds that cannot be set.

    If the two clocks differ by more than two seconds, the old time continues until the new time has
    lasted for ``BELIEVE_S``. No session is lost if the clock is wrong for a minute. For
    ``BELIEVE_S`` after a start, the time is not certain. The clock waits in short steps, so a
    machine that slept continues in time.
    """

    live = True
    """Whether time passes by itself, so that sessions can be missed."""

    def __init__(
        self,
        wall: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        *,
        step_s: float = 30.0,
        steady: Callable[[], float] | None = None,
    ) -> None:
        self._wall = wall or WallClock()
        # A given clock without a second one is trusted.
        self._steady = steady or (since_boot if wall is None else lambda: self._wall.now() / SECOND)
        self._believe_s = BELIEVE_S if steady is not None or wall is None else 0.0
        self._sleep = sleep
        self._step_s = step_s
        told, self._since = self._wall.now(), self._steady()
        self._offset = told - int(self._since * SECOND)
        self._other: Instant | None = None

    def now(self) -> Instant:
        told, passed = self._wall.now(), self._steady()
        offset = told - int(passed * SECOND)
        if abs(offset - self._offset) <= 2 * SECOND:
            self._offset, self._other = offset, None  # time services adjust a clock in small steps
            return told
        if self._other is None or abs(offset - self._other) > 2 * SECOND:
            self._other, self._since = offset, passed
        elif passed - self._since >= self._believe_s:
            self._offset, self._other = offset, None
            return told
        return self._offset + int(passed * SECOND)

    @property
    def certain(self) -> bool:
        """Whether the time is certain enough to declare a session late."""
        return not self.jumped and self._steady() - self._since >= self._believe_s

    @property
    def jumped(self) -> str:
        """A warning that the clock was set and the new time is not used yet, or an empty text."""
        self.now()
        if self._other is None:
            return ""
        by = (self._other - self._offset) / SECOND
        return (
            f"the machine's clock was set by {by:+,.0f} s: the new time is used after "
            f"{self._believe_s:g} s"
        )

    async def wait_until(self, at: Instant) -> None:
        """Wait until ``at``."""
        while (left := at - self.now()) > 0:
            await self._sleep(min(left / SECOND, self._step_s))


class ReplayClock:
    """A clock that moves from event to event and stands still between waits.

    No session can be missed. ``speed`` is replayed time per real time, or None for no pauses. The
    clock starts at the first instant that is waited for. After a restart this instant follows the
    stored rounds, so the clock's time need not be stored.
    """

    live = False
    certain = True
    jumped = ""

    def __init__(self, speed: float | None = None, sleep: Sleep = asyncio.sleep) -> None:
        self._at: Instant = 0
        self._speed = speed
        self._sleep = sleep

    def now(self) -> Instant:
        return self._at

    async def wait_until(self, at: Instant) -> None:
        """Move the clock to ``at``, and sleep according to the speed.

        The first wait never sleeps.
        """
        if at <= self._at:
            return
        if self._speed is not None and self._at > 0:
            await self._sleep((at - self._at) / SECOND / self._speed)
        self._at = at


ArenaClock = LiveClock | ReplayClock

_SPEED = re.compile(r"(\d+(?:\.\d+)?)(d|h|m|s)/(\d+(?:\.\d+)?)?(d|h|m|s)")
_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND}


def parse_speed(text: str) -> float | None:
    """Return the speed of a replay, as replayed time per real time.

    ``1d/2s`` is a day every two seconds. ``max`` is no pauses (None). Raises :class:`UserError` for
    any other form.
    """
    if text == "max":
        return None
    found = _SPEED.fullmatch(text.strip())
    if found is None:
        raise UserError(
            f"'{text}' is not a speed", hint="write 1d/2s (a day every two seconds), 6h/s, or max"
        )
    shown = float(found[1]) * _UNITS[found[2]]
    real = float(found[3] or 1) * _UNITS[found[4]]
    if not (shown > 0 and real > 0):
        raise UserError(f"'{text}' is not a valid speed", hint="give numbers above 0 on both sides")
    return shown / real
