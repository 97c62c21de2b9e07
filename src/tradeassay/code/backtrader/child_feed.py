"""A feed whose lines are filled with whole columns at once. Imported in the sandbox's child only.

The framework's own feeds call Python for every field of every row; here each line takes one copy of memory. The
result is the same: lines of doubles, the framework's day numbers for the time, and no open interest.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final

import backtrader as bt
import numpy as np

from tradeassay.code.backtrader.clock import day_numbers

_FRAMES: Final = {
    "1d": (bt.TimeFrame.Days, 1),
    "1h": (bt.TimeFrame.Minutes, 60),
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

    def _tick_nullify(self) -> None:
        """Nothing: where a feed keeps no ticks the broker reads the bar itself, which is the same numbers."""

    def _tick_fill(self, force: bool = False) -> None:
        """Nothing; see above."""


def frame_of(timeframe: str) -> tuple[int, int]:
    """Return the framework's names for a timeframe: unit and how many of it."""
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
