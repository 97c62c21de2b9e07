"""Sector-equal: the same amount for every sector, and inside a sector for every name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from tradeassay.agents.history import buyable
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, PortfolioConfig, Rebalancer
from tradeassay.core.agent import Observation


class SectorEqualConfig(PortfolioConfig, frozen=True, kw_only=True):
    """How often the sectors are brought back to equal weights."""

    every: Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")] = 63


@agents.register("sector-equal")
class SectorEqual(Rebalancer[SectorEqualConfig]):
    """Splits the money equally between sectors, then equally between the names of a sector.

    Names without a sector form a group of their own. Where no sector is known at all, that group is everything,
    and the rule is an equal-weight portfolio that is rebalanced.
    """

    summary: ClassVar[str] = "equal money for every sector, rebalanced each quarter"
    Config: ClassVar[type[AgentConfig]] = SectorEqualConfig

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return 1 / (sectors x names in the sector) for every name that trades."""
        groups: dict[str | None, list[str]] = {}
        for symbol, ok in zip(observation.universe, buyable(observation).tolist(), strict=True):
            if ok:
                groups.setdefault(observation.view.instrument(symbol).sector, []).append(symbol)
        if not groups:
            return Abstain("no name of the universe has a price yet")
        return {symbol: 1.0 / (len(groups) * len(names)) for names in groups.values() for symbol in names}
