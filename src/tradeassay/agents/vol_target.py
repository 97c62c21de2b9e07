"""Volatility target: an equal-weight portfolio, of which less is held when it swings more."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.agents.history import buyable, returns
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer
from tradeassay.core.agent import Observation


class VolTargetConfig(PortfolioConfig, frozen=True, kw_only=True):
    """How much swing is wanted, and how it is measured."""

    volatility: Annotated[float, Meta(gt=0, description="wanted annual volatility (0.1 = 10 %)")] = 0.1
    lookback: Annotated[int, Meta(ge=5, description="daily returns in the estimate")] = 20
    most: Annotated[float, Meta(gt=0, le=1, description="largest invested share before the cash buffer")] = 1.0
    every: Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")] = 5


@agents.register("vol-target")
class VolTarget(Rebalancer[VolTargetConfig]):
    """Holds the universe in equal weights, scaled so that the expected volatility meets the target."""

    summary: ClassVar[str] = "holds the universe, less of it when markets swing more (10 % a year)"
    Config: ClassVar[type[AgentConfig]] = VolTargetConfig

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return equal weights that sum to the target over the estimated volatility."""
        config = self.config
        past = returns(observation, config.lookback)
        if past is None:
            have = len(observation.view.sessions(config.lookback + 1))
            return Abstain(f"needs {config.lookback + 1} sessions of history, has {have}")
        can = buyable(observation)
        names = [symbol for symbol, ok in zip(observation.universe, can.tolist(), strict=True) if ok]
        present = ~np.isnan(past)
        counts = np.count_nonzero(present, axis=1)
        if not names or not (counts > 0).all():
            return Abstain("no name of the universe has enough history yet")
        daily = [math.fsum(row) / count for row, count in zip(np.where(present, past, 0.0), counts, strict=True)]
        volatility = statistics.stdev(daily) * math.sqrt(observation.rules.periods_per_year)
        exposure = config.most if volatility <= 0.0 else min(config.most, config.volatility / volatility)
        return dict.fromkeys(names, exposure / len(names))
