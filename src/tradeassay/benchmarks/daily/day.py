"""One trading day as a sans-I/O generator: ask, check the answer, ask again with the reason, give up and count it.

The generator does no input or output. A rule, a model or a test sends it the answers; retry and failure rules
therefore exist once, whoever answers.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.benchmarks.daily.check import complaint
from tradeassay.core.agent import AskDecision, DayProtocol, EpisodeInfo, Observation
from tradeassay.core.orders import Decision, Failure


class DayConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How patient a day is. ``max_orders`` protects the journal from an agent that runs wild."""

    attempts: Annotated[int, Meta(ge=1)] = 3
    max_orders: Annotated[int, Meta(ge=1)] = 2_000


DEFAULT = DayConfig()


def day(
    observation: Observation, config: DayConfig = DEFAULT
) -> Generator[AskDecision, Decision | Failure, Decision]:
    """Ask for one decision and return it.

    An answer that is malformed goes back with the reason, up to ``config.attempts`` times in all; then the day
    ends with ``status="failed"``. Every refused attempt is kept in ``failures``, also when a later one was good.
    An answer that itself says ``failed`` (the agent broke or cannot play here) is final; a :class:`Failure` stands
    for an attempt that gave no decision at all.
    """
    failures: list[Failure] = []
    feedback: str | None = None
    for attempt in range(1, config.attempts + 1):
        reply = yield AskDecision(observation, attempt, feedback)
        wrong = reply if isinstance(reply, Failure) else complaint(reply, observation, config.max_orders)
        if wrong is None:
            assert isinstance(reply, Decision)
            return reply if not failures else _with_failures(reply, failures)
        failures.append(wrong)
        feedback = f"{wrong.detail} (attempt {attempt} of {config.attempts})"
    return Decision(status="failed", reason="no usable answer", failures=tuple(failures))


class ByObservation:
    """The daily protocol of one episode for agents that see the observation itself.

    A :class:`~tradeassay.play.episode.Conversation`; nothing outlives a day.
    """

    def __init__(self, config: DayConfig = DEFAULT) -> None:
        self._config = config

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Nothing is drawn."""

    def dialogue(self, observation: Observation) -> DayProtocol:
        """Return one day."""
        return day(observation, self._config)

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Nothing is kept."""


def _with_failures(reply: Decision, failures: list[Failure]) -> Decision:
    return msgspec.structs.replace(reply, failures=(*failures, *reply.failures))
