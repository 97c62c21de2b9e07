"""Represent a position in one name, in the exchange's ledger and at Backtrader's broker."""

from dataclasses import dataclass

from tradeassay_bench.core.view import Position


class Holding:
    """A mutable position in a ledger.

    ``locked`` is the number of shares bought in the current session under T+1. ``opened`` is the
    number of completed sessions when the position was opened.
    """

    __slots__ = ("cost", "locked", "mark", "multiplier", "opened", "quantity")

    def __init__(self, mark: float, opened: int, multiplier: float) -> None:
        self.quantity = 0.0
        self.locked = 0.0
        self.cost = 0.0
        self.mark = mark
        self.opened = opened
        self.multiplier = multiplier

    def add(self, quantity: float, price: float, sessions: int) -> None:
        """Apply a trade to an open position and update its average cost.

        The cost changes only if the position grows. A trade through zero opens a new position at
        its price.
        """
        before = self.quantity
        after = before + quantity
        if before * quantity >= 0.0:
            self.cost = (before * self.cost + quantity * price) / after
        elif before * after < 0.0:
            self.cost = price
            self.opened = sessions
        self.quantity = after

    def position(self, symbol: str, sessions: int) -> Position:
        quantity = self.quantity
        return Position(
            symbol,
            quantity,
            quantity - self.locked if quantity > 0.0 else 0.0,
            self.cost,
            self.mark,
            sessions - self.opened,
            self.multiplier,
        )


Split = tuple[float, float, float, float]
"""A position after an order: its size and price, and the parts of the order that opened and closed.
"""


@dataclass(slots=True)
class BrokerPosition:
    """A position: signed size and average price."""

    size: float = 0.0
    price: float = 0.0

    def after(self, size: float, price: float) -> Split:
        """Return the position after an order of signed ``size``, and the order's two parts."""
        total = self.size + size
        if not total:
            return total, 0.0, 0.0, size
        if not self.size:
            return total, price, size, 0.0
        if (size > 0) == (self.size > 0):
            return total, (self.price * self.size + size * price) / total, size, 0.0
        if (total > 0) == (self.size > 0):
            return total, self.price, 0.0, size
        return total, price, total, -self.size
