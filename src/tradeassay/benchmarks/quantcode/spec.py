"""What a run of QuantCode is asked to do."""

from typing import Literal, get_args

import msgspec

from tradeassay.benchmarks.code_protocol import LONG_ANSWERS, CodeSpec
from tradeassay.benchmarks.quantcode.dialogue import Setting
from tradeassay.code.evaluation import EvaluateConfig
from tradeassay.code.task import DIFFICULTIES, FAMILIES, TIMEFRAMES, WORDINGS, Framework, Wording
from tradeassay.core.errors import UserError
from tradeassay.core.registry import refuse_unknown
from tradeassay.llm import ModelParams

QUANTCODE = "quantcode-v1"
MOST_TURNS = 100


class QuantCodeSpec(CodeSpec, frozen=True, kw_only=True):
    """A QuantCode run. Every combination of model, task, wording, framework, setting and seed is an episode.

    ``tasks`` names tasks; without it, all that match ``difficulties``, ``timeframes``, ``families`` and
    ``sources`` (empty: all) are taken, and ``sample`` keeps that many of them, evenly spread. ``task_file`` is a
    copy of the public 400-task file to be run instead of our tasks. ``judge`` is the model of the language judge;
    without one only the behavioural judge decides. By default a later turn sees the latest program and what was
    found in it (``history``), so that a conversation does not grow with its turns. ``strict`` fails a program for
    any call that the kernel refused. ``dataset`` has the tasks of a ``task_file`` run on stored bars of their
    symbols, where it has them. Raises :class:`UserError` for nonsensical values."""

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
    history: Literal["full", "last"] = "last"
    judge: str | None = None
    evaluate: EvaluateConfig = EvaluateConfig()
    params: ModelParams = LONG_ANSWERS
    judge_params: ModelParams = ModelParams()
    strict: bool = False
    dataset: str | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        judges = [self.judge] if self.judge else []
        self.refuse_bad(("wordings", "frameworks", "settings", "tasks"), judges, example="scripted/coder-sma")
        for what, given, known in (
            ("wording", self.wordings, WORDINGS),
            ("framework", self.frameworks, get_args(Framework)),
            ("setting", self.settings, get_args(Setting)),
            ("difficulty", self.difficulties, DIFFICULTIES),
            ("timeframe", self.timeframes, TIMEFRAMES),
            ("family", self.families, FAMILIES),
        ):
            if what in ("wording", "framework", "setting") and not given:
                raise UserError(f"no {what} is named", hint=f"give one of {', '.join(known)}")
            for value in given:
                refuse_unknown(value, known, f"there is no {what} '{value}'")
        if not self.seeds or not 1 <= self.turns <= MOST_TURNS or (self.sample is not None and self.sample < 1):
            words = "seeds, turns and samples count from 1"
            raise UserError(words, hint=f"give 1 or more, and at most {MOST_TURNS} turns")
        decides = self.evaluate.decides
        if self.judge is None and decides in ("language", "both"):
            raise UserError(f"'{decides}' decides, and no judge is named", hint="name one with judge")
        if self.dataset and self.task_file is None:
            hint = "name the file too, or leave the data set out"
            raise UserError("a data set is for the tasks of a public file", hint=hint)
