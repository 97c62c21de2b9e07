"""What the child can say about the code it ran: parts of the framework it changed, future bars it read.

Advice, not proof: the code runs in the same process and could undo all of it. The proof is the host's own replay
of the orders and the look-ahead check, which the code cannot reach.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import backtrader as bt
from backtrader.linebuffer import LineBuffer
from backtrader.lineseries import LineSeries

from tradeassay.codegen.backtrader.wire import FUTURE, PATCHED
from tradeassay.sandbox.strategy import FILE

_MOST: Final = 20
_PARTS: Final = (
    "analyzer", "broker", "brokers.bbroker", "cerebro", "comminfo", "feed", "indicator", "linebuffer",
    "lineiterator", "lineroot", "lineseries", "metabase", "observer", "order", "position", "sizer",
    "sizers.fixedsize", "sizers.percents_sizer", "store", "strategy", "timer", "trade",
)  # fmt: skip
_ANALYSERS: Final = "analyzers"

Prints = dict[str, tuple[Any, ...]]


def fingerprint() -> Prints:
    """Return what every function of the framework's moving parts is made of, by dotted name."""
    found: Prints = {}
    modules = [f"backtrader.{part}" for part in _PARTS]
    modules += [name for name in sys.modules if name.startswith(f"backtrader.{_ANALYSERS}")]
    for name in modules:
        module = sys.modules.get(name)
        for label, kind in list(vars(module).items()) if module is not None else []:
            if inspect.isclass(kind) and kind.__module__ == name:
                for attribute, value in list(vars(kind).items()):
                    made = _made_of(value)
                    if made is not None:
                        found[f"{name}.{label}.{attribute}"] = made
    for label, value in list(vars(bt).items()):
        if inspect.isclass(value) and value.__module__.startswith("backtrader."):
            found[f"backtrader.{label}"] = (value,)
    return found


def changes(before: Prints, after: Prints) -> list[str]:
    """Return the notes about what was changed, added to a class in place of another, or taken away."""
    return [f"{PATCHED}{name}" for name in sorted(before) if before[name] != after.get(name)][:_MOST]


def shadowed(*things: Any) -> list[str]:
    """Return the notes about methods that were replaced on a single object."""
    found = []
    for thing in things:
        for name, value in list(vars(thing).items()):
            if callable(value) and inspect.isroutine(getattr(type(thing), name, None)):
                found.append(f"{PATCHED}{type(thing).__mro__[1].__name__}.{name} of this run")
    return found[:_MOST]


@contextmanager
def watch_lines(notes: list[str]) -> Iterator[None]:
    """Note reads of later bars by the code itself while this is open: ``[1]``, ``get(ago=1)``, ``line(1)``."""
    kept = {name: LineBuffer.__dict__[name] for name in ("__getitem__", "get", "__call__")}
    series_call = LineSeries.__dict__["__call__"]
    seen: set[tuple[str, int]] = set()

    def tell(what: str) -> None:
        frame = sys._getframe(2)
        for _ in range(3):
            if frame.f_code.co_filename == FILE:
                if (what, frame.f_lineno) not in seen and len(seen) < _MOST:
                    seen.add((what, frame.f_lineno))
                    notes.append(f"{FUTURE}{what} in line {frame.f_lineno}")
                return
            if frame.f_back is None:
                return
            frame = frame.f_back

    def getitem(self: Any, ago: int) -> Any:
        if ago > 0:
            tell(f"index [{ago}]")
        return self.array[self._idx + ago]

    def get(self: Any, ago: int = 0, size: int = 1) -> Any:
        if ago > 0:
            tell(f"get(ago={ago})")
        return kept["get"](self, ago, size)

    def call(self: Any, ago: Any = None) -> Any:
        if isinstance(ago, int) and ago > 0:
            tell(f"line({ago})")
        return kept["__call__"](self, ago)

    def call_series(self: Any, ago: Any = None, line: int = -1) -> Any:
        if isinstance(ago, int) and ago > 0:
            tell(f"line({ago})")
        return series_call(self, ago, line)

    LineBuffer.__getitem__, LineBuffer.get, LineBuffer.__call__ = getitem, get, call
    LineSeries.__call__ = call_series
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(LineBuffer, name, value)
        LineSeries.__call__ = series_call


def _made_of(value: Any) -> tuple[Any, ...] | None:
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    if isinstance(value, property):
        return (value, value.fget, value.fset)
    code = getattr(value, "__code__", None)
    return None if code is None else (value, code, value.__defaults__)
