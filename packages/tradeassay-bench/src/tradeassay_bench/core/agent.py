"""Define the contract between a day protocol and an agent.

A trading day is a sans-I/O generator (``benchmarks/<id>/day.py``) that yields a :data:`Request` and
receives a :data:`Reply`. A rule replies directly, a model through ``llm``, and a foreign agent
through a pipe.
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
    """The rules of the venue in the form that an agent sees.

    ``None`` means "no such limit". ``lot`` is in shares. Costs are fractions of the traded value.
    ``benchmark_index`` is the index with which results are compared.
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
    """Everything that an agent sees before it decides.

    ``universe`` contains the symbols that may be bought now, ``columns`` their columns in ``view``.
    ``since_last`` contains the events of the previous session (fills, rejections, dividends).
    ``sessions_left`` is the number of remaining decisions, including this one.
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

    ``feedback`` describes the error of the previous attempt, if there was one.
    """

    observation: Observation
    attempt: int = 1
    feedback: str | None = None


Request = AskDecision
Reply = Decision
DayProtocol = Generator[Request, Reply, Decision]


class EpisodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that an agent receives at the start of an episode."""

    episode: str
    seed: int
    rules: Rules


class Agent(Protocol):
    """The interface of an agent that replies to a day protocol.

    :meth:`begin` is called once before the first day, with the agent's random generator. An agent
    must not use any other randomness and must not read a clock. Every episode has a new agent
    object.
    """

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Prepare for an episode."""

    def answer(self, request: Request) -> Reply:
        """Return the answer to one request."""


@runtime_checkable
class CostlyAgent(Agent, Protocol):
    """An agent whose answers cost money or time.

    Each decision is written to disk immediately. When a run is resumed, the agent receives its
    earlier decisions through :meth:`recall` and is not queried again. (Any other agent is queried
    again and must repeat its answers.)
    """

    def recall(self, observation: Observation, decision: Decision) -> None:
        """Restore one of the agent's own decisions from the journal."""
