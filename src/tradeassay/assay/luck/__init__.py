"""Luck: how good random portfolios would have been under the same rules, with the same trades, on the same days.

The market and the venue become arrays and a journal becomes a schedule without names (``schedule``); compiled code
plays thousands of portfolios on it (``simulate``).
"""

from tradeassay.assay.luck.luck import PORTFOLIOS as PORTFOLIOS
from tradeassay.assay.luck.luck import Luck as Luck
from tradeassay.assay.luck.luck import LuckConfig as LuckConfig
from tradeassay.assay.luck.luck import Matched as Matched
from tradeassay.assay.luck.luck import StatedTrades as StatedTrades
from tradeassay.assay.luck.luck import luck_of_episode as luck_of_episode
from tradeassay.assay.luck.luck import luck_of_returns as luck_of_returns
from tradeassay.assay.luck.luck import luck_of_run as luck_of_run
from tradeassay.assay.luck.portfolios import LuckPlace as LuckPlace
from tradeassay.assay.luck.portfolios import RandomPortfolios as RandomPortfolios
from tradeassay.assay.luck.portfolios import place_among as place_among
from tradeassay.assay.luck.portfolios import random_portfolios as random_portfolios
from tradeassay.assay.luck.schedule import LuckMarket as LuckMarket
from tradeassay.assay.luck.schedule import SeatChanges as SeatChanges
from tradeassay.assay.luck.schedule import Shape as Shape
from tradeassay.assay.luck.schedule import even_schedule as even_schedule
from tradeassay.assay.luck.schedule import luck_market as luck_market
from tradeassay.assay.luck.schedule import schedule_of as schedule_of
