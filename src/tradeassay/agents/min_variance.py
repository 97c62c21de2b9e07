"""Minimum variance: the long-only portfolio that moved least, judged by a shrunk covariance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.agents.covariance import shrunk_covariance
from tradeassay.agents.history import buyable, returns
from tradeassay.agents.long_only import least_variance
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer
from tradeassay.core.agent import Observation

_DIGITS = 5
"""Weights are rounded: the last bits of a matrix product depend on the CPU, and must not reach an order."""


class MinVarianceConfig(PortfolioConfig, frozen=True, kw_only=True):
    """Which stretch of the past, how much shrinkage, and how large one name may become."""

    lookback: Annotated[int, Meta(ge=10, description="daily returns in the covariance")] = 126
    cap: Annotated[float, Meta(gt=0, le=1, description="largest weight of one name before the cash buffer")] = 0.1
    shrinkage: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="weight of the shrinkage target, 0 to 1; not set = estimated (Ledoit-Wolf)"),
    ] = None
    present: Annotated[
        float, Meta(gt=0, le=1, description="share of the returns a name must have to be considered")
    ] = 0.8
    floor: Annotated[float, Meta(ge=0, lt=1, description="smaller weights are dropped and shared out")] = 0.005


@agents.register("min-variance")
class MinVariance(Rebalancer[MinVarianceConfig]):
    """Holds the long-only portfolio of least variance over the recent past."""

    summary: ClassVar[str] = "holds the long-only portfolio of least variance, rebalanced monthly"
    Config: ClassVar[type[AgentConfig]] = MinVarianceConfig

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return the weights of least variance."""
        config = self.config
        past = returns(observation, config.lookback)
        if past is None:
            have = len(observation.view.sessions(config.lookback + 1))
            return Abstain(f"needs {config.lookback + 1} sessions of history, has {have}")
        known = np.count_nonzero(~np.isnan(past), axis=0) >= config.present * config.lookback
        # A name that did not move at all was not traded; it would take the whole portfolio.
        moving = np.nanmax(np.abs(past), axis=0, initial=0.0) > 0.0
        (usable,) = np.nonzero(known & moving & buyable(observation))
        if len(usable) == 0:
            return Abstain("no name of the universe has enough history yet")
        weights = least_variance(shrunk_covariance(past[:, usable], config.shrinkage), config.cap)
        least = min(config.floor, 1.0 / len(usable))
        kept = {
            observation.universe[i]: weight
            for i, weight in zip(usable.tolist(), np.round(weights, _DIGITS).tolist(), strict=True)
            if weight >= least
        }
        total = math.fsum(kept.values())
        return {symbol: weight / total for symbol, weight in kept.items()}
