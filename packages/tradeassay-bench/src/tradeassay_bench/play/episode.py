"""Run one agent in one market: the only loop *dialogue -> ask -> market -> remember*.

The core does no input or output. :meth:`Episode.step` is a generator that yields every question
with its address and returns the record of the step. :meth:`Episode.records` and
:meth:`Episode.arecords` run it with a synchronous or an asynchronous answerer. Rules, models,
external programs, Inspect samples, MCP clients, the planner and the leak test all use this class.
They differ only in the answerer.

Rounds of the arena have no market. Both episodes and rounds look for an answer first in a
:class:`Recorder`, which has the replies from before an interruption, and then query an answerer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from math import isfinite
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay_bench.core.agent import Agent, AskDecision, EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.drive import (
    LONGEST_DETAIL,
    Ended,
    adrive,
    advance,
    drive,
    fault_in_user_code,
    fault_of,
)
from tradeassay_bench.core.errors import ModelError
from tradeassay_bench.core.events import ENCODER, StepRecord
from tradeassay_bench.core.orders import Decision, Failure, Order
from tradeassay_bench.llm import QuestionPlace
from tradeassay_bench.play.market import Market, MarketConfig, Witness

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")
Result = TypeVar("Result")
Ask_co = TypeVar("Ask_co", covariant=True)
Reply_contra = TypeVar("Reply_contra", contravariant=True)

UNAVAILABLE = frozenset(("over_budget", "unreachable", "rate_limited", "rejected"))
"""Kinds of errors for which the agent is not responsible: it was not reached, or must not be
queried.

Such an error ends the episode. It does not count as a failed decision, because a network fault must
not become a trading result.
"""
_DECISION = msgspec.json.Decoder(Decision)
_ORDER = msgspec.json.Decoder(Order)
_UNWRITABLE = (msgspec.MsgspecError, TypeError, ValueError, OverflowError)
"""Exceptions of the encoder and decoder for values that JSON cannot represent."""


class NoAnswer(ModelError):
    """The agent can no longer be reached."""


class AddressedQuestion(NamedTuple, Generic[Ask]):
    """A question and its address: the episode, the step, the seed, and its number in the step."""

    request: Ask
    place: QuestionPlace


class Conversation(Protocol[Ask_co, Reply_contra]):
    """The interface of a protocol within one episode: it asks the questions of each session.

    An object of this type belongs to one episode and can remember earlier sessions.
    """

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start the episode. All randomness comes from ``rng``."""

    def dialogue(self, observation: Observation) -> Generator[Ask_co, Reply_contra, Decision]:
        """Yield the questions of one step and return the decision."""

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Update the memory after a step.

        This method is also called for every recorded step when an episode is resumed.
        """


class Episode(Generic[Ask, Reply]):
    """One agent in one market.

    Call :meth:`open` or :meth:`resume`, then :meth:`step` until ``observation`` is None, then
    :meth:`close`. ``conversation`` is None for a caller that makes its own decisions and only calls
    :meth:`decide`. Raises :class:`UserError` if the dataset does not contain the market's window,
    venue or universe.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        config: MarketConfig,
        conversation: Conversation[Ask, Reply] | None = None,
        *,
        key: str = "episode",
        seed: int = 0,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.market = Market(snapshot, config)
        self.key, self.seed = key, seed
        self.observation: Observation | None = None
        self._conversation = conversation
        self._talking: Generator[AddressedQuestion[Ask], Reply, Decision] | None = None
        if conversation is not None:
            conversation.begin(self.info, np.random.default_rng(seed) if rng is None else rng)

    @property
    def info(self) -> EpisodeInfo:
        return EpisodeInfo(episode=self.key, seed=self.seed, rules=self.market.rules)

    def open(self) -> Observation:
        """Start the episode and return its first observation."""
        seen = self.market.reset()
        self.observation = seen
        return seen

    def resume(
        self, records: Iterable[StepRecord], witness: Witness | None = None
    ) -> Observation | None:
        """Continue after a journal.

        Return the next observation, or None if the journal is complete. ``witness`` is called for
        every replayed step. Raises :class:`~tradeassay_bench.core.errors.RunError` if a replayed
        record differs from the journal.
        """
        conversation = self._conversation

        def replayed(seen: Observation, record: StepRecord) -> None:
            if conversation is not None:
                conversation.remember(seen, record.decision)
            if witness is not None:
                witness(seen, record)

        self.observation = self.market.restore(records, replayed)
        return self.observation

    def step(self) -> Generator[AddressedQuestion[Ask], Reply, StepRecord]:
        """Yield the questions of one session with their addresses, trade, and return the record."""
        seen, conversation = self.observation, self._conversation
        if seen is None or conversation is None:
            raise UserError("the episode has no open step", hint="open() an episode first")
        place = QuestionPlace(episode=self.key, step=seen.step, sample=self.seed, index=0)
        self._talking = addressed(conversation.dialogue(seen), place)
        return self.decide((yield from self._talking))

    def decide(self, decision: Decision) -> StepRecord:
        """Execute a decision made by the caller and return the record of the step."""
        seen = self.observation
        if seen is None:
            raise UserError("the episode is over or was not started", hint="open() it")
        self._talking = None
        decision = as_recorded(decision)
        step = self.market.step(decision)
        if self._conversation is not None:
            self._conversation.remember(seen, decision)
        self.observation = step.observation
        return step.record

    def close(self) -> None:
        """End the episode and the dialogue in progress."""
        if self._talking is not None:
            self._talking.close()
        self._talking = None
        self.observation = None

    def records(self, answer: Callable[[AddressedQuestion[Ask]], Reply]) -> Iterator[StepRecord]:
        """Run the remaining steps with a synchronous answerer, and yield each record."""
        while self.observation is not None:
            yield drive(self.step(), answer)

    async def arecords(
        self, answer: Callable[[AddressedQuestion[Ask]], Awaitable[Reply]]
    ) -> AsyncIterator[StepRecord]:
        """Run the remaining steps with an asynchronous answerer. Yield each record."""
        while self.observation is not None:
            yield await adrive(self.step(), answer)


