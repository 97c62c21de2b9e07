"""Provide rules, language models and foreign programs as agents, all in one registry.

A rule sees only an observation. ``make_agent(name, params)`` returns a new rule for an episode. A
model or a foreign agent is queried through the benchmark's conversation. ``make_conversing``
returns such an agent.
"""

from __future__ import annotations

from tradeassay_bench.agents.factor_models.agent import FactorModelAgent as FactorModelAgent
from tradeassay_bench.agents.foreign import ForeignAgent as ForeignAgent
from tradeassay_bench.agents.model import (
    ModelAgent as ModelAgent,
    ModelConfig as ModelConfig,
    model_params as model_params,
)
from tradeassay_bench.agents.own_file import (
    OwnFile as OwnFile,
    files_open as files_open,
    is_own_file as is_own_file,
    own_agent as own_agent,
)
from tradeassay_bench.agents.registry import (
    AgentClass as AgentClass,
    AgentConfig as AgentConfig,
    AgentParameter as AgentParameter,
    Conversing as Conversing,
    Opening as Opening,
    agents as agents,
    check_agent as check_agent,
    converses as converses,
    make_agent as make_agent,
    make_conversing as make_conversing,
    parameters as parameters,
    plays_alone as plays_alone,
)
from tradeassay_bench.agents.rules import (
    Abstain as Abstain,
    Momentum as Momentum,
    PortfolioConfig as PortfolioConfig,
    Random as Random,
    Rebalancer as Rebalancer,
    Reversal as Reversal,
    Rule as Rule,
    trades_towards as trades_towards,
)
