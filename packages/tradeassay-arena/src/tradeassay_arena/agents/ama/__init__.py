"""The four architectures of Agent Market Arena and the bare model: who is asked what, in which order, and who
sees whose words.

Each is a sans-I/O generator over one packet of information and its own memory. Nothing here talks to a model.
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
