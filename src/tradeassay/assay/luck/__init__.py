"""Luck: how good random portfolios would have been under the same rules, with the same trades, on the same days.

The market and the venue become arrays (``ground``), a journal becomes a schedule without names (``schedule``),
compiled code plays thousands of portfolios on it (``walk``), and any of them can be handed to the real exchange
(``decisions_of``, ``replay``), which arrives at the same money.
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
from tradeassay.assay.luck.market import LuckGround, ground_of
from tradeassay.assay.luck.percentile import LuckPlace, place_among
from tradeassay.assay.luck.portfolios import RandomPortfolios, decisions_of, random_portfolios, replay
from tradeassay.assay.luck.schedule import SeatChanges, Shape, even_schedule, schedule_of

__all__ = [
    "PORTFOLIOS",
    "Luck",
    "LuckConfig",
    "LuckGround",
    "LuckPlace",
    "Matched",
    "RandomPortfolios",
    "SeatChanges",
    "Shape",
    "StatedTrades",
    "decisions_of",
    "even_schedule",
    "ground_of",
    "luck_of_episode",
    "luck_of_returns",
    "luck_of_run",
    "place_among",
    "random_portfolios",
    "replay",
    "schedule_of",
]
