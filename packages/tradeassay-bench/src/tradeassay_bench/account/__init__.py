"""Accounts and trading: venues and their policies, the exchange, and the append-only ledger."""

from tradeassay_bench.account.commission import Fees as Fees
from tradeassay_bench.account.exchange import Exchange as Exchange
from tradeassay_bench.account.ledger import TOLERANCE as TOLERANCE, Ledger as Ledger
from tradeassay_bench.account.limits import (
    BoardLimits as BoardLimits,
    BoardRule as BoardRule,
    Concentration as Concentration,
    Lots as Lots,
    Participation as Participation,
    PriceLimits as PriceLimits,
)
from tradeassay_bench.account.margin import Cash as Cash, Margin as Margin
from tradeassay_bench.account.position import Holding as Holding
from tradeassay_bench.account.settlement import (
    Settlement as Settlement,
    Shorting as Shorting,
)
from tradeassay_bench.account.slippage import Slippage as Slippage
from tradeassay_bench.account.venue import (
    ASHARE as ASHARE,
    ASHARE_DATED as ASHARE_DATED,
    ASHARE_QLIB as ASHARE_QLIB,
    BUILTIN as BUILTIN,
    CRYPTO as CRYPTO,
    US as US,
    US_FRACTIONAL as US_FRACTIONAL,
    US_MARGIN as US_MARGIN,
    Era as Era,
    Resting as Resting,
    Venue as Venue,
    venues as venues,
)
