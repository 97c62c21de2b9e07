"""Compare a result with random portfolios under the same rules, on the same days.

The market and the venue become arrays, and a journal becomes a schedule without names
(``schedule``). Compiled code runs thousands of portfolios on it (``simulate``).
"""

from tradeassay_bench.examine.luck.luck import (
    Luck as Luck,
    LuckConfig as LuckConfig,
    StatedTrades as StatedTrades,
    luck_of_episode as luck_of_episode,
    luck_of_returns as luck_of_returns,
    luck_of_run as luck_of_run,
)
from tradeassay_bench.examine.luck.portfolios import (
    place_among as place_among,
    random_portfolios as random_portfolios,
)
from tradeassay_bench.examine.luck.schedule import (
    LuckMarket as LuckMarket,
    SeatChanges as SeatChanges,
    Shape as Shape,
    even_schedule as even_schedule,
    luck_market as luck_market,
    schedule_of as schedule_of,
)
