"""What the child can say about the code it ran: parts of the framework it changed.

Advice, not proof: the code runs in the same process and could undo all of it. The proof is the host's own replay
of the orders, which the code cannot reach.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Final, NamedTuple

import backtrader as bt

from tradeassay.code.backtrader.wire import PATCHED

_MOST: Final = 20
_PARTS: Final = (
    "analyzer", "broker", "brokers.bbroker", "cerebro", "comminfo", "feed", "indicator", "linebuffer",
    "lineiterator", "lineroot", "lineseries", "metabase", "observer", "order", "position", "sizer",
    "sizers.fixedsize", "sizers.percents_sizer", "store", "strategy", "timer", "trade",
)  # fmt: skip


class Print(NamedTuple):
    """One function (or class) of the framework: where it hangs and what it is made of."""

    owner: Any
    attribute: str
    value: Any
    code: Any
    defaults: Any

    @property
    def changed(self) -> bool:
        """Whether it is another one by now, or made of something else."""
        if vars(self.owner).get(self.attribute) is not self.value:
            return True
        inner = _function(self.value)
        return inner is not None and (inner.__code__ is not self.code or inner.__defaults__ is not self.defaults)

    @property
    def name(self) -> str:
        """Its dotted name."""
        if inspect.ismodule(self.owner):
            return f"{self.owner.__name__}.{self.attribute}"
        return f"{self.owner.__module__}.{self.owner.__qualname__}.{self.attribute}"


class Members(NamedTuple):
    """A class of the framework and the names it had."""

    owner: type
    names: frozenset[str]

    @property
    def changed(self) -> bool:
        """Whether a function was added to it, which hides the one of its base."""
        return bool(self._added())

    @property
    def name(self) -> str:
        """The dotted name of what was added."""
        return f"{self.owner.__module__}.{self.owner.__qualname__}.{'/'.join(sorted(self._added()))}"

    def _added(self) -> list[str]:
        own = vars(self.owner)
        return [
            name for name in own.keys() - self.names if _function(own[name]) or isinstance(own[name], property)
        ]


def fingerprint() -> list[Print | Members]:
    """Return what every function of the framework's moving parts is made of."""
    names = [f"backtrader.{part}" for part in _PARTS]
    names += [name for name in sys.modules if name.startswith("backtrader.analyzers")]
    prints: list[Print | Members] = [
        Print(bt, label, value, None, None)
        for label, value in vars(bt).items()
        if inspect.isclass(value) and value.__module__.startswith("backtrader.")
    ]
    for module in filter(None, map(sys.modules.get, names)):
        for label, kind in vars(module).items():
            # Names with an underscore are classes that the framework makes up for lines and parameters.
            if inspect.isclass(kind) and kind.__module__ == module.__name__ and "_" not in label:
                prints += _prints_of(kind)
                prints.append(Members(kind, frozenset(vars(kind))))
    return prints


def changes(prints: list[Print | Members]) -> list[str]:
    """Return the notes about what was replaced, taken away or added since."""
    return [f"{PATCHED}{each.name}" for each in prints if each.changed][:_MOST]


def shadowed(*things: Any) -> list[str]:
    """Return the notes about methods that were replaced on a single object."""
    found = []
    for thing in things:
        for name, value in list(vars(thing).items()):
            if callable(value) and inspect.isroutine(getattr(type(thing), name, None)):
                found.append(f"{PATCHED}{type(thing).__name__}.{name} of this run")
    return found[:_MOST]


def _prints_of(kind: type) -> list[Print]:
    found = []
    for attribute, value in vars(kind).items():
        inner = _function(value)
        if inner is not None:
            found.append(Print(kind, attribute, value, inner.__code__, inner.__defaults__))
        elif isinstance(value, property):
            found.append(Print(kind, attribute, value, None, None))
    return found


def _function(value: Any) -> Any:
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    return value if hasattr(value, "__code__") else None
