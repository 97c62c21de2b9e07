"""Rules that look at risk alone: least variance, and a target volatility."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer, buyable, least_variance, returns
from tradeassay.core.agent import Observation
from tradeassay.core.view import Floats


def shrunk_covariance(returns: Floats, shrinkage: float | None = None) -> Floats:
    """Return (1 - s) S + s m I, where S is the sample covariance (divisor n) and m the mean variance.

    ``returns`` has shape (days, names), simple returns per day; NaN counts as that name's mean. With
    ``shrinkage`` None, s is the weight of Ledoit and Wolf (2004) that minimises the expected squared error.
    """
    counts = np.count_nonzero(~np.isnan(returns), axis=0)
    means = np.nansum(returns, axis=0) / np.maximum(counts, 1)
    centred = np.where(np.isnan(returns), 0.0, returns - means)
    days, names = centred.shape
    sample = centred.T @ centred / days
    mean_variance = float(np.trace(sample)) / names
    if shrinkage is None:
        distance = float(np.sum(sample**2)) / names - mean_variance**2
        squares = np.sum(centred**2, axis=1)
        noise = (float(np.sum(squares**2)) / days - float(np.sum(sample**2))) / (days * names)
        shrinkage = 1.0 if distance <= 0.0 else min(1.0, max(0.0, noise / distance))
    shrunk: Floats = (1.0 - shrinkage) * sample
    shrunk[np.diag_indices(names)] += shrinkage * mean_variance
    return shrunk


_DIGITS = 5
"""Weights are rounded: the last bits of a matrix product depend on the CPU, and must not reach an order."""


def _past(observation: Observation, sessions: int) -> Floats | Abstain:
    """Return the last daily returns of the universe; too short a history is a reason to abstain."""
    past = returns(observation, sessions)
    if past is not None:
        return past
    have = len(observation.view.sessions(sessions + 1))
    return Abstain(f"needs {sessions + 1} sessions of history, has {have}")


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
        past = _past(observation, config.lookback)
        if isinstance(past, Abstain):
            return past
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


class VolTargetConfig(PortfolioConfig, frozen=True, kw_only=True):
    """The wanted volatility, and how it is measured."""

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
        past = _past(observation, config.lookback)
        if isinstance(past, Abstain):
            return past
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
