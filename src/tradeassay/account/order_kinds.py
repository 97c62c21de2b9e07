"""Does a bar reach an order's price, and at which price and time does the order then trade?

| order | at the open | during the session |
|---|---|---|
| market | the open | - |
| limit BUY L | open <= L: the open | low <= L: L |
| limit SELL L | open >= L: the open | high >= L: L |
| stop BUY S | open >= S: the open | high >= S: S |
| stop SELL S | open <= S: the open | low <= S: S |

An order that arrives at the close knows only the closing price: it trades there if that price satisfies
it. Orders that rested from an earlier session see the whole bar.
"""

from __future__ import annotations

from typing import Literal

from tradeassay.core.orders import Order

AT_OPEN, DURING, AT_CLOSE = 0, 1, 2
"""The order in which fills of one session happen."""

BuyOrSell = Literal["buy", "sell"]


def trigger_price(order: Order) -> float | None:
    """Return an order's own price: its limit or its stop; None for a market order."""
    return order.limit_price if order.kind == "limit" else order.stop_price


def satisfied(order: Order, buying: bool, price: float) -> bool:
    """Say whether an order can trade at exactly ``price``."""
    if order.kind == "market":
        return True
    own = trigger_price(order)
    assert own is not None, "admission lets no limit or stop order pass without its price"
    # A limit buy waits for a low price, a stop buy for a high one; sales the other way round.
    wants_low = buying == (order.kind == "limit")
    return price <= own if wants_low else price >= own


def touched(order: Order, buying: bool, high: float, low: float) -> float | None:
    """Return the price at which a limit or stop order trades during the session, or None.

    To be asked after the open failed to satisfy the order.
    """
    own = trigger_price(order)
    assert own is not None, "admission lets no limit or stop order pass without its price"
    wants_low = buying == (order.kind == "limit")
    reached = low <= own if wants_low else high >= own
    return float(own) if reached else None
