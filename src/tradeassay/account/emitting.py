"""Making an event: it goes into the session's list and into the account at the same moment."""

from __future__ import annotations

from tradeassay.core.account import Account
from tradeassay.core.events import Event, Settled


def emit(event: Event, account: Account, events: list[Event]) -> None:
    """Record an event and apply it."""
    events.append(event)
    account.apply(event)


def settle(symbol: str, price: float, multiplier: float, account: Account, events: list[Event]) -> None:
    """Mark a held future to ``price`` and move the difference in cash; nothing when it is there already."""
    quantity = account.quantity(symbol)
    if quantity == 0.0:
        return
    last = account.mark(symbol)
    if price != last:
        emit(Settled(symbol, quantity, price, quantity * (price - last) * multiplier), account, events)
