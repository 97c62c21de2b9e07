"""One entry to both frameworks: run a program on bars, whichever API it was written for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from tradeassay.code.backtrader import Backtest, BacktestJob, many, sandbox_config, terms_of
from tradeassay.code.backtrader.runner import JobOptions
from tradeassay.code.bars import TaskBars, make_bars
from tradeassay.code.frames import many_frames, read_with_targets
from tradeassay.code.frames import sandbox_job as frame_job
from tradeassay.code.lookahead.feed import fed_backtests
from tradeassay.code.rules import Rules
from tradeassay.code.task import CodeTask, Framework, Timeframe
from tradeassay.core.errors import MissingExtra, absent
from tradeassay.core.view import Floats
from tradeassay.sandbox import JobExecutor, JobLimits, SandboxPool

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
        raise MissingExtra(
            f"programs are promised {', '.join(PROMISED)}, and the sandbox cannot import {', '.join(missing)}",
            hint="pip install 'tradeassay[code]' into the environment that runs tradeassay",
        )
    return pool


def require_code_extra() -> None:
    for module in ("backtrader", "talib"):
        if find_spec(module) is None:
            raise absent(module, "code", "running programs")


def task_bars(task: CodeTask, market: str | None = None, seed: int = HOME_SEED) -> TaskBars:
    timeframe: Timeframe = task.timeframe
    return make_bars(market or task.market, timeframe, task.assets, task.bars, seed)


def run_programs(
    executor: JobExecutor,
    task: CodeTask,
    runs: Iterable[tuple[str, TaskBars]],
    framework: Framework = "backtrader",
    *,
    limits: JobLimits | None = None,
    rules: Rules | None = None,
    fed: bool = False,
) -> Iterator[Backtest]:
    """Run programs on a task's terms, in order; ``fed`` gives Backtrader programs one bar at a time."""
    terms, options = terms_of(task), JobOptions(limits=limits)
    if rules is not None:
        options["steps"] = rules.steps
    jobs = (BacktestJob(source=source, bars=bars, terms=terms, **options) for source, bars in runs)
    if framework == "frame":
        return many_frames(executor, jobs)
    return fed_backtests(executor, jobs) if fed else many(executor, jobs)


def run_frames_with_targets(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    tables: Iterable[TaskBars],
    rules: Rules,
    limits: JobLimits | None = None,
) -> list[tuple[Backtest, Floats | None]]:
    terms = terms_of(task)
    jobs = [
        BacktestJob(source=source, bars=bars, terms=terms, limits=limits, steps=rules.steps) for bars in tables
    ]
    results = executor.map(frame_job(job) for job in jobs)
    return [read_with_targets(job, result) for job, result in zip(jobs, results, strict=True)]


def reference_of(task: CodeTask, framework: Framework) -> str:
    if framework == "backtrader":
        return task.reference if task.has_reference else ""
    return task.frame.reference if task.frame is not None else ""
