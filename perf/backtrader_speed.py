"""Compare one Backtrader task on 1,500 daily bars in the sandbox, with isolation, and run the naive
way.

The naive way is a fresh interpreter that imports the framework, loads a frame row by row and runs
with the usual observers, without isolation. Both are measured in this run: median clock seconds,
and the processor seconds of the child. The sandbox's account is compared with the naive account. If
the machine is overloaded, the limit applies to processor seconds of host and child together, and
the output states this.

    python perf/backtrader_speed.py
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from machine import conditions
from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.code.backtrader import (
    BacktestJob,
    fed_backtests,
    read_result,
    sandbox_config,
    sandbox_job,
)
from tradeassay_programs.code.bars import make_bars
from tradeassay_programs.code.task import Sizing
from tradeassay_programs.sandbox import SandboxPool

PRELOADED_S, FED_S = 0.12, 0.35
"""Limits: clock seconds if all bars are preloaded, CPU seconds of host and child if bars are fed
one by one.
"""
ROUNDS = 11
NAIVE_ROUNDS = 5
STRATEGY = """
import backtrader as bt


class Cross(bt.Strategy):
    params = (("fast", 10), ("slow", 30))

    def __init__(self):
        fast, slow = bt.ind.SMA(period=self.p.fast), bt.ind.SMA(period=self.p.slow)
        self.cross = bt.ind.CrossOver(fast, slow)
        self.rsi = bt.ind.RSI(period=14)

    def next(self):
        if not self.position and self.cross > 0 and self.rsi < 75:
            self.buy()
        elif self.position and self.cross < 0:
            self.close()
"""
NAIVE = """
import sys

import backtrader as bt
import pandas as pd

module = type(sys)("strategy")
sys.modules["strategy"] = module
exec(compile(open(sys.argv[2]).read(), "strategy.py", "exec"), module.__dict__)
frame = pd.read_csv(sys.argv[1], index_col=0, parse_dates=True)
cerebro = bt.Cerebro()
cerebro.broker.setcash(10_000.0)
cerebro.broker.setcommission(commission=0.001)
cerebro.addsizer(bt.sizers.FixedSize, stake=10)
cerebro.adddata(bt.feeds.PandasData(dataname=frame))
cerebro.addstrategy(module.Cross)
cerebro.run()
print(repr(cerebro.broker.getvalue()))
"""


def main() -> int:
    """Measure, print, and return 1 if the sandbox misses its limit or the accounts differ."""
    bars = make_bars("us", "1d", 1, 1500, 1)
    terms = BrokerTerms(sizing=Sizing(kind="fixed", value=10))
    job = BacktestJob(source=STRATEGY, bars=bars, terms=terms)
    with SandboxPool(sandbox_config()) as pool:
        read_result(job, pool.run(sandbox_job(job)))
        wall, cpu, both = [], [], []
        for _ in range(ROUNDS):
            started, before = time.perf_counter(), time.process_time()
            done = read_result(job, pool.run(sandbox_job(job)))
            wall.append(time.perf_counter() - started)
            cpu.append(done.usage.cpu_s)
            both.append(done.usage.cpu_s + time.process_time() - before)
        fed_cpu = []
        for _ in range(ROUNDS):
            before = time.process_time()
            (fed,) = fed_backtests(pool, [job])
            fed_cpu.append(fed.usage.cpu_s + time.process_time() - before)
        tier = pool.tier.level
    with tempfile.TemporaryDirectory() as folder:
        naive_wall, naive_cpu, value = _naive(Path(folder), bars)
    ours, theirs = statistics.median(wall), statistics.median(naive_wall)
    print(
        f"python {platform.python_version()}, backtrader {version('backtrader')}, {os.cpu_count()} "
        "processors"
    )
    spent = statistics.median(cpu)
    print(
        f"sandbox ({tier}): {ours:.3f} s by the clock, {spent:.3f} CPU-s in the child, over "
        f"{ROUNDS} runs"
    )
    print(
        f"naive subprocess: {theirs:.3f} s by the clock, {statistics.median(naive_cpu):.3f} CPU-s"
    )
    in_cpu = statistics.median(naive_cpu) / statistics.median(both)
    print(f"ratio: {theirs / ours:.1f} by the clock, {in_cpu:.1f} in CPU")
    agreed = done.final_value is not None and abs(done.final_value - value) < 0.005
    print(
        f"final value {done.final_value:.2f}, naive {value:.2f}: "
        f"{'the same' if agreed else 'DIFFERENT'}"
    )
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    crowded = load > processors
    taken = statistics.median(both) if crowded else ours
    held = taken < PRELOADED_S
    how = (
        f"CPU-s of host and child (load {load:.1f} on {processors} processors)"
        if crowded
        else "s by the clock"
    )
    print(f"bar: {taken:.3f} {how}, under {PRELOADED_S}: {'held' if held else 'MISSED'}")
    one_by_one = statistics.median(fed_cpu)
    same = fed.final_value == done.final_value
    print(
        f"fed bar by bar, as it is scored: {one_by_one:.3f} CPU-s of host and child, under "
        f"{FED_S}: "
        f"{'held' if one_by_one < FED_S else 'MISSED'}; final value "
        f"{'the same' if same else 'DIFFERENT'}"
    )
    print(conditions())
    held, agreed = held and one_by_one < FED_S, agreed and same
    return 0 if agreed and held else 1


def _naive(folder: Path, bars: object) -> tuple[list[float], list[float], float]:
    import pandas as pd

    feed = bars.feeds["A"]  # type: ignore[attr-defined]
    columns = {name: feed[name] for name in ("open", "high", "low", "close", "volume")}
    pd.DataFrame(columns, index=pd.DatetimeIndex(feed["time"])).to_csv(folder / "bars.csv")
    (folder / "strategy.py").write_text(STRATEGY)
    (folder / "naive.py").write_text(NAIVE)
    command = [
        sys.executable,
        str(folder / "naive.py"),
        str(folder / "bars.csv"),
        str(folder / "strategy.py"),
    ]
    wall, cpu, value = [], [], 0.0
    for _ in range(NAIVE_ROUNDS):
        started, before = time.perf_counter(), _children_cpu()
        value = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        wall.append(time.perf_counter() - started)
        cpu.append(_children_cpu() - before)
    return wall, cpu, value


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
