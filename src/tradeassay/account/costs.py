"""What does a trade cost? Commission with a minimum, a sell-side tax kept apart, and slippage."""

from __future__ import annotations

import msgspec

BPS = 1e-4


class Fees(msgspec.Struct, frozen=True, kw_only=True):
    """Commission and tax.

    Rates are in basis points of the traded value. ``minimum`` is the least an order pays; with
    ``minimum_covers_tax`` commission and tax together must reach it, otherwise the commission alone.
    ``per_unit`` is charged per share or contract on top of the rate.
    """

    buy_bps: float = 0.0
    sell_bps: float = 0.0
    sell_tax_bps: float = 0.0
    minimum: float = 0.0
    minimum_covers_tax: bool = False
    per_unit: float = 0.0

    def charge(self, value: float, quantity: float, buying: bool) -> tuple[float, float]:
        """Return (fee, tax) for a trade of ``quantity`` units worth ``value``, both positive."""
        if buying:
            fee = value * self.buy_bps * BPS
            tax = 0.0
        else:
            fee = value * self.sell_bps * BPS
            tax = value * self.sell_tax_bps * BPS
        if self.per_unit:
            fee += quantity * self.per_unit
        least = self.minimum - tax if self.minimum_covers_tax else self.minimum
        return (fee if fee >= least else least), tax

    def affordable(self, cash: float, price: float) -> float:
        """Return how many units at ``price`` (one unit's value) ``cash`` buys, costs included."""
        rate = self.buy_bps * BPS
        quantity = cash / (price * (1.0 + rate) + self.per_unit)
        if quantity * (price * rate + self.per_unit) < self.minimum:
            quantity = (cash - self.minimum) / price
        return max(quantity, 0.0)

    def rate(self, buying: bool) -> float:
        """Return the proportional cost as a fraction of value."""
        return (self.buy_bps if buying else self.sell_bps + self.sell_tax_bps) * BPS


class Slippage(msgspec.Struct, frozen=True, kw_only=True):
    """A fixed number of basis points against the trader; 0 means none.

    A limit is a promise: slippage never carries a limit order beyond its limit price.
    """

    bps: float = 0.0

    def price(self, reference: float, buying: bool, limit: float | None = None) -> float:
        """Return the price paid or received."""
        if self.bps == 0.0:
            return reference
        if buying:
            price = reference * (1.0 + self.bps * BPS)
            return price if limit is None or price <= limit else float(limit)
        price = reference * (1.0 - self.bps * BPS)
        return price if limit is None or price >= limit else float(limit)
