"""Is this an order at all, and does its name trade now?"""

from __future__ import annotations

from math import isfinite

from tradeassay.account.refusal import Refusal
from tradeassay.account.session import Session
from tradeassay.account.sizing import TARGETS
from tradeassay.core.orders import Order


def malformed(order: Order) -> Refusal | None:
    """Say what is wrong with an order before any market is looked at."""
    amount, unit = order.amount, order.unit
    if not isfinite(amount):
        return Refusal("bad_amount", f"amount {amount!r} is not a number")
    if unit in TARGETS:
        if order.side not in (None, "BUY", "SELL"):
            return Refusal("unsupported", f"side '{order.side}' does not exist")
    elif unit not in ("shares", "dollars"):
        return Refusal("unsupported", f"unit '{unit}' does not exist")
    elif amount <= 0.0:
        return Refusal("bad_amount", f"amount {amount:g} must be positive; the side says the direction")
    elif order.side not in ("BUY", "SELL"):
        return Refusal("bad_amount", f"an order in {unit} needs a side, BUY or SELL")
    if order.kind == "market" and order.limit_price is None and order.stop_price is None:
        return None if order.tif in ("day", "gtc") else _no_such_life(order)
    return _bad_price(order)


def _bad_price(order: Order) -> Refusal | None:
    prices = {"limit": order.limit_price, "stop": order.stop_price}
    if order.kind not in ("market", "limit", "stop"):
        return Refusal("unsupported", f"order kind '{order.kind}' does not exist")
    for name, price in prices.items():
        if name == order.kind:
            if price is None or not (isfinite(price) and price > 0.0):
                return Refusal("bad_price", f"a {name} order needs a positive {name}_price, got {price!r}")
        elif price is not None:
            return Refusal("bad_price", f"a {order.kind} order takes no {name}_price")
    return None if order.tif in ("day", "gtc") else _no_such_life(order)


def _no_such_life(order: Order) -> Refusal:
    return Refusal("unsupported", f"time in force '{order.tif}' does not exist; use day or gtc")


def untradable(symbol: str, column: int, session: Session, *, margin: bool) -> Refusal | None:
    """Say why a name has no market in this session, or None when it has one; ``margin``: the kind of account."""
    bars = session.bars
    instrument = bars.instruments[column]
    if instrument.expiry is not None and bars.session > instrument.expiry:
        return Refusal("expired_contract", f"{symbol} expired on {instrument.expiry}")
    if instrument.kind == "future" and not margin:
        return Refusal("unsupported", f"{symbol} is a future and needs a margin account")
    if symbol in session.delisted:
        return Refusal("not_listed", f"{symbol} has left the exchange")
    if not session.trading[column]:
        return Refusal("suspended", f"{symbol} does not trade on {bars.session}")
    if not session.reference[column] > 0.0:
        return Refusal("no_price", f"{symbol} has no {session.moment} price on {bars.session}")
    return None
