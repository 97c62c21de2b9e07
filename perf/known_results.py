"""Reproduce published findings on funds: Fama and French; Barras, Scaillet and Wermers.

    python perf/known_results.py [--funds 1000] [--draws 500] [--judged 200]

No package contains funds' returns (CRSP is licensed), so the funds are simulated around real
months: Kenneth French's factors, January 1984 to September 2006, from the package ``arch``. Funds
have the betas, residual spreads and lifetimes that those papers describe. *Net*: every fund loses 1
% per year to costs, and none has alpha. *Gross*: true alphas have a standard deviation of 1.25 %
per year, the value that fits in Fama and French (2010). Their bootstrap draws months of all funds
jointly, with alphas set to zero. It measures the share of the drawn worlds with a smaller
percentile of t(alpha) than the funds. Barras, Scaillet and Wermers (2010): 75 % of funds without
alpha, 23 % with -3.2 %, 2 % with 3.8 % per year. The script estimates how many funds have no alpha,
and how many winners are lucky. Last, it computes our verdict on single funds with the same factors
and cash. The exit status is 1 if a finding is not reproduced.
"""

from __future__ import annotations

import argparse

import numpy as np
from arch.data import frenchdata
from scipy.stats import norm

from tradeassay.metrics import rate_measure
from tradeassay.metrics.multiple import lucky_share
from tradeassay.tables.account import OwnSeries
from tradeassay.verdict import VerdictConfig
from tradeassay.verdict.returns import assay_series

Floats = np.ndarray
SEED, FIRST, LAST = 2010, 198401, 200609
PERCENTILES = (1, 5, 10, 50, 90, 95, 99)
PRAISE = ("skill", "timing", "mixed")


def months() -> tuple[Floats, Floats, list[str]]:
    """Return the three factors and cash by month, as fractions, and the months' last days."""
    table = frenchdata.load()
    # The package reads months such as 198401 as nanoseconds.
    when = table.index.astype("int64")
    table = table[(when >= FIRST) & (when <= LAST)] / 100.0
    ends = [
        np.datetime64(f"{one // 100}-{one % 100:02d}", "M") + 1
        for one in when[(when >= FIRST) & (when <= LAST)]
    ]
    days = [str(one.astype("datetime64[D]") - 1) for one in ends]
    return table[["Mkt-RF", "SMB", "HML"]].to_numpy(), table["RF"].to_numpy(), days


def funds(rng: np.random.Generator, factors: Floats, alphas: Floats) -> Floats:
    """Return excess returns (funds, months), NaN before a fund begins and after it ends."""
    n, count = factors.shape[0], alphas.size
    betas = np.column_stack(
        [rng.normal(0.95, 0.15, count), rng.normal(0.2, 0.3, count), rng.normal(0.0, 0.3, count)]
    )
    spread = np.exp(rng.normal(np.log(0.016), 0.35, count))[:, None]
    made = (
        alphas[:, None] / 12.0
        + betas @ factors.T
        + spread * rng.standard_t(6, (count, n)) / np.sqrt(1.5)
    )
    start = rng.integers(0, n - 60, count)
    stop = np.minimum(n, start + rng.integers(60, n, count))
    at = np.arange(n)
    return np.where((at >= start[:, None]) & (at < stop[:, None]), made, np.nan)


def alpha_t(excess: Floats, factors: Floats) -> tuple[Floats, Floats]:
    """Return alphas and their t values by a regression on the factors, over each fund's months."""
    design = np.column_stack([np.ones(factors.shape[0]), factors])
    held = np.isfinite(excess)
    filled = np.where(held, excess, 0.0)
    inner = np.linalg.inv(np.einsum("nt,ti,tj->nij", held, design, design, optimize=True))
    found = np.einsum("nij,nj->ni", inner, filled @ design)
    rest = np.where(held, excess - found @ design.T, 0.0)
    variance = (rest**2).sum(axis=1) / (held.sum(axis=1) - design.shape[1])
    return found[:, 0], found[:, 0] / np.sqrt(variance * inner[:, 0, 0])


def beyond_factors(row: Floats, factors: Floats) -> Floats:
    """Return a fund's return beyond its betas, with its alpha."""
    there = np.isfinite(row)
    design = np.column_stack([np.ones(there.sum()), factors[there]])
    betas = np.linalg.lstsq(design, row[there], rcond=None)[0][1:]
    return np.asarray(row[there] - factors[there] @ betas)


