"""Which numbers can be money, a size or a price at all. Everything outside is refused where it comes in.

A float64 also holds infinities, "not a number", numbers beyond any account and numbers below any tick. Sums and
products of what passes here stay finite, so that no later sum has to wonder.
"""

from __future__ import annotations

from sys import float_info

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