def addressed(
    dialogue: Generator[Ask, Reply, Result], place: QuestionPlace
) -> Generator[AddressedQuestion[Ask], Reply, Result]:
    """Yield the questions of a dialogue with their addresses, and return the dialogue's result.

    ``place`` is the address of the first question.
    """
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            now = advance(dialogue, (yield AddressedQuestion(now, place)))
            place = QuestionPlace(
                episode=place.episode, step=place.step, sample=place.sample, index=place.index + 1
            )
        return now.result
    finally:
        dialogue.close()


def as_recorded(decision: Decision) -> Decision:
    """Return a decision in the form that the journal stores, for example 100.0 for an amount of
    100.

    The market executes this form, so that a live run and its replay cannot differ. An order with a
    number that JSON cannot represent (an infinity, NaN, a number beyond float64) is removed and
    counted as a failure. The remaining orders trade.
    """
    try:
        if all(map(_finite, decision.orders)):
            return _DECISION.decode(ENCODER.encode(decision))
    except _UNWRITABLE:
        pass
    orders: list[Order] = []
    failures = list(decision.failures)
    for number, order in enumerate(decision.orders, start=1):
        reason = _unwritable(order)
        if reason is None:
            orders.append(order)
        else:
            detail = f"order {number} is not carried out: {reason}"[:LONGEST_DETAIL]
            failures.append(Failure(kind="schema", detail=detail))
    decision = msgspec.structs.replace(decision, orders=tuple(orders), failures=tuple(failures))
    try:
        return _DECISION.decode(ENCODER.encode(decision))
    except _UNWRITABLE as error:
        return failed_decision(error)


def _finite(order: Order) -> bool:
    return all(
        number is None or isfinite(number)
        for number in (order.amount, order.limit_price, order.stop_price)
    )


def _unwritable(order: Order) -> str | None:
    """Return the reason why a journal cannot store an order unchanged, or None."""
    try:
        for name in ("amount", "limit_price", "stop_price"):
            number = getattr(order, name)
            if number is not None and not isfinite(number):
                return f"its {name} {number!r} is not a number"
        _ORDER.decode(ENCODER.encode(order))
    except _UNWRITABLE as error:
        return str(fault_of(error))
    return None


# -- answerers -------------------------------------------------------------------------------------


class Answerer(Protocol):
    """The counterpart of a conversation: a model or an external agent.

    A failure is a reply, never an exception.
    """

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply: ...


class Recorder(Protocol):
    """The interface of an object that records the questions and replies of one step."""

    def known(self, asked: AddressedQuestion[AskModel]) -> ModelReply | None:
        """Return the reply recorded for this question before an interruption, or None.

        Raises :class:`~tradeassay.core.errors.TradeassayError` if a different question was recorded
        in its place.
        """

    def note(self, asked: AddressedQuestion[AskModel], reply: ModelReply) -> None:
        """Record a new reply, before anything depends on it."""


def recorded(
    answerer: Answerer, recorder: Recorder
) -> Callable[[AddressedQuestion[AskModel]], Awaitable[ModelReply]]:
    """Return a function that answers from the recorder first.

    If the recorder has no reply, the function queries the answerer and records its reply.
    """

    async def answer(asked: AddressedQuestion[AskModel]) -> ModelReply:
        reply = recorder.known(asked)
        if reply is None:
            reply = await answerer.ask(asked.request, asked.place)
            recorder.note(asked, reply)
        return reply

    return answer


def by_observation(agent: Agent) -> Callable[[AskDecision], Decision]:
    """Return a function that answers requests with an agent.

    An exception of the agent becomes a failed decision of kind ``agent``, so that the run
    continues.
    """

    def answer(request: AskDecision) -> Decision:
        try:
            return agent.answer(request)
        except Exception as error:
            return failed_decision(error)

    return answer


def failed_decision(error: BaseException) -> Decision:
    """Return the failed decision that records an exception of the agent."""
    failure = Failure(kind="agent", detail=str(fault_in_user_code(error))[:LONGEST_DETAIL])
    return Decision(status="failed", reason="the agent broke", failures=(failure,))
