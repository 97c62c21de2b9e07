"""The sweep that the SysTradeBench paper put off: 17 settings x 12 strategies x 5 cost levels on a full test year.

The seven strategies with a minute version run on three assets of 525,600 bars each (188 million bars per cost
level), the ten with a daily version on 11 instruments of 250 bars. ``python perf/systrade_sweep.py`` prints wall
and CPU seconds on two threads, then the engine's bars per CPU second on one moving-average cross beside numpy's.
"""

from __future__ import annotations

import platform
import sys
import time
from importlib.resources import files

import numba
import numpy as np

from machine import conditions
from tradeassay.account.compiled.shares import price_decisions
from tradeassay.account.shares import COSTS_BP
from tradeassay.benchmarks.systrade import STRATEGIES
from tradeassay.code.bars import make_bars
from tradeassay.code.semantics.compiler import KernelTape, run_compiled
from tradeassay.code.semantics.interpreter import Semantics, read_semantics
from tradeassay.code.sweep import Batch, spread_parameters, sweep
from tradeassay.data.synthetic import MinuteConfig, generate_minutes

SETTINGS = 17
MINUTES = 525_600


def semantics(id: str) -> Semantics:
    folder = files("tradeassay.benchmarks.systrade") / "strategies" / id.replace("-", "_")
    return read_semantics((folder / "semantics.json").read_bytes())


def minute_feed(seed: int, minutes: int = MINUTES) -> tuple[dict[str, np.ndarray], np.ndarray]:
    panel = generate_minutes(MinuteConfig(seed=seed, minutes=minutes))
    fields = {name: np.ascontiguousarray(values[:, 0]) for name, values in panel.bars.items()}
    times = np.datetime64("2021-01-01T00:00") + np.arange(minutes)
    return fields, times


def minute_batches() -> list[Batch]:
    tapes = {}
    for seed in (1, 2, 3):
        fields, times = minute_feed(seed)
        tapes[f"minute-{seed}"] = KernelTape({"X": fields}, ("X",), times)
    batches = []
    for id in STRATEGIES:
        spec = semantics(id)
        if "1m" in spec.inputs.timeframes:
            changed = {"year": float(MINUTES)} if "year" in spec.parameters else {}
            variants = tuple({**v, **changed} for v in spread_parameters(spec, SETTINGS))
            batches += [Batch(spec, tape, name, variants) for name, tape in tapes.items()]
    return batches


def daily_batches() -> list[Batch]:
    batches = []
    for id in STRATEGIES:
        spec = semantics(id)
        if "1d" not in spec.inputs.timeframes:
            continue
        legs = spec.inputs.legs
        for seed in range(11):
            bars = make_bars("pairs" if len(legs) == 2 else "us", "1d", len(legs), 250, seed)
            feeds = {leg: bars.feeds[asset] for leg, asset in zip(legs, bars.feeds, strict=True)}
            tape = KernelTape(feeds, legs, bars.times)
            batches.append(Batch(spec, tape, f"day-{seed}", spread_parameters(spec, SETTINGS)))
    return batches


def numpy_cross(close: np.ndarray, fast: int, slow: int, cost: float) -> float:
    """The peer: a moving-average cross with fees the usual vectorised way, one cost level."""
    sums = np.concatenate(([0.0], np.cumsum(close)))
    quick, calm = np.full(close.size, np.nan), np.full(close.size, np.nan)
    quick[fast - 1 :] = (sums[fast:] - sums[:-fast]) / fast
    calm[slow - 1 :] = (sums[slow:] - sums[:-slow]) / slow
    side = np.where(quick > calm, 1.0, np.where(quick < calm, -1.0, 0.0))
    change = np.abs(np.diff(side, prepend=0.0))
    earned = np.concatenate(([0.0], side[:-1] * (close[1:] / close[:-1] - 1.0)))
    return float(np.prod(1.0 + earned - change * cost))


def engine_speed() -> None:
    fields, times = minute_feed(9, 1_051_200)
    tape = KernelTape({"X": fields}, ("X",), times)
    spec = semantics("double-ma")
    price_decisions(run_compiled(spec, tape), tape.close)  # compiled and in the cache
    best = min(_timed(lambda: price_decisions(run_compiled(spec, tape), tape.close)) for _ in range(7))
    peer = min(_timed(lambda: numpy_cross(tape.close[0], 20, 60, 1e-4)) for _ in range(3))
    print(f"engine, five cost levels: {len(tape) / best / 1e6:6.1f} million bars per CPU second (bar: 50)")
    print(f"numpy, one cost level:    {len(tape) / peer / 1e6:6.1f}; ratio {peer / best:.1f}")


def _timed(action) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def main() -> int:
    print(f"python {platform.python_version()}, numba {numba.__version__}, numpy {np.__version__}")
    minute, daily = minute_batches(), daily_batches()
    for batch in (*minute[::3], *daily[::11]):  # compile every kernel once; the bar counts from there
        run_compiled(batch.semantics, batch.tape, {})
    bars = sum(len(b.tape) * len(b.variants) for b in minute)
    wall, cpu = time.perf_counter(), time.process_time()
    rows = sweep([*minute, *daily], workers=2)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    groups = {(row.strategy, row.variant, row.cost_bp) for row in rows}
    print(f"{len(groups)} backtests (strategy x setting x {len(COSTS_BP)} costs) over {len(rows)} tape runs")
    print(f"{bars / 1e6:.0f} million minute bars per cost level")
    print(f"sweep: {wall:.1f} s wall, {cpu:.1f} s CPU on 2 threads, {conditions()} (bar: 20 s wall)")
    engine_speed()
    return 0


if __name__ == "__main__":
    sys.exit(main())
