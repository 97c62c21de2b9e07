"""Everything that books money: venues made of one-question policies, the exchange, and the append-only ledger."""

from tradeassay.account.commission import Fees
from tradeassay.account.exchange import Exchange
from tradeassay.account.ledger import TOLERANCE, Ledger
from tradeassay.account.limits import BoardLimits, BoardRule, Concentration, Lots, Participation, PriceLimits
from tradeassay.account.margin import Cash, Margin
from tradeassay.account.position import Holding
from tradeassay.account.settlement import Futures, Settlement, Shorting
from tradeassay.account.slippage import Slippage
from tradeassay.account.venue import (
    ASHARE,
    ASHARE_DATED,
    ASHARE_QLIB,
    BUILTIN,
    CRYPTO,
    FUTURES,
    US,
    US_FRACTIONAL,
    US_MARGIN,
    Era,
    Resting,
    Venue,
    venues,
)
