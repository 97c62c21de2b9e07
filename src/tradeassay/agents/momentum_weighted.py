"""Momentum-weighted: every rising name of the universe, in proportion to how much it has risen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.agents.momentum import Lookback, Skip, check_period, momentum
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer
from tradeassay.core.agent import Observation


class MomentumWeightedConfig(PortfolioConfig, frozen=True, kw_only=True):
    """Which stretch of the past weighs the names, and how large one may become."""

    lookback: Lookback = 63
    skip: Skip = 1
    cap: Annotated[float, Meta(gt=0, le=1, description="largest weight of one name before the cash buffer")] = 0.2


@agents.register("momentum-weighted")
class MomentumWeighted(Rebalancer[MomentumWeightedConfig]):
    """Weights each name by its positive past return; falling names get nothing.

    When nothing rises it sells everything and waits in cash.
    """

    summary: ClassVar[str] = "holds every rising name in proportion to its past return"
    Config: ClassVar[type[AgentConfig]] = MomentumWeightedConfig

    def __init__(self, config: MomentumWeightedConfig) -> None:
        super().__init__(config)
        check_period(config.lookback, config.skip)

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return weights in proportion to the positive past returns, capped."""
        scores = momentum(observation, self.config.lookback, self.config.skip)
        if isinstance(scores, Abstain):
            return scores
        rising = np.where(scores > 0.0, scores, 0.0)
        total = math.fsum(rising)
        if total <= 0.0:
            return {}
        # Weight above the cap is not handed to the others: it stays in cash.
        weights = np.minimum(rising / total, self.config.cap)
        return {
            symbol: weight
            for symbol, weight in zip(observation.universe, weights.tolist(), strict=True)
            if weight > 0.0
        }
