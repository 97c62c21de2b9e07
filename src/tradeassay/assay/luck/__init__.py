"""Luck: how good random portfolios would have been under the same rules, with the same trades, on the same days.

The market and the venue become arrays and a journal becomes a schedule without names (``schedule``); compiled code
plays thousands of portfolios on it (``simulate``).
"""

from tradeassay.assay.luck.luck import (
    PORTFOLIOS,
    Luck,
    LuckConfig,
    Matched,
    StatedTrades,
    luck_of_episode,
    luck_of_returns,
    luck_of_run,
)
from tradeassay.assay.luck.portfolios import LuckPlace, RandomPortfolios, place_among, random_portfolios
from tradeassay.assay.luck.schedule import LuckMarket, SeatChanges, Shape, even_schedule, luck_market, schedule_of

__all__ = [
    "PORTFOLIOS",
    "Luck",
    "LuckConfig",
    "LuckMarket",
    "LuckPlace",
    "Matched",
    "RandomPortfolios",
    "SeatChanges",
    "Shape",
    "StatedTrades",
    "even_schedule",
    "luck_market",
    "luck_of_episode",
    "luck_of_returns",
    "luck_of_run",
    "place_among",
    "random_portfolios",
    "schedule_of",
]
