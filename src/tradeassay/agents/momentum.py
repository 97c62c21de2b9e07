"""12-1 momentum: the winners of the last year, its last month left out, in equal weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.agents.history import PATIENCE, as_of, buyable
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer
from tradeassay.agents.selection import Count, how_many, rotate
from tradeassay.core.agent import Observation
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

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
        raise UserError(f"momentum from {lookback} to {skip} sessions back is empty", mend="make skip < lookback")


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
