"""What the framework does on every bar for every line, in fewer calls: the same state after each of them.

A line's length is asked for through three objects, its place is moved through a property, and room for a whole run
is made value by value. These forms stand in the framework's classes while a strategy runs, and only then.
"""

from __future__ import annotations

from typing import Any, Final

from backtrader.indicator import Indicator
from backtrader.linebuffer import NAN, LineBuffer
from backtrader.lineseries import Lines, LineSeries


def length_of_lines(self: Any) -> int:
    length: int = self.lines[0].lencount
    return length


def length_of_series(self: Any) -> int:
    length: int = self.lines.lines[0].lencount
    return length


def advance(self: Any, size: int = 1) -> None:
    """Move a line on. A line with a bounded buffer decides itself where it then is."""
    if self.mode:
        self.idx += size
    else:
        self._idx += size
    self.lencount += size


def forward(self: Any, value: float = NAN, size: int = 1) -> None:
    advance(self, size)
    if size == 1:
        self.array.append(value)
    else:
        self.array.extend([value] * size)


def advance_indicator(self: Any, size: int = 1) -> None:
    """Move an indicator's lines on, unless it is as far as its clock."""
    lines = self.lines.lines
    if lines[0].lencount < len(self._clock):
        for line in lines:
            line.advance(size)


SHORTCUTS: Final[tuple[tuple[type, str, Any], ...]] = (
    (Lines, "__len__", length_of_lines),
    (LineSeries, "__len__", length_of_series),
    (LineBuffer, "advance", advance),
    (LineBuffer, "forward", forward),
    (Indicator, "advance", advance_indicator),
)
