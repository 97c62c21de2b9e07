"""Measure the cost of isolation: one TA-Lib and pandas job on 2,500 bars, in the sandbox and in a
plain subprocess.

Limits: a warm job under 40 ms (median), at least 1,000 jobs per minute on two cores, and 2,000 jobs
that leave no process, descriptor or memory behind (``--soak 2000``). Wall times depend on other
load, so processor time is measured too: child, zygote and host together, by the kernel's count. The
plain subprocess repeats its imports every time.

    python perf/sandbox_speed.py [--jobs 200] [--soak 2000] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from machine import conditions
from tradeassay_programs.sandbox import Job, SandboxPool

BARS = 2_500
CORES = 2
BAR_MS, BAR_PER_MINUTE, BAR_GROWTH_MB = 40.0, 1_000.0, 8.0

SOURCE = """
import numpy as np
import pandas as pd
import talib

def run(frame):
    close = frame["close"]
    rsi = pd.Series(talib.RSI(close.to_numpy(), 14), index=frame.index)
    upper, middle, lower = talib.BBANDS(close.to_numpy(), 20)
    trend = close.rolling(50).mean()
    long = (rsi < 35) & (close > trend) | (close < lower)
    short = (rsi > 65) & (close < trend) | (close > upper)
    return pd.DataFrame({"side": np.where(long, 1, np.where(short, -1, 0)), "strength": (rsi - 50).abs() / 50})
"""
PEER = """
import sys
import numpy as np, pandas as pd
sys.modules["pyarrow"] = None
frame = pd.DataFrame({"close": np.fromfile(sys.argv[1])})
space = {}
exec(compile(open(sys.argv[2]).read(), "strategy.py", "exec"), space)
space["run"](frame).to_csv(sys.stdout)
"""


def prices() -> np.ndarray:
    steps = np.random.default_rng(7).normal(0.0003, 0.01, BARS)
    return 100.0 * np.exp(np.cumsum(steps))


def job() -> Job:
    close = prices()
    columns = {
        "time": np.arange(BARS).astype("M8[D]").astype("M8[ns]"),
        "open": close,
        "high": close * 1.01,
        "low": close * 0.99,
        "close": close,
        "volume": np.full(BARS, 1e6),
    }
    return Job(source=SOURCE, columns=columns)


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family(int(child))
    return found


def own_cpu_s(pid: int) -> float:
    """Return the processor time of a process without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    return (
        int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    )


def descriptors_at_rest(pids: list[int]) -> int:
    """Return the open descriptors of all processes. The zygote closes a job's socket just after its
    end.
    """
    time.sleep(0.3)
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)


def one_by_one(pool: SandboxPool, jobs: int) -> dict[str, float]:
    """Return the time of one warm job without other jobs."""
    work = job()
    for _ in range(10):
        pool.run(work).need()
    zygote = family(pool._sandbox._line.current().pid)[-1]
    before, host = own_cpu_s(zygote), time.process_time()
    walls, children = [], []
    for _ in range(jobs):
        start = time.perf_counter()
        result = pool.run(work)
        walls.append(time.perf_counter() - start)
        result.need()
        children.append(result.usage.cpu_s)
    others = (own_cpu_s(zygote) - before + time.process_time() - host) / jobs
    return {
        "wall_median_ms": 1e3 * statistics.median(walls),
        "wall_best_ms": 1e3 * min(walls),
        "cpu_median_ms": 1e3 * (statistics.median(children) + others),
        "cpu_child_ms": 1e3 * statistics.median(children),
        "cpu_zygote_and_host_ms": 1e3 * others,
    }


def all_at_once(pool: SandboxPool, jobs: int) -> dict[str, float]:
    """Return the number of jobs per minute, by the clock and by processor time."""
    work = job()
    zygote = family(pool._sandbox._line.current().pid)[-1]
    before, host, start = own_cpu_s(zygote), time.process_time(), time.perf_counter()
    child = sum(result.usage.cpu_s for result in pool.map([work] * jobs) if result.need())
    wall = time.perf_counter() - start
    cpu = child + own_cpu_s(zygote) - before + time.process_time() - host
    return {"per_minute_by_clock": 60 * jobs / wall, "per_minute_by_cpu": 60 * CORES * jobs / cpu}


