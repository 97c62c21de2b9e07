"""``inspect eval tradeassay/quantcode``: the same tasks, conversations and examination, driven by Inspect.

A sample is a task; Inspect's epochs are our seeds. Programs run in our own sandbox, not in one of Inspect's.
The whole record of a sample is in its store under ``tradeassay:outcome``.
"""

from __future__ import annotations

import atexit
import threading
from typing import Any

import anyio.to_thread
import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from tradeassay.benchmarks.quantcode.dialogue import TaskOutcome
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.drive import adrive
from tradeassay.core.errors import UserError
from tradeassay.frontends.inspect_episode import SPENDING, Asker
from tradeassay.llm import parse_name, scripted_models
from tradeassay.runs.code_protocol import AskRole, CodeAsk
from tradeassay.runs.episode import EpisodeSpec
from tradeassay.runs.quantcode import QuantCodeV2Protocol, QuantCodeV2Spec
from tradeassay.sandbox import JobExecutor

__all__ = ["quantcode"]

OUTCOME = "tradeassay:outcome"
_STAGES = ("compile", "backtest", "trade", "lookahead")


@task
def quantcode(
    setting: str = "single-turn",
    wording: str = "formal",
    framework: str = "backtrader",
    difficulty: str | None = None,
    timeframe: str | None = None,
    family: str | None = None,
    tasks: str | None = None,
    sample: int | None = None,
    turns: int = 10,
    judge: str | None = None,
    decides: str = "reference-first",
    task_file: str | None = None,
    secret: str | None = None,
    workers: int = 2,
) -> Task:
    """QuantCode: a model writes a trading strategy that was described in words.

    Args:
        setting: single-turn, or agentic with feedback.
        wording: formal or conversational.
        framework: backtrader, or frame for plain vectorised signals.
        difficulty: Only easy, medium or hard tasks.
        timeframe: Only tasks on 1d, 1h, 15m, 5m or 1m bars.
        family: Only tasks of one family, e.g. breakout.
        tasks: Ids of single tasks, joined by commas.
        sample: So many tasks, evenly spread.
        turns: Answers that an agentic task gets.
        judge: A model that reads the programs, besides the behavioural judge.
        decides: Which judge the judge stage goes by.
        task_file: A copy of the public 400-task file, instead of our tasks.
        secret: What the judged markets are drawn from, to repeat an earlier run. Default: drawn.
        workers: Programs that are examined at the same time.
    """
    protocol = QuantCodeV2Protocol(_spec(locals()))
    items = protocol.episodes()
    if not items:
        raise UserError("no task is left", mend="drop a filter")
    params = protocol.spec.params
    return Task(
        dataset=MemoryDataset([_sample(protocol, item) for item in items], name=protocol.spec.benchmark),
        solver=write_program(protocol, {item.task: item for item in items}, workers),
        scorer=stage_scorer(),
        config=GenerateConfig(
            temperature=params.temperature, max_tokens=params.max_tokens, attempt_timeout=round(params.timeout_s)
        ),
        metadata={"benchmark": protocol.spec.benchmark, "facts": protocol.facts()},
        fail_on_error=False,
    )


