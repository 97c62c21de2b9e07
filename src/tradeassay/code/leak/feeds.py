"""Columns of one or several feeds on one clock: cut them, continue them, take pieces of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.leak.trace import Array, Columns
from tradeassay.core.errors import UserError

TIME: Final = "time"
_WEEK: Final = np.timedelta64(7, "D")
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Feeds:
    """Columns, grouped by feed. The first feed is the master: rows and cuts are counted on it.

    Feeds of the master's length share its rows. A feed of another length is cut by time, and needs a column
    ``time`` like the master. Raises UserError for no columns, columns of one feed that differ in length, or a
    feed that cannot be aligned.
    """

    groups: Mapping[str, Mapping[str, Array]]
    names: tuple[str, ...]

    @classmethod
    def of(cls, columns: Columns) -> Feeds:
        """Group columns by what stands before the last slash of their names."""
        groups: dict[str, dict[str, Array]] = {}
        for name, values in columns.items():
            feed, _, column = name.rpartition("/")
            groups.setdefault(feed, {})[column] = np.asarray(values)
        if not groups:
            raise UserError("there are no columns to check on", mend="give at least a column of prices")
        feeds = cls(groups, tuple(columns))
        for feed, group in groups.items():
            if len({len(values) for values in group.values()}) != 1:
                raise UserError(f"the columns of feed '{feed}' differ in length")
            if feeds.length(feed) != len(feeds) and not (TIME in group and TIME in feeds.master):
                raise UserError(
                    f"feed '{feed}' has another length than the first feed and no common clock",
                    mend="give both a column 'time', or rows for the same bars",
                )
        return feeds

    @property
    def master(self) -> Mapping[str, Array]:
        """The columns of the first feed."""
        return next(iter(self.groups.values()))

    def length(self, feed: str) -> int:
        """Return the rows of one feed."""
        return len(next(iter(self.groups[feed].values())))

    def __len__(self) -> int:
        return len(next(iter(self.master.values())))

    def join(self, groups: Mapping[str, Mapping[str, Array]]) -> dict[str, Array]:
        """Return grouped columns under their full names, in the order of the original ones."""
        named = {
            f"{feed}/{name}" if feed else name: values
            for feed, group in groups.items()
            for name, values in group.items()
        }
        return {name: named[name] for name in self.names}

    def count(self, feed: str, rows: int) -> int:
        """Return how many rows of ``feed`` are known when the master has ``rows`` rows."""
        if self.length(feed) == len(self) or rows == len(self):
            return self.length(feed) if rows == len(self) else rows
        if rows == 0:
            return 0
        return int(np.searchsorted(self.groups[feed][TIME], self.master[TIME][rows - 1], side="right"))

    def head(self, rows: int) -> dict[str, Array]:
        """Return the first ``rows`` rows of the master, and what was known of the others by then."""
        return self.join(
            {
                feed: {name: values[: self.count(feed, rows)] for name, values in group.items()}
                for feed, group in self.groups.items()
            }
        )

    def splice(self, rows: Rows, starts: NDArray[np.bool_]) -> dict[str, Array]:
        """Return the given rows of all feeds, one after the other, as if they had happened in this order.

        ``starts`` marks where a new piece begins. Values are untouched; times of a piece are moved by whole weeks
        so that the clock goes on, weekdays and hours stay. Only for feeds of one length.
        """
        groups: dict[str, dict[str, Array]] = {}
        for feed, group in self.groups.items():
            groups[feed] = {name: values[rows] for name, values in group.items()}
            if TIME in group and group[TIME].dtype.kind == "M":
                groups[feed][TIME] = _redate(group[TIME][rows], starts)
        return self.join(groups)

    @property
    def aligned(self) -> bool:
        """Whether all feeds have the master's rows."""
        return all(self.length(feed) == len(self) for feed in self.groups)


def _redate(times: Array, starts: NDArray[np.bool_]) -> Array:
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(times)) - 1
    moved = times.copy()
    for piece in range(1, len(first)):
        gap = moved[last[piece - 1]] - times[first[piece]]
        weeks = int(gap // _WEEK) + 1
        moved[first[piece] : last[piece] + 1] = times[first[piece] : last[piece] + 1] + weeks * _WEEK
    return moved
