"""Notes of later bars that code reads from the framework's lines. Advice: the look-ahead check is the judge.

A cerebro that has loaded its feeds holds all bars from the start, and an index above zero reaches the ones to
come. That stays possible, because it is so in everybody else's cerebro too; here it leaves a note.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Final

from backtrader.linebuffer import LineBuffer
from backtrader.lineseries import LineSeries

from tradeassay.code.backtrader.wire import FUTURE, PATCHED
from tradeassay.sandbox.strategy import FILE

_MOST: Final = 20
_DEEP: Final = 3
"""How many frames of the framework lie between the code and a line, at most."""


class LineWatch:
    """Watches every line while it is open, as a context manager; what it finds goes to ``notes``."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._seen: set[tuple[str, int]] = set()
        self._kept: list[tuple[type, str, Any, Any]] = []

    def __enter__(self) -> LineWatch:
        tell = self._tell
        plain_get, plain_call = LineBuffer.get, LineBuffer.__call__
        series_call = LineSeries.__call__

        def getitem(self: Any, ago: int) -> Any:
            if ago > 0:
                tell(f"index [{ago}]", sys._getframe(1))
            return self.array[self._idx + ago]

        def get(self: Any, ago: int = 0, size: int = 1) -> Any:
            if ago > 0:
                tell(f"get(ago={ago})", sys._getframe(1))
            return plain_get(self, ago, size)

        def call(self: Any, ago: Any = None) -> Any:
            if isinstance(ago, int) and ago > 0:
                tell(f"line({ago})", sys._getframe(1))
            return plain_call(self, ago)

        def call_series(self: Any, ago: Any = None, line: int = -1) -> Any:
            if isinstance(ago, int) and ago > 0:
                tell(f"line({ago})", sys._getframe(1))
            return series_call(self, ago, line)

        self._put(LineBuffer, "__getitem__", getitem)
        self._put(LineBuffer, "get", get)
        self._put(LineBuffer, "__call__", call)
        self._put(LineSeries, "__call__", call_series)
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, before, mine in self._kept:
            if owner.__dict__.get(name) is not mine:
                self._notes.append(f"{PATCHED}{owner.__module__}.{owner.__name__}.{name}")
            setattr(owner, name, before)

    def _put(self, owner: type, name: str, mine: Any) -> None:
        self._kept.append((owner, name, owner.__dict__[name], mine))
        setattr(owner, name, mine)

    def _tell(self, what: str, frame: FrameType | None) -> None:
        """Note what was read, if the code itself is behind it: the framework looks at the next date to move on."""
        for _ in range(_DEEP):
            if frame is None:
                return
            if frame.f_code.co_filename == FILE:
                if (what, frame.f_lineno) not in self._seen and len(self._seen) < _MOST:
                    self._seen.add((what, frame.f_lineno))
                    self._notes.append(f"{FUTURE}{what} in line {frame.f_lineno}")
                return
            frame = frame.f_back