@solver
def write_program(protocol: QuantCodeV2Protocol, items: dict[str, EpisodeSpec], workers: int) -> Solver:
    """Carry a task's conversation with the model under evaluation, examining every program."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        item = items[str(state.metadata["task"])]
        writer = Asker(get_model())
        outcome = await _carry(protocol, item, writer, workers)
        state.store.set(OUTCOME, msgspec.to_builtins(outcome))
        state.store.set(SPENDING, msgspec.to_builtins(writer.spending))
        codes = [turn.code for turn in outcome.turns if turn.code is not None]
        state.output.completion = codes[-1] if codes else outcome.reason
        return state

    return solve


@scorer(metrics={name: [mean(), stderr()] for name in (*_STAGES, "solved")} | {"turns": [mean()]})
def stage_scorer() -> Scorer:
    """Score a task by stages. A task without a verdict is left unscored, with the reason."""

    async def score(state: TaskState, target: Target) -> Score:
        outcome = msgspec.convert(state.store.get(OUTCOME), TaskOutcome)
        about: dict[str, Any] = {
            "stage": outcome.stage,
            "failure_class": outcome.failure_class,
            "tricks": list(outcome.tricks),
            "spending": state.store.get(SPENDING, {}),
        }
        if outcome.solved is None:
            return Score.unscored(explanation=outcome.reason, metadata=about)
        found = outcome.turns[-1].evaluation
        honest = found is not None and not found.grave_tricks
        value: dict[str, float] = {
            name: float(found is not None and (honest or name == "compile") and found.stage(name).passed)
            for name in _STAGES
        }
        value |= {"solved": float(outcome.solved), "turns": float(len(outcome.turns))}
        return Score(value=value, explanation=outcome.reason or "solved", metadata=about)

    return score


def _spec(given: dict[str, Any]) -> QuantCodeV2Spec:
    def one(name: str) -> list[str]:
        return [given[name]] if given[name] is not None else []

    values = {
        "models": ["inspect/model"],
        "tasks": [part.strip() for part in str(given["tasks"]).split(",")] if given["tasks"] else [],
        "difficulties": one("difficulty"),
        "timeframes": one("timeframe"),
        "families": one("family"),
        "sample": given["sample"],
        "task_file": given["task_file"],
        "wordings": one("wording"),
        "frameworks": one("framework"),
        "settings": one("setting"),
        "turns": given["turns"],
        "judge": given["judge"],
        "evaluate": {"decides": given["decides"]},
        **({"secret": given["secret"]} if given["secret"] else {}),
    }
    try:
        return msgspec.convert(values, QuantCodeV2Spec)
    except msgspec.ValidationError as error:
        raise UserError(
            f"the task cannot be set up so: {error}", mend="see docs/reference/quantcode.md"
        ) from error


def _sample(protocol: QuantCodeV2Protocol, item: EpisodeSpec) -> Sample:
    found, settings = protocol.tasks[item.task], protocol.settings(item)
    about = {
        "task": found.id,
        "difficulty": found.difficulty,
        "timeframe": found.timeframe,
        "family": found.family,
    }
    return Sample(
        id=found.id, input=found.text(settings.wording, settings.framework) or found.formal, metadata=about
    )


async def _carry(protocol: QuantCodeV2Protocol, item: EpisodeSpec, writer: Asker, workers: int) -> TaskOutcome:
    judge = _judge(protocol.spec.judge)

    async def answer(ask: CodeAsk) -> Any:
        if not isinstance(ask, AskRole):
            executor = await anyio.to_thread.run_sync(_SANDBOX.open, protocol, workers)
            return await anyio.to_thread.run_sync(protocol.examine, item, ask.request, executor)
        if ask.role != "writer":
            return await judge(ask.request)
        reply = await writer.reply(ask.request)
        writer.spending = writer.spending.plus(reply.usage)
        return reply

    outcome: TaskOutcome = await adrive(protocol.dialogue(item), answer)
    return outcome


def _judge(name: str | None) -> Any:
    """Return how the judge is asked: a scripted one answers at once, any other through Inspect."""
    if name is None:
        return None
    if parse_name(name).route == "scripted":
        scripted = scripted_models.get(parse_name(name).rest)()

        async def answer(request: AskModel) -> ModelReply:
            return scripted.answer(request)

        return answer
    return Asker(get_model(name)).reply


class _Sandbox:
    """One sandbox for all samples of a process: opening one costs more than a program's examination."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: JobExecutor | None = None

    def open(self, protocol: QuantCodeV2Protocol, workers: int) -> JobExecutor:
        """Return it, opening it on first use; raises what opening a sandbox raises."""
        with self._lock:
            if self._executor is None:
                self._executor = protocol.open_executor(workers)
                atexit.register(self.close)
            return self._executor

    def close(self) -> None:
        """Close it. The next use opens another."""
        with self._lock:
            if self._executor is not None:
                self._executor.close()
                self._executor = None


_SANDBOX = _Sandbox()
