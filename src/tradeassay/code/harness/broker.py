"""The framework's broker with a record of its orders, and feeds filled at once. Used only in the sandbox's child.

The record is what the child sends home. It is the strategy's decisions, not their outcome: the host works out
fills, trades and money itself. The framework's own feeds call Python for every field of every row; here each
line takes one copy of memory, with the same result: lines of doubles, the framework's day numbers for the time,
and no open interest.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final

import backtrader as bt
import numpy as np

from tradeassay.core.order_columns import ACTION_CANCEL, ACTION_SUBMIT, FLOATS, GIVEN, INTEGERS, day_numbers

_OCO_PLACE: Final = 8
"""The position of ``oco`` among the arguments of the broker's ``buy`` and ``sell``."""


class RecordingBroker(bt.brokers.BackBroker):  # type: ignore[misc]  # backtrader has no types
    """Notes every order and every cancellation with the bar and the broker's turn it came in."""

    def __init__(self) -> None:
        self.record: dict[str, list[Any]] = {name: [] for name in (*INTEGERS, *FLOATS)}
        self.turns = 0
        self.feeds: list[Any] = []
        self._oco_ref = 0
        super().__init__()

    def next(self) -> None:
        self.turns += 1
        super().next()

    def buy(self, *args: Any, **kwargs: Any) -> Any:
        self._oco_ref = _oco(args, kwargs)
        return super().buy(*args, **kwargs)

    def sell(self, *args: Any, **kwargs: Any) -> Any:
        self._oco_ref = _oco(args, kwargs)
        return super().sell(*args, **kwargs)

    def submit(self, order: Any, check: bool = True) -> Any:
        values = {
            "action": ACTION_SUBMIT,
            "ref": order.ref,
            "asset": self._place(order.data),
            "side": 1 if order.isbuy() else -1,
            "kind": order.exectype,
            "given": sum(bit for name, bit in GIVEN.items() if getattr(order, name) is not None),
            "parent": getattr(order.parent, "ref", 0),
            "oco": self._oco_ref,
            "transmit": int(bool(order.transmit)),
            "tradeid": order.tradeid,
            "row": len(order.data) - 1,
            "size": abs(order.size),
        }
        for name in GIVEN:
            value = getattr(order, name)
            values[name] = 0.0 if value is None else float(value)
        self._note(values)
        return super().submit(order, check=check)

    def cancel(self, order: Any, bracket: bool = False) -> Any:
        """Note a cancellation that the strategy asked for (not one caused by another order), then carry it out."""
        if not bracket and order is not None:
            self._note({"action": ACTION_CANCEL, "ref": order.ref, "row": len(order.data) - 1})
        return super().cancel(order, bracket=bracket)

    def _note(self, values: dict[str, Any]) -> None:
        values["turn"] = self.turns
        for name, column in self.record.items():
            column.append(values.get(name, 0))

    def _place(self, data: Any) -> int:
        return next((k for k, feed in enumerate(self.feeds) if feed is data), -1)


def _oco(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    other = kwargs.get("oco", args[_OCO_PLACE] if len(args) > _OCO_PLACE else None)
    return getattr(other, "ref", 0)


_FRAMES: Final = {
    "1d": (bt.TimeFrame.Days, 1),
    "1h": (bt.TimeFrame.Minutes, 60),
    "30m": (bt.TimeFrame.Minutes, 30),
    "15m": (bt.TimeFrame.Minutes, 15),
    "5m": (bt.TimeFrame.Minutes, 5),
    "1m": (bt.TimeFrame.Minutes, 1),
}
_FIELDS: Final = ("open", "high", "low", "close", "volume")


class ColumnFeed(bt.feed.DataBase):  # type: ignore[misc]  # backtrader has no types
    """One asset's columns as a feed."""

    def preload(self) -> None:
        """Fill every line, then go back to the start, as loading row by row would."""
        columns = self.p.dataname
        rows = len(columns["close"])
        numbers = {"datetime": day_numbers(columns["time"]), "openinterest": np.full(rows, np.nan)}
        for alias in self.getlinealiases():
            values = numbers[alias] if alias in numbers else columns[alias]
            line = getattr(self.lines, alias)
            line.array = array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())
        self.home()

    def advance_peek(self) -> float:
        """Return when the next bar is, for the framework's own loop; infinity after the last."""
        clock = self.lines.datetime
        if clock.lencount < len(clock.array) - clock.extension:
            return float(clock.array[clock._idx + 1])
        return float("inf")

    def advance(self, size: int = 1, datamaster: Any = None, ticks: bool = True) -> None:
        """Move on. There are no ticks to be kept, and without a master nothing else to do."""
        if datamaster is None:
            self.lines.advance(size)
        else:
            super().advance(size, datamaster, ticks)

    def _tick_nullify(self) -> None:
        """Do nothing: where a feed keeps no ticks the broker reads the bar itself, with the same numbers."""

    def _tick_fill(self, force: bool = False) -> None: ...


def frame_of(timeframe: str) -> tuple[int, int]:
    return _FRAMES[timeframe]


def feeds_of(columns: Mapping[str, Any], timeframe: str) -> dict[str, ColumnFeed]:
    """Return one feed per asset from columns called ``A/open`` and so on."""
    groups: dict[str, dict[str, Any]] = {}
    for name, values in columns.items():
        label, _, column = name.rpartition("/")
        groups.setdefault(label, {})[column] = values
    frame, compression = frame_of(timeframe)
    return {
        label: ColumnFeed(dataname=group, name=label, timeframe=frame, compression=compression)
        for label, group in groups.items()
    }
