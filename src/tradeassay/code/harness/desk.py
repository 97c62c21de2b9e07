"""What a streaming strategy sees and says, and both as bytes between host and child.

A bar is a light named tuple; the desk takes what the strategy wants, and fills nothing. Both
ends know the layout of the bytes, and the host checks what it gets.
"""

from __future__ import annotations

import keyword
import math
import struct
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.sandbox.feed import answer, receive

Columns = Mapping[str, Any]


@lru_cache(maxsize=64)
def bar_type(columns: tuple[str, ...]) -> type[Any]:
    """Return the tuple type of bars with these columns; ``time`` is in nanoseconds since 1970."""
    for name in columns:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise UserError(f"column '{name}' cannot be an attribute of a bar", hint="rename it")
    return namedtuple("Bar", columns)


class Layout:
    """Which column of which feed is where in a row of values. A strategy gets one bar when there is one feed, and
    a dict of bars by feed otherwise.
    """

    def __init__(self, names: Sequence[str]) -> None:
        groups: dict[str, list[tuple[str, int]]] = {}
        for place, name in enumerate(names):
            feed, _, column = name.rpartition("/")
            groups.setdefault(feed, []).append((column, place))
        self.names = tuple(names)
        self.feeds = tuple(groups)
        self._types = {feed: bar_type(tuple(column for column, _ in group)) for feed, group in groups.items()}
        self._places = {feed: tuple(place for _, place in group) for feed, group in groups.items()}
        self.single = len(groups) == 1

    def bar(self, values: Sequence[Any]) -> Any:
        if self.single:
            return tuple.__new__(self._types[self.feeds[0]], values)
        return {
            feed: tuple.__new__(made, [values[place] for place in self._places[feed]])
            for feed, made in self._types.items()
        }

    @property
    def only(self) -> type[Any]:
        return self._types[self.feeds[0]]


KINDS: Final = ("target", "market", "limit", "stop", "cancel")


class BarDecision(NamedTuple):
    """One thing decided on the close of bar ``row``. ``target``: hold this position (or weight, as the task says)
    from the next bar on. ``market``, ``limit`` and ``stop``: an order of signed ``quantity``, with ``price`` for
    the last two. ``cancel``: take back all open orders of the feed.
    """

    row: int
    feed: str
    kind: str
    quantity: float
    price: float


class BarDesk:
    """Takes the decisions of one bar after another. ``row`` is the number of the current bar."""

    __slots__ = ("_first", "decisions", "row")

    def __init__(self, first_feed: str = "") -> None:
        self.row = 0
        self.decisions: list[BarDecision] = []
        self._first = first_feed

    def target(self, position: float, feed: str | None = None) -> None:
        """Hold ``position`` from the next bar on; the first feed's unless another is named."""
        self._add("target", position, None, feed)

    def order(
        self, quantity: float, feed: str | None = None, *, limit: float | None = None, stop: float | None = None
    ) -> None:
        """Send a market, limit or stop order; positive quantities buy. Raises ValueError if given both prices."""
        if limit is not None and stop is not None:
            raise ValueError("an order has a limit or a stop, not both")
        kind = "limit" if limit is not None else "stop" if stop is not None else "market"
        self._add(kind, quantity, {"limit": limit, "stop": stop}.get(kind), feed)

    def cancel(self, feed: str | None = None) -> None:
        self._add("cancel", 0.0, None, feed)

    def _add(self, kind: str, quantity: float, price: float | None, feed: str | None) -> None:
        name = self._first if feed is None else feed
        at = math.nan if price is None else float(price)
        self.decisions.append(BarDecision(self.row, name, kind, float(quantity), at))


ENTRY: Final = struct.Struct("<BHdd")


class WireError(ValueError):
    """An answer that cannot be read as decisions."""


def frame_format(columns: Columns) -> str:
    """Return the struct format of one row: ``q`` for times and integers, ``d`` for floats, ``?`` for flags."""
    codes = {"M": "q", "i": "q", "u": "q", "f": "d", "b": "?"}
    letters = []
    for name, values in columns.items():
        code = codes.get(np.asarray(values).dtype.kind)
        if code is None:
            raise TypeError(f"column '{name}' cannot be fed bar by bar: only times, numbers and flags can")
        letters.append(code)
    return "<" + "".join(letters)


def pack_rows(columns: Columns) -> bytes:
    types = {"M": "<i8", "i": "<i8", "u": "<i8", "f": "<f8", "b": "?"}
    fields = [np.asarray(values) for values in columns.values()]
    dtype = np.dtype([(f"c{place}", types[values.dtype.kind]) for place, values in enumerate(fields)])
    table = np.empty(len(fields[0]), dtype=dtype)
    for place, values in enumerate(fields):
        table[f"c{place}"] = values.astype("M8[ns]").astype("<i8") if values.dtype.kind == "M" else values
    return table.tobytes()


def pack_decisions(decisions: Iterable[BarDecision], feeds: Sequence[str]) -> bytes:
    """Return the decisions of one bar; raises ValueError for a feed or kind that does not exist."""
    return b"".join(
        ENTRY.pack(KINDS.index(one.kind), feeds.index(one.feed), one.quantity, one.price) for one in decisions
    )


def read_decisions(payload: bytes, row: int, feeds: Sequence[str]) -> list[BarDecision]:
    """Return the decisions of bar ``row``; raises :class:`WireError` for anything else."""
    if len(payload) % ENTRY.size:
        raise WireError(f"the answer to bar {row} is not a whole number of decisions")
    decisions = []
    entries: Iterable[tuple[Any, ...]] = ENTRY.iter_unpack(payload)
    for kind, feed, quantity, price in entries:
        if kind >= len(KINDS) or feed >= len(feeds):
            raise WireError(f"the answer to bar {row} names a kind or feed that does not exist")
        decisions.append(BarDecision(row, feeds[feed], KINDS[kind], quantity, price))
    return decisions


def find_strategy(space: Mapping[str, Any]) -> Any:
    """Return an instance of ``Strategy``, or of the only class with ``on_bar``; LookupError without one."""
    found = space.get("Strategy")
    if found is None:
        classes = [value for value in space.values() if isinstance(value, type)]
        made_here = [value for value in classes if callable(getattr(value, "on_bar", None))]
        if len(made_here) != 1:
            raise LookupError("the code defines no class Strategy with a method on_bar(self, bar, desk)")
        found = made_here[0]
    if not callable(getattr(found, "on_bar", None)):
        raise LookupError("the class Strategy has no method on_bar(self, bar, desk)")
    return found()


def serve(module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    layout = Layout(str(params["columns"]).split("\n"))
    row = struct.Struct(str(params["format"]))
    strategy = find_strategy(vars(module))
    on_bar, make, unpack, size = strategy.on_bar, layout.bar, row.unpack, row.size
    desk = BarDesk(layout.feeds[0])
    feeds, decisions = layout.feeds, desk.decisions
    number = 0
    while (frame := receive(size)) is not None:
        desk.row = number
        on_bar(make(unpack(frame)), desk)
        if decisions:
            answer(pack_decisions(decisions, feeds))
            decisions.clear()
        else:
            answer()
        number += 1
    return {"bars": [number]}
