"""Inspect tasks in which models write programs.

They are ``tradeassay/quantcode`` and ``tradeassay/systrade``.

Inspect queries the models. It loads this module for all tasks of the package. The trading tasks are
defined in :mod:`tradeassay_bench.frontends.inspect_tasks`.
"""

from __future__ import annotations

import atexit
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import anyio.to_thread
import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks.code_protocol import AskRole, CodeAsk, CodeItem
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.drive import adrive
from tradeassay_bench.core.run_secret import draw_secret
from tradeassay_bench.frontends.inspect_tasks import (
    SPENDING,
    Asker,
    generate_config,
    ktdfin as ktdfin,
    stockbench as stockbench,
)
from tradeassay_bench.llm import parse_name, scripted_models
from tradeassay_programs.benchmarks.quantcode.benchmark import QuantCodeProtocol
from tradeassay_programs.benchmarks.quantcode.dialogue import TaskOutcome
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.benchmarks.systrade.benchmark import SystradeProtocol
from tradeassay_programs.benchmarks.systrade.spec import StrategyOutcome, SystradeSpec
from tradeassay_programs.code.gates import PAPER_GATES
from tradeassay_programs.code.scores import DIMENSIONS, complexity
from tradeassay_programs.sandbox import JobExecutor

OUTCOME = "tradeassay:outcome"
_STAGES = ("compile", "backtest", "trade", "lookahead")

_LISTS = {"setting": "settings", "wording": "wordings", "framework": "frameworks"}
_LISTS |= {"difficulty": "difficulties", "timeframe": "timeframes", "family": "families"}
"""Settings that are lists for a run and single values for a task."""


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
    """QuantCode: a model writes a trading strategy that is described in words.

    Args:
        setting: single-turn, or agentic with feedback.
        wording: formal or conversational.
        framework: backtrader, or frame for plain vectorised signals.
        difficulty: Only easy, medium or hard tasks.
        timeframe: Only tasks on 1d, 1h, 15m, 5m or 1m bars.
        family: Only tasks of one family, e.g. breakout.
        tasks: Ids of single tasks, joined by commas.
        sample: Number of tasks, evenly spread.
        turns: Maximum number of answers per agentic task.
        judge: A model that reads the programs, in addition to the behavioural judge.
        decides: The judge that decides the judge stage.
        task_file: A copy of the public 400-task file, instead of the built-in tasks.
        secret: The secret of an earlier run, to draw the same markets. Default: random.
        workers: Number of programs that are examined at the same time.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    for name in ("tasks", "decides", "secret", "workers"):
        given.pop(name, None)
    values = {
        _LISTS.get(name, name): [one] if name in _LISTS else one for name, one in given.items()
    }
    values |= {
        "models": ["inspect/model"],
        "tasks": _names(tasks),
        "evaluate": {"decides": decides},
    }
    values |= {"secret": secret} if secret else {}
    try:
        protocol = QuantCodeProtocol(msgspec.convert(values, QuantCodeSpec))
    except msgspec.ValidationError as error:
        hint = "see docs/reference/quantcode.md"
        raise UserError(f"these task settings are not valid: {error}", hint=hint) from error
    items, samples = protocol.episodes(), []
    for item in items:
        found, settings = protocol.tasks[item.task], protocol.settings(item)
        facts = ("difficulty", "timeframe", "family")
        about = {"task": found.id} | {name: getattr(found, name) for name in facts}
        text = found.text(settings.wording, settings.framework) or found.formal
        samples.append(Sample(id=found.id, input=text, metadata=about))
    if not items:
        raise UserError("no task matches the filters", hint="drop a filter")
    return _code_task(protocol, items, samples, stage_scorer(), workers)


@task
def systrade(
    benchmark: str = "systrade-v1",
    strategies: str | None = None,
    iterations: int = 4,
    early_stop: bool = True,
    reviewers: str | None = None,
    minutes: int = 0,
    secret: str | None = None,
    workers: int = 2,
) -> Task:
    """SysTradeBench: a model builds a strategy from a Strategy Doc, and patches it on evidence.

    Args:
        benchmark: systrade-v1, or systrade-systb-v1 with the twelve strategies from the authors'
        public repository.
        strategies: Names of strategies, joined by commas. Default: all twelve.
        iterations: Maximum number of submissions per strategy.
        early_stop: End a strategy when its target is met.
        reviewers: Models that mark every submission blind, joined by commas.
        minutes: Number of minute bars, instead of days, for strategies with a minute version.
        secret: The secret of an earlier run, to draw the same years. Default: random.
        workers: Number of programs that are examined at the same time.
    """
    spec = SystradeSpec(
        benchmark=benchmark,
        models=("inspect/model",),
        strategies=_names(strategies),
        iterations=iterations,
        early_stop=early_stop,
        reviewers=_names(reviewers),
        minutes=minutes,
        secret=secret or draw_secret(),
    )
    protocol = SystradeProtocol(spec)
    items = protocol.episodes()
    samples = [
        Sample(
            id=item.task,
            input=protocol.strategies[item.task].doc,
            metadata={
                "task": item.task,
                "complexity": complexity(protocol.strategies[item.task].semantics),
            },
        )
        for item in items
    ]
    return _code_task(protocol, items, samples, card_scorer(), workers)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


_Protocol = QuantCodeProtocol | SystradeProtocol


def _code_task(
    protocol: _Protocol,
    items: Sequence[CodeItem],
    samples: list[Sample],
    score: Scorer,
    workers: int,
) -> Task:
    params = protocol.spec.params
    return Task(
        dataset=MemoryDataset(samples, name=protocol.spec.benchmark),
        solver=write_program(protocol, {item.task: item for item in items}, workers),
        scorer=score,
        config=generate_config(params),
        metadata={"benchmark": protocol.spec.benchmark, "facts": protocol.facts()},
        fail_on_error=False,
    )


@solver
def write_program(protocol: _Protocol, items: dict[str, CodeItem], workers: int) -> Solver:
    """Conduct a task's dialogue with the model under evaluation, and examine every program."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        item = items[str(state.metadata["task"])]
        writer = Asker(get_model())
        outcome = await _carry(protocol, item, writer, workers)
        state.store.set(OUTCOME, msgspec.to_builtins(outcome))
        state.store.set(SPENDING, msgspec.to_builtins(writer.spending))
        state.messages += writer.conversation()
        state.output.completion = _last_program(outcome)
        return state

    return solve


