"""One order on its way through the venue's policies."""

from __future__ import annotations

from tradeassay.core.events import RejectReason
from tradeassay.core.instruments import Instrument
from tradeassay.core.orders import Order


class Ticket:
    """Working state of one order in one session.

    ``quantity`` is a magnitude, ``buying`` its direction. ``reference`` is the price before slippage at
    which it would trade, ``price`` the one after, ``lot`` the multiple in which the name trades.
    ``explicit`` says that the quantity was given as a number of shares, so that rounding it would be a
    correction. ``resting`` marks an order of an earlier session.
    """

    __slots__ = (
        "asked", "buying", "cash", "column", "explicit", "fee", "id", "instrument", "lot", "multiplier", "order",
        "price", "quantity", "reference", "resting", "stage", "symbol", "tax", "trims",
    )  # fmt: skip

    def __init__(self, id: str, order: Order, column: int, instrument: Instrument, lot: float) -> None:
        self.id = id
        self.order = order
        self.symbol = order.symbol
        self.column = column
        self.instrument = instrument
        self.lot = lot
        self.multiplier = instrument.multiplier
        self.buying = True
        self.explicit = True
        self.resting = False
        self.stage = 0
        self.reference = 0.0
        self.price = 0.0
        self.quantity = 0.0
        self.asked = 0.0
        self.fee = 0.0
        self.tax = 0.0
        self.cash = 0.0
        self.trims: list[tuple[RejectReason, float, float]] | None = None

    @property
    def side(self) -> str:
        """BUY or SELL."""
        return "BUY" if self.buying else "SELL"

    def signed(self, quantity: float) -> float:
        """Return a magnitude with this order's sign: positive for a buy."""
        return quantity if self.buying else -quantity

    def trim(self, quantity: float, reason: RejectReason) -> None:
        """Make the order smaller and remember why."""
        if self.trims is None:
            self.trims = []
        self.trims.append((reason, self.quantity, quantity))
        self.quantity = quantity
