"""At which price, if any, a bar fills an order: Backtrader's rules without slippage.

Each rule gets the order and the bar and returns the price, or None. Orders with a trigger remember that it was
reached; what happens between a bar's four prices is decided as the framework decides it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tradeassay.code.backtrader.order_state import OrderState


class Bar(NamedTuple):
    """One bar of one asset, and its time as a day number."""

    time: float
    open: float
    high: float
    low: float
    close: float


def price_of(order: OrderState, bar: Bar) -> float | None:
    """Return the price at which ``bar`` fills ``order``, or None."""
    if order.triggered:
        return _limit(order, bar, order.limit)
    return _RULES[order.kind](order, bar)


def _market(order: OrderState, bar: Bar) -> float | None:
    return bar.open if bar.time > order.created else None


def _close(order: OrderState, bar: Bar) -> float | None:
    """At the session's last close. That a bar was the last one shows only when the next session's first arrives;
    the fill comes then, at the price that was noted.
    """
    if bar.time > order.created and bar.time >= order.session_end:
        if order.last_close and bar.time > order.session_end:
            return order.last_close
        return bar.close
    order.last_close = bar.close
    return None


def _plain_limit(order: OrderState, bar: Bar) -> float | None:
    return _limit(order, bar, order.price)


def _limit(order: OrderState, bar: Bar, limit: float) -> float | None:
    """At the open when that is as good as the limit or better, else at the limit when the bar touched it."""
    if order.buys:
        return bar.open if limit >= bar.open else limit if limit >= bar.low else None
    return bar.open if limit <= bar.open else limit if limit <= bar.high else None


def _stop(order: OrderState, bar: Bar) -> float | None:
    """At the open when the bar opened beyond the trigger, else at the trigger when the bar touched it."""
    trigger = order.price
    if order.buys:
        return bar.open if bar.open >= trigger else trigger if bar.high >= trigger else None
    return bar.open if bar.open <= trigger else trigger if bar.low <= trigger else None


def _stop_limit(order: OrderState, bar: Bar) -> float | None:
    trigger, limit = order.price, order.limit
    if (bar.open >= trigger) if order.buys else (bar.open <= trigger):
        order.triggered = True
        return _limit(order, bar, limit)
    if not ((bar.high >= trigger) if order.buys else (bar.low <= trigger)):
        return None
    order.triggered = True
    if (limit >= trigger) if order.buys else (limit <= trigger):
        return trigger
    # The limit lies on the near side of the trigger: it was passed again only if the bar closed behind it.
    if order.buys:
        return limit if bar.open > bar.close and limit >= bar.close else None
    return limit if bar.open <= bar.close and limit <= bar.close else None


_RULES: dict[str, Callable[[OrderState, Bar], float | None]] = {
    "market": _market,
    "close": _close,
    "limit": _plain_limit,
    "stop": _stop,
    "stop-limit": _stop_limit,
    "trailing": _stop,
    "trailing-limit": _stop_limit,
}