def _last_program(outcome: TaskOutcome | StrategyOutcome) -> str:
    if isinstance(outcome, TaskOutcome):
        codes = [turn.code for turn in outcome.turns if turn.code is not None]
        return codes[-1] if codes else outcome.reason
    made = [one.submission.source for one in outcome.iterations if one.submission is not None]
    return made[-1] if made else outcome.iterations[-1].reason


@scorer(
    metrics={name: [mean(), stderr()] for name in (*PAPER_GATES, "valid", *DIMENSIONS, "overall")}
    | {"iterations": [mean()]}
)
def card_scorer() -> Scorer:
    """Score a strategy by its last submission.

    The scores are gates, validity, and the four measured dimensions (0 to 10). A dimension that is
    not scored is NaN, which Inspect leaves out of means. A strategy is unscored if it has no answer
    or its look-ahead is not cleared.
    """

    async def score(state: TaskState, target: Target) -> Score:
        outcome = msgspec.convert(state.store.get(OUTCOME), StrategyOutcome)
        last = outcome.last
        about: dict[str, Any] = {
            "stopped": outcome.stopped,
            "spending": state.store.get(SPENDING, {}),
        }
        if last is None and outcome.stopped == "no answer":
            return Score.unscored(explanation=outcome.iterations[-1].reason, metadata=about)
        value = dict.fromkeys((*PAPER_GATES, "valid"), 0.0) | dict.fromkeys(
            (*DIMENSIONS, "overall"), math.nan
        )
        value["iterations"] = float(len(outcome.iterations))
        if last is None:
            return Score(value=value, explanation="nothing handed in", metadata=about)
        card = last.scorecard
        if card.gates.not_cleared:
            return Score.unscored(explanation="look-ahead is not cleared", metadata=about)
        value |= {name: float(card.gates.gate(name).passed) for name in PAPER_GATES}
        value["valid"] = float(card.gates.valid)
        scored = {**card.corrected, "overall": card.overall}
        value |= {
            name: math.nan if one.value is None else one.value for name, one in scored.items()
        }
        failure = card.gates.first_failure
        words = (
            "all gates passed" if failure is None else f"failed at {failure.name}: {failure.reason}"
        )
        return Score(value=value, explanation=words, metadata=about)

    return score


@scorer(metrics={name: [mean(), stderr()] for name in (*_STAGES, "solved")} | {"turns": [mean()]})
def stage_scorer() -> Scorer:
    """Score a task by stages. A task without a verdict is unscored, with the reason."""

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
            name: float(
                found is not None and (honest or name == "compile") and found.stage(name).passed
            )
            for name in _STAGES
        }
        value |= {"solved": float(outcome.solved), "turns": float(len(outcome.turns))}
        return Score(value=value, explanation=outcome.reason or "solved", metadata=about)

    return score


async def _carry(
    protocol: _Protocol, item: CodeItem, writer: Asker, workers: int
) -> TaskOutcome | StrategyOutcome:
    roles = protocol.roles(item)
    askers = {name: _judge(role.model) for name, role in roles.items() if name != "writer"}
    askers["writer"] = writer.reply
    examine: Callable[[CodeItem, Any, JobExecutor], msgspec.Struct] = protocol.examine

    async def answer(ask: CodeAsk) -> Any:
        if not isinstance(ask, AskRole):
            executor = await anyio.to_thread.run_sync(_sandbox, protocol, workers)
            return await anyio.to_thread.run_sync(examine, item, ask.request, executor)
        return await askers[ask.role](ask.request)

    outcome: TaskOutcome | StrategyOutcome = await adrive(protocol.dialogue(item), answer)
    return outcome


def _judge(name: str) -> Any:
    """Return the client of a judge or reviewer.

    A scripted model answers without a request. Any other model is queried through Inspect.
    """
    if parse_name(name).route == "scripted":
        scripted = scripted_models.get(parse_name(name).rest)()

        async def answer(request: AskModel) -> ModelReply:
            return scripted.answer(request)

        return answer
    return Asker(get_model(name)).reply


_LOCK = threading.Lock()
_OPENED: dict[str, JobExecutor] = {}


def _sandbox(protocol: _Protocol, workers: int) -> JobExecutor:
    """Return the sandbox that all samples of a benchmark share in this process.

    Opening a sandbox costs more than an examination. Raises the errors of opening it.
    """
    with _LOCK:
        if not _OPENED:
            atexit.register(close_sandboxes)
        name = protocol.spec.benchmark
        if name not in _OPENED:
            _OPENED[name] = protocol.open_executor(workers)
        return _OPENED[name]


def close_sandboxes() -> None:
    with _LOCK:
        while _OPENED:
            _OPENED.popitem()[1].close()


__all__ = ["ktdfin", "quantcode", "stockbench", "systrade"]
