"""Compare leak detectors: our leak check, rules on the source, and the two checks of the
SysTradeBench paper.

Limit: all leaky strategies found, no honest strategy flagged, with the default settings and every
seed. Prints a Markdown table, the times in processor seconds, and the ratios.

    python perf/leak_bench.py [--seeds 3] [--json]
    python perf/leak_bench.py --bars 525600 [--cases late,rare]     the bench for whole series, with
    this many bars
    python perf/leak_bench.py --bars 2500 --held-out                cases that the shipped bench
    does not have
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import msgspec
import numpy as np
import pandas as pd
import scipy

import tradeassay
from leak_cases import LongLine, guard_objects, held_out, load_long_bench, measure_long, paper_rules
from tradeassay_programs.code.lookahead.bench import (
    BenchLine,
    bench_columns,
    load_bench,
    measure_bench,
)
from tradeassay_programs.code.program_source import source_advice


class Compared(msgspec.Struct, frozen=True):
    """A case of the shipped bench, and the results of the other checks."""

    line: BenchLine
    rules: bool
    paper_rules: bool
    paper_guard: bool


def compared(lines: list[BenchLine]) -> list[Compared]:
    cases = {case.name: case for case in load_bench()}
    return [
        Compared(
            line,
            bool(source_advice(cases[line.name].source)),
            bool(paper_rules(cases[line.name].source)),
            guard_objects(cases[line.name].source, bench_columns(cases[line.name].data)),
        )
        for line in lines
    ]


def table(lines: list[Compared]) -> str:
    def yes(found: bool) -> str:
        return "found" if found else "-"

    rows = [
        "| strategy | where the future comes in | leak check | source rules | paper's rules | "
        "paper's guard |"
    ]
    rows.append("|---|---|---|---|---|---|")
    for one in lines:
        line = one.line
        if line.leaky:
            others = " | ".join(
                yes(found) for found in (one.rules, one.paper_rules, one.paper_guard)
            )
            rows.append(f"| {line.name} | {line.what} | {line.method or '-'} | {others} |")
    return "\n".join(rows)


def counts(lines: list[Compared], leaky: bool) -> dict[str, int]:
    chosen = [one for one in lines if one.line.leaky == leaky]
    found = {
        name: sum(getattr(one, name) for one in chosen)
        for name in ("rules", "paper_rules", "paper_guard")
    }
    return {"strategies": len(chosen), "check": sum(one.line.check for one in chosen), **found}


def cost_in_runs() -> float:
    """The median processor time of a check on the honest strategies, in multiples of one run."""
    ratios = []
    for case in load_bench():
        if case.leaky:
            continue
        columns, subject = bench_columns(case.data), case.subject()
        subject.run(columns)
        before = time.process_time()
        subject.run(columns)
        alone = time.process_time() - before
        before = time.process_time()
        measure_bench(seed=1, cases=[case])
        ratios.append((time.process_time() - before) / alone)
    return float(np.median(ratios))


SHARES = (1e-5, 1e-4, 1e-3, 1e-2, 1.01)


def measured(place: tuple[str, int, int]) -> tuple[LongLine, float]:
    """Return the line of one case with a number of bars, and its CPU seconds."""
    name, bars, seed = place
    case = next(one for one in (*held_out(), *load_long_bench()) if one.name == name)
    before = time.process_time()
    (line,) = measure_long(bars, seed, [case])
    return line, time.process_time() - before


def long_bench(
    bars: int, begins: tuple[str, ...], *, fresh: bool, cores: int, seed: int = 1
) -> int:
    """Print every case of the bench for whole series with the share of leaking bars, and the
    result.
    """
    cases = held_out() if fresh else load_long_bench()
    print("| strategy | bars that leak | verdict | by | not excluded below | runs | CPU s |")
    print("|---|---|---|---|---|---|---|")
    lines = []
    with ProcessPoolExecutor(cores) as pool:
        for line, used in pool.map(
            measured, ((c.name, bars, seed) for c in cases if c.name.startswith(begins))
        ):
            share = "none" if line.share is None else f"{line.share:.4%}"
            said = line.verdict or "undecided"
            verdict = (
                f"{said}{f' ({line.cause})' if line.cause else ''}{'' if line.right else ' WRONG'}"
            )
            found = f"{line.method or '-'} | {line.bound} | {line.runs} | {used:.1f}"
            print(f"| {line.name} | {share} | {verdict} | {found} |", flush=True)
            lines.append(line)
    low = 0.0
    for high in SHARES:
        these = [
            line
            for line in lines
            if line.leaky and line.share is not None and low <= line.share < high
        ]
        caught = sum(line.verdict != "clean" for line in these)
        print(
            f"leaks in {low:.3%} to {min(high, 1.0):.3%} of the bars: {caught} of {len(these)} "
            "found"
        )
        low = high
    honest = [line for line in lines if not line.leaky]
    wrong = [line.name for line in lines if not line.right]
    print(
        f"honest: {sum(line.right for line in honest)} of {len(honest)} judged right; wrong in "
        f"all: {wrong}"
    )
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bars", type=int)
    parser.add_argument("--cases", default="", help="with --bars: only cases whose names begin so")
    parser.add_argument(
        "--held-out", action="store_true", help="with --bars: the cases that do not ship"
    )
    parser.add_argument("--cores", type=int, default=1, help="with --bars: processes")
    options = parser.parse_args()
    if options.bars:
        begins = tuple(options.cases.split(","))
        return long_bench(options.bars, begins, fresh=options.held_out, cores=options.cores)
    before = time.process_time()
    measured = [measure_bench(seed=seed) for seed in range(1, options.seeds + 1)]
    used = time.process_time() - before
    beside = compared(measured[0])
    wrong = [
        (seed + 1, line.name)
        for seed, lines in enumerate(measured)
        for line in lines
        if line.check != line.leaky
    ]
    result = {
        "versions": {
            "tradeassay": tradeassay.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pandas": pd.__version__,
            "scipy": scipy.__version__,
        },
        "seeds": options.seeds,
        "leaky": counts(beside, True),
        "honest": counts(beside, False),
        "wrong": wrong,
        "cpu_s_per_case": used / options.seeds / len(measured[0]),
        "check_over_one_run": cost_in_runs(),
    }
    if options.json:
        print(
            json.dumps({**result, "lines": [msgspec.to_builtins(one) for one in beside]}, indent=1)
        )
    else:
        print(table(beside))
        print(json.dumps(result, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
