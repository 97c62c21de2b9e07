"""An episode as an Inspect sample: played by the solver, scored from its journal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from weakref import WeakSet

import msgspec
from inspect_ai.model import ChatMessage, Model, ModelAPI, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.core.events import STEP_DECODER, Deposited, Marked, StepRecord
from tradeassay.frontends.prepared import PreparedEpisode
from tradeassay.llm import load_prices
from tradeassay.llm.model import QuestionPlace
from tradeassay.llm.via_inspect.provider import InspectProvider
from tradeassay.llm.via_inspect.wire import keep_raw_responses
from tradeassay.play import Asked, NoAnswer
from tradeassay.play.dialogue_log import Spending
from tradeassay.play.episode import NOBODY
from tradeassay.play.journal import encode_line
from tradeassay.runs.play.episodes import conversation

EVENTS = "tradeassay:events"
SPENDING = "tradeassay:spending"
FAILURE = "tradeassay:failure"
SESSIONS = "tradeassay:sessions"

_WRAPPED: WeakSet[ModelAPI] = WeakSet()
_NOWHERE = QuestionPlace(episode="", step=0, sample=0, index=0)


@solver
def play_episode(plots: Mapping[str, PreparedEpisode], days: int | None) -> Solver:
    """Play a sample's episode with the model under evaluation."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        plot = plots[str(state.metadata["episode"])]
        asker = Asker(get_model())
        journal, sessions, failure = await _play(plot, asker, days)
        state.store.set(EVENTS, [encode_line(record).decode() for record in journal])
        state.store.set(SESSIONS, sessions)
        state.store.set(SPENDING, msgspec.to_builtins(asker.spending))
        state.store.set(FAILURE, failure)
        state.messages += asker.conversation()
        state.output.completion = failure or f"{len(journal)} sessions played; {asker.spending.words()}"
        return state

    return solve


@scorer(metrics={"cumulative_return": [mean(), stderr()], "failed_days": [mean()]})
def outcome_scorer() -> Scorer:
    """Score an episode by its return and by its share of days without a usable answer.

    One that broke off, or had no usable answer at all, has no return, with the reason; days that were not reached
    count as failed.
    """

    async def score(state: TaskState, target: Target) -> Score:
        lines: list[str] = state.store.get(EVENTS, [])
        records = [STEP_DECODER.decode(line) for line in lines]
        sessions = int(state.store.get(SESSIONS, len(records)))
        failure = state.store.get(FAILURE)
        failed = sum(record.decision.status == "failed" for record in records) + sessions - len(records)
        if failure is None and failed == sessions:
            failure = f"no usable answer in any of {len(records)} sessions"
        spending: dict[str, float] = state.store.get(SPENDING, {})
        return Score(
            value={
                "cumulative_return": math.nan if failure is not None else _return(records),
                "failed_days": failed / sessions,
            },
            explanation=failure or f"{len(records)} sessions, {failed} without a usable answer",
            metadata={"failed": failure is not None, "spending": spending},
        )

    return score


async def _play(plot: PreparedEpisode, asker: Asker, days: int | None) -> tuple[list[StepRecord], int, str | None]:
    """Return the journal, how many sessions there were to play, and why the episode broke off, if it did."""
    play = conversation(plot.snapshot, plot.benchmark, plot.episode, plot.secret)
    play.open()
    sessions = min(len(play.market.sessions), days or len(play.market.sessions))
    journal: list[StepRecord] = []
    try:
        async for record in play.arecords(asker.answer):
            journal.append(record)
            if len(journal) == days:
                break
    except NoAnswer as broke:
        assert play.observation is not None
        return journal, sessions, f"{broke.message} on {play.observation.session}"
    return journal, len(journal), None


class Asker:
    """Asks the model under evaluation. Inspect's own retries, limits and settings apply."""

    def __init__(self, model: Model) -> None:
        self.spending = Spending()
        self._provider = InspectProvider(str(model), model, None, load_prices().of(str(model)))
        self._asked: tuple[Message, ...] = ()
        self._talk: list[ChatMessage] = []
        if model.api not in _WRAPPED:
            keep_raw_responses(model.api)
            _WRAPPED.add(model.api)

    async def answer(self, asked: Asked[AskModel]) -> ModelReply:
        """Answer one question; raises when the model cannot be asked any more, or at a limit of the evaluation."""
        reply = await self.reply(asked.request, asked.place)
        self.spending = self.spending.plus(reply.usage)
        if reply.error_kind in NOBODY:
            raise NoAnswer(f"{reply.error_kind}: {reply.error}")
        return reply

    async def reply(self, request: AskModel, place: QuestionPlace = _NOWHERE) -> ModelReply:
        """Answer one request, by an error if the model cannot be asked. Raises at a limit of the evaluation."""
        if request.messages[: len(self._asked)] != self._asked:  # another conversation begins
            self._talk += self._provider.said
        self._asked = request.messages
        return (await self._provider.attempt(request, place)).reply

    def conversation(self) -> list[ChatMessage]:
        """Return everything that was said, one conversation after the other."""
        return [*self._talk, *self._provider.said]


def _return(records: list[StepRecord]) -> float:
    start = next(event.cash for event in records[0].opening if isinstance(event, Deposited))
    end = [event.nav for event in records[-1].events if isinstance(event, Marked)][-1]
    return end / start - 1.0
