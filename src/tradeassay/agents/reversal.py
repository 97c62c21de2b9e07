"""Short-term reversal: the losers of the last days, in equal weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from tradeassay.agents.momentum import Lookback, check_period, momentum
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer
from tradeassay.agents.selection import Count, best, how_many
from tradeassay.core.agent import Observation


class ReversalConfig(PortfolioConfig, frozen=True, kw_only=True):
    """How many names, and how short the term is."""

    k: Count = 20
    lookback: Lookback = 6
    every: Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")] = 5


@agents.register("reversal")
class Reversal(Rebalancer[ReversalConfig]):
    """Buys the ``k`` names that fell most over the last ``lookback - 1`` sessions and waits for a rebound."""

    summary: ClassVar[str] = "holds the losers of the last week, equal weights"
    Config: ClassVar[type[AgentConfig]] = ReversalConfig

    def __init__(self, config: ReversalConfig) -> None:
        super().__init__(config)
        check_period(config.lookback, 1)

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return equal weights for the losers."""
        scores = momentum(observation, self.config.lookback, 1)
        if isinstance(scores, Abstain):
            return scores
        k = how_many(self.config.k, len(observation.universe))
        chosen = best(-scores, k)
        if not chosen:
            return Abstain("no name of the universe has a past return yet")
        return {observation.universe[i]: 1.0 / k for i in chosen}
