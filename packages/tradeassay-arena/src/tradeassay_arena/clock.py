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
    """Return seconds of a clock that cannot be set. Sleep of the machine counts where the system
    counts it.
    """
    kind = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if kind is None else time.clock_gettime(kind)


BELIEVE_S = 300.0
"""How long a newly set time must stand before it is believed, in seconds."""


class LiveClock:
    """The machine's clock, checked against a clock that cannot be set (``steady``, in seconds).

    If the two differ by more than two seconds, the old time goes on until the new time has stood
    for ``BELIEVE_S``. So a clock that is wrong for a minute loses nothing. After a start nothing is
    certain for as long. The clock waits in short steps, so that a machine that slept wakes up in
    time.
    """

    live = True
    """Time passes by itself, so that a session can be missed."""

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
        """Whether the time is certain enough to give something up as late."""
        return not self.jumped and self._steady() - self._since >= self._believe_s

    @property
    def jumped(self) -> str:
        """A sentence on a clock that was set and is not believed yet; otherwise empty."""
        self.now()
        if self._other is None:
            return ""
        by = (self._other - self._offset) / SECOND
        return f"the machine's clock was set by {by:+,.0f} s: believed once that has stood {self._believe_s:g} s"

    async def wait_until(self, at: Instant) -> None:
        """Wait until ``at``."""
        while (left := at - self.now()) > 0:
            await self._sleep(min(left / SECOND, self._step_s))


class ReplayClock:
    """A clock that jumps from event to event. It stands still between waits, so nothing can be
    missed.

    ``speed`` is replayed time per real time (None: as fast as the machine can). The clock starts at
    the first instant that is waited for. After a restart that is where the stored rounds end, so
    the position need not be stored.
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
        """Move to ``at`` and sleep as long as the speed says. The first wait never sleeps."""
        if at <= self._at:
            return
        if self._speed is not None and self._at > 0:
            await self._sleep((at - self._at) / SECOND / self._speed)
        self._at = at


ArenaClock = LiveClock | ReplayClock

_SPEED = re.compile(r"(\d+(?:\.\d+)?)(d|h|m|s)/(\d+(?:\.\d+)?)?(d|h|m|s)")
_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND}


def parse_speed(text: str) -> float | None:
    """Read the speed of a replay: ``1d/2s`` is a day every two seconds, ``max`` as fast as possible
    (None).

    Raises :class:`UserError` for another form.
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
