"""Agents that exist to test reports, in a module of their own as a user's would be."""

from typing import ClassVar

import numpy as np

from tradeassay.agents import AgentConfig, agents
from tradeassay.core.agent import AskDecision, EpisodeInfo
from tradeassay.core.orders import Decision, Order


class _Base:
    summary: ClassVar[str] = "for tests"
    Config: ClassVar[type[AgentConfig]] = AgentConfig

    def __init__(self, config: AgentConfig) -> None:
        self.config = config

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self.rng = rng


@agents.register("test-report-silent")
class Silent(_Base):
    """Never gives a usable answer."""

    def answer(self, request: AskDecision) -> Decision:
        return Decision(orders=(Order(symbol="", amount=float("nan")),))


@agents.register("test-report-broken")
class Broken(_Base):
    """Fails before its first day."""

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        raise RuntimeError("no key <b>given</b>")

    def answer(self, request: AskDecision) -> Decision:
        return Decision()
