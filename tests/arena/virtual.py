"""A wall clock that costs nothing: an event loop that jumps to the next timer instead of waiting
for it.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

from tradeassay_arena.clock import LiveClock
from tradeassay_bench.core.time import SECOND, Instant


class _Jumping(selectors.DefaultSelector):
    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None:
            return super().select(None)
        self._time.passed += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, time: VirtualTime) -> None:
        self._virtual = time
        super().__init__(_Jumping(time))
        # After 2^24 seconds a nanosecond is lost in a float, and a timer that is due would never be found due.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._virtual.passed


class VirtualTime:
    """A clock for a live season. ``jump`` moves it as an administrator would, forwards or back."""

    def __init__(self, start: Instant) -> None:
        self._start = start
        self.passed = 0.0

    def now(self) -> Instant:
        return self._start + round(self.passed * 1000) * (SECOND // 1000)

    def jump(self, seconds: float) -> None:
        self._start += int(seconds * SECOND)

    def clock(self) -> LiveClock:
        return LiveClock(self, asyncio.sleep, step_s=6 * 3600.0)

    def loop(self) -> asyncio.AbstractEventLoop:
        return _Loop(self)

    def run(self, doing: Any) -> Any:
        with asyncio.Runner(loop_factory=self.loop) as runner:
            return runner.run(doing)
