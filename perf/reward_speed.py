"""Rewards a minute of `tradeassay.reward.batch`: reference programs of daily tasks, without and with a judge.

    python perf/reward_speed.py [--tasks 12] [--each 4] [--workers 2]

Bars, without a judge on two cores: 600 a minute for Backtrader, 2,000 for frames. Opening the sandbox and drawing
a task's markets is not counted: a training run meets each task many times.
"""

from __future__ import annotations

import argparse
import os
import time

from tradeassay.benchmarks.quantcode import load_tasks
from tradeassay.code.task import CodeTask, Framework
from tradeassay.reward import batch

SECRET = "5e" * 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    daily = [task for task in load_tasks() if task.timeframe == "1d" and task.frame is not None][: asked.tasks]
    frameworks: tuple[tuple[Framework, int], ...] = (("backtrader", 600), ("frame", 2_000))
    for framework, bar in frameworks:
        programs = [_reference(task, framework) for task in daily for _ in range(asked.each)]
        tasks = [task for task in daily for _ in range(asked.each)]
        for judge in (None, "behaviour"):
            small = _minute(programs[:: asked.each], tasks[:: asked.each], framework, judge, asked.workers)
            whole = _minute(programs, tasks, framework, judge, asked.workers)
            # Starting workers and drawing markets is in both: the difference is what rewards cost.
            more = len(programs) - len(programs[:: asked.each])
            rate = 60.0 * more / (whole - small)
            told = f", bar {bar:,}" if judge is None else ""
            words = "without a judge" if judge is None else "judged by behaviour"
            print(f"{framework}, {words}: {rate:,.0f} rewards a minute on {asked.workers} workers{told}")
    print(f"load {os.getloadavg()[0]:.1f}")


def _reference(task: CodeTask, framework: Framework) -> str:
    return task.reference if framework == "backtrader" else (task.frame.reference if task.frame else "")


def _minute(
    programs: list[str], tasks: list[CodeTask], framework: Framework, judge: object, workers: int
) -> float:
    began = time.perf_counter()
    found = batch(programs, tasks, framework=framework, judge=judge, secret=SECRET, workers=workers)  # type: ignore[arg-type]  # one of two
    taken = time.perf_counter() - began
    assert all(one.value == 1.0 for one in found), [one for one in found if one.value != 1.0][:2]
    return taken


if __name__ == "__main__":
    main()
