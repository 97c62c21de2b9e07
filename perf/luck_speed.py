"""Measure the speed of the luck baseline: 10,000 random portfolios on the trades of a top-20
rotation.

300 A-share names, 548 sessions. The limit is 5 seconds of CPU. The comparison is the naive way: the
same portfolios as decisions through the exchange, timed on fifty of them and scaled. Those fifty
must agree to 1e-9. Run it with ``python perf/luck_speed.py`` (add ``--json`` for JSON). Compilation
is timed separately.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from luck_orders import decisions_of, replay
from tradeassay_bench.agents import make_agent
from tradeassay_bench.benchmarks import day, play_day
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.data import Snapshot, open_snapshot, synthetic, write_snapshot
from tradeassay_bench.examine.luck import luck_market, place_among, random_portfolios, schedule_of
from tradeassay_bench.play import Market, MarketConfig

NAMES, HISTORY, SESSIONS, PORTFOLIOS, REPLAYED = 300, 258, 548, 10_000, 50
BAR = 5.0


def rotation(snapshot: Snapshot, config: MarketConfig) -> tuple[list[StepRecord], np.ndarray]:
    """Play the rotation and return its journal and its value path."""
    market = Market(snapshot, config)
    agent = make_agent(
        "momentum-12-1", {"k": 20, "keep": 1.5, "every": 1, "lookback": 21, "skip": 1}
    )
    agent.begin(EpisodeInfo(episode="speed", seed=0, rules=market.rules), np.random.default_rng(0))
    seen: Observation | None = market.reset()
    records, path = [], [config.cash]
    while seen is not None:
        record, seen = market.step(play_day(day(seen), agent))
        records.append(record)
        path.append(market.ledger.nav())
    return records, np.array(path)


def measure(folder: Path) -> dict[str, float]:
    """Time every part and check fifty portfolios against the exchange."""
    world = synthetic.preset(
        "ashare", seed=7, names=NAMES, index_members=NAMES, sessions=HISTORY + SESSIONS
    )
    write_snapshot(synthetic.generate(world).panel, folder)
    snapshot = open_snapshot(folder)
    days = [str(one) for one in snapshot.sessions]
    config = MarketConfig(
        venue="ashare-flat-v1", universe="all", cash=1e7, first=days[HISTORY], last=days[-1]
    )
    records, path = rotation(snapshot, config)
    found: dict[str, float] = {}
    began = time.perf_counter()
    ground = luck_market(snapshot, config)
    schedule, shape = schedule_of(records, ground)
    found["read and take names out, s"] = time.perf_counter() - began
    began = time.perf_counter()
    decisions_of(ground, schedule, 0)
    found["compile or load, s"] = time.perf_counter() - began
    began, cpu = time.perf_counter(), time.process_time()
    made = random_portfolios(ground, schedule, n=PORTFOLIOS)
    found["10,000 portfolios, wall s"] = time.perf_counter() - began
    found["10,000 portfolios, cpu s"] = time.process_time() - cpu
    cpu = time.process_time()
    place = place_among(path, made.nav)
    found["percentile with interval, cpu s"] = time.process_time() - cpu
    found["percentile"] = float(place.percentile.value or 0.0)
    cpu, worst = time.process_time(), 0.0
    for portfolio in range(REPLAYED):
        again = replay(snapshot, config, decisions_of(ground, schedule, portfolio))
        worst = max(worst, float(np.abs(again / made.nav[portfolio] - 1.0).max()))
    found["naive loop for 10,000, cpu s (from 50)"] = (
        (time.process_time() - cpu) * PORTFOLIOS / REPLAYED
    )
    found["largest relative difference of 50"] = worst
    found["changes in the schedule"] = float(schedule.seat.size)
    for name, wanted, got in zip(shape._fields, shape, np.median(made.shapes, axis=0), strict=True):
        found[f"{name} of the run"], found[f"{name}, median of random"] = wanted, float(got)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder) / "world")
    if chosen.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:45} {value:.6g}")
    fast = found["10,000 portfolios, cpu s"] <= BAR
    return 0 if fast and found["largest relative difference of 50"] <= 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
