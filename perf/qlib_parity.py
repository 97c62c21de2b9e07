"""Compare our engine and Qlib in one run: sessions per CPU second, and the same NAV from the same
orders.

300 stocks, 548 sessions, A-share rules, a top-20 rotation with five replacements per day. Speed:
our engine through the whole event path (observation, agent, day protocol, exchange, ledger, journal
line) with our own price-limit rule, Qlib through strategy and executor. Parity: both execute the
same orders under Qlib's limit rule.

``python perf/qlib_parity.py`` installs pyqlib into a separate environment under perf/.work (once).
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from qlib_panel import HISTORY, SESSIONS, make_market, write_ours, write_qlib
from qlib_rotation import Rotation
from tradeassay_bench.benchmarks import day, play_day
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.events import ENCODER, Filled, Marked, Rejected, StepRecord, Trimmed
from tradeassay_bench.data import Snapshot
from tradeassay_bench.play import Market, MarketConfig

PEER = "pyqlib==0.9.7"
SPEED_BAR, PARITY_BAR = 50.0, 1e-12
CASH = 1_000_000.0
HERE = Path(__file__).resolve().parent


def peer_python(work: Path) -> Path:
    """Return the interpreter of an environment with Qlib, created on first use."""
    python = work / "qlib-venv" / "bin" / "python"
    if not (work / "qlib-venv" / "ready").exists():
        print(f"installing {PEER} into its own environment ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(work / "qlib-venv")], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "--no-warn-script-location", PEER],
            check=True,
        )
        (work / "qlib-venv" / "ready").touch()
    return python


def episode(snapshot: Snapshot, venue: str, agent: Rotation) -> list[StepRecord]:
    """Play our whole path and encode every record like a journal."""
    days = snapshot.sessions
    config = MarketConfig(
        venue=venue,
        universe="all",
        cash=CASH,
        first=str(days[HISTORY]),
        last=str(days[HISTORY + SESSIONS - 1]),
    )
    market = Market(snapshot, config)
    agent.begin(EpisodeInfo(episode="parity", seed=0, rules=market.rules), np.random.default_rng(0))
    records = []
    seen: Observation | None = market.reset()
    while seen is not None:
        record, seen = market.step(play_day(day(seen), agent))
        ENCODER.encode(record)
        records.append(record)
    return records


def our_speed(
    snapshot: Snapshot, score: np.ndarray, repeats: int
) -> tuple[list[float], list[StepRecord]]:
    """Return CPU seconds of several episodes, and the records of the last."""
    spent, records = [], []
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        records = episode(snapshot, "ashare-flat-v1", Rotation(score, HISTORY))
        spent.append(time.process_time() - start)
    return spent, records


def overdrawn_by_qlib(records: list[StepRecord]) -> int:
    """Count purchases for which Qlib would spend more than the available cash.

    Qlib adds 0.1 share before it rounds down to a lot. A buyer with cash for 2,799.93 shares gets
    2,800 and goes into debt. Our accounts never do, so a panel with such a purchase cannot give the
    same NAV.
    """
    found, cash, affordable = 0, CASH, 0.0
    for record in records:
        for event in record.events:
            if isinstance(event, Filled):
                affordable = cash / 1.0005 / event.price
                cash += event.cash
            elif isinstance(event, Trimmed) and affordable % 100.0 >= 99.9:
                found += 1
    return found


def our_orders(
    snapshot: Snapshot, score: np.ndarray, work: Path
) -> tuple[np.ndarray, list[StepRecord]]:
    """Play the rotation in shares under Qlib's rules, record the orders, and return our NAV
    path.
    """
    records = episode(
        snapshot, "ashare-qlib-v1", Rotation(score, HISTORY, shares=True, invest=1.04)
    )
    orders = {
        record.session: [
            [order.symbol, order.amount, order.side] for order in record.decision.orders
        ]
        for record in records
    }
    facts = {"first_row": HISTORY, "sessions": SESSIONS, "orders": orders}
    (work / "orders.json").write_text(json.dumps(facts))
    return np.array([navs(record) for record in records]), records


def navs(record: StepRecord) -> float:
    """Return the NAV at the end of a session."""
    last = record.events[-1]
    assert isinstance(last, Marked)
    return last.nav


def count(records: list[StepRecord], kind: type) -> int:
    """Count events of one kind."""
    return sum(isinstance(event, kind) for record in records for event in record.events)


def compare(work: Path, repeats: int) -> dict[str, object]:
    """Run everything and return the numbers."""
    work.mkdir(parents=True, exist_ok=True)
    python = peer_python(work)
    for seed in itertools.count(12):
        market = make_market(seed)
        snapshot = write_ours(market, work / "ours")
        nav, recorded = our_orders(snapshot, market.score, work)
        if not overdrawn_by_qlib(recorded):
            break
        print(f"seed {seed}: Qlib would overdraw its account, taking the next one", file=sys.stderr)
    write_qlib(market, work / "qlib")
    np.save(work / "score.npy", market.score)
    # Ours before and after theirs: a machine that slows down in between hurts both.
    before, _ = our_speed(snapshot, market.score, repeats)
    peer = subprocess.run(
        [str(python), str(HERE / "qlib_peer.py"), str(work), str(max(repeats // 3, 1))],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    theirs = json.loads(peer.stdout.splitlines()[-1])
    after, records = our_speed(snapshot, market.score, repeats)
    ours = SESSIONS / min(before + after)
    qlib = SESSIONS / min(theirs["cpu_seconds"])
    gap = float(np.abs(nav / np.array(theirs["nav"]) - 1.0).max())
    return {
        "ours_per_second": ours,
        "qlib_per_second": qlib,
        "ratio": ours / qlib,
        "largest_relative_gap": gap,
        "fills_per_session": count(records, Filled) / SESSIONS,
        "parity_orders": sum(len(record.decision.orders) for record in recorded),
        "parity_fills": count(recorded, Filled),
        "parity_rejections": count(recorded, Rejected),
        "parity_trims": count(recorded, Trimmed),
        "versions": {
            "tradeassay": version("tradeassay"),
            "python": platform.python_version(),
            "numpy": np.__version__,
            **{f"{name} (peer)": number for name, number in theirs["versions"].items()},
        },
    }


def table(result: dict[str, object]) -> str:
    """Return the numbers as a small markdown table."""
    versions = ", ".join(f"{name} {number}" for name, number in dict(result["versions"]).items())
    fates = ", ".join(
        f"{result[f'parity_{fate}']:,} {fate}" for fate in ("fills", "rejections", "trims")
    )
    return "\n".join(
        [
            "| 300 stocks x 548 sessions, A-share rules, top-20 rotation | sessions per CPU second "
            "|",
            "|---|---|",
            f"| tradeassay, whole event path ({result['fills_per_session']:.1f} fills a session) "
            f"| {result['ours_per_second']:,.0f} |",
            f"| Qlib, strategy + executor | {result['qlib_per_second']:,.0f} |",
            f"| ratio (bar {SPEED_BAR:g}) | {result['ratio']:.1f} |",
            f"| largest relative NAV gap, both fed the same {result['parity_orders']:,} orders "
            f"({fates}; "
            f"bar {PARITY_BAR:g}) | {result['largest_relative_gap']:.1e} |",
            "",
            versions,
        ]
    )


def main() -> int:
    """Measure and print. The exit status shows whether both limits are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats", type=int, default=9, help="episodes of ours before and after Qlib's"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--work", type=Path, default=HERE / ".work", help="where environment and data are kept"
    )
    options = parser.parse_args()
    result = compare(options.work, options.repeats)
    print(json.dumps(result, indent=2) if options.json else table(result))
    return 0 if result["ratio"] >= SPEED_BAR and result["largest_relative_gap"] <= PARITY_BAR else 1


if __name__ == "__main__":
    sys.exit(main())
