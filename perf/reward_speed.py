"""What a reward costs: reference programs of daily tasks, without and with a judge, in CPU time and by the clock.

    python perf/reward_speed.py [--tasks 12] [--each 4]

Bars, without a judge on two cores: 600 a minute for Backtrader, 2,000 for frames. Opening the sandbox and drawing
a task's markets is not counted: a training run meets each task many times.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Literal

from tradeassay.benchmarks.quantcode import load_tasks
from tradeassay.code.reward import reward
from tradeassay.code.running import open_code_executor
from tradeassay.code.task import CodeTask, Framework

SECRET = "5e" * 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--each", type=int, default=4)
    asked = parser.parse_args()
    daily = [task for task in load_tasks() if task.timeframe == "1d" and task.frame is not None][: asked.tasks]
    frameworks: tuple[tuple[Framework, int], ...] = (("backtrader", 600), ("frame", 2_000))
    judges: tuple[Literal["behaviour"] | None, ...] = (None, "behaviour")
    with open_code_executor(1) as executor:
        for framework, bar in frameworks:
            for judge in judges:
                host = child = clock = 0.0
                for task in daily:
                    source = _reference(task, framework)
                    for turn in range(asked.each + 1):
                        cpu, began = time.process_time(), time.perf_counter()
                        found = reward(task, source, judge, executor=executor, framework=framework, secret=SECRET)
                        assert found.value == 1.0, (task.id, found.reason)
                        if turn:  # the first draws the markets
                            host += time.process_time() - cpu
                            clock += time.perf_counter() - began
                            child += found.evaluation.usage.cpu_s
                each = len(daily) * asked.each
                rate = 120.0 * each / (host + child)
                words = "without a judge" if judge is None else "judged by behaviour"
                told = f" (bar {bar:,})" if judge is None else ""
                print(
                    f"{framework}, {words}: {1e3 * host / each:.0f} ms here and {1e3 * child / each:.0f} ms in "
                    f"the sandbox, {1e3 * clock / each:.0f} ms by the clock; two cores: {rate:,.0f} a minute{told}"
                )
    print(f"load {os.getloadavg()[0]:.1f}")


def _reference(task: CodeTask, framework: Framework) -> str:
    return task.reference if framework == "backtrader" else (task.frame.reference if task.frame else "")


if __name__ == "__main__":
    main()
