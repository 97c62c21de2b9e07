"""What all rules share: a rule answers at once, repeats itself when asked again, and may abstain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.agents.registry import AgentConfig
from tradeassay.agents.trades import trades_towards
from tradeassay.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision

C = TypeVar("C", bound=AgentConfig)

Buffer = Annotated[
    float, Meta(ge=0, lt=1, description="share of NAV that stays in cash, for costs and overnight moves")
]
Every = Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")]
Band = Annotated[
    float,
    Meta(ge=0, description="a held name is resized only when it is off by more than this share of its target"),
]


class PortfolioConfig(AgentConfig, frozen=True, kw_only=True):
    """What every rule that steers a portfolio can be told."""

    buffer: Buffer = 0.02
    every: Every = 21
    band: Band = 0.2


P = TypeVar("P", bound=PortfolioConfig)


@dataclass(frozen=True, slots=True)
class Abstain:
    """The rule cannot say anything yet; ``reason`` goes into the journal."""

    reason: str


class Rule(ABC, Generic[C]):
    """An agent whose answer is a function of what it observes and of its own random generator."""

    Config: ClassVar[type[AgentConfig]] = AgentConfig
    summary: ClassVar[str] = ""

    def __init__(self, config: C) -> None:
        # A struct does not check its field limits when it is built in code, only when it is decoded.
        try:
            self.config: C = msgspec.convert(msgspec.structs.asdict(config), type(config))
        except msgspec.ValidationError as error:
            raise UserError(f"{type(config).__qualname__}: {error}", mend="correct the parameter") from error
        self.rng = np.random.default_rng(0)
        self._last: tuple[int, Decision] | None = None

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Take the episode's random generator."""
        self.rng = rng
        self._last = None

    def answer(self, request: AskDecision) -> Decision:
        """Decide; a rule that is asked again has nothing new to say and repeats its answer."""
        step = request.observation.step
        if self._last is not None and self._last[0] == step:
            return self._last[1]
        decision = self.decide(request.observation)
        self._last = (step, decision)
        return decision

    @abstractmethod
    def decide(self, observation: Observation) -> Decision:
        """Return the decision for one session."""


class Rebalancer(Rule[P]):
    """A rule that names target weights every ``config.every`` sessions and trades towards them."""

    def __init__(self, config: P) -> None:
        super().__init__(config)
        self._since: int | None = None

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start with no rebalancing behind it."""
        super().begin(info, rng)
        self._since = None

    def decide(self, observation: Observation) -> Decision:
        """Trade towards the targets when it is time to; otherwise hold."""
        if self._since is not None and observation.step - self._since < self.config.every:
            return _HOLDS
        targets = self.targets(observation)
        if isinstance(targets, Abstain):
            return Decision(reason=targets.reason)
        self._since = observation.step
        orders = trades_towards(observation, targets, buffer=self.config.buffer, band=self.config.band)
        return Decision(orders=orders, reason="rebalances" if orders else "is where it wants to be")

    @abstractmethod
    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return the wanted weights of the invested part (they sum to at most 1), or abstain."""


_HOLDS = Decision(reason="holds until the next rebalancing")
