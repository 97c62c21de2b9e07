"""The arena's clocks: the wall clock, and a replay at any speed. Functions take their clock as an
argument.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable

from tradeassay.core.errors import UserError
from tradeassay_bench.core.time import DAY, HOUR, MINUTE, SECOND, Clock, Instant, WallClock

Sleep = Callable[[float], Awaitable[None]]


def since_boot() -> float:
    """Return the seconds of a clock that nobody can set. Time asleep is included on systems that
    count it.
    """
    kind = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if kind is None else time.clock_gettime(kind)


BELIEVE_S = 300.0
"""How long a newly set time must last before it is believed, in seconds."""


class LiveClock:
    """The machine's clock, checked against a clock that cannot be set (``steady``, in seconds).

    If the two differ by more than two seconds, the old time continues until the new time has lasted
    for ``BELIEVE_S``. A clock that is wrong for a minute therefore loses nothing. For ``BELIEVE_S``
    after a start the time is not certain. The clock waits in short steps, so a machine that slept
    wakes up in time.
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
        """A warning that the clock was set and is not believed yet, or an empty text."""
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
    """A clock that jumps from event to event. It stands still between waits, so no session can be
    missed.

    ``speed`` is replayed time per real time (None: as fast as the machine can). The clock starts at
    the first instant that is waited for. After a restart that instant is the end of the stored
    rounds, so the position need not be stored.
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
        """Move to ``at`` and sleep according to the speed. The first wait never sleeps."""
        if at <= self._at:
            return
        if self._speed is not None and self._at > 0:
            await self._sleep((at - self._at) / SECOND / self._speed)
        self._at = at


ArenaClock = LiveClock | ReplayClock

_SPEED = re.compile(r"(\d+(?:\.\d+)?)(d|h|m|s)/(\d+(?:\.\d+)?)?(d|h|m|s)")
_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND}


def parse_speed(text: str) -> float | None:
    """Parse the speed of a replay. ``1d/2s`` is a day every two seconds. ``max`` is as fast as
    possible (None).

    Raises :class:`UserError` for any other form.
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
