"""What a QuantCode run is asked for: models, tasks, and the ways in which tasks are put to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import msgspec

from tradeassay.benchmarks.quantcode.settings import Setting
from tradeassay.code.evaluation import EvaluateConfig
from tradeassay.code.task import DIFFICULTIES, FAMILIES, TIMEFRAMES, CodeTask, Framework, Wording
from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean
from tradeassay.llm import ModelParams, parse_name

QUANTCODE = "quantcode-v1"
LONG_ANSWERS = ModelParams(max_tokens=16_384, timeout_s=600.0)
"""A program and the thoughts before it need more room and time than a trading decision."""

SETTINGS: tuple[Setting, ...] = get_args(Setting)
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
WORDINGS: tuple[Wording, ...] = get_args(Wording)


class CodeRunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A QuantCode run. Every combination of model, task, wording, framework, setting and seed is an item.

    ``tasks`` names tasks; without it all are taken that ``difficulties``, ``timeframes``, ``families`` and
    ``sources`` leave (empty: all), and ``sample`` takes so many of them, evenly spread. ``task_file`` is a
    copy of the
    public 400-task file to be run instead of our tasks. ``judge`` is the model of the language judge; without one
    only the behavioural judge speaks. ``seeds`` are repetitions. Raises :class:`UserError` for what makes no
    sense.
    """

    models: tuple[str, ...]
    benchmark: str = QUANTCODE
    tasks: tuple[str, ...] = ()
    difficulties: tuple[str, ...] = ()
    timeframes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sample: int | None = None
    task_file: str | None = None
    wordings: tuple[Wording, ...] = ("formal",)
    frameworks: tuple[Framework, ...] = ("backtrader",)
    settings: tuple[Setting, ...] = ("single-turn",)
    turns: int = 10
    history: Literal["full", "last"] = "full"
    seeds: tuple[int, ...] = (0,)
    judge: str | None = None
    evaluate: EvaluateConfig = EvaluateConfig()
    params: ModelParams = LONG_ANSWERS
    judge_params: ModelParams = ModelParams()

    def __post_init__(self) -> None:
        if not self.models:
            raise UserError("no model is named", mend="give at least one, e.g. scripted/coder-sma")
        for model in (*self.models, *([self.judge] if self.judge else [])):
            parse_name(model)
        for name in ("models", "wordings", "frameworks", "settings", "seeds", "tasks"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise UserError(f"a value of {name} is given twice", mend="give each once")
        _known("wording", self.wordings, WORDINGS)
        _known("framework", self.frameworks, FRAMEWORKS)
        _known("setting", self.settings, SETTINGS)
        _known("difficulty", self.difficulties, DIFFICULTIES)
        _known("timeframe", self.timeframes, TIMEFRAMES)
        _known("family", self.families, FAMILIES)
        if not self.seeds or self.turns < 1 or (self.sample is not None and self.sample < 1):
            raise UserError("seeds, turns and samples count from 1", mend="give 1 or more")
        if self.judge is None and self.evaluate.decides in ("language", "both"):
            raise UserError(
                f"'{self.evaluate.decides}' decides, and no judge is named", mend="name one with judge"
            )


def choose_tasks(spec: CodeRunSpec, tasks: Sequence[CodeTask]) -> tuple[CodeTask, ...]:
    """Return the tasks that a spec asks for, by id; raises :class:`UserError` for an id that is not there."""
    by_id = {task.id: task for task in tasks}
    for name in spec.tasks:
        if name not in by_id:
            raise UserError(
                f"there is no task '{name}'", mend=did_you_mean(name, by_id, "see tradeassay code tasks")
            )
    chosen = [by_id[name] for name in sorted(spec.tasks)] if spec.tasks else list(tasks)
    kept = [
        task
        for task in chosen
        if _among(task.difficulty, spec.difficulties)
        and _among(task.timeframe, spec.timeframes)
        and _among(task.family, spec.families)
        and _among(task.source, spec.sources)
    ]
    if spec.sample is None:
        return tuple(kept)
    ways = [(wording, framework) for wording in spec.wordings for framework in spec.frameworks]
    kept = [task for task in kept if any(task.text(*way) is not None for way in ways)]
    if spec.sample >= len(kept):
        return tuple(kept)
    # Spread over the list, which is by id: timeframes and kinds then come in about their shares.
    return tuple(kept[place * len(kept) // spec.sample] for place in range(spec.sample))


def _among(value: Any, wanted: Sequence[Any]) -> bool:
    return not wanted or value in wanted


def _known(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    if what in ("wording", "framework", "setting") and not given:
        raise UserError(f"no {what} is named", mend=f"give one of {', '.join(known)}")
    for value in given:
        if value not in known:
            raise UserError(
                f"there is no {what} '{value}'", mend=did_you_mean(value, known, f"known: {', '.join(known)}")
            )
