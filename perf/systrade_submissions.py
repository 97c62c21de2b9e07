"""Seventeen differently written submissions per strategy through the sandbox with all gates: the 15-minute bar.

The submissions are made from the references in four styles: numpy windows with a Python loop (the reference
itself), vectorised pandas (``rolling``), ``itertuples`` over the frame, and plain loops that take every window
anew. The seventeen differ in style and in their whole-number parameters, so most of them fail the scenarios; every
gate is asked all the same. Nobody should take them for what models write: they only cost like it.

The seven strategies with a minute version run on 525,600 minutes, the others on their synthetic year, by the rules
of ``systrade-v2``. The gates run on the first asset; on the other two of the three, minute submissions make one
full run.

``python perf/systrade_submissions.py`` measures a slice (one submission of each style, one asset) and
extrapolates; ``--full`` runs all 204. The children's CPU seconds are counted by the sandbox.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from tradeassay.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay.benchmarks.systrade.data import MINUTES, minute_year, synthetic_year
from tradeassay.benchmarks.systrade.examine import twin_executor
from tradeassay.code.gates import GateConfig, pass_gates
from tradeassay.code.submission import StrategySpec, Submission
from tradeassay.code.submission_run import SubmissionRunner, market_columns, submission_config
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


CONFIG = GateConfig(strict=True, secret="5a" * 16)
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all 204 submissions, minutes on three assets")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    chosen = args.strategy or STRATEGIES
    count, assets = (COUNT, ASSETS) if args.full else (len(STYLES), 1)
    wall, host = time.perf_counter(), time.process_time()
    spent: dict[str, list[float]] = {}
    config = submission_config()
    with open_executor(config=config, workers=args.workers) as first, twin_executor(first, config) as executor:
        work = [(strategy, number) for strategy in chosen for number in range(count)]

        def one(place: tuple[str, int]) -> tuple[str, int, str, float]:
            strategy, number = place
            verdict, cpu = examine(written(strategy, number), load_spec(strategy, minutes=True), executor, assets)
            return strategy, number, verdict, cpu

        with ThreadPoolExecutor(args.workers) as threads:
            for strategy, number, verdict, cpu in threads.map(one, work):
                spent.setdefault(strategy, []).append(cpu)
                print(f"{strategy:22} {STYLES[number % 4]:10} {number:2} {cpu:7.1f} s  {verdict}", flush=True)
    wall, host = time.perf_counter() - wall, time.process_time() - host
    children = sum(map(sum, spent.values()))
    load = os.getloadavg()[0]
    print(f"{len(work)} submissions on {assets} asset(s): {wall:.0f} s wall at load {load:.1f}")
    print(f"children {children:.0f} s CPU, host {host:.0f} s CPU")
    if not args.full:
        per = {name: sum(found) / len(found) for name, found in spent.items()}
        whole = COUNT * sum(per.values())
        minute = [name for name in per if "1m" in load_spec(name).semantics.inputs.timeframes]
        print(f"extrapolated to {COUNT} each, one asset: {whole:.0f} s CPU, {whole / 2:.0f} s on two free cores")
        print(f"of which minutes: {COUNT * sum(per[name] for name in minute):.0f} s CPU (bar: {BAR_S} s wall)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
