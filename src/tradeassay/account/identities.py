"""The accounting identities, each one a function that raises when it is broken.

Comparisons allow a relative :data:`TOLERANCE`, because an event's ``cash`` and the product it stands for
may be summed in another order. The negated form ``not (x <= y)`` also catches NaN.
"""

from __future__ import annotations

from tradeassay.account.holding import Holding
from tradeassay.core.errors import LedgerError
from tradeassay.core.events import Delisted, DividendPaid, Filled, Marked, Settled, SplitApplied

TOLERANCE = 1e-9
"""Largest relative difference between two ways of adding up the same money."""


def same_money(stated: float, expected: float, scale: float, what: str) -> None:
    """Raise :class:`LedgerError` unless two sums agree to :data:`TOLERANCE` of ``scale``."""
    if not (abs(stated - expected) <= TOLERANCE * abs(scale)) and stated != expected:
        raise LedgerError(f"{what}: {stated!r} stated, {expected!r} expected")


def fill_cash(event: Filled) -> None:
    """A fill moves exactly its value and its costs; a futures fill moves its costs only."""
    value = event.quantity * event.price * event.multiplier
    costs = event.fee + event.tax
    expected = -costs if event.margined else -value - costs
    # Written out instead of calling same_money: this runs for every fill.
    if not (abs(event.cash - expected) <= TOLERANCE * (abs(value) + abs(costs))):
        raise LedgerError(f"fill of {event.symbol}: cash {event.cash!r} stated, {expected!r} expected")
    if event.quantity == 0.0:
        raise LedgerError(f"fill of {event.symbol} has no quantity")


def settled_first(event: Filled, holding: Holding) -> None:
    """A futures position is settled to the trade price before the trade joins it."""
    if holding.margined != event.margined or holding.multiplier != event.multiplier:
        raise LedgerError(f"fill of {event.symbol} has other contract terms than the position it joins")
    if event.margined and holding.mark != event.price:
        raise LedgerError(
            f"fill of {event.symbol} at {event.price!r}, but the position is settled at {holding.mark!r}"
        )


def dividend(event: DividendPaid, holding: Holding) -> None:
    """A dividend is paid on the shares held, and debited on shares sold short."""
    same_money(event.quantity, holding.quantity, holding.quantity, f"dividend of {event.symbol}, shares")
    expected = event.per_share * event.quantity
    same_money(event.cash, expected, expected, f"dividend of {event.symbol}, cash")


def split(event: SplitApplied, holding: Holding) -> None:
    """A split changes neither value nor cost: new shares at the new price plus the paid-out fraction."""
    if not event.ratio > 0.0:
        raise LedgerError(f"split of {event.symbol} has ratio {event.ratio!r}")
    before = holding.quantity * holding.mark
    same_money(
        event.quantity * holding.mark / event.ratio + event.cash, before, before, f"split of {event.symbol}, value"
    )


def delisting(event: Delisted, holding: Holding) -> None:
    """A payout closes the whole position at its price; a settled future has nothing left to pay."""
    same_money(event.quantity, holding.quantity, holding.quantity, f"delisting of {event.symbol}, quantity")
    value = event.quantity * event.price * holding.multiplier
    same_money(event.cash, 0.0 if holding.margined else value, value, f"delisting of {event.symbol}, cash")


def settlement(event: Settled, holding: Holding) -> None:
    """A settlement moves the price change since the last one on the whole position."""
    same_money(event.quantity, holding.quantity, holding.quantity, f"settlement of {event.symbol}, contracts")
    expected = event.quantity * (event.price - holding.mark) * holding.multiplier
    scale = event.quantity * event.price * holding.multiplier
    same_money(event.cash, expected, scale, f"settlement of {event.symbol}, cash")


def mark(event: Marked, cash: float, positions: float) -> None:
    """Cash + positions = NAV, and all three are the ledger's own."""
    scale = abs(cash) + abs(positions)
    same_money(event.cash, cash, scale, "marked cash")
    same_money(event.positions, positions, scale, "marked positions")
    same_money(event.nav, cash + positions, scale, "marked NAV")
