"""Does the size at which an edge dies come out, with its interval? Accounts whose true size is known.

    python perf/capacity.py [--accounts 1000] [--seed 1]

An account earns an edge of a known ratio and pays impact by the square-root law, so that its true size is known:
where the expected edge equals what impact costs. Judged are whether the interval holds it (promised: 95 %) and how
far the estimate is off. A plain loop over trades checks the rate itself. That the law holds in a market is
taken from the literature.
"""

from __future__ import annotations

import argparse
import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from tradeassay.assay.verdict.diagnostics import capacity_evidence
from tradeassay.assay.verdict.evidence import MeanTest
from tradeassay.assay.verdict.record import VerdictConfig
from tradeassay.metrics.capacity import IMPACT, PAID, impact_rate

YEAR = 252


def loop_rate(weights: Any, returns: Any, total: Any, traded: Any) -> list[float]:
    """Return what impact costs in each session but the last, trade by trade."""
    names, sessions, paid = range(weights.shape[1]), range(len(weights) - 1), []
    moves = [float(np.std(returns[:, name], ddof=1)) for name in names]
    for t in sessions:
        cost = 0.0
        for name in names:
            grown = weights[t, name] * (1.0 + returns[t, name]) / (1.0 + total[t])
            bought = abs(weights[t + 1, name] - grown)
            cost += bought * PAID * IMPACT * moves[name] * math.sqrt(bought / traded[t, name])
        paid.append(cost)
    return paid


def main() -> int:
    """Print how often the interval holds the true size, by ratio and years."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng, config = np.random.default_rng(asked.seed), VerdictConfig()
    weights = rng.dirichlet(np.ones(8), 60)
    returns, traded = rng.normal(0.0, 0.02, (60, 8)), rng.lognormal(16.0, 1.0, (60, 8))
    total = (weights * returns).sum(axis=1)
    rate, _ = impact_rate(weights, returns, total, traded)
    worst = float(np.abs(rate / loop_rate(weights, returns, total, traded) - 1.0).max())
    sys.stdout.write(f"rate against a plain loop: worst {worst:.1e}\n")
    sys.stdout.write("| ratio | years | a size is said | interval holds the true one | median estimate / true |\n")
    sys.stdout.write("|---|---|---|---|---|\n")
    for ratio in (1.0, 2.0, 3.0):
        for years in (1, 3):
            held, said, off = 0, 0, []
            for _ in range(asked.accounts):
                risk, n = rng.uniform(0.003, 0.012), YEAR * years
                mean = ratio * risk / math.sqrt(YEAR)
                paid = rng.lognormal(-17.0, 0.8, n - 1)
                edge = rng.normal(mean, risk, n)
                taken: Any = [SimpleNamespace(impact=paid, impact_known=1.0)]
                found = capacity_evidence(edge, taken, MeanTest(YEAR, config))
                if found is None:
                    continue
                true = (mean / float(paid.mean())) ** 2
                said += 1
                held += found.low <= true <= (math.inf if found.high is None else found.high)
                off.append(found.dies / true)
            shares = f"{said / asked.accounts:.0%} | {held / max(1, said):.1%} | {np.median(off):.2f}"
            sys.stdout.write(f"| {ratio:g} | {years} | {shares} |\n")
    return 0 if worst < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
