"""A market: clock, as-of view, exchange and ledger behind ``reset()`` and ``step()``."""

from __future__ import annotations

from tradeassay.market.config import MarketConfig

__all__ = ["MarketConfig"]
