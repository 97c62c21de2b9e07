"""One entry to both frameworks: run a program on bars, whichever API it was written for, and by which rules.

Markets are drawn from a secret of the run, Backtrader programs are scored from bars that were fed one at a time,
programs on frames are fed growing frames, and decisions are compared instead of money.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Final

import msgspec

from tradeassay.code.backtrader import (
    MOST_STEPS,
    Backtest,
    BacktestJob,
    in_order,
    read_result,
    sandbox_config,
    sandbox_job,
    terms_of,
)
from tradeassay.code.bars import TaskBars, make_bars
from tradeassay.code.frames import read_result as frame_result, sandbox_job as frame_job
from tradeassay.code.task import CodeTask, Framework
from tradeassay.core.errors import MissingExtra, absent
from tradeassay.core.hashing import draw_secret, refuse_bad_secret
from tradeassay.sandbox import JobExecutor, JobLimits, SandboxPool


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """``secret`` is what markets are drawn from: whoever knows it knows the examination. ``steps`` bounds how
    often orders are matched with bars when a run is carried out, ``longest_source`` the characters of a program:
    both are what a program can make the examiner pay for. Raises UserError for a secret that is none.
    """

    secret: str
    steps: int = 600_000
    longest_source: int = 60_000

    def __post_init__(self) -> None:
        refuse_bad_secret(self.secret)


_own_secret: Final = cache(draw_secret)


def rules_of(secret: str | None) -> Rules:
    """Return today's rules. Without a secret one is drawn, once in a process: all meet the same markets."""
    return Rules(secret=_own_secret() if secret is None else secret)


HOME_SEED = 1
PROMISED = ("backtrader", "numpy", "pandas", "scipy", "talib")
"""What the prompts tell a model that it can import, beside the standard library."""


def open_code_executor(workers: int = 1) -> JobExecutor:
    """A sandbox for programs of every framework; SandboxRefused or MissingExtra before any program is run"""
    require_code_extra()
    pool = SandboxPool(sandbox_config(), workers=workers)
    missing = [name for name in PROMISED if name not in pool.modules]
    if missing:
        pool.close()
        words = f"programs are promised {', '.join(PROMISED)}, and the sandbox cannot import {', '.join(missing)}"
        raise MissingExtra(words, hint="pip install 'tradeassay[code]' into the environment that runs tradeassay")
    return pool


def require_code_extra() -> None:
    for module in ("backtrader", "talib"):
        if find_spec(module) is None:
            raise absent(module, "code", "running programs")


def task_bars(task: CodeTask, market: str | None = None, seed: int = HOME_SEED) -> TaskBars:
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
    """Run programs on a task's terms, in order."""
    terms, steps = terms_of(task), MOST_STEPS if rules is None else rules.steps
    jobs = (
        BacktestJob(source=source, bars=bars, terms=terms, limits=limits, steps=steps) for source, bars in runs
    )
    if framework == "frame":
        return in_order(executor, jobs, frame_job, frame_result)
    return in_order(executor, jobs, sandbox_job, read_result)


def reference_of(task: CodeTask, framework: Framework) -> str:
    if framework == "backtrader":
        return task.reference if task.has_reference else ""
    return task.frame.reference if task.frame is not None else ""