def bootstrap(
    rng: np.random.Generator, excess: Floats, factors: Floats, draws: int
) -> dict[int, tuple[float, ...]]:
    """Return, by percentile of t(alpha), the funds' value, the mean of worlds without alpha, and
    the share below.
    """
    alphas, t = alpha_t(excess, factors)
    zero = excess - alphas[:, None]
    drawn = []
    for _ in range(draws):
        rows = rng.integers(0, factors.shape[0], factors.shape[0])
        some = zero[:, rows]
        there = np.isfinite(some).sum(axis=1) >= 24
        drawn.append(np.percentile(alpha_t(some[there], factors[rows])[1], PERCENTILES))
    own, table = np.percentile(t, PERCENTILES), np.array(drawn)
    return {
        place: (float(own[k]), float(table[:, k].mean()), float((table[:, k] < own[k]).mean()))
        for k, place in enumerate(PERCENTILES)
    }


def praised(excess: Floats, factors: Floats, cash: Floats, days: list[str]) -> int:
    """Return how many funds get a verdict of skill or timing, each judged alone with factors and
    cash.
    """
    config, found = VerdictConfig(draws=100, interest=0.0, dividends=0.0), 0
    for row in excess:
        at = np.flatnonzero(np.isfinite(row))
        own = [days[k] for k in at]

        def by_day(values: Floats, own: list[str] = own, at: Floats = at) -> dict[str, float]:
            return dict(zip(own, values[at].tolist(), strict=True))

        table = OwnSeries(
            returns=by_day(row + cash),
            benchmark=by_day(factors[:, 0] + cash),
            cash=by_day(cash),
            factors={"SMB": by_day(factors[:, 1]), "HML": by_day(factors[:, 2])},
            year=12,
        )
        found += assay_series(table, config, agent="fund")[0].verdict.kind in PRAISE
    return found


def main() -> int:
    """Print both replications and the verdicts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--funds", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument(
        "--judged", type=int, default=200, help="funds of each setting put before the verdict"
    )
    asked = parser.parse_args()
    rng = np.random.default_rng(SEED)
    factors, cash, days = months()
    settings = {
        "net: nobody covers 1 % of costs": np.full(asked.funds, -0.01),
        "gross: true alphas spread by 1.25 %": rng.normal(0.0, 0.0125, asked.funds),
    }
    print(f"{factors.shape[0]} real months, {asked.funds} simulated funds, {asked.draws} draws\n")
    print(
        "| setting | percentile of t(alpha) | funds | worlds without alpha | share of worlds below "
        "|"
    )
    print("|---|---|---|---|---|")
    beyond = {}
    for name, alphas in settings.items():
        excess = funds(rng, factors, alphas)
        for place, (own, mean, below) in bootstrap(rng, excess, factors, asked.draws).items():
            beyond[name[:3], place] = below
            print(f"| {name} | {place} | {own:.2f} | {mean:.2f} | {below:.0%} |")
        some = excess[: asked.judged]
        share = rate_measure(
            praised(some, factors, cash, days), len(some), nothing="none", level=0.95
        )
        print(
            f"| {name} | the verdict praises | {share.value:.1%} ({share.low:.1%} to "
            f"{share.high:.1%}) | | |",
            flush=True,
        )
    kind = rng.choice(3, asked.funds, p=[0.75, 0.23, 0.02])
    alphas = np.array([0.0, -0.032, 0.038])[kind]
    excess = funds(rng, factors, alphas)
    _, t = alpha_t(excess, factors)
    flat = min(1.0, 2.0 * float((2.0 * norm.sf(np.abs(t)) > 0.5).mean()))
    lucky = lucky_share([beyond_factors(row, factors) for row in excess])
    winners = (2.0 * norm.sf(np.abs(t)) < 0.2) & (t > 0)
    print(f"\nwithout alpha: {flat:.0%} estimated, {np.mean(kind == 0):.0%} true")
    bounds = f"({lucky.low:.0%} to {lucky.high:.0%})"
    print(
        f"lucky winners: {lucky.value:.0%} {bounds} estimated, {np.mean(kind[winners] != 2):.0%} "
        "true"
    )
    right = beyond["net", 95] < 0.05 and beyond["gro", 99] > 0.8 and beyond["gro", 1] < 0.2
    right = right and abs(flat - float(np.mean(kind == 0))) < 0.1
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
