"""Simulate decisions and trades at the close of a bar, and the account before costs.

``compiled/shares.py`` prices decisions at several cost levels.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from tradeassay.core.arrays import Floats, Ints

COSTS_BP = (0.1, 1.0, 5.0, 10.0, 20.0)
"""The benchmark's cost levels, in basis points of traded value per side."""

_DUST: Final = 1e-9
"""Positions below this fraction of the largest trade are treated as closed."""


@dataclass(frozen=True, slots=True, eq=False)
class DecisionList:
    """Decisions in the order of their bars.

    ``row`` is the bar at whose close the decision was made and filled. ``leg`` is the column of the
    asset. ``fraction`` is the signed target exposure of that leg, as a fraction of net equity at
    that close. ``signal`` is the index of the rule that fired, or -1 if unknown. Decisions of one
    bar are executed together.
    """

    row: Ints
    leg: Ints
    fraction: Floats
    signal: Ints

    def __post_init__(self) -> None:
        sizes = {array.shape for array in (self.row, self.leg, self.fraction, self.signal)}
        if len(sizes) != 1 or self.row.ndim != 1:
            raise ValueError("the columns of a decision list must have the same length")
        if self.row.size and (np.diff(self.row) < 0).any():
            raise ValueError("decisions must be in the order of their bars")

    def __len__(self) -> int:
        return int(self.row.size)


def decision_list(rows: list[tuple[int, int, float, int]]) -> DecisionList:
    """Return a decision list from tuples of row, leg, fraction and signal."""
    row, leg, fraction, signal = zip(*rows, strict=True) if rows else ((), (), (), ())
    return DecisionList(
        np.array(row, dtype=np.int64),
        np.array(leg, dtype=np.int64),
        np.array(fraction, dtype=np.float64),
        np.array(signal, dtype=np.int64),
    )


class Trades(Protocol):
    """Trades in the order of their bars: bar, leg and signed quantity of each."""

    @property
    def row(self) -> Ints: ...

    @property
    def leg(self) -> Ints: ...

    @property
    def quantity(self) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class TradedAccount:
    """Trades filled at the close of their bar, without costs.

    ``position`` is the position in the leg after each trade. ``equity`` is the account's value at
    every close, ``held`` the quantities, shape (legs, bars).
    """

    capital: float
    position: Floats
    equity: Floats
    held: Floats

    @property
    def ruined(self) -> bool:
        """Return whether the account's value ever fell to zero or below."""
        return bool(self.equity.size and self.equity.min() <= 0.0)


def keep_account(trades: Trades, closes: Floats, capital: float) -> TradedAccount:
    """Return the account of trades on closes of shape (legs, bars), starting with ``capital``."""
    legs, bars = closes.shape
    change = np.zeros((legs, bars))
    np.add.at(change, (trades.leg, trades.row), trades.quantity)
    held = np.cumsum(change, axis=1)
    position = np.zeros(trades.row.size)
    for leg in range(legs):
        in_leg = trades.leg == leg
        largest = float(np.abs(trades.quantity[in_leg]).max()) if in_leg.any() else 0.0
        after = np.cumsum(trades.quantity[in_leg])
        position[in_leg] = np.where(np.abs(after) <= _DUST * largest, 0.0, after)
        held[leg] = np.where(np.abs(held[leg]) <= _DUST * largest, 0.0, held[leg])
    cash = capital - np.cumsum((change * closes).sum(axis=0))
    equity = cash + (held * closes).sum(axis=0)
    return TradedAccount(capital, position, equity, held)


def realised_by(trades: Trades, closes: Floats) -> Floats:
    """Return the gain realised by each trade, relative to the average price of its position."""
    size, price = [0.0] * closes.shape[0], [0.0] * closes.shape[0]
    gains = np.zeros(trades.row.size)
    rows = zip(trades.row.tolist(), trades.leg.tolist(), trades.quantity.tolist(), strict=True)
    for number, (row, leg, quantity) in enumerate(rows):
        close, held = float(closes[leg, row]), size[leg]
        closed = min(abs(quantity), abs(held)) if held * quantity < 0 else 0.0
        gains[number] = closed * (close - price[leg]) * (1.0 if held > 0 else -1.0)
        after = held + quantity
        if held * quantity >= 0 and after != 0.0:
            price[leg] = (price[leg] * held + close * quantity) / after
        elif abs(quantity) > abs(held):
            price[leg] = close
        size[leg] = after
    return gains
