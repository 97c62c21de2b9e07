"""Measure the errors of ``assay --watched`` in a year of looks, and of e-BH over a growing table.

    python perf/watched_door.py [--accounts 200] [--tables 500] [--first 990000]

The whole public function is tested. An account without alpha (various betas, some that switch,
residuals with clustered volatility and dependence) is judged with the market after every five
sessions, from the 60th to the 252nd. Nothing changes in between, because sessions are processed
five at a time. *Ever praised* is skill, timing or mixed at any look; *ever blamed* is worse. Tables
of twenty agents are tested as often, up to the first discovery. If no agent has alpha, the share of
tables with a discovery must be at most 5 %. Otherwise the share of false discoveries must be at
most 5 %. The exit status is 1 if a share is higher by more than chance (Wilson, 95 %).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tradeassay.core.measure import Measure
from tradeassay.metrics import e_bh, e_value, rate_measure
from tradeassay.metrics.anytime import FIRST_LOOK, SESSIONS_PER_SUM
from tradeassay.tables.account import OwnSeries
from tradeassay.verdict import VerdictConfig
from tradeassay.verdict.returns import assay_series
from verdict_watched import autoregressive, garch, in_and_out

YEAR, AGENTS = 252, 20
LOOKS = range(FIRST_LOOK, YEAR + 1, SESSIONS_PER_SUM)
DAYS = [str(day) for day in np.datetime64("2001-01-01") + np.arange(YEAR)]


def door(rng: np.random.Generator, accounts: int, *, watched: bool) -> tuple[int, int]:
    """Return how many accounts without alpha were ever praised, and ever blamed."""
    market = 0.0003 + 0.009 * garch(rng, accounts, YEAR)
    beta = np.where(
        rng.random((accounts, 1)) < 0.3,
        in_and_out(rng, accounts, YEAR, 0.5),
        rng.uniform(0.5, 1.2, (accounts, 1)),
    )
    noise = np.where(
        rng.random((accounts, 1)) < 0.5,
        garch(rng, accounts, YEAR),
        autoregressive(0.15)(rng, accounts, YEAR),
    )
    total = beta * market + 0.005 * noise
    config = VerdictConfig(draws=100, watched=watched, dividends=0.0, interest=0.0)
    praised = blamed = 0
    for own, index in zip(total, market, strict=True):
        said = set()
        for look in LOOKS:
            table = OwnSeries(
                returns=dict(zip(DAYS[:look], own[:look].tolist(), strict=True)),
                benchmark=dict(zip(DAYS[:look], index[:look].tolist(), strict=True)),
            )
            said.add(assay_series(table, config, agent="own")[0].verdict.kind)
        praised += bool(said & {"skill", "timing", "mixed"})
        blamed += "worse" in said
    return praised, blamed


def first_found(gaps: np.ndarray, able: int) -> float:
    """Return the share of false discoveries in e-BH's first discovery, 0 if it never makes one."""
    for look in LOOKS:
        found = e_bh([e_value(row[:look]) for row in gaps])
        if any(found):
            return float(np.mean([place >= able for place, one in enumerate(found) if one]))
    return 0.0


def shown(share: Measure) -> str:
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accounts", type=int, default=200)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--first", type=int, default=990_000)
    asked = parser.parse_args()
    missed, began = False, time.process_time()
    print(
        f"| e-BH, {AGENTS} agents, {asked.tables} tables | false among the first found |\n|---|---|"
    )
    for able in (0, 3, 10):
        rng = np.random.default_rng([asked.first, able])
        wrong = []
        for _ in range(asked.tables):
            shared = garch(rng, 1, YEAR)
            gaps = garch(rng, AGENTS, YEAR) + 0.5 * shared
            gaps[:able] += 4.0 / np.sqrt(YEAR)
            wrong.append(first_found(gaps, able))
        share = rate_measure(round(sum(wrong)), len(wrong), nothing="none", level=0.95)
        missed |= (share.low or 0.0) > 0.05
        print(
            f"| {able} with a ratio of 4 | {np.mean(wrong):.1%}, at most {share.high:.1%} |",
            flush=True,
        )
    looked = f"{asked.accounts} accounts without an edge, {len(LOOKS)} looks"
    print(f"\n| assay of {looked} | ever praised | ever blamed |")
    print("|---|---|---|")
    for watched in (True, False):
        counts = door(np.random.default_rng([asked.first, 99]), asked.accounts, watched=watched)
        shares = [
            rate_measure(count, asked.accounts, nothing="none", level=0.95) for count in counts
        ]
        missed |= watched and any((one.low or 0.0) > 0.05 for one in shares)
        print(
            f"| {'--watched' if watched else 'the usual test'} | {' | '.join(map(shown, shares))} "
            "|",
            flush=True,
        )
    print(f"\n{time.process_time() - began:.0f} s of CPU")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
