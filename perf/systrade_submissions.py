"""Seventeen differently written submissions per strategy through the sandbox with all gates: the 15-minute bar.

The submissions are made from the references in four styles: numpy windows with a Python loop (the reference
itself), vectorised pandas (``rolling``), ``itertuples`` over the frame, and plain loops that take every window
anew. The seventeen differ in style and in their whole-number parameters, so most of them fail the scenarios; every
gate is asked all the same. Nobody should take them for what models write: they only cost like it.

The seven strategies with a minute version run on 525,600 minutes, the others on their synthetic year, by the rules
of ``systrade-v1``. The gates run on the first asset; on the other two of the three, minute submissions make one
full run.

``python perf/systrade_submissions.py`` measures a slice (one submission of each style, one asset) and
extrapolates; ``--full`` runs all 204. With ``--keep FILE`` and ``--seconds N`` it goes on where it stopped. The
children's CPU seconds are counted by the sandbox.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import msgspec

from machine import conditions
from tradeassay.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay.benchmarks.systrade.data import MINUTES, minute_year, synthetic_year
from tradeassay.benchmarks.systrade.examine import twin_executor
from tradeassay.code.gates import GateConfig, pass_gates
from tradeassay.code.submission import (
    StrategySpec,
    Submission,
    SubmissionRunner,
    market_columns,
    submission_config,
)
from tradeassay.sandbox import JobExecutor, open_executor

COUNT = 17
ASSETS = 3
BAR_S = 15 * 60
PANDAS = """

import pandas as pd


def rolling_mean(x, n):
    return pd.Series(x).rolling(n, min_periods=n).mean().to_numpy()


def rolling_std(x, n, ddof):
    return pd.Series(x).rolling(n, min_periods=n).std(ddof=ddof).to_numpy()
"""
TUPLES = '''

class _FrameReader:
    """Reads closes row by row."""

    @staticmethod
    def closes(frame):
        return np.array([row.close for row in frame.itertuples(index=False)], dtype=float)
'''
LOOPS = """

def rolling_mean(x, n):
    out = np.full(len(x), np.nan)
    for t in range(n - 1, len(x)):
        out[t] = x[t - n + 1 : t + 1].mean()
    return out
"""
STYLES = ("windows", "pandas", "itertuples", "loops")


def written(strategy: str, number: int) -> Submission:
    """Return the reference in another style and with other whole-number parameters."""
    reference = load_reference(strategy, minutes=True)
    style, more = STYLES[number % len(STYLES)], number // len(STYLES)
    head, body = reference.source.split("class TradingStrategy", 1)
    if style == "pandas":
        head += PANDAS
    elif style == "loops":
        head += LOOPS
    elif style == "itertuples":
        old = '{s: market_data[s]["close"].to_numpy(dtype=float) for s in self.symbols}'
        assert old in head
        head = head.replace(old, "{s: _FrameReader.closes(market_data[s]) for s in self.symbols}") + TUPLES
    body = re.sub(r"(?m)^(    [A-Z_]+ = )(\d+)$", lambda m: f"{m[1]}{int(m[2]) + more}", body)
    source = f"{head}\n\nclass TradingStrategy{body}\n# {style}, number {number}\n"
    return Submission(source=source, card=reference.card, name=f"{strategy} {style} {number}")


CONFIG = GateConfig(secret="5a" * 16)
tape = lru_cache(maxsize=ASSETS)(minute_year)


def examine(submission: Submission, spec: StrategySpec, executor: JobExecutor, assets: int) -> tuple[str, float]:
    """Run all gates on one asset and one run on each of the others; return verdict and CPU of the children."""
    minute = "1m" in spec.semantics.inputs.timeframes
    bars = tape(MINUTES, 1) if minute else synthetic_year(spec)
    report = pass_gates(submission, spec, executor, CONFIG, bars).report
    cpu = report.cpu_s
    if minute and report.gate("exec").passed:
        runner = SubmissionRunner(
            executor=executor, source=submission.source, semantics=spec.semantics, limits=CONFIG.limits
        )
        legs = spec.semantics.inputs.legs
        wanted = ((market_columns(tape(MINUTES, seed), legs), CONFIG.seeds[0]) for seed in range(2, assets + 1))
        list(runner.logs(wanted))
        cpu += runner.spent.cpu_s
    failure = report.first_failure
    return ("all gates held" if failure is None else f"{failure.name}: {failure.reason[:90]}"), cpu


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """One submission: what became of it, and the CPU seconds of its children and of the host."""

    strategy: str
    number: int
    assets: int
    verdict: str
    cpu_s: float
    host_s: float

    @property
    def key(self) -> tuple[str, int, int]:
        """Which one it is."""
        return self.strategy, self.number, self.assets


def kept_in(file: Path | None) -> list[Examined]:
    """Return what earlier parts have measured."""
    lines = file.read_bytes().splitlines() if file is not None and file.exists() else []
    return [msgspec.json.decode(line, type=Examined) for line in lines]


def main() -> int:
    """Measure what is left, within the time given, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--full", action="store_true", help="all 204 submissions, minutes on three assets")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES)
    parser.add_argument("--styles", type=int, default=len(STYLES), help="so many of the four styles in a slice")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a file with what was measured: it is not measured again")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no submission after so long")
    args = parser.parse_args()
    chosen = args.strategy or STRATEGIES
    count, assets = (COUNT, ASSETS) if args.full else (args.styles, 1)
    found = kept_in(args.keep)
    done = {one.key for one in found}
    work = [(name, number) for number in range(count) for name in chosen if (name, number, assets) not in done]
    wall = time.perf_counter()
    config = submission_config()
    with open_executor(config=config, workers=args.workers) as first, twin_executor(first, config) as executor:

        def one(place: tuple[str, int]) -> Examined | None:
            if time.perf_counter() - wall > args.seconds:
                return None
            strategy, number = place
            before = time.thread_time()
            verdict, cpu = examine(written(strategy, number), load_spec(strategy, minutes=True), executor, assets)
            host = time.thread_time() - before
            return Examined(
                strategy=strategy, number=number, assets=assets, verdict=verdict, cpu_s=cpu, host_s=host
            )

        with ThreadPoolExecutor(args.workers) as threads:
            for made in threads.map(one, work):
                if made is None:
                    continue
                found.append(made)
                if args.keep is not None:
                    with args.keep.open("ab") as file:
                        file.write(msgspec.json.encode(made) + b"\n")
                style = STYLES[made.number % len(STYLES)]
                print(
                    f"{made.strategy:22} {style:10} {made.number:2} {made.cpu_s:7.1f} s  {made.verdict}",
                    flush=True,
                )
    took = time.perf_counter() - wall
    print(f"{took:.0f} s by the clock ({conditions()}); {len(found)} submissions measured so far")
    report([one for one in found if one.assets == assets], chosen)
    return 0


def report(found: list[Examined], chosen: Sequence[str]) -> None:
    """Print the mean of every strategy, and what all 17 would take."""
    total = 0.0
    for name in chosen:
        own = [one for one in found if one.strategy == name]
        if not own:
            print(f"{name:22} not measured")
            continue
        mean = sum(one.cpu_s + one.host_s for one in own) / len(own)
        host = sum(one.host_s for one in own) / len(own)
        total += COUNT * mean
        print(f"{name:22} {len(own):2} measured, {mean:6.1f} s of CPU each, {host:5.1f} of them on the host")
    print(f"{COUNT} each: {total:.0f} s of CPU, {total / 2:.0f} s on two free cores (bar: {BAR_S} s)")


if __name__ == "__main__":
    sys.exit(main())
