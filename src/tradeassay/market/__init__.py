"""A market: clock, as-of view, exchange and ledger behind ``reset()`` and ``step()``."""

from __future__ import annotations

from tradeassay.market.config import MarketConfig
from tradeassay.market.market import Market, Step, Witness
from tradeassay.market.universe import Choice, Universe, UniverseName, most_traded, parse_universe

__all__ = [
    "Choice",
    "Market",
    "MarketConfig",
    "Step",
    "Universe",
    "UniverseName",
    "Witness",
    "most_traded",
    "parse_universe",
]
