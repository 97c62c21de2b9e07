"""Cash: never trades. What everybody must beat, and a check that doing nothing costs nothing."""

from __future__ import annotations

from typing import ClassVar

from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Rule
from tradeassay.core.agent import Observation
from tradeassay.core.orders import Decision


class CashConfig(AgentConfig, frozen=True, kw_only=True):
    """There is nothing to set."""


@agents.register("cash")
class Cash(Rule[CashConfig]):
    """Keeps everything in cash."""

    summary: ClassVar[str] = "keeps everything in cash and never trades"
    Config: ClassVar[type[AgentConfig]] = CashConfig

    def decide(self, observation: Observation) -> Decision:
        """Do nothing."""
        return _STAYS


_STAYS = Decision(reason="stays in cash")
