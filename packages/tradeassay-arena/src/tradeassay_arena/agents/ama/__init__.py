"""Define the architectures of Agent Market Arena: roles, order of questions, and views of each
role.

Each architecture is a generator over one packet of information and its own memory. This package
never calls a model.
"""

from tradeassay_arena.agents.ama.architectures import (
    DeepFundAgent as DeepFundAgent,
    HedgeFundAgent as HedgeFundAgent,
    InvestorAgent as InvestorAgent,
    TradeAgent as TradeAgent,
    VanillaAgent as VanillaAgent,
)
from tradeassay_arena.agents.ama.roles import (
    Architecture as Architecture,
    Conduct as Conduct,
    architectures as architectures,
    make_architecture as make_architecture,
)
