"""Define orders, and the decision that contains them."""

from __future__ import annotations

from sys import float_info
from typing import Literal

import msgspec

# The valid range of amounts, sizes and prices. Numbers outside it are refused on input.

LARGEST = 2.0**53
"""Largest size or amount. Above it, float64 cannot represent every whole number."""

LEAST_PRICE, LARGEST_PRICE = 1e-12, 1e12
"""Range of valid prices: from below any tick to above any price ever quoted."""

SMALLEST = float_info.min
"""Smallest nonzero size. Smaller (subnormal) numbers have already lost digits."""


def not_a_size(amount: float) -> str | None:
    """Return the reason why a number is not a valid size, or None.

    Zero and negative numbers are valid here.
    """
    if not -LARGEST <= amount <= LARGEST:
        if amount != amount or amount - amount != 0.0:
            return f"{amount!r} is not a number"
        return f"{amount!r:.40} is beyond {LARGEST:.0f}, the largest size there is"
    if amount != 0.0 and -SMALLEST < amount < SMALLEST:
        return f"{amount!r} is too small to be a number of anything"
    return None


def is_price(price: float) -> bool:
    """Return whether a number is a valid price. NaN is not."""
    return LEAST_PRICE <= price <= LARGEST_PRICE


Side = Literal["BUY", "SELL"]
Unit = Literal["shares", "dollars", "target_weight", "target_value", "target_shares"]
"""The unit of an order's ``amount``.

``shares`` and ``dollars`` trade that amount. The ``target_*`` units move the position to a fraction
of NAV, to a value or to a number of shares. Their side follows from the difference.
"""
OrderKind = Literal["market", "limit", "stop"]
TimeInForce = Literal["day", "gtc"]


class Order(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One order.

    Only orders with a target unit may omit ``side``. If ``side`` is given with a target, it must
    match the difference. Otherwise the exchange rejects the order: a "BUY" to a weight below the
    current one is a mistake, not a sale. Short positions are negative targets or sales beyond the
    holding, if the venue allows them.
    """

    symbol: str
    amount: float
    unit: Unit = "shares"
    side: Side | None = None
    kind: OrderKind = "market"
    limit_price: float | None = None
    stop_price: float | None = None
    tif: TimeInForce = "day"
    confidence: float | None = None
    reason: str = ""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error during a decision. ``kind`` is a counted category (``schema``, ``agent`` ...)."""

    kind: str
    detail: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's answer for one session.

    ``status`` ``ok``: the agent answered (without orders it abstained). ``failed``: there was no
    usable answer. Nothing is traded, and the failure is counted separately from abstentions.
    ``tool_calls`` is the number of tool calls during the decision, including failed ones.
    """

    orders: tuple[Order, ...] = ()
    reason: str = ""
    status: Literal["ok", "failed"] = "ok"
    failures: tuple[Failure, ...] = ()
    tool_calls: int = 0
