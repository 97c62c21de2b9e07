"""A rule that reads today's close before the open, as a registered agent."""

from typing import Any, ClassVar

import numpy as np

from tradeassay_bench.agents.registry import AgentConfig, agents
from tradeassay_bench.agents.rules import Rule
from tradeassay_bench.core.agent import Observation
from tradeassay_bench.core.orders import Decision, Order


class Peeker(Rule[AgentConfig]):
    """Holds the name that will rise most today."""

    summary: ClassVar[str] = "knows today's close"
    Config: ClassVar[type[AgentConfig]] = AgentConfig

    def decide(self, observation: Observation) -> Decision:
        view: Any = observation.view
        bars = view._history.fields  # reaching behind the view is what is planted
        moves = (
            bars["close"][view.row, : len(view.symbols)]
            / bars["open"][view.row, : len(view.symbols)]
        )
        ranked = [view.symbols[k] for k in np.argsort(-np.nan_to_num(moves))]
        best = next(name for name in ranked if name in observation.universe)
        gone = [name for name in observation.account.positions if name != best]
        sold = tuple(Order(symbol=name, amount=0.0, unit="target_weight") for name in gone)
        return Decision(
            orders=(*sold, Order(symbol=best, amount=0.9, unit="target_weight")),
            reason="it will rise",
        )


if "test-peeker" not in agents:
    agents.add("test-peeker", Peeker)
