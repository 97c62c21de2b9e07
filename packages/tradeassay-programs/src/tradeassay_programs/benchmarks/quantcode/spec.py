"""Define the specification of a QuantCode run."""

from typing import Literal, get_args

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import refuse_unknown
from tradeassay_bench.benchmarks.code_protocol import LONG_ANSWERS, CodeSpec
from tradeassay_bench.llm import ModelParams
from tradeassay_programs.benchmarks.quantcode.dialogue import Setting
from tradeassay_programs.code.evaluation import EvaluateConfig
from tradeassay_programs.code.task import (
    DIFFICULTIES,
    FAMILIES,
    TIMEFRAMES,
    WORDINGS,
    Framework,
    Wording,
)

QUANTCODE = "quantcode-v1"
MOST_TURNS = 100


class QuantCodeSpec(CodeSpec, frozen=True, kw_only=True):
    """A QuantCode run.

    Every combination of model, task, wording, framework, setting and seed is an episode.

    - ``tasks`` names tasks. If it is empty, the run takes all tasks that match ``difficulties``,
      ``timeframes``, ``families`` and ``sources`` (empty means all). ``sample`` keeps this number
      of them, evenly spread.
    - ``task_file`` is a copy of the public 400-task file, to run instead of the built-in tasks.
    - ``judge`` is the model of the language judge. Without it only the behavioural judge decides.
    - ``history``: by default a later turn sees only the latest program and its findings, so that a
      conversation does not grow with its turns.
    - ``strict`` fails a program for any call that the kernel refused.
    - ``dataset`` provides stored bars for the tasks of a ``task_file``, if it has their symbols.

    Raises :class:`UserError` for values that are not valid.
    """

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
        self.validate_spec(
            ("wordings", "frameworks", "settings", "tasks"), judges, example="scripted/coder-sma"
        )
        for field, values, known in (
            ("wording", self.wordings, WORDINGS),
            ("framework", self.frameworks, get_args(Framework)),
            ("setting", self.settings, get_args(Setting)),
            ("difficulty", self.difficulties, DIFFICULTIES),
            ("timeframe", self.timeframes, TIMEFRAMES),
            ("family", self.families, FAMILIES),
        ):
            if field in ("wording", "framework", "setting") and not values:
                raise UserError(f"no {field} is named", hint=f"give one of {', '.join(known)}")
            for value in values:
                refuse_unknown(value, known, f"there is no {field} '{value}'")
        no_sample = self.sample is not None and self.sample < 1
        if not self.seeds or not 1 <= self.turns <= MOST_TURNS or no_sample:
            reason = "seeds, turns and sample must be 1 or more"
            raise UserError(reason, hint=f"turns may be at most {MOST_TURNS}")
        decides = self.evaluate.decides
        if self.judge is None and decides in ("language", "both"):
            raise UserError(
                f"decides='{decides}' needs a language judge, and no judge is named",
                hint="name a model with judge",
            )
        if self.dataset and self.task_file is None:
            hint = "name the file too, or leave the data set out"
            raise UserError("a data set is valid only with a task file", hint=hint)
