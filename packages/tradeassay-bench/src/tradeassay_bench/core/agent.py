"""The contract between a day protocol and the agent that answers it.

A trading day is a sans-I/O generator (``benchmarks/<id>/day.py``): it yields a :data:`Request` and
is sent a :data:`Reply`. A rule answers at once, a model through ``llm``, a foreign agent through a
pipe.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np

from tradeassay_bench.core.events import Event
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.core.time import Instant
from tradeassay_bench.core.view import AccountState, MarketView


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of the venue, as an agent is shown them.

    ``None`` means "no such limit". ``lot`` is in shares, costs are fractions of the traded value.
    ``benchmark_index`` is the index that results are compared with.
    """

    venue: str
    currency: str
    long_only: bool
    lot: float
    t_plus_1: bool
    max_weight: float | None = None
    max_positions: int | None = None
    buy_cost: float = 0.0
    sell_cost: float = 0.0
    benchmark_index: str | None = None
    periods_per_year: int = 252


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything an agent sees before it decides.

    Nothing else reaches the agent. ``universe`` holds the symbols that may be bought now,
    ``columns`` their columns in ``view``. ``since_last`` are the events of the previous session
    (fills, rejections, dividends). ``sessions_left`` counts the decisions still to come, this one
    included.
    """

    step: int
    session: str
    time: Instant
    universe: tuple[str, ...]
    columns: np.ndarray[tuple[int], np.dtype[np.int64]]
    view: MarketView
    account: AccountState
    rules: Rules
    since_last: tuple[Event, ...]
    sessions_left: int


@dataclass(frozen=True, slots=True)
class AskDecision:
    """A request for a decision.

    ``feedback`` says what was wrong with the previous attempt, if there was one.
    """

    observation: Observation
    attempt: int = 1
    feedback: str | None = None


Request = AskDecision
Reply = Decision
DayProtocol = Generator[Request, Reply, Decision]


class EpisodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The facts an agent is given when an episode starts."""

    episode: str
    seed: int
    rules: Rules


class Agent(Protocol):
    """Anything that can answer a day protocol.

    :meth:`begin` is called once before the first day with a random generator of the agent's own. An
    agent must not use any other randomness and must not read a clock. A new object is made for
    every episode.
    """

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Prepare for an episode."""

    def answer(self, request: Request) -> Reply:
        """Answer one request."""


@runtime_checkable
class CostlyAgent(Agent, Protocol):
    """An agent whose answers cost money or time.

    Each of its decisions is written to disk at once. When a run is resumed, the agent is shown its
    earlier decisions instead of being asked again. (Any other agent is asked again and must give
    the same answers.)
    """

    def recall(self, observation: Observation, decision: Decision) -> None:
        """Take note of one of the agent's own decisions, read from the journal."""
