"""What a strategy decided: at which bar, in which leg, which share of the account."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.core.view import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class DecisionList:
    """Decisions in order. ``row`` is the bar at whose close it was made and filled, ``leg`` the asset's place.

    ``fraction`` is the signed exposure wanted in that leg, as a share of net equity at that close. ``signal`` is
    the place of the rule that fired, -1 where it is not known. Decisions of one bar are carried out together.
    """

    row: Ints
    leg: Ints
    fraction: Floats
    signal: Ints

    def __post_init__(self) -> None:
        sizes = {array.shape for array in (self.row, self.leg, self.fraction, self.signal)}
        if len(sizes) != 1 or self.row.ndim != 1:
            raise ValueError("the columns of a decision list have one length")
        if self.row.size and (np.diff(self.row) < 0).any():
            raise ValueError("decisions are listed in the order of their bars")

    def __len__(self) -> int:
        return int(self.row.size)

    def same_as(self, other: DecisionList) -> bool:
        """Return whether both decide the same at the same bars, to the last bit; signals are not compared."""
        pairs = ((self.row, other.row), (self.leg, other.leg), (self.fraction, other.fraction))
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


def decision_list(found: list[tuple[int, int, float, int]]) -> DecisionList:
    """Return a list from (row, leg, fraction, signal) tuples."""
    row, leg, fraction, signal = zip(*found, strict=True) if found else ((), (), (), ())
    return DecisionList(
        np.array(row, dtype=np.int64),
        np.array(leg, dtype=np.int64),
        np.array(fraction, dtype=np.float64),
        np.array(signal, dtype=np.int64),
    )
