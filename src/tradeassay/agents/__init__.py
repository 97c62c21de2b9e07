"""Agents: everybody who answers. Rules, language models, and foreign programs come in through the same door.

A rule sees an observation and nothing else: ``make_agent(name, params)`` gives a fresh one for an episode. A model
or a foreign agent is asked in the benchmark's conversation: ``make_conversing``.
"""

from __future__ import annotations

from tradeassay.agents.cash import Cash
from tradeassay.agents.equal_weight import EqualWeight
from tradeassay.agents.factor_models.agent import FactorModelAgent
from tradeassay.agents.foreign import ForeignAgent
from tradeassay.agents.index_hold import IndexHold
from tradeassay.agents.min_variance import MinVariance
from tradeassay.agents.model import ModelAgent, ModelConfig, Opening, model_params
from tradeassay.agents.momentum import Momentum
from tradeassay.agents.momentum_weighted import MomentumWeighted
from tradeassay.agents.random_names import Random
from tradeassay.agents.registry import (
    AgentClass,
    AgentConfig,
    Conversing,
    Parameter,
    agents,
    check_agent,
    converses,
    make_agent,
    make_conversing,
    parameters,
)
from tradeassay.agents.reversal import Reversal
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer, Rule
from tradeassay.agents.sector_equal import SectorEqual
from tradeassay.agents.trades import trades_towards
from tradeassay.agents.vol_target import VolTarget

__all__ = [
    "Abstain",
    "AgentClass",
    "AgentConfig",
    "Cash",
    "Conversing",
    "EqualWeight",
    "FactorModelAgent",
    "ForeignAgent",
    "IndexHold",
    "MinVariance",
    "ModelAgent",
    "ModelConfig",
    "Momentum",
    "MomentumWeighted",
    "Opening",
    "Parameter",
    "PortfolioConfig",
    "Random",
    "Rebalancer",
    "Reversal",
    "Rule",
    "SectorEqual",
    "VolTarget",
    "agents",
    "check_agent",
    "converses",
    "make_agent",
    "make_conversing",
    "model_params",
    "parameters",
    "trades_towards",
]
