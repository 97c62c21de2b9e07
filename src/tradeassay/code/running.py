"""One entry to both frameworks: run a program on bars, whichever API it was written for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tradeassay.code.backtrader import Backtest, BacktestJob, BacktraderSubject, many, sandbox_config, terms_of
from tradeassay.code.bars import TaskBars, make_bars
from tradeassay.code.frames import FrameJob, FrameSubject, many_frames
from tradeassay.code.task import CodeTask, Framework, Timeframe
from tradeassay.sandbox import JobExecutor, JobLimits, SandboxPool

if TYPE_CHECKING:
    from tradeassay.code.leak import LeakSubject

HOME_SEED = 1


def open_code_executor(workers: int = 1) -> JobExecutor:
    """Return a sandbox for programs of every framework; raises SandboxRefused where code cannot be contained."""
    return SandboxPool(sandbox_config(), workers=workers)


def task_bars(task: CodeTask, market: str | None = None, seed: int = HOME_SEED) -> TaskBars:
    """Return the bars of a task: its home market, or another market or seed in the same shape."""
    timeframe: Timeframe = task.timeframe
    return make_bars(market or task.market, timeframe, task.assets, task.bars, seed)


def run_programs(
    executor: JobExecutor,
    task: CodeTask,
    runs: Iterable[tuple[str, TaskBars]],
    framework: Framework = "backtrader",
    *,
    limits: JobLimits | None = None,
) -> Iterator[Backtest]:
    """Run programs on bars on a task's terms, in parallel where the executor can; results in their order."""
    terms = terms_of(task)
    if framework == "frame":
        yield from many_frames(
            executor, (FrameJob(source=source, bars=bars, terms=terms, limits=limits) for source, bars in runs)
        )
        return
    jobs = (BacktestJob(source=source, bars=bars, terms=terms, limits=limits) for source, bars in runs)
    yield from many(executor, jobs)


def leak_subject(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    bars: TaskBars,
    framework: Framework,
    limits: JobLimits | None = None,
) -> LeakSubject:
    """Return a program as the look-ahead check sees it."""
    if framework == "frame":
        return FrameSubject(executor=executor, source=source, bars=bars, terms=terms_of(task), limits=limits)
    return BacktraderSubject(executor=executor, source=source, bars=bars, terms=terms_of(task), limits=limits)


def reference_of(task: CodeTask, framework: Framework) -> str:
    """Return the task's reference for a framework, empty where it has none."""
    if framework == "backtrader":
        return task.reference if task.has_reference else ""
    return task.frame.reference if task.frame is not None else ""
