"""The costs of a trade: commission with a minimum, and a separate tax."""

import msgspec

BPS = 1e-4


class Fees(msgspec.Struct, frozen=True, kw_only=True):
    """Commission and tax.

    Rates are in basis points of the traded value. ``minimum`` is the smallest charge per order.
    With ``minimum_covers_tax`` it applies to the sum of commission and tax, otherwise to the
    commission alone. ``per_unit`` is charged per share or contract on top of the rate.
    ``buy_tax_bps`` is the tax on purchases.
    """

    buy_bps: float = 0.0
    sell_bps: float = 0.0
    sell_tax_bps: float = 0.0
    minimum: float = 0.0
    minimum_covers_tax: bool = False
    per_unit: float = 0.0
    buy_tax_bps: float | msgspec.UnsetType = msgspec.UNSET

    def charge(self, value: float, quantity: float, buying: bool) -> tuple[float, float]:
        """Return (fee, tax) for a trade of ``quantity`` units worth ``value``, both positive."""
        if buying:
            fee = value * self.buy_bps * BPS
            tax = 0.0 if self.buy_tax_bps is msgspec.UNSET else value * self.buy_tax_bps * BPS
        else:
            fee = value * self.sell_bps * BPS
            tax = value * self.sell_tax_bps * BPS
        if self.per_unit:
            fee += quantity * self.per_unit
        least = self.minimum - tax if self.minimum_covers_tax else self.minimum
        return (fee if fee >= least else least), tax

    def affordable(self, cash: float, price: float) -> float:
        """Return the number of units that ``cash`` buys, costs included.

        ``price`` is the price of one unit.
        """
        taxed = 0.0 if self.buy_tax_bps is msgspec.UNSET else self.buy_tax_bps * BPS
        rate = self.buy_bps * BPS + taxed
        quantity = cash / (price * (1.0 + rate) + self.per_unit)
        free = taxed if not self.minimum_covers_tax else 0.0
        if quantity * (price * (rate - free) + self.per_unit) < self.minimum:
            quantity = (cash - self.minimum) / (price * (1.0 + free))
        return max(quantity, 0.0)

    def rate(self, buying: bool) -> float:
        """Return commission and tax as a fraction of the traded value, without the minimum."""
        if buying:
            return (
                self.buy_bps + (0.0 if self.buy_tax_bps is msgspec.UNSET else self.buy_tax_bps)
            ) * BPS
        return (self.sell_bps + self.sell_tax_bps) * BPS
