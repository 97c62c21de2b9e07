"""Random: names drawn by the episode's own generator, under everybody's rules. What luck looks like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.agents.momentum import Count, how_many
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer, buyable
from tradeassay.core.agent import EpisodeInfo, Observation


class RandomConfig(PortfolioConfig, frozen=True, kw_only=True):
    """How many names, and how fast they are exchanged; set both to match the agent whose luck is in question."""

    k: Count = 20
    turnover: Annotated[
        float, Meta(ge=0, le=1, description="share of the names exchanged at each rebalancing")
    ] = 0.2
    every: Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")] = 5


@agents.register("random")
class Random(Rebalancer[RandomConfig]):
    """Holds ``k`` names drawn at random in equal weights, and exchanges some of them at each rebalancing."""

    summary: ClassVar[str] = "holds names drawn at random (seeded), under the same rules"
    Config: ClassVar[type[AgentConfig]] = RandomConfig

    def __init__(self, config: RandomConfig) -> None:
        super().__init__(config)
        self._names: list[str] = []

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start without any names."""
        super().begin(info, rng)
        self._names = []

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return equal weights for the names drawn."""
        config = self.config
        pool = [s for s, ok in zip(observation.universe, buyable(observation).tolist(), strict=True) if ok]
        if not pool:
            return Abstain("no name of the universe has a price yet")
        k = how_many(config.k, len(observation.universe))
        present = set(pool)
        staying = [name for name in self._names if name in present]
        leaving = self.rng.binomial(len(staying), config.turnover) if staying else 0
        if leaving:
            gone = set(self.rng.choice(len(staying), size=leaving, replace=False).tolist())
            staying = [name for i, name in enumerate(staying) if i not in gone]
        outside = [name for name in pool if name not in set(self._names)] or pool
        missing = min(k - len(staying), len(outside))
        drawn = self.rng.choice(len(outside), size=missing, replace=False).tolist() if missing > 0 else []
        self._names = staying + [outside[i] for i in drawn if outside[i] not in staying]
        return dict.fromkeys(self._names, 1.0 / k)
