"""An episode as an Inspect sample: played by the solver, scored from its journal."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakSet

import msgspec
from inspect_ai.model import GenerateConfig, Model, ModelAPI, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.events import STEP_DECODER, Deposited, Marked, StepRecord
from tradeassay.core.time import WallClock
from tradeassay.frontends.plots import Plot
from tradeassay.llm import ModelParams, Price, load_prices
from tradeassay.llm.model import failed_reply
from tradeassay.llm.via_inspect.faults import read_fault
from tradeassay.llm.via_inspect.translation import (
    ReasoningMemory,
    to_choice,
    to_config,
    to_messages,
    to_reply,
    to_tools,
)
from tradeassay.llm.via_inspect.wire import RESPONSE, keep_raw_responses
from tradeassay.play import Asked, NoAnswer
from tradeassay.play.dialogue_log import Spending
from tradeassay.play.episode import NOBODY
from tradeassay.play.journal import encode_line
from tradeassay.runs.play import conversation

EVENTS = "tradeassay:events"
SPENDING = "tradeassay:spending"
FAILURE = "tradeassay:failure"

_WRAPPED: WeakSet[ModelAPI] = WeakSet()


@solver
def play_episode(plots: Mapping[str, Plot], days: int | None) -> Solver:
    """Play a sample's episode with the model under evaluation."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        plot = plots[str(state.metadata["episode"])]
        journal, spending, failure = await _play(plot, Asker(get_model()), days)
        state.store.set(EVENTS, [encode_line(record).decode() for record in journal])
        state.store.set(SPENDING, msgspec.to_builtins(spending))
        state.store.set(FAILURE, failure)
        state.output.completion = failure or f"{len(journal)} sessions played; {spending.words()}"
        return state

    return solve


@scorer(metrics={"cumulative_return": [mean(), stderr()], "failed_days": [mean()]})
def outcome_scorer() -> Scorer:
    """Score an episode by its return. One without a usable answer is left unscored, with the reason."""

    async def score(state: TaskState, target: Target) -> Score:
        lines: list[str] = state.store.get(EVENTS, [])
        records = [STEP_DECODER.decode(line) for line in lines]
        failure = state.store.get(FAILURE)
        if failure is None and all(record.decision.status == "failed" for record in records):
            failure = f"no usable answer in any of {len(records)} sessions"
        spending: dict[str, float] = state.store.get(SPENDING, {})
        if failure is not None:
            return Score.unscored(explanation=failure, metadata={"failed": True, "spending": spending})
        failed = sum(record.decision.status == "failed" for record in records)
        return Score(
            value={"cumulative_return": _return(records), "failed_days": failed / len(records)},
            explanation=f"{len(records)} sessions, {failed} without a usable answer",
            metadata={"failed": False, "spending": spending},
        )

    return score


async def _play(plot: Plot, asker: Asker, days: int | None) -> tuple[list[StepRecord], Spending, str | None]:
    """Return the journal, what the answers cost, and why the episode broke off, if it did."""
    play = conversation(plot.snapshot, plot.benchmark, plot.episode, plot.secret)
    play.open()
    journal: list[StepRecord] = []
    try:
        async for record in play.arecords(asker.answer):
            journal.append(record)
            if len(journal) == days:
                break
    except NoAnswer as broke:
        assert play.observation is not None
        return journal, asker.spending, f"{broke.message} on {play.observation.session}"
    return journal, asker.spending, None


class Asker:
    """Asks the model under evaluation. Inspect's own retries, limits and settings apply."""

    def __init__(self, model: Model) -> None:
        self.spending = Spending()
        self._model = model
        self._price: Price | None = load_prices().of(str(model))
        self._memory = ReasoningMemory()
        if model.api not in _WRAPPED:
            keep_raw_responses(model.api)
            _WRAPPED.add(model.api)

    async def answer(self, asked: Asked[AskModel]) -> ModelReply:
        """Answer one question; raises when the model cannot be asked any more, or at a limit of the evaluation."""
        reply = await self.reply(asked.request)
        self.spending = self.spending.plus(reply.usage)
        if reply.error_kind in NOBODY:
            raise NoAnswer(f"{reply.error_kind}: {reply.error}")
        return reply

    async def reply(self, request: AskModel) -> ModelReply:
        """Answer one request, by an error if the model cannot be asked. Raises at a limit of the evaluation."""
        box: list[object] = []
        RESPONSE.set(box)
        schema = to_config(request, ModelParams(), can_schema=True).response_schema
        try:
            output = await self._model.generate(
                input=to_messages(request.messages, self._memory),
                tools=to_tools(request.tools, request.must_call),
                tool_choice=to_choice(request, can_force=True),
                config=GenerateConfig(response_schema=schema),
            )
        except Exception as error:
            fault = read_fault(error, WallClock())
            if fault is None:
                raise
            return failed_reply(fault.kind, fault.message, billed=fault.billed)
        return to_reply(output, box[0] if box else None, request, self._price, self._memory)


def _return(records: list[StepRecord]) -> float:
    start = next(event.cash for event in records[0].opening if isinstance(event, Deposited))
    end = [event.nav for event in records[-1].events if isinstance(event, Marked)][-1]
    return end / start - 1.0
