"""How busy a recall audit keeps a server, and what scoring takes.

    python perf/recall_speed.py --questions 500 --per-second 5

A stand-in server answers one question at a time. Bars: at least 90 % busy; scoring under 5 CPU-seconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "assay"))

from recalling_server import recalling

from tradeassay.assay.memory import RecallConfig, recall_audit, score_recall
from tradeassay.data import open_snapshot, write_snapshot
from tradeassay.data.synthetic import generate, preset
from tradeassay.runs import Asking


def main() -> None:
    """Ask, then score the answers again by themselves."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--questions", type=int, default=500)
    reader.add_argument("--per-second", type=float, default=5.0)
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_snapshot(generate(preset("us", seed=1, names=50, sessions=600)).panel, Path(folder) / "world")
        world = open_snapshot(Path(folder) / "world")
        with recalling(lambda _: "up 1.2%", seconds=1.0 / asked.per_second) as (address, done):
            asking = Asking(base_url=address, concurrency=16, cassettes=Path(folder) / "tape")
            config = RecallConfig(questions=asked.questions, logprobs=0)
            found = recall_audit("local/stand-in", world, config=config, asking=asking)
    took = done[-1][1] - done[0][0]
    busy = sum(end - start for start, end in done)
    print(f"{len(done)} answers in {took:.1f} s: {busy / took:.1%} busy")
    began = time.process_time()
    score_recall(
        found.answers, config=config, cutoff=None, model="m", dataset="d", run=None, plan=found.plan, usd=0.0
    )
    print(f"scoring: {time.process_time() - began:.2f} CPU-s")


if __name__ == "__main__":
    main()
