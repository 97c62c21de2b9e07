"""Measure how often an account without alpha is ever called ahead or behind if it is tested every
day.

    python perf/verdict_watched.py [--accounts 2000] [--sessions 252,756] [--first 880000] [--only
    garch,betas]

The generators were not used to choose any constant: fat tails, volatility clusters, serial
dependence, switching betas, times in and out of the market, options sold. After each session from
the sixtieth, the script computes the test of a finished window (cosine interval at 95 %) and the
band for any number of looks. A row counts accounts that were *ever* called ahead or behind. Ten
agents share one market. A pair is any two of them. Regressions and means of a series are recomputed
at every look. Then the cost: how often alpha of a given size is detected. The exit status is 1 if a
guaranteed row exceeds 5 % by more than chance (Wilson, 95 %).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import stdtrit

from tradeassay.metrics import rate_measure, watched_sign
from tradeassay.metrics.anytime import FIRST_LOOK, SESSIONS_PER_SUM
from tradeassay.metrics.cosine import cosine_t

Series = np.ndarray
Draw = np.random.Generator
Path = Callable[[Draw, int, int], Series]
YEAR, AGENTS, LEVEL = 252, 10, 0.95


def student(rng: Draw, count: int, n: int) -> Series:
    """Return days with tails so fat that their kurtosis is infinite."""
    return rng.standard_t(3, (count, n))


def garch(rng: Draw, count: int, n: int) -> Series:
    """Return days with volatility clusters:

    GARCH(1, 1), Student shocks with 5 degrees of freedom.
    """
    shocks = rng.standard_t(5, (count, n)) / np.sqrt(5.0 / 3.0)
    made, variance = np.empty((count, n)), np.ones(count)
    for day in range(n):
        made[:, day] = np.sqrt(variance) * shocks[:, day]
        variance = 0.03 + 0.10 * made[:, day] ** 2 + 0.87 * variance
    return made


def autoregressive(by: float) -> Path:
    """Return a generator of days that depend on the day before."""

    def drawn(rng: Draw, count: int, n: int) -> Series:
        made = rng.standard_t(6, (count, n))
        for day in range(1, n):
            made[:, day] += by * made[:, day - 1]
        return made

    return drawn


def strangles(rng: Draw, count: int, n: int) -> Series:
    """Return days of a seller of options: small gains, and a loss of all of them one day in a
    hundred.
    """
    return np.where(rng.random((count, n)) < 0.01, -6.0, 6.0 / 99.0) + rng.normal(
        0.0, 0.5, (count, n)
    )


def in_and_out(rng: Draw, count: int, n: int, low: float) -> Series:
    """Return an exposure that switches randomly between ``low`` and 2 - ``low`` after some days."""
    switched = np.cumsum(rng.random((count, n)) < rng.uniform(0.03, 0.2, (count, 1)), axis=1) % 2
    return np.where(switched == rng.integers(0, 2, (count, 1)), low, 2.0 - low)


def residuals(total: Series, market: Series) -> Series:
    """Return the residuals of a regression on the market, including the intercept."""
    centred = market - market.mean(axis=1, keepdims=True)
    beta = (total * centred).mean(axis=1) / (centred**2).mean(axis=1)
    return total - beta[:, None] * market


def timing(share: Series, market: Series) -> Series:
    """Return the series whose mean is the return from timing."""
    return (share - share.mean(axis=1, keepdims=True)) * (
        market - market.mean(axis=1, keepdims=True)
    )


def ever_fixed(at: Callable[[int], Series], n: int) -> Series:
    """Return the accounts that the test of a finished window ever calls ahead (row 0) or behind."""
    found = np.zeros((2, at(n).shape[0]), bool)
    for day in range(FIRST_LOOK, n + 1):
        t, freedom = cosine_t(at(day))
        reach = float(stdtrit(freedom, 0.5 + LEVEL / 2.0))
        found |= np.array([t > reach, t < -reach])
    return found


def ever_watched(at: Callable[[int], Series], n: int, alpha: float, *, remade: bool) -> Series:
    """Return who is ever called ahead or behind by the band; ``remade`` where earlier days
    change with later.
    """
    looks = range(FIRST_LOOK, n + 1, SESSIONS_PER_SUM) if remade else (n,)
    found = np.zeros((2, at(n).shape[0]), bool)
    for day in looks:
        sign = watched_sign(at(day), level=1.0 - alpha)
        found |= np.array([sign > 0, sign < 0])
    return found


Null = tuple[Callable[[int, int], Series], bool]
SERIES: dict[str, tuple[str, Path]] = {
    "tails": ("fat tails (Student, 3)", student),
    "garch": ("GARCH, Student 5", garch),
    "ar+1": ("serial dependence 0.1", autoregressive(0.1)),
    "ar+3": ("serial dependence 0.3", autoregressive(0.3)),
    "ar-2": ("serial dependence -0.2", autoregressive(-0.2)),
    "strangles": ("options sold (not promised)", strangles),
}


def nulls(kind: str, rng: Draw, count: int, n: int) -> Null:
    """Return accounts without an edge, as a function of the day on which one looks, all or every
    so many.
    """
    if kind in SERIES:
        made = SERIES[kind][1](rng, count, n)
        return (lambda day, every: made[::every, :day]), False
    market = np.repeat(garch(rng, -(-count // AGENTS), n) + 0.03, AGENTS, axis=0)[:count]
    if kind == "betas":
        total = in_and_out(rng, count, n, 0.5) * market + student(rng, count, n)
        return (lambda day, every: residuals(total[::every, :day], market[::every, :day])), True
    share = in_and_out(rng, count, n, 0.0)
    return (lambda day, every: timing(share[::every, :day], market[::every, :day])), True


NAMES = {key: name for key, (name, _) in SERIES.items()} | {
    "betas": "betas that switch, returns alone",
    "timing": "in and out by chance (timing)",
}


def shown(hits: Series) -> str:
    share = rate_measure(int(hits.sum()), hits.size, nothing="nobody was judged", level=0.95)
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def rows(kind: str, rng: Draw, count: int, n: int) -> Iterator[tuple[str, bool]]:
    """Yield the table's rows of one kind of account, and whether a guarantee is certainly
    missed.
    """
    at, remade = nulls(kind, rng, count * AGENTS, n)

    def first(day: int) -> Series:
        return at(day, AGENTS)

    def everybody(day: int) -> Series:
        return at(day, 1)

    fixed = ever_fixed(first, n)
    alone = ever_watched(first, n, 1.0 - LEVEL, remade=remade)
    ten = (
        ever_watched(everybody, n, (1.0 - LEVEL) / AGENTS, remade=remade)
        .reshape(2, count, AGENTS)
        .any(axis=2)
    )
    cells = [shown(fixed[0]), shown(fixed[1]), shown(alone.any(axis=0)), shown(ten.any(axis=0))]
    tested = [alone.any(axis=0), ten.any(axis=0)]
    if not remade:
        of = AGENTS * (AGENTS - 1) // 2
        two = np.zeros(count, bool)
        for place in range(of):
            gap = pairs_of(at(n, 1), place, count)
            two |= ever_watched(lambda _, gap=gap: gap, n, (1.0 - LEVEL) / of, remade=False).any(
                axis=0
            )
        tested.append(two)
    cells.append("" if remade else shown(tested[-1]))
    low = [
        rate_measure(int(one.sum()), one.size, nothing="", level=0.95).low or 0.0 for one in tested
    ]
    yield f"| {NAMES[kind]} | {n} | {' | '.join(cells)} |", max(low) > 0.05 and kind != "strangles"


def pairs_of(made: Series, place: int, count: int) -> Series:
    """Return one of the pairs of every table's agents."""
    one, two = (ends[place] for ends in np.triu_indices(AGENTS, 1))
    by_table = made.reshape(count, AGENTS, -1)
    return np.asarray(by_table[:, one] - by_table[:, two])


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accounts", type=int, default=2000)
    parser.add_argument("--sessions", default="252,756")
    parser.add_argument("--first", type=int, default=880_000)
    parser.add_argument("--only", default=",".join(NAMES))
    asked = parser.parse_args()
    missed = False
    print(
        "| nobody has an edge | sessions | finished-window test: ever ahead | ever behind | band: "
        "ever wrong ",
        end="",
    )
    print("| any of ten | any pair of ten |\n|---|---|---|---|---|---|---|")
    lengths = [int(n) for n in asked.sessions.split(",")]
    for place, kind in enumerate(asked.only.split(",")):
        for n in lengths:
            for line, wrong in rows(
                kind, np.random.default_rng([asked.first, place, n]), asked.accounts, n
            ):
                missed |= wrong
                print(line, flush=True)
    print(
        "\n| information ratio | sessions | finished window, once | band | one of ten "
        "|\n|---|---|---|---|---|"
    )
    for ratio in (1.0, 2.0, 3.0):
        for n in lengths:
            rng = np.random.default_rng([asked.first, 99, n, int(ratio)])
            made = garch(rng, asked.accounts, n) + ratio / np.sqrt(YEAR)
            t, freedom = cosine_t(made)
            once = t > float(stdtrit(freedom, 0.5 + LEVEL / 2.0))
            found = [
                ever_watched(lambda day, made=made: made[:, :day], n, a, remade=False)[0]
                for a in (0.05, 0.005)
            ]
            print(
                f"| {ratio:.0f} | {n} | {' | '.join(shown(one) for one in (once, *found))} |",
                flush=True,
            )
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
