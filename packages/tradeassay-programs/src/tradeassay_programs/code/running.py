"""Run programs of either framework on bars, and define the settings of an examination.

The markets of an examination are drawn from its secret. :mod:`tradeassay_programs.code.evaluation`
judges the runs.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Final

import msgspec

from tradeassay.core.errors import MissingExtra, absent
from tradeassay_bench.core.run_secret import draw_secret, refuse_bad_secret
from tradeassay_programs.code.backtrader import (
    MOST_STEPS,
    Backtest,
    BacktestJob,
    in_order,
    read_result,
    sandbox_config,
    sandbox_job,
    terms_of,
)
from tradeassay_programs.code.bars import TaskBars, make_bars
from tradeassay_programs.code.frames import read_result as frame_result, sandbox_job as frame_job
from tradeassay_programs.code.task import CodeTask, Framework
from tradeassay_programs.sandbox import JobExecutor, JobLimits, SandboxPool


class ExamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an examination: its secret and its limits.

    Markets are drawn from ``secret`` (hex), so an author who knows the secret can predict the
    examination. ``steps`` is the maximum number of times that orders are matched with bars in one
    run. ``longest_source`` is the maximum number of characters of a program. Without these limits a
    program could make its examination expensive. Raises UserError for a secret that is not hex.
    """

    secret: str
    steps: int = 600_000
    longest_source: int = 60_000

    def __post_init__(self) -> None:
        refuse_bad_secret(self.secret)


_own_secret: Final = cache(draw_secret)


def exam_settings(secret: str | None) -> ExamSettings:
    """Return the settings of an examination with a secret.

    If ``secret`` is None, one secret is drawn per process, so that all programs of the process get
    the same markets.
    """
    return ExamSettings(secret=_own_secret() if secret is None else secret)


DEFAULT_SEED: Final = 1
"""The seed of bars outside an examination, e.g. in an example of the manual."""
PROMISED = ("backtrader", "numpy", "pandas", "scipy", "talib")
"""The modules outside the standard library that the prompts allow a model to import."""


def open_code_executor(workers: int = 1) -> JobExecutor:
    """Open a sandbox for programs of both frameworks.

    Raises SandboxRefused if this machine cannot contain programs, and MissingExtra if a package is
    not installed.
    """
    require_code_extra()
    pool = SandboxPool(sandbox_config(), workers=workers)
    missing = [name for name in PROMISED if name not in pool.modules]
    if missing:
        pool.close()
        reason = (
            f"programs may import {', '.join(PROMISED)}, and the sandbox lacks {', '.join(missing)}"
        )
        raise MissingExtra(
            reason, hint="pip install 'tradeassay[code]' into the environment that runs tradeassay"
        )
    return pool


def require_code_extra() -> None:
    """Raise MissingExtra unless the packages that programs need are installed."""
    for module in ("backtrader", "talib"):
        if find_spec(module) is None:
            raise absent(module, "code", "running programs")


def task_bars(task: CodeTask, market: str | None = None, seed: int = DEFAULT_SEED) -> TaskBars:
    """Return synthetic bars with a task's assets, timeframe and length.

    ``market`` is a key of :data:`~tradeassay_programs.code.bars.MARKETS`, by default the task's
    own. An examination passes a ``seed`` that follows from its secret.
    """
    return make_bars(market or task.market, task.timeframe, task.assets, task.bars, seed)


def run_programs(
    executor: JobExecutor,
    task: CodeTask,
    runs: Iterable[tuple[str, TaskBars]],
    framework: Framework = "backtrader",
    *,
    limits: JobLimits | None = None,
    rules: ExamSettings | None = None,
) -> Iterator[Backtest]:
    """Run pairs of a program's source and its bars, and return an iterator of their backtests.

    All runs get the account terms of the task. Results are in the order of ``runs``. Without
    ``rules``, the limit on steps is :data:`~tradeassay_programs.code.backtrader.MOST_STEPS`.
    """
    terms, steps = terms_of(task), MOST_STEPS if rules is None else rules.steps
    jobs = (
        BacktestJob(source=source, bars=bars, terms=terms, limits=limits, steps=steps)
        for source, bars in runs
    )
    if framework == "frame":
        return in_order(executor, jobs, frame_job, frame_result)
    return in_order(executor, jobs, sandbox_job, read_result)


def reference_of(task: CodeTask, framework: Framework) -> str:
    """Return the source of a task's reference for a framework, or "" if it has none."""
    if framework == "backtrader":
        return task.reference if task.has_reference else ""
    return task.frame.reference if task.frame is not None else ""
