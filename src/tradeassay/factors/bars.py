"""What the factors are computed from."""

from __future__ import annotations

from dataclasses import dataclass

from tradeassay.core.errors import DataError
from tradeassay.core.view import Floats


@dataclass(frozen=True, slots=True)
class FactorBars:
    """Daily bars of shape (sessions, names), oldest first; NaN = missing.

    Prices and volumes must be split-adjusted (as of the last row), or a split reads as a crash. Raises
    :class:`DataError` when the shapes differ.
    """

    open: Floats
    high: Floats
    close: Floats
    volume: Floats
    amount: Floats

    def __post_init__(self) -> None:
        shapes = {array.shape for array in (self.open, self.high, self.close, self.volume, self.amount)}
        if len(shapes) != 1 or self.close.ndim != 2:
            raise DataError(
                f"factor bars need five arrays of one shape (sessions, names), got {sorted(shapes)}",
                mend="take them from one view with the same lookback",
            )

    def last(self, rows: int) -> FactorBars:
        """Return the last ``rows`` sessions (all when there are fewer)."""
        return FactorBars(*(a[-rows:] for a in (self.open, self.high, self.close, self.volume, self.amount)))
