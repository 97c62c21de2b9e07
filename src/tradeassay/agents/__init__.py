"""Agents: rules that trade, through the same door as models and anybody's own code.

An agent sees an observation and nothing else. ``make_agent(name, params)`` gives a fresh one for an episode.
"""

from __future__ import annotations

from tradeassay.agents.cash import Cash
from tradeassay.agents.equal_weight import EqualWeight
from tradeassay.agents.factor_models.agent import FactorModelAgent
from tradeassay.agents.index_hold import IndexHold
from tradeassay.agents.min_variance import MinVariance
from tradeassay.agents.model import ModelAgent, ModelConfig, model_params
from tradeassay.agents.momentum import Momentum
from tradeassay.agents.momentum_weighted import MomentumWeighted
from tradeassay.agents.random_names import Random
from tradeassay.agents.registry import AgentClass, AgentConfig, Parameter, agents, make_agent, parameters
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
    "EqualWeight",
    "FactorModelAgent",
    "IndexHold",
    "MinVariance",
    "ModelAgent",
    "ModelConfig",
    "Momentum",
    "MomentumWeighted",
    "Parameter",
    "PortfolioConfig",
    "Random",
    "Rebalancer",
    "Reversal",
    "Rule",
    "SectorEqual",
    "VolTarget",
    "agents",
    "make_agent",
    "model_params",
    "parameters",
    "trades_towards",
]
