"""How many shares does an order mean?

Money and weights are turned into shares at the *sizing price*: the reference price at which the order
trades, before slippage. Weights are shares of NAV at the reference prices of the whole batch.
"""

from __future__ import annotations

from tradeassay.account.refusal import Refusal
from tradeassay.account.session import Session
from tradeassay.account.ticket import Ticket
from tradeassay.core.account import Account
from tradeassay.core.orders import Order

TARGETS = frozenset({"target_weight", "target_value", "target_shares"})


def wanted(order: Order, unit_value: float, held: float, session: Session) -> float:
    """Return the signed change in shares that an order in money or for a target asks for, before any rounding.

    ``unit_value`` is what one share (or contract) is worth at the sizing price, ``held`` the present holding.
    """
    amount, unit = order.amount, order.unit
    if unit == "dollars":
        quantity = amount / unit_value
        return quantity if order.side == "BUY" else -quantity
    if unit == "target_shares" or amount == 0.0:
        return amount - held
    value = amount * session.nav if unit == "target_weight" else amount
    return value / unit_value - held


def explicit_quantity(order: Order, account: Account) -> float | None:
    """Return the signed change of an order in shares, which needs no price; None for other orders."""
    if order.unit == "shares":
        return order.amount if order.side == "BUY" else -order.amount
    if order.unit == "target_shares" or (order.unit in TARGETS and order.amount == 0.0):
        return order.amount - account.quantity(order.symbol)
    return None


def size(ticket: Ticket, session: Session) -> Refusal | None:
    """Set a ticket's quantity, or say why the order means nothing."""
    order = ticket.order
    # An agent may write 100 or a numpy number; events hold plain floats, or a replay would differ in type.
    if order.unit == "shares":
        ticket.quantity = ticket.asked = float(order.amount)
        return None
    change = wanted(order, ticket.reference * ticket.multiplier, ticket.held, session)
    if change == 0.0:
        return Refusal("no_change", f"{order.symbol} is already where the order wants it")
    if (change > 0.0) != ticket.buying:
        verb = "buy" if change > 0.0 else "sell"
        return Refusal(
            "side_contradicts_target",
            f"the target means to {verb} {abs(change):.6g}, the order says {ticket.side}",
        )
    ticket.quantity = ticket.asked = float(abs(change))
    # A target of zero names its number of shares too: all of them.
    ticket.explicit = order.unit == "target_shares" or (order.amount == 0.0 and order.unit in TARGETS)
    return None