def peer(runs: int) -> dict[str, float]:
    """Return the time of the same work in a plain subprocess."""
    with tempfile.TemporaryDirectory() as folder:
        data, source = Path(folder) / "close.bin", Path(folder) / "strategy.py"
        prices().tofile(data)
        source.write_text(SOURCE)
        walls, cpus = [], []
        for _ in range(runs):
            before, start = os.times(), time.perf_counter()
            command = [sys.executable, "-c", PEER, str(data), str(source)]
            subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, env={"OPENBLAS_NUM_THREADS": "1"}
            )
            after = os.times()
            walls.append(time.perf_counter() - start)
            spent = (
                after.children_user
                - before.children_user
                + after.children_system
                - before.children_system
            )
            cpus.append(spent)
    return {
        "wall_median_ms": 1e3 * statistics.median(walls),
        "cpu_median_ms": 1e3 * statistics.median(cpus),
    }


def soak(pool: SandboxPool, jobs: int) -> dict[str, float]:
    """Return the processes, descriptors and memory that many good and bad jobs leave behind."""
    good = job()
    bad = [
        Job(source=text, columns={"close": prices()}, pass_as="columns")
        for text in (
            "def run(columns):\n    1 / 0",
            "def run(",
            "import os\ndef run(columns):\n    os.fork()",
            "import os\ndef run(columns):\n    os.abort()",
            "def run(columns):\n    open('/etc/passwd')",
        )
    ]
    mixed = [good if n % 4 else bad[n // 4 % len(bad)] for n in range(jobs)]
    for _ in pool.map(mixed[:100]):
        pass
    pids = [os.getpid(), *family(pool._sandbox._line.current().pid)]
    descriptors = descriptors_at_rest(pids)
    memory = [resident_mb(pid) for pid in pids]
    succeeded = sum(result.ok for result in pool.map(mixed))
    left = descriptors_at_rest([os.getpid(), *family(pool._sandbox._line.current().pid)])
    now = [os.getpid(), *family(pool._sandbox._line.current().pid)]
    return {
        "jobs": jobs,
        "succeeded": succeeded,
        "expected": sum(work is good for work in mixed),
        "more_processes": len(now) - len(pids),
        "more_descriptors": left - descriptors,
        "more_memory_mb": sum(resident_mb(pid) for pid in now) - sum(memory),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--soak", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    start = time.perf_counter()
    with SandboxPool(workers=CORES) as pool:
        found: dict[str, dict[str, float]] = {"start": {"wall_s": time.perf_counter() - start}}
        single = found["one by one"] = one_by_one(pool, options.jobs)
        many = found["all at once"] = all_at_once(pool, 2 * options.jobs)
        found["plain subprocess"] = peer(5)
        if options.soak:
            found["soak"] = soak(pool, options.soak)
        level = pool.tier.level
    ok = single["cpu_median_ms"] < BAR_MS and many["per_minute_by_cpu"] >= BAR_PER_MINUTE
    if options.soak:
        left = found["soak"]
        ok &= (
            left["more_processes"] == left["more_descriptors"] == 0
            and left["more_memory_mb"] < BAR_GROWTH_MB
        )
        ok &= left["succeeded"] == left["expected"]
    if options.json:
        print(json.dumps({"tier": level, "load": os.getloadavg(), "ok": ok, **found}, indent=2))
        return 0 if ok else 1
    print(f"walls: {level}; {conditions()}")
    for name, numbers in found.items():
        print(f"{name:18}" + "  ".join(f"{key} {value:,.1f}" for key, value in numbers.items()))
    bars = f"a job under {BAR_MS:g} ms, at least {BAR_PER_MINUTE:g} a minute"
    print(f"bars (processor time): {bars}: {'kept' if ok else 'BROKEN'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
