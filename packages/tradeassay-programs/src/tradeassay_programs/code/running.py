"""Run programs of either framework on bars, and define the rules of an examination.

Markets are drawn from the secret of a run. Backtrader programs are scored on bars that they receive
one at a time, and programs on frames are scored on growing frames. The comparison is of decisions
and not of money.
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


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of an examination.

    Markets are drawn from ``secret``, so an author who knows it can predict the examination.
    ``steps`` limits how often orders are matched with bars in a run, and ``longest_source`` limits
    the characters of a program. Without these limits a program could make its examination
    expensive. Raises UserError for a secret that is not hex.
    """

    secret: str
    steps: int = 600_000
    longest_source: int = 60_000

    def __post_init__(self) -> None:
        refuse_bad_secret(self.secret)


_own_secret: Final = cache(draw_secret)


def rules_of(secret: str | None) -> Rules:
    """Return the rules for a secret.

    If ``secret`` is None, one secret is drawn per process, so that all programs of the process get
    the same markets.
    """
    return Rules(secret=_own_secret() if secret is None else secret)


HOME_SEED = 1
"""The seed of a task's home market."""
PROMISED = ("backtrader", "numpy", "pandas", "scipy", "talib")
"""The modules that the prompts allow a model to import, besides the standard library."""


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


def task_bars(task: CodeTask, market: str | None = None, seed: int = HOME_SEED) -> TaskBars:
    """Return bars of a task on a market. The default is its home market."""
    return make_bars(market or task.market, task.timeframe, task.assets, task.bars, seed)


def run_programs(
    executor: JobExecutor,
    task: CodeTask,
    runs: Iterable[tuple[str, TaskBars]],
    framework: Framework = "backtrader",
    *,
    limits: JobLimits | None = None,
    rules: Rules | None = None,
) -> Iterator[Backtest]:
    """Run programs on bars by a task's terms, and yield the results in order."""
    terms, steps = terms_of(task), MOST_STEPS if rules is None else rules.steps
    jobs = (
        BacktestJob(source=source, bars=bars, terms=terms, limits=limits, steps=steps)
        for source, bars in runs
    )
    if framework == "frame":
        return in_order(executor, jobs, frame_job, frame_result)
    return in_order(executor, jobs, sandbox_job, read_result)


def reference_of(task: CodeTask, framework: Framework) -> str:
    """Return the source of a task's reference for a framework, or an empty string."""
    if framework == "backtrader":
        return task.reference if task.has_reference else ""
    return task.frame.reference if task.frame is not None else ""
