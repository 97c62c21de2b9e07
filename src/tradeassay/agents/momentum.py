"""Rules that rank names by what they earned, and hold the best or the worst of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import PATIENCE, Abstain, PortfolioConfig, Rebalancer, as_of, buyable
from tradeassay.core.agent import Observation
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

Count = Annotated[int, Meta(ge=1, description="names to hold (never more than a third of the universe)")]


def how_many(k: int, universe: int) -> int:
    """Return ``k``, or a third of a universe too small for it: holding nearly everything selects nothing."""
    return min(k, max(1, universe // 3))


def best(scores: Floats, k: int) -> list[int]:
    """Return the positions of the ``k`` highest scores, best first, without NaN; ties in the given order."""
    # Array methods, not numpy's functions: this runs every session, and the wrappers cost more than the work.
    losses = -scores
    known = losses == losses
    if k < losses.size:
        # Only candidates for the first k are sorted, those tied with the k-th included.
        ranks = losses.copy()
        ranks.partition(k - 1)
        worst = ranks[k - 1]
        if worst == worst:
            known = losses <= worst
    candidates = known.nonzero()[0]
    order = candidates[losses[candidates].argsort(kind="stable")]
    chosen: list[int] = order[:k].tolist()
    return chosen


def rotate(observation: Observation, scores: Floats, k: int, keep: int) -> list[str]:
    """Return at most ``k`` names: those held that still rank in the first ``keep``, then the best others."""
    universe = observation.universe
    ranked = [universe[i] for i in best(scores, max(k, keep))]
    held = observation.account.positions
    staying = [name for name in ranked if name in held][:k]
    fresh = [name for name in ranked[:k] if name not in held]
    return staying + fresh[: k - len(staying)]


Lookback = Annotated[int, Meta(ge=2, description="sessions back at which the measured period starts")]
Skip = Annotated[
    int, Meta(ge=1, description="sessions back at which the measured period ends (1 = the last close)")
]


class MomentumConfig(PortfolioConfig, frozen=True, kw_only=True):
    """How many names, and which stretch of the past ranks them."""

    k: Count = 20
    keep: Annotated[float, Meta(ge=1, description="a held name stays while it ranks in the first keep x k")] = 2.0
    lookback: Lookback = 252
    skip: Skip = 21


@agents.register("momentum-12-1")
class Momentum(Rebalancer[MomentumConfig]):
    """Ranks the universe by close[-skip] / close[-lookback] - 1 and holds the ``k`` best in equal weights."""

    summary: ClassVar[str] = "holds the winners of the past year without its last month, equal weights"
    Config: ClassVar[type[AgentConfig]] = MomentumConfig

    def __init__(self, config: MomentumConfig) -> None:
        super().__init__(config)
        check_period(config.lookback, config.skip)

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return equal weights for the winners."""
        config = self.config
        scores = momentum(observation, config.lookback, config.skip)
        if isinstance(scores, Abstain):
            return scores
        k = how_many(config.k, len(observation.universe))
        chosen = rotate(observation, scores, k, int(config.keep * k))
        if not chosen:
            return Abstain("no name of the universe has a momentum yet")
        return dict.fromkeys(chosen, 1.0 / k)


def check_period(lookback: int, skip: int) -> None:
    """Raise :class:`UserError` unless the measured period has a length."""
    if skip >= lookback:
        raise UserError(f"momentum from {lookback} to {skip} sessions back is empty", hint="make skip < lookback")


def momentum(observation: Observation, lookback: int, skip: int) -> Floats | Abstain:
    """Return the universe's past returns, NaN where unknown or untradable now; abstain on a short history."""
    closes = observation.view.bars("close", lookback + PATIENCE)
    rows = len(closes)
    if rows < lookback:
        return Abstain(f"needs {lookback} sessions of history, has {rows}")
    columns = observation.columns
    scores: Floats = closes[rows - skip][columns] / closes[rows - lookback][columns] - 1.0
    gaps = np.isnan(scores).nonzero()[0]
    if gaps.size:
        missing = columns[gaps]
        scores[gaps] = as_of(closes, rows - skip, missing) / as_of(closes, rows - lookback, missing) - 1.0
    scores[~buyable(observation)] = np.nan
    return scores


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
