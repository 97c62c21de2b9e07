"""Orders become fills or rejections here. A venue is a set of policies, one question and one file each."""

from tradeassay.execution.builtin import (
    ASHARE,
    ASHARE_QLIB,
    BUILTIN,
    CRYPTO,
    FUTURES,
    US,
    US_FRACTIONAL,
    US_MARGIN,
)
from tradeassay.execution.cash import Cash
from tradeassay.execution.concentration import Concentration
from tradeassay.execution.exchange import Exchange
from tradeassay.execution.fees import Fees
from tradeassay.execution.futures import Futures
from tradeassay.execution.lots import Lots
from tradeassay.execution.margin import Margin
from tradeassay.execution.participation import Participation
from tradeassay.execution.price_limits import PriceLimits
from tradeassay.execution.resting import Resting
from tradeassay.execution.settlement import Settlement
from tradeassay.execution.shorting import Shorting
from tradeassay.execution.slippage import Slippage
from tradeassay.execution.venue import Venue, venues

__all__ = [
    "ASHARE",
    "ASHARE_QLIB",
    "BUILTIN",
    "CRYPTO",
    "FUTURES",
    "US",
    "US_FRACTIONAL",
    "US_MARGIN",
    "Cash",
    "Concentration",
    "Exchange",
    "Fees",
    "Futures",
    "Lots",
    "Margin",
    "Participation",
    "PriceLimits",
    "Resting",
    "Settlement",
    "Shorting",
    "Slippage",
    "Venue",
    "venues",
]
