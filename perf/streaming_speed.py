"""How fast are bars fed, in this process and into a sandbox?

Bar: at least 0.5 million bars per second for a trivial strategy in-process (processor time). Beside it: the same
strategy in a child that gets each bar when it has answered the last, by the clock and by processor time of both
sides, and a plain Python loop over the same rows that calls nothing.

    python perf/streaming_speed.py [--bars 500000] [--fed 50000]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from typing import Any

import numpy as np

import tradeassay
from tradeassay.code.streaming import HARNESS, BarDesk, stream, stream_in_sandbox
from tradeassay.sandbox import Sandbox, SandboxConfig, SandboxRefused

BAR = 500_000.0
SOURCE = """
class Strategy:
    last = 0.0

    def on_bar(self, bar, desk):
        if bar.close > self.last * 1.01:
            desk.target(1)
        self.last = bar.close
"""


def minutes(bars: int) -> dict[str, np.ndarray]:
    close = 100 * np.exp(np.cumsum(np.random.default_rng(3).normal(0, 0.001, bars)))
    time_column = (np.datetime64("2024-01-01T00:00", "m") + np.arange(bars)).astype("M8[ns]")
    return {"time": time_column, "open": close, "high": close, "low": close, "close": close, "volume": close}


class Trivial:
    last = 0.0

    def on_bar(self, bar: Any, desk: BarDesk) -> None:
        if bar.close > self.last * 1.01:
            desk.target(1)
        self.last = bar.close


def bare_loop(columns: dict[str, np.ndarray]) -> float:
    before = time.process_time()
    lists = [
        values.astype(np.int64).tolist() if values.dtype.kind == "M" else values.tolist()
        for values in columns.values()
    ]
    for _ in zip(*lists, strict=True):
        pass
    return len(lists[0]) / (time.process_time() - before)


def in_process(columns: dict[str, np.ndarray]) -> float:
    return max(len(columns["close"]) / stream(Trivial(), columns).cpu_s for _ in range(3))


def fed(columns: dict[str, np.ndarray]) -> dict[str, float | str]:
    bars = len(columns["close"])
    try:
        with Sandbox(SandboxConfig(preload=("numpy",), harnesses=(HARNESS,))) as sandbox:
            best: dict[str, float | str] = {}
            for _ in range(3):
                wall, host = time.monotonic(), time.process_time()
                done = stream_in_sandbox(sandbox, SOURCE, columns)
                assert done.failure is None, done.failure
                wall, host = time.monotonic() - wall, time.process_time() - host
                if bars / wall > float(best.get("bars_per_second_wall", 0)):
                    best = {
                        "bars_per_second_wall": bars / wall,
                        "bars_per_cpu_second_both_sides": bars / (host + done.cpu_s),
                        "tier": sandbox.tier.level,
                    }
            return best
    except SandboxRefused as error:
        return {"refused": str(error)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bars", type=int, default=500_000)
    parser.add_argument("--fed", type=int, default=50_000)
    options = parser.parse_args()
    columns = minutes(options.bars)
    here, bare = in_process(columns), bare_loop(columns)
    result = {
        "versions": {
            "tradeassay": tradeassay.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "kernel": platform.release(),
        },
        "in_process_bars_per_cpu_second": here,
        "bar": BAR,
        "in_process_over_bar": here / BAR,
        "bare_loop_bars_per_cpu_second": bare,
        "bare_loop_over_in_process": bare / here,
        "fed_sandbox": fed(minutes(options.fed)),
    }
    print(json.dumps(result, indent=1))
    return 0 if here >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
