"""Measure the cost of a reward: reference programs of daily tasks, with and without a judge, in CPU
and clock time.

    python perf/reward_speed.py [--tasks 10] [--each 4] [--judged]
    python perf/reward_speed.py --pool 13 --each 16    # judged, by a kept pool of 13 workers; bar:
    160 in 5 s

Limits on two cores: 600 per minute for Backtrader, for frames 2,000 without a judge and 300 with
one. The limit of 2,000 is missed by far because a program on frames is called on every row, which
prevents rewards for look-ahead. The time for opening the sandbox and drawing a task's markets is
printed but not counted, because a training run repeats each task many times. The sandbox's time
includes all its processes, forks and isolation. Every program is made unique by a comment, because
a share of programs on frames is called a second time, drawn by their source. On a busy machine a
CPU second does less work. A fixed loop between the rewards measures this, as its mean over its best
time.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Literal

from machine import conditions, fixed_loop
from tradeassay_programs import reward as rewards
from tradeassay_programs.benchmarks.quantcode import load_tasks
from tradeassay_programs.code.reward import QUICK, RewardConfig, reward
from tradeassay_programs.code.running import open_code_executor
from tradeassay_programs.code.task import CodeTask, Framework

SECRET = "5e" * 16
TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument(
        "--judged", action="store_true", help="measure rewards with the behavioural judge too"
    )
    parser.add_argument(
        "--pool", type=int, metavar="WORKERS", help="measure judged batches of a kept pool instead"
    )
    asked = parser.parse_args()
    daily = [task for task in load_tasks() if task.timeframe == "1d" and task.frame is not None][
        : asked.tasks
    ]
    frameworks: tuple[tuple[Framework, int, int], ...] = (
        ("backtrader", 600, 600),
        ("frame", 2_000, 300),
    )
    if asked.pool:
        for framework, *_ in frameworks:
            pooled(daily, framework, asked.pool, asked.each)
        print(conditions())
        return
    ways: list[tuple[str, Literal["behaviour"] | None, RewardConfig]] = [
        ("without a judge", None, RewardConfig())
    ]
    if asked.judged:
        ways += [("judged", "behaviour", RewardConfig())]
        ways += [("judged on two quickly drawn markets", "behaviour", RewardConfig(draws=QUICK))]
    loops: list[float] = []
    with open_code_executor(1) as executor:
        for framework, unjudged, judged in frameworks:
            for words, judge, config in ways:
                host = child = clock = drawing = 0.0
                for task in daily:
                    source = _reference(task, framework)
                    for turn in range(asked.each + 1):
                        loops.append(fixed_loop())
                        cpu, inside, began = time.process_time(), below(), time.perf_counter()
                        one = f"{source}\n# turn {turn}\n"
                        found = reward(
                            task,
                            one,
                            judge,
                            executor=executor,
                            config=config,
                            framework=framework,
                            secret=SECRET,
                        )
                        assert found.value == 1.0, (task.id, found.reason)
                        spent, spent_inside = time.process_time() - cpu, below() - inside
                        if turn:
                            host, child = host + spent, child + spent_inside
                            clock += time.perf_counter() - began
                        else:
                            drawing += spent + spent_inside
                each = len(daily) * asked.each
                bar = unjudged if judge is None else judged
                print(
                    f"{framework}, {words}: {1e3 * host / each:.0f} ms here and "
                    f"{1e3 * child / each:.0f} ms in "
                    f"the sandbox, {1e3 * clock / each:.0f} ms by the clock; two cores: "
                    f"{120.0 * each / (host + child):,.0f} a minute (bar {bar:,}); "
                    f"the first of a task {drawing / len(daily):.1f} s"
                )
    slower = sum(loops) / len(loops) / min(loops)
    print(
        f"a fixed loop between the rewards took {slower:.2f} times the CPU of its best turn; "
        f"{conditions()}"
    )


def pooled(daily: list[CodeTask], framework: Framework, workers: int, each: int) -> None:
    """Print a kept pool's time for a first batch and for the next two."""
    with rewards.Pool(
        judge="behaviour", framework=framework, workers=workers, secret=SECRET
    ) as pool:
        for turn in range(3):
            tasks = [task for task in daily for _ in range(each)]
            answers = [
                f"```python\n{_reference(task, framework)}\n# {turn} {at}\n```"
                for at, task in enumerate(tasks)
            ]
            began = time.perf_counter()
            found = pool.batch(answers, tasks)
            spent = time.perf_counter() - began
            wrong = [
                (task.id, one.reason)
                for task, one in zip(tasks, found, strict=True)
                if one.value != 1.0
            ]
            assert not wrong, wrong[:3]
            kind = "first batch, markets drawn" if not turn else "batch"
            print(
                f"{framework}, {workers} workers, {kind}: {len(found)} in {spent:.1f} s, "
                f"{60.0 * len(found) / spent:,.0f} a minute",
                flush=True,
            )


def below(pid: int | None = None) -> float:
    """Return the CPU seconds of all descendants of a process, including ended ones."""
    pid = os.getpid() if pid is None else pid
    total = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / TICK + below(int(child))
    return total


def _reference(task: CodeTask, framework: Framework) -> str:
    return (
        task.reference
        if framework == "backtrader"
        else (task.frame.reference if task.frame else "")
    )


if __name__ == "__main__":
    main()
