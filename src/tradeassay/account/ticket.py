"""One order on its way through the policies of a venue, and why it may end there."""

from __future__ import annotations

from typing import NamedTuple

from tradeassay.core.events import RejectReason
from tradeassay.core.instruments import Instrument
from tradeassay.core.orders import Order


class Refusal(NamedTuple):
    """A counted reason and a sentence for the reader of the log."""

    reason: RejectReason
    detail: str


WAITS: frozenset[RejectReason] = frozenset(
    {"suspended", "no_price", "limit_up", "limit_down", "no_volume", "t_plus_1"}
)
"""Reasons that another day may cure: a good-till-cancelled order rests on them, any other is rejected."""


class Ticket:
    """Working state of one order in one session.

    ``quantity`` is a magnitude, ``buying`` its direction, ``held`` the signed holding it meets.
    ``reference`` is the price before slippage at which it would trade, ``price`` the one after, ``lot``
    the multiple in which the name trades. ``explicit`` says that the quantity was given as a number of
    shares, so that rounding it would be a correction. ``resting`` marks an order of an earlier session.
    """

    # Class-level defaults keep the constructor short: it runs for every order.
    buying = True
    explicit = True
    resting = False
    stage = 0
    held = 0.0
    reference = 0.0
    price = 0.0
    quantity = 0.0
    asked = 0.0
    fee = 0.0
    tax = 0.0
    cash = 0.0
    trims: list[tuple[RejectReason, float, float]] | None = None

    def __init__(self, id: str, order: Order, column: int, instrument: Instrument, lot: float) -> None:
        self.id = id
        self.order = order
        self.symbol = order.symbol
        self.column = column
        self.instrument = instrument
        self.multiplier = instrument.multiplier
        self.lot = lot

    @property
    def side(self) -> str:
        """BUY or SELL."""
        return "BUY" if self.buying else "SELL"

    def ask(self, change: float) -> None:
        """Set direction and quantity from a signed change."""
        self.buying = change > 0.0
        self.quantity = self.asked = float(abs(change))

    def signed(self, quantity: float) -> float:
        """Return a magnitude with this order's sign: positive for a buy."""
        return quantity if self.buying else -quantity

    def trim(self, quantity: float, reason: RejectReason) -> None:
        """Make the order smaller and remember why."""
        if self.trims is None:
            self.trims = []
        self.trims.append((reason, self.quantity, quantity))
        self.quantity = quantity
