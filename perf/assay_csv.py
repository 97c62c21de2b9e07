"""Measure the cost of judging a table of returns: CPU, memory and modules of `tradeassay assay
returns.csv` with its page.

    python perf/assay_csv.py [--quantstats ENVIRONMENT/bin/python]

Each figure is the median of fresh processes, which run in turn under the same conditions:

* importing numpy and scipy.special, which the command needs;
* the command, on ten years of daily returns;
* `quantstats.reports.html` on the same file, if you name an interpreter with quantstats. We do not
  depend on it: `python -m venv qs && qs/bin/pip install quantstats`.

Limits: CPU at most that of the imports plus 0.4 s, and at most a sixth of quantstats'; a peak of
120 MB; no module of our other packages, and no pandas.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from machine import conditions

IMPORTS = "import numpy, scipy.special"
COMMAND = """
import sys
sys.argv = ["tradeassay", "assay", "returns.csv"]
from tradeassay.__main__ import main
status = main()
others = ("tradeassay_bench", "tradeassay_programs", "tradeassay_arena")
print(sum(name.split(".")[0] in others for name in sys.modules), "pandas" in sys.modules)
sys.exit(status)
"""
QUANTSTATS = """
import matplotlib
matplotlib.use("Agg")
import pandas
import quantstats
table = pandas.read_csv("returns.csv", index_col=0, parse_dates=True)
quantstats.reports.html(table["return"], output="quantstats.html")
"""
MOST_SECONDS = 0.4
LEAST_RATIO = 6.0
MOST_MEGABYTES = 120.0


class Cost(NamedTuple):
    """CPU seconds and peak memory of a process, and its output."""

    cpu: float
    megabytes: float
    output: str


def write_returns(path: Path) -> None:
    """Write ten years of daily returns, the same ones every time."""
    weekdays = np.arange("2014-01-01", "2024-01-01", dtype="datetime64[D]")
    weekdays = weekdays[np.is_busday(weekdays)]
    returns = np.random.default_rng(7).normal(0.0004, 0.01, weekdays.size)
    rows = [f"{day},{value:.6f}" for day, value in zip(weekdays, returns, strict=True)]
    path.write_text("\n".join(["date,return", *rows]) + "\n")


def cost(python: str, code: str, folder: Path) -> Cost:
    """Return the cost of running ``code`` in a fresh interpreter with one thread of linear
    algebra.
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    # A process of its own counts its children: the peak of one must not hide in that of another.
    measured = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.returncode)\n"
        "print(done.stdout if done.returncode == 0 else done.stderr)\n"
    )
    words = [sys.executable, "-c", measured, python, "-c", code]
    answer = subprocess.run(
        words, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    figures, _, output = answer.stdout.partition("\n")
    cpu, megabytes, status = figures.split()
    if status != "0":
        raise SystemExit(f"{python} failed:\n{output}")
    return Cost(float(cpu), float(megabytes), output)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quantstats", metavar="PYTHON", help="an interpreter with quantstats")
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    cases = {"imports": (sys.executable, IMPORTS), "assay": (sys.executable, COMMAND)}
    if asked.quantstats:
        cases["quantstats"] = (asked.quantstats, QUANTSTATS)
    found: dict[str, list[Cost]] = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_returns(folder / "returns.csv")
        for python, code in cases.values():
            cost(python, code, folder)  # byte code, fonts and templates are compiled once
        for _ in range(asked.repeats):
            for name, (python, code) in cases.items():
                found[name].append(cost(python, code, folder))
    cpu = {name: statistics.median(one.cpu for one in costs) for name, costs in found.items()}
    peak = {name: max(one.megabytes for one in costs) for name, costs in found.items()}
    print("| process | CPU, median | peak memory |")
    print("|---|---|---|")
    for name in cases:
        print(f"| {name} | {cpu[name]:.2f} s | {peak[name]:.0f} MB |")
    beyond = cpu["assay"] - cpu["imports"]
    others, pandas = found["assay"][0].output.split()[-2:]
    print(f"\nbeyond the imports: {beyond:.2f} s (bar {MOST_SECONDS} s)")
    print(f"peak memory: {peak['assay']:.0f} MB (bar {MOST_MEGABYTES:.0f} MB)")
    print(f"modules of our other packages: {others} (bar 0)")
    print(f"pandas imported: {pandas} (bar False)")
    good = beyond <= MOST_SECONDS and peak["assay"] <= MOST_MEGABYTES
    good = good and (others, pandas) == ("0", "False")
    if "quantstats" in cases:
        ratio = cpu["quantstats"] / cpu["assay"]
        good = good and ratio >= LEAST_RATIO
        print(f"quantstats takes {ratio:.1f} times our CPU (bar {LEAST_RATIO:.0f})")
    print(f"python {sys.version.split()[0]}, {conditions()}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
