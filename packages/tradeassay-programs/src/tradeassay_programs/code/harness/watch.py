"""Report changes that the program made to Backtrader, and later bars that it read.

The report is advice and not proof, because the code runs in the same process and could undo the
monitoring. The proof is the host's replay of the orders, which the code cannot reach, and the
look-ahead check. While a strategy runs, lines also use faster versions of some Backtrader methods,
with the same state after each call.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import backtrader as bt
from backtrader.indicator import Indicator
from backtrader.linebuffer import NAN, LineActions, LineBuffer
from backtrader.lineseries import Lines, LineSeries

from tradeassay_programs.code.harness.wire import FUTURE, PATCHED
from tradeassay_programs.sandbox.strategy import FILE


def advance(self: Any, size: int = 1) -> None:
    """Advance a line. A line with a bounded buffer computes its own position."""
    if self.mode:
        self.idx += size
    else:
        self._idx += size
    self.lencount += size


def forward(self: Any, value: float = NAN, size: int = 1) -> None:
    if self.mode:
        self.idx += size
    else:
        self._idx += size
    self.lencount += size
    if size == 1:
        self.array.append(value)
    else:
        self.array.extend([value] * size)


def next_of_action(self: Any) -> None:
    """Compute the next value of an operation on lines."""
    length = len(self._clock)
    if length > self.lencount:
        self.forward()
    period = self._minperiod
    if length > period:
        self.next()
    elif length == period:
        self.nextstart()
    else:
        self.prenext()


def advance_indicator(self: Any, size: int = 1) -> None:
    """Advance an indicator's lines unless the indicator has caught up with its clock."""
    lines = self.lines.lines
    if lines[0].lencount < len(self._clock):
        for line in lines:
            line.advance(size)


SHORTCUTS: Final[tuple[tuple[type, str, Any], ...]] = (
    (Lines, "__len__", lambda self: self.lines[0].lencount),
    (LineSeries, "__len__", lambda self: self.lines.lines[0].lencount),
    (LineBuffer, "advance", advance),
    (LineBuffer, "forward", forward),
    (LineActions, "_next", next_of_action),
    (Indicator, "advance", advance_indicator),
)


_MOST_READ = 20
_MOST = 20
_DEEP: Final = 3
"""Maximum number of Backtrader stack frames between the program and a line."""


_SEEN: Final[set[tuple[str, int]]] = set()
READ: Final[list[str]] = []
"""Texts that describe the program's reads of later bars."""


def watch_lines() -> None:
    """Monitor every line from now on, and install the faster methods of this module.

    Call it in the process from which all children are forked. A class that is changed after the
    fork must be looked up again in each child.
    """
    plain_get = LineBuffer.get

    def getitem(self: Any, ago: int) -> Any:
        if ago > 0:
            _tell(f"index [{ago}]", sys._getframe(1))
        return self.array[self._idx + ago]

    def get(self: Any, ago: int = 0, size: int = 1) -> Any:
        if ago > 0:
            _tell(f"get(ago={ago})", sys._getframe(1))
        return plain_get(self, ago, size)

    def calling(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, ago: Any = None, *line: int, **named: int) -> Any:
            if isinstance(ago, int) and ago > 0:
                _tell(f"line({ago})", sys._getframe(1))
            return plain(self, ago, *line, **named)

        return call

    watched = (
        (LineBuffer, "__getitem__", getitem),
        (LineBuffer, "get", get),
        (LineBuffer, "__call__", calling(LineBuffer.__call__)),
        (LineSeries, "__call__", calling(LineSeries.__call__)),
    )
    for owner, name, mine in (*watched, *SHORTCUTS):
        setattr(owner, name, mine)


def _tell(what: str, frame: FrameType | None) -> None:
    """Record a read of a later bar if the program itself made it.

    Backtrader reads the next date to advance, which is not recorded.
    """
    for _ in range(_DEEP):
        if frame is None:
            return
        if frame.f_code.co_filename == FILE:
            if (what, frame.f_lineno) not in _SEEN and len(_SEEN) < _MOST_READ:
                _SEEN.add((what, frame.f_lineno))
                READ.append(f"{FUTURE}{what} in line {frame.f_lineno}")
            return
        frame = frame.f_back


_PARTS: Final = tuple(
    "analyzer broker brokers.bbroker cerebro comminfo feed indicator linebuffer lineiterator "
    "lineroot "
    "lineseries metabase observer order position sizer sizers.fixedsize sizers.percents_sizer "
    "store strategy "
    "timer trade".split()
)


Print = Callable[[], str]
"""A function that returns the name of a Backtrader part if it has changed, else an empty string."""


def _unchanged(owner: Any, attribute: str, value: Any) -> Print:
    inner = _function(value)
    code, defaults = (None, None) if inner is None else (inner.__code__, inner.__defaults__)

    def changed() -> str:
        same = inner is None or (inner.__code__ is code and inner.__defaults__ is defaults)
        if same and vars(owner).get(attribute) is value:
            return ""
        return f"{owner.__name__ if owner is bt else _name(owner)}.{attribute}"

    return changed


def _not_grown(owner: type) -> Print:
    names = frozenset(vars(owner))

    def grown() -> str:
        more = [
            name for name, value in vars(owner).items() if name not in names and _is_code(value)
        ]
        return f"{_name(owner)}.{'/'.join(sorted(more))}" if more else ""

    return grown


def _is_code(value: Any) -> bool:
    return _function(value) is not None or isinstance(value, property)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def fingerprint() -> list[Print]:
    """Return a check for each part of Backtrader that a program may change."""
    names = [f"backtrader.{part}" for part in _PARTS]
    names += [name for name in sys.modules if name.startswith("backtrader.analyzers")]
    prints = [
        _unchanged(bt, label, value)
        for label, value in vars(bt).items()
        if inspect.isclass(value) and value.__module__.startswith("backtrader.")
    ]
    for module in filter(None, map(sys.modules.get, names)):
        for label, kind in vars(module).items():
            # Names with an underscore are classes that the framework generates for lines and
            # parameters.
            if inspect.isclass(kind) and kind.__module__ == module.__name__ and "_" not in label:
                parts = vars(kind).items()
                prints += [
                    _unchanged(kind, name, value) for name, value in parts if _is_code(value)
                ]
                prints.append(_not_grown(kind))
    return prints


def changes(prints: list[Print]) -> list[str]:
    return [f"{PATCHED}{name}" for changed in prints if (name := changed())][:_MOST]


def shadowed(*things: Any) -> list[str]:
    """Return the Backtrader methods that were replaced on a run's objects."""
    names = (
        (thing, name)
        for thing in things
        for name, value in list(vars(thing).items())
        if callable(value)
    )
    named = ((type(thing), name) for thing, name in names)
    found = [(kind, name) for kind, name in named if inspect.isroutine(getattr(kind, name, None))]
    return [f"{PATCHED}{kind.__name__}.{name} of this run" for kind, name in found][:_MOST]


def _function(value: Any) -> Any:
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    return value if hasattr(value, "__code__") else None
