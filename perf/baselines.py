"""All eighteen factor models on a world with a planted signal: time, rank correlation, and who beats chance.

``python perf/baselines.py [--full] [--models lightgbm,gru] [--device cpu]``, with the extra ``qlib`` installed.
CPU seconds are of training alone, on one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tradeassay.agents.factor_models import FACTOR_MODELS
from tradeassay.assay.baselines import BaselineSpec, Span, contrast
from tradeassay.data import synthetic, write_snapshot
from tradeassay.data.synthetic.universe import PlantedStyles

USUAL = PlantedStyles()
STRENGTH = 8.0
"""How many times the usual style premia are paid."""


def planted(folder: Path, full: bool) -> list[str]:
    """Write the world and return its days."""
    styles = PlantedStyles(
        premia=tuple(STRENGTH * value for value in USUAL.premia),
        volatility=tuple(value / 2 for value in USUAL.volatility),
    )
    config = synthetic.preset(
        "ashare",
        seed=11,
        names=200 if full else 60,
        sessions=1000 if full else 640,
        new_listings=1,
        delistings=1,
        fundamentals=False,
        styles=styles,
    )
    panel = replace(synthetic.generate(config).panel, name="planted")
    write_snapshot(panel, folder)
    return [str(day) for day in panel.sessions]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--models", default=",".join(FACTOR_MODELS))
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="cpu")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        days = planted(home / "planted", asked.full)
        last_train, last_valid = (700, 800) if asked.full else (460, 530)
        for name in asked.models.split(","):
            spec = BaselineSpec(
                dataset=str(home / "planted"),
                models=(name,),
                train=Span(days[255], days[last_train]),
                valid=Span(days[last_train + 1], days[last_valid]),
                size="full" if asked.full else "small",
                threads=1,
                device=asked.device,
            )
            (found,) = contrast(spec, home=home)
            trained, test = found.trained, found.trained.test_ic
            assert test is not None
            rows.append(
                {
                    "model": name,
                    "cpu_seconds": trained.cpu_seconds,
                    "ic_valid": round(trained.valid_ic.mean, 4),
                    "ic_test": round(test.mean, 4),
                    "gain": round(found.gain.mean, 4),
                    "error": found.gain.error,
                    "beats": found.beats,
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    beaten = [row["model"] for row in rows if not row["beats"]]
    print(f"{len(rows) - len(beaten)} of {len(rows)} beat their own shuffled training", file=sys.stderr)
    return 1 if beaten else 0


if __name__ == "__main__":
    raise SystemExit(main())
