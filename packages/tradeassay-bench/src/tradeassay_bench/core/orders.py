"""What an agent says: orders, and the decision that carries them."""

from __future__ import annotations

from sys import float_info
from typing import Literal

import msgspec

# Which numbers can be money, a size or a price at all. Everything outside is refused where it comes in.

LARGEST = 2.0**53
"""The largest size or sum of money: beyond it float64 does not hold every whole number any more."""

LEAST_PRICE, LARGEST_PRICE = 1e-12, 1e12
"""Prices lie between these: below any tick, and above anything that was ever quoted."""

SMALLEST = float_info.min
"""The smallest size that is not zero; what lies between (a subnormal number) has lost its digits already."""


def not_a_size(amount: float) -> str | None:
    """Say why a number is no size of an order, or return None; zero and negative numbers are sizes here."""
    if not -LARGEST <= amount <= LARGEST:
        if amount != amount or amount - amount != 0.0:
            return f"{amount!r} is not a number"
        return f"{amount!r:.40} is beyond {LARGEST:.0f}, the largest size there is"
    if amount != 0.0 and -SMALLEST < amount < SMALLEST:
        return f"{amount!r} is too small to be a number of anything"
    return None


def is_price(price: float) -> bool:
    """Say whether a number can be a price; NaN cannot."""
    return LEAST_PRICE <= price <= LARGEST_PRICE


Side = Literal["BUY", "SELL"]
Unit = Literal["shares", "dollars", "target_weight", "target_value", "target_shares"]
"""How an order's ``amount`` is meant.

``shares`` and ``dollars`` trade that much. The ``target_*`` units bring the position to a share of
NAV, to a value or to a number of shares; their side follows from the difference.
"""
OrderKind = Literal["market", "limit", "stop"]
TimeInForce = Literal["day", "gtc"]


class Order(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One wish to trade. ``side`` may be omitted for target units only. If ``side`` is given with a target, it
    must agree with the difference, or the exchange rejects the order: a "BUY" to a weight below the present one is
    a mistake, not a sale. Short positions are negative targets or sales beyond the holding, where the venue allows
    them."""

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
    """Something that went wrong while deciding; ``kind`` is a counted category (``schema``, ``agent`` ...)."""

    kind: str
    detail: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's answer for one session. ``status``: ``ok`` = the agent answered (no orders means it abstained);
    ``failed`` = no usable answer came, nothing is traded, and the failure is counted, never mistaken for a choice.
    ``tool_calls`` counts all tool calls made while deciding, failed ones included."""

    orders: tuple[Order, ...] = ()
    reason: str = ""
    status: Literal["ok", "failed"] = "ok"
    failures: tuple[Failure, ...] = ()
    tool_calls: int = 0
