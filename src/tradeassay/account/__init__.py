"""Everything that books money: venues made of one-question policies, the exchange, and the append-only ledger."""

from tradeassay.account.commission import Fees as Fees
from tradeassay.account.exchange import Exchange as Exchange
from tradeassay.account.ledger import TOLERANCE as TOLERANCE, Ledger as Ledger
from tradeassay.account.limits import (
    BoardLimits as BoardLimits,
    BoardRule as BoardRule,
    Concentration as Concentration,
    Lots as Lots,
    Participation as Participation,
    PriceLimits as PriceLimits,
)
from tradeassay.account.margin import Cash as Cash, Margin as Margin
from tradeassay.account.position import Holding as Holding
from tradeassay.account.settlement import Futures as Futures, Settlement as Settlement, Shorting as Shorting
from tradeassay.account.slippage import Slippage as Slippage
from tradeassay.account.venue import (
    ASHARE as ASHARE,
    ASHARE_DATED as ASHARE_DATED,
    ASHARE_QLIB as ASHARE_QLIB,
    BUILTIN as BUILTIN,
    CRYPTO as CRYPTO,
    FUTURES as FUTURES,
    US as US,
    US_FRACTIONAL as US_FRACTIONAL,
    US_MARGIN as US_MARGIN,
    Era as Era,
    Resting as Resting,
    Venue as Venue,
    venues as venues,
)
