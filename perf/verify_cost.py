"""Measure the cost of ``verify``: compared with a replay from recorded answers, with a first
examination, and on the demo.

CPU seconds of this process and its children, one worker, all caches warm. Limits: 1.5 times a
replay; the demo's episodes in under 10 CPU seconds; for programs (``--programs``, which measures
nothing else) 1.2 times the first examination.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

import scripted_misfits  # noqa: F401  # adds models

import tradeassay_bench
from tradeassay_bench.agents import agents as registered, converses
from tradeassay_bench.cli.demo import model_run
from tradeassay_bench.runs import Asking, Run, run
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec

RULES = ("daily-us-v1", "daily-ashare-v1", "daily-crypto-v1")
DEMO = 44
"""The number of episodes of the limit. Fewer episodes are scaled to it."""


def cpu() -> float:
    """Return the CPU seconds of this process and its ended children."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    began = cpu()
    work()
    return cpu() - began


def programs(folder: Path) -> None:
    """Print the cost for programs: a task of each kind twice, the first time as a warm-up."""
    for name, models, task in (
        ("warm", ("scripted/coder-gold",), "d-ibs-long"),
        ("code", ("scripted/coder-gold", "scripted/coder-sma"), "d-ibs-long"),
        ("code", ("scripted/coder-gold", "scripted/coder-mends"), "d-sma-cross-long"),
    ):
        spec = QuantCodeSpec(models=models, tasks=(task,))
        began = timed(lambda: run(spec, folder / f"{name}-{task}", workers=1))  # noqa: B023 - called at once
        check = timed(lambda: tradeassay_bench.verify(folder / f"{name}-{task}", workers=1))  # noqa: B023
        print(
            f"{name} {task}: first {began:.2f} s, verify {check:.2f} s: {check / began:.2f} times "
            "(bar 1.2)"
        )


def main() -> None:
    """Print one line per bar."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if "--programs" in sys.argv:
            programs(folder)
            return
        models = ("scripted/sensible", "scripted/broken-json")
        spec = tradeassay_bench.make_spec(
            "ktdfin-v1",
            agents=["momentum-12-1"],
            models=models,
            first="2022-03-01",
            last="2022-05-31",
            name="talk",
        )
        first = run(spec, folder / "first", workers=1)
        asking = Asking(replay=True, recordings=first.folder)
        replay = timed(lambda: run(spec, folder / "again", workers=1, asking=asking))
        check = timed(lambda: tradeassay_bench.verify(first.folder, workers=1))
        print(
            f"scripted: replay {replay:.2f} s, verify {check:.2f} s: {check / replay:.2f} times "
            "(bar 1.5)"
        )

        real = model_run(folder, 1)
        assert isinstance(real, Run)
        asking = Asking(replay=True, recordings=real.folder)
        replay = timed(lambda: run(real.spec, folder / "real", workers=1, asking=asking))
        check = timed(lambda: tradeassay_bench.verify(real.folder, workers=1))
        print(
            f"recorded: replay {replay:.2f} s, verify {check:.2f} s: {check / replay:.2f} times "
            "(bar 1.5)"
        )

        agents = [
            name
            for name in registered.names()
            if name not in ("file", "factor-model") and not converses(name)
        ]
        demo = tradeassay_bench.make_spec(benchmarks=RULES, agents=agents, name="demo")
        rules = run(demo, folder / "demo", workers=1)
        check = timed(lambda: tradeassay_bench.verify(rules.folder, workers=1))
        count = len(rules.episodes)
        print(
            f"demo: {count} episodes in {check:.2f} s, {DEMO} would take "
            f"{check * DEMO / count:.1f} s (bar 10)"
        )


if __name__ == "__main__":
    main()
