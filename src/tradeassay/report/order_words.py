"""Orders as a person would say them."""

from __future__ import annotations

from tradeassay.core.orders import Order
from tradeassay.report.numbers import number


def order_words(order: Order) -> str:
    """Return an order in words: ``AAPL to 10.0% of the account``, ``buy 20 MSFT, limit 410.5``."""
    side = "" if order.side is None else f"{order.side.lower()} "
    amount = f"{order.amount:,.10g}"
    text = {
        "shares": f"{side}{amount} {order.symbol}",
        "dollars": f"{side}{order.symbol} for {amount}",
        "target_weight": f"{side}{order.symbol} to {number(order.amount, unit='fraction')} of the account",
        "target_value": f"{side}{order.symbol} to a value of {amount}",
        "target_shares": f"{side}{order.symbol} to {amount} shares",
    }[order.unit]
    if order.kind == "limit" and order.limit_price is not None:
        text += f", limit {order.limit_price:g}"
    if order.kind == "stop" and order.stop_price is not None:
        text += f", stop {order.stop_price:g}"
    return text
