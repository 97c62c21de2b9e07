"""Everything that books money: venues made of one-question policies, the exchange, and the append-only ledger."""

from tradeassay.account.builtin import (
    ASHARE,
    ASHARE_QLIB,
    BUILTIN,
    CRYPTO,
    FUTURES,
    US,
    US_FRACTIONAL,
    US_MARGIN,
)
from tradeassay.account.cash import Cash
from tradeassay.account.concentration import Concentration
from tradeassay.account.exchange import Exchange
from tradeassay.account.fees import Fees
from tradeassay.account.futures import Futures
from tradeassay.account.holding import Holding
from tradeassay.account.identities import TOLERANCE
from tradeassay.account.ledger import Ledger
from tradeassay.account.lots import Lots
from tradeassay.account.margin import Margin
from tradeassay.account.participation import Participation
from tradeassay.account.price_limits import PriceLimits
from tradeassay.account.resting import Resting
from tradeassay.account.settlement import Settlement
from tradeassay.account.shorting import Shorting
from tradeassay.account.slippage import Slippage
from tradeassay.account.venue import Venue, venues

__all__ = [
    "ASHARE",
    "ASHARE_QLIB",
    "BUILTIN",
    "CRYPTO",
    "FUTURES",
    "TOLERANCE",
    "US",
    "US_FRACTIONAL",
    "US_MARGIN",
    "Cash",
    "Concentration",
    "Exchange",
    "Fees",
    "Futures",
    "Holding",
    "Ledger",
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
