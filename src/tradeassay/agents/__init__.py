"""Agents: rules, language models and foreign programs, all registered through the same door.

A rule sees an observation and nothing else: ``make_agent(name, params)`` gives a fresh one for an episode. A model
or a foreign agent is asked in the benchmark's conversation: ``make_conversing``.
"""

from __future__ import annotations

from tradeassay.agents.factor_models.agent import FactorModelAgent
from tradeassay.agents.foreign import ForeignAgent
from tradeassay.agents.model import ModelAgent, ModelConfig, model_params
from tradeassay.agents.own_file import OwnFile, files_open, is_own_file, own_agent
from tradeassay.agents.registry import (
    AgentClass,
    AgentConfig,
    AgentParameter,
    Conversing,
    Opening,
    agents,
    check_agent,
    converses,
    make_agent,
    make_conversing,
    parameters,
    plays_alone,
)
from tradeassay.agents.rules import (
    Abstain,
    EqualWeight,
    IndexHold,
    KeepsCash,
    MinVariance,
    Momentum,
    MomentumWeighted,
    PortfolioConfig,
    Random,
    Rebalancer,
    Reversal,
    Rule,
    SectorEqual,
    VolTarget,
    trades_towards,
)
