"""Test the estimates of pass^k and of the variance components of a score, on data with known
values.

    python perf/reliability.py [--tables 300] [--seed 1]

pass^k: every task has its own drawn probability of passing. The true value is the mean of its
powers. Components: scores are sums of effects of models, wordings, windows and seeds with known
variances. Prints the mean estimate next to the true value, and the coverage of the interval
(nominal: 95 %).
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from tradeassay.metrics.reliability import PARTS, Play, pass_all, reliability

SIZES = (4, 2, 10, 3)
TRUE = {"model": 0.3, "wording": 0.05, "window": 0.25, "together": 0.2, "seed": 0.2}


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    sys.stdout.write("| pass^k, 40 tasks of 5 plays | true | mean | held |\n|---|---|---|---|\n")
    for a, b in ((8.0, 2.0), (2.0, 2.0), (0.5, 0.5)):
        powers = {k: float(np.mean(rng.beta(a, b, 400_000) ** k)) for k in (1, 3, 5)}
        for k, true in powers.items():
            found = [
                pass_all(
                    [(rng.random(5) < chance).tolist() for chance in rng.beta(a, b, 40)],
                    k,
                    units=40,
                )
                for _ in range(asked.tables)
            ]
            mean = float(np.mean([one.value for one in found]))
            held = float(np.mean([one.low <= true <= one.high for one in found]))  # type: ignore[operator]
            sys.stdout.write(
                f"| chances Beta({a:g}, {b:g}), k {k} | {true:.3f} | {mean:.3f} | {held:.0%} |\n"
            )
    sys.stdout.write("\n| share of the spread | true | mean | held |\n|---|---|---|---|\n")
    means: dict[str, list[float]] = {part: [] for part in PARTS}
    held_of: dict[str, list[bool]] = {part: [] for part in PARTS}
    models, wordings, windows, _ = SIZES
    for _ in range(asked.tables):
        models_own = rng.normal(0, TRUE["model"] ** 0.5, (models, 1, 1, 1))
        wordings_own = rng.normal(0, TRUE["wording"] ** 0.5, (1, wordings, 1, 1))
        scores = (
            models_own
            + wordings_own
            + rng.normal(0, TRUE["window"] ** 0.5, (1, 1, windows, 1))
            + rng.normal(0, TRUE["together"] ** 0.5, (models, wordings, windows, 1))
            + rng.normal(0, TRUE["seed"] ** 0.5, SIZES)
        )
        # The interval is of these models and wordings, in other windows.
        there = TRUE | {
            "model": np.var(models_own, ddof=1),
            "wording": np.var(wordings_own, ddof=1),
        }
        true = {name: float(one / sum(there.values())) for name, one in there.items()}
        plays = [
            Play(
                model=f"{m}",
                wording=f"{w}",
                window=f"{t}",
                seed=s,
                passed=one > 0,
                score=float(one),
            )
            for (m, w, t, s), one in np.ndenumerate(scores)
        ]
        found_all = reliability(plays)
        assert found_all is not None
        for part, one in found_all.spread.items():
            means[part].append(one.value or 0.0)
            held_of[part].append((one.low or 0.0) <= true[part] <= (one.high or 0.0))
    for part in PARTS:
        row = f"{TRUE[part]:.2f} | {np.mean(means[part]):.2f} | {np.mean(held_of[part]):.0%}"
        sys.stdout.write(f"| {part} | {row} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
