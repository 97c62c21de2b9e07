"""Compare attribution with planted effects: synthetic worlds with known exposures, premia and
alphas.

    python perf/attribution_truth.py [--json] [--worlds 20]

Five portfolios of 30 names are formed from the answer key of each world (200 names, a year of
evaluation) and rebalanced daily without costs. Their attribution uses only the published prices.
The true style part is exposure times planted style return. The true selection is the return of the
held names from news, drift and noise. Differences are per year.

The return from reading the news is partly style by nature (news moves opens and closes, which two
factors measure), so its bias has a separate limit. The exit status is 1 if a limit is missed: bias
within 3 standard errors of zero, with news within 5 percentage points; spread of the error below 8
percentage points.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from tradeassay.metrics.attribution import decompose
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.examine.market_window import MarketQuery, market_inputs

NAMES, SESSIONS, START, HELD = 200, 512, 260, 30


def one_world(seed: int, folder: Path) -> dict[str, dict[str, float]]:
    """Return true and found parts per year of every portfolio of a world."""
    world = generate(
        preset("us", seed=seed, names=NAMES, sessions=SESSIONS, new_listings=0, delistings=0)
    )
    write_snapshot(world.panel, folder)
    snapshot, key = open_snapshot(folder), world.key
    days = [str(day) for day in snapshot.sessions]
    inputs = market_inputs(snapshot, MarketQuery(first=days[START], last=days[-1]))
    columns = np.array([inputs.symbols.index(symbol) for symbol in key.facts.symbols])
    exposures, premia = key.exposures[START:], key.styles[START:]
    own = (key.residual + key.news + key.decline)[START:] + key.alpha
    scores = {
        "momentum": exposures[:, 0],
        "low volatility": -exposures[:, 1],
        "reads the news": key.news[START:],
        "knows the drifts": np.broadcast_to(key.alpha, own.shape),
        "random": np.random.default_rng(seed).normal(size=own.shape),
    }
    found = {}
    for name, score in scores.items():
        best = np.argsort(-score, axis=1, kind="stable")[:, :HELD]
        held = np.zeros(own.shape)
        np.put_along_axis(held, best, 1.0 / HELD, axis=1)
        weights = np.zeros(inputs.model.returns.shape)
        weights[:, columns] = held
        daily = decompose(inputs.model, weights)
        style = (np.einsum("tn,tkn->tk", held, exposures) * premia).sum(axis=1)
        found[name] = {
            "true style": 252 * float(style.mean()),
            "style": 252 * float(daily.style.sum(axis=1).mean()),
            "true selection": 252 * float((held * own).sum(axis=1).mean()),
            "selection": 252 * float(daily.selection.mean()),
        }
    return found


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worlds", type=int, default=20)
    asked = parser.parse_args()
    worlds = []
    for seed in range(asked.worlds):
        with tempfile.TemporaryDirectory() as folder:
            worlds.append(one_world(1000 + seed, Path(folder) / "world"))
    rows, good = [], True
    for name in worlds[0]:
        row: dict[str, object] = {"portfolio": name}
        for part in ("style", "selection"):
            true = np.array([world[name][f"true {part}"] for world in worlds])
            error = np.array([world[name][part] for world in worlds]) - true
            bias, spread = float(error.mean()), float(error.std(ddof=1))
            row |= {
                f"{part}: true": float(true.mean()),
                f"{part}: bias": bias,
                f"{part}: spread": spread,
            }
            good &= abs(bias) <= (0.05 if "news" in name else 3 * spread / np.sqrt(len(worlds)))
            good &= spread < 0.08
        rows.append(row)
    if asked.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        for row in rows:
            numbers = "  ".join(
                f"{key} {value:+.3f}" for key, value in row.items() if isinstance(value, float)
            )
            sys.stdout.write(f"{row['portfolio']:17s} {numbers}\n")
        sys.stdout.write("met\n" if good else "MISSED\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
