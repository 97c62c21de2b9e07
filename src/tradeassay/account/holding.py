"""One position while the account is alive. What others see of it is :class:`core.account.Position`."""

from __future__ import annotations

from tradeassay.core.account import Position


class Holding:
    """A mutable position inside a ledger.

    ``locked`` counts what was bought in the running session under T+1, ``opened`` the number of
    sessions that were over when the position was opened. A ``margined`` holding (a future) has no value
    of its own in NAV: its gains are settled in cash.
    """

    __slots__ = ("cost", "locked", "margined", "mark", "multiplier", "opened", "quantity")

    def __init__(self, mark: float, opened: int, multiplier: float, margined: bool) -> None:
        self.quantity = 0.0
        self.locked = 0.0
        self.cost = 0.0
        self.mark = mark
        self.opened = opened
        self.multiplier = multiplier
        self.margined = margined

    def add(self, quantity: float, price: float, sessions: int) -> None:
        """Change an open position by a trade and keep its average cost.

        Cost moves only when the position grows; a trade through zero opens a new position at its price.
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
        """Return the frozen form of this holding."""
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
