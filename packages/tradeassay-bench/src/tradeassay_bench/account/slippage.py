"""Define slippage: the difference between the reference price and the price of a trade."""

import msgspec

from tradeassay_bench.account.commission import BPS


class Slippage(msgspec.Struct, frozen=True, kw_only=True):
    """A fixed number of basis points against the trader. 0 means no slippage.

    A limit order never trades beyond its limit price.
    """

    bps: float = 0.0

    def price(self, reference: float, buying: bool, limit: float | None = None) -> float:
        if self.bps == 0.0:
            return reference
        if buying:
            price = reference * (1.0 + self.bps * BPS)
            return price if limit is None or price <= limit else float(limit)
        price = reference * (1.0 - self.bps * BPS)
        return price if limit is None or price >= limit else float(limit)
