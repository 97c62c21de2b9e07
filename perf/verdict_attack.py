"""Accounts that the judge has not met: returns of which the truth is known, and what is said of them.

    python perf/verdict_attack.py [--seeds 3]
    python perf/verdict_attack.py --hostile [--seeds 10] [--first 70000]
    python perf/verdict_attack.py --dividends

Each account is a way to make returns out of a market, with or without skill. Printed is every verdict that
contradicts the truth, and the share of them with its interval. With ``--hostile`` nobody has skill: twenty ways to
look as if, with fresh sizes in every market (passive mixes, closet indexers, martingales, options, stale and
smoothed prices, one lucky trade, dividends that the benchmark leaves out). The exit status is 1 when more than one
in ten is judged wrongly. With ``--dividends`` a real account is judged that nobody chose: the American market with
its dividends (French's market factor and bills, by month) against the S&P 500, an index of prices; both come with
the arch package. It is judged with the allowance for dividends and without.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from tradeassay.assay.verdict import VerdictConfig
from tradeassay.assay.verdict.returns import assay_series
from tradeassay.data.tables.account import OwnSeries
from tradeassay.metrics import rate_measure

Series = np.ndarray
PRAISE = ("skill", "timing", "mixed")
NONE = ("luck", "market", "worse", "style")
"""What may be said of somebody without skill, timing or pay for risk."""


def accounts(m: Series, rng: np.random.Generator) -> dict[str, tuple[Series, tuple[str, ...]]]:
    """Return accounts by name, each with what may be said of it."""
    n = m.size

    def noise(size: float) -> Series:
        return rng.normal(0.0, size, n)

    def late(sessions: int) -> Series:
        return np.convolve(m, np.ones(sessions) / sessions)[:n]

    monthly = np.zeros(n)
    for end in range(20, n, 21):
        monthly[end] = np.prod(1.0 + m[end - 20 : end + 1]) - 1.0
    lucky_day, lucky_month, first_half = noise(0.006), noise(0.006), noise(0.005)
    lucky_day[n // 3] += 0.15
    lucky_month[40:61] += 0.006
    first_half[: n // 2] += 0.0015
    first_half[n // 2 :] -= 0.0015
    carry = np.full(n, 0.0003) + noise(0.0001) - 6.0 * np.maximum(-m - 0.015, 0.0)
    trend = np.sign(np.convolve(m, np.ones(20))[:n])
    trend = np.r_[0.0, trend[:-1]]
    rises = np.sign(m)
    good = np.where(rng.random(n) < 0.58, rises, -rises)
    return {
        "twice the market": (2.0 * m, ("market",)),
        "the market the other way round": (-m, ("market",)),
        "sixty per cent of it and interest": (0.6 * m + 0.00004, ("market",)),
        "the market a day late": (np.r_[0.0, m[:-1]], ("market",)),
        "smoothed over 5 sessions": (late(5), ("market",)),
        "smoothed over 10 sessions": (late(10), ("market",)),
        "valued once a month": (monthly, NONE),
        "a closet indexer with costs": (m + noise(0.0005) - 0.00002, ("market",)),
        "volatility target": (m * np.clip(0.01 / (np.abs(late(20)) + 0.008), 0.3, 1.5), NONE),
        "covered calls": (np.minimum(m, 0.006) + 0.0012 + noise(0.0003), ("tail", *NONE)),
        "sold straddles": (0.0006 - 6.0 * m**2 + noise(0.0003), ("tail", *NONE)),
        "carry with a crash in it": (carry, ("tail", *NONE)),
        "bought straddles": (6.0 * m**2 - 0.0006 + noise(0.0003), ("timing", "mixed", *NONE)),
        "protective puts": (np.maximum(m, -0.012) - 0.0006, ("timing", "mixed", *NONE)),
        "a flipped coin": (m * np.where(rng.random(n) < 0.5, 1.0, 0.0), NONE),
        "follows the last month": (0.5 * (1.0 + trend) * m, NONE),
        "knows the sign with 58 %": (np.where(good > 0, 1.0, 0.2) * m, ("timing", "mixed", "skill")),
        "a lucky day": (m + lucky_day, NONE),
        "a lucky month": (m + lucky_month, NONE),
        "good, then as bad": (m + first_half, NONE),
        "noise around nothing": (noise(0.008), NONE),
        "noise around the market": (m + noise(0.008), NONE),
        "fat-tailed noise": (m + 0.004 * rng.standard_t(3, n), NONE),
        "noise that carries on": (m + _carried(noise(0.006), 0.3), NONE),
        "noise with a fee of 2 %": (m + noise(0.004) - 0.00008, NONE),
        "noise with a fee of 10 %": (m + noise(0.003) - 0.0004, ("worse",)),
        "cash": (np.full(n, 0.00008) + noise(1e-6), NONE),
        "information ratio 1": (m + noise(0.004) + 0.004 / np.sqrt(252.0), ("skill", *NONE)),
        "information ratio 2": (m + noise(0.004) + 0.008 / np.sqrt(252.0), ("skill",)),
        "information ratio 3": (m + noise(0.004) + 0.012 / np.sqrt(252.0), ("skill",)),
        "ratio 3, half a per cent a year": (m + noise(0.0001) + 0.00002, ("market",)),
        "ratio -2": (m + noise(0.004) - 0.008 / np.sqrt(252.0), ("worse",)),
        "beta that changes": (m * np.where(np.arange(n) < n // 2, 1.5, 0.5) + noise(0.003), NONE),
        "sees the sign of every day": (np.abs(m), ("leak", "timing", "mixed")),
        "sees every tenth day": (
            np.where(rng.random(n) < 0.1, np.abs(m), m) + noise(0.001),
            ("leak", "timing", "mixed", "skill", *NONE),
        ),
        "sells winners, keeps losers": (np.where(m > 0, 0.5, 1.2) * m + noise(0.002), ("tail", *NONE)),
        "doubling after a loss": (m * np.where(np.r_[0.0, m[:-1]] < 0, 1.8, 0.6), NONE),
        "a quarter late, scaled": (0.7 * np.convolve(m, [0.4, 0.3, 0.2, 0.1])[:n], ("market",)),
        "half the market, half noise": (0.5 * m + noise(0.01), NONE),
        "a hundredth of everything": (0.01 * m + noise(0.0001), NONE),
    }


def hostile(m: Series, rng: np.random.Generator) -> dict[str, tuple[Series, tuple[str, ...]]]:
    """Return accounts without skill by name, each with what may be said of it; sizes are drawn afresh."""
    n = m.size
    u = rng.uniform

    def noise(size: float) -> Series:
        return rng.normal(0.0, size, n)

    lucky, twice, month = noise(0.004), noise(0.004), noise(0.004)
    lucky[rng.integers(n)] += u(0.08, 0.25)
    twice[rng.integers(n, size=2)] += u(0.06, 0.15)
    start = int(rng.integers(n - 25))
    month[start : start + 21] += u(0.003, 0.007)
    dividends = np.zeros(n)
    dividends[int(rng.integers(60)) :: 63] = u(0.003, 0.006)
    marks = np.zeros(n)
    every = int(rng.integers(5, 22))
    for end in range(every - 1, n, every):
        marks[end] = np.prod(1.0 + m[end - every + 1 : end + 1]) - 1.0
    bonds = u(0.01, 0.03) / 252 + noise(0.0025)
    far = u(0.035, 0.05)
    return {
        "a mix of market and cash": (u(0.3, 0.9) * m + u(0.0, 0.04) / 252, ("market",)),
        "market and bonds": (0.6 * m + 0.4 * bonds, NONE),
        "a closet indexer with a fee": (
            m + noise(u(0.0002, 0.0008)) - u(0.002, 0.015) / 252,
            ("market", "worse", "luck"),
        ),
        "a closet indexer that strays": (m + noise(u(0.001, 0.003)), NONE),
        "dividends that the benchmark leaves out": (m + dividends, ("market",)),
        "foreign currency": (m + noise(u(0.002, 0.005)), NONE),
        "a martingale on the market": (_doubled(m, u(0.3, 0.6), 4), ("tail", *NONE)),
        "a martingale on a coin": (_doubled(noise(0.006), u(0.3, 0.6), 5), ("tail", *NONE)),
        "more after every gain": (_doubled(m, u(0.3, 0.6), 4, after=1.0), NONE),
        "puts sold, a crash inside": (_sold_puts(m, u(0.01, 0.02)) + noise(0.0002), ("tail", *NONE)),
        "puts sold far away, nothing happened": (
            np.full(n, u(0.02, 0.05) / 252) + 0.05 * np.maximum(m, -far) + noise(0.0001),
            ("leak", "tail", *NONE),
        ),
        "calls sold on what is held": (np.minimum(m, u(0.005, 0.01)) + 0.0008 + noise(0.0003), ("tail", *NONE)),
        "puts bought": (np.maximum(m, -u(0.01, 0.015)) - 0.0006, ("timing", "mixed", *NONE)),
        "valued every few sessions": (marks, NONE),
        "smoothed by appraisal": (_carried((1.0 - (keep := u(0.3, 0.85))) * u(0.5, 1.0) * m, keep), ("market",)),
        "smoothed, with noise of its own": (_carried(0.5 * (m + noise(0.006)), 0.5), NONE),
        "one lucky trade": (m + lucky, NONE),
        "two lucky trades": (m + twice, NONE),
        "one lucky month": (m + month, NONE),
        "sold after falls, bought back later": (_stopped(m, u(0.04, 0.08), int(rng.integers(10, 40))), NONE),
    }


def _doubled(moves: Series, stake: float, most: int, *, after: float = -1.0) -> Series:
    """Return a bet that is doubled after every loss (or gain), up to ``most`` times, and begun again otherwise."""
    found, times = np.empty_like(moves), 0
    for t, move in enumerate(moves):
        found[t] = stake * 2.0**times * move / 2.0
        times = min(times + 1, most) if move * after > 0.0 else 0
    return np.maximum(found, -0.5)


def _sold_puts(m: Series, strike: float, weeks: int = 5) -> Series:
    """Return what sellers of puts on the coming week earn: a premium spread evenly, and the loss when it ends."""
    ends = np.array([np.prod(1.0 + m[at : at + weeks]) - 1.0 for at in range(0, m.size, weeks)])
    lost = np.maximum(-ends - strike, 0.0)
    found = np.full(m.size, float(lost.mean()) * 1.3 / weeks)
    found[np.minimum(np.arange(ends.size) * weeks + weeks - 1, m.size - 1)] -= lost
    return found


def _stopped(m: Series, fall: float, wait: int) -> Series:
    """Return the market, left for ``wait`` sessions whenever the account has fallen so far from its peak."""
    found, value, peak, out = np.zeros_like(m), 1.0, 1.0, 0
    for t, move in enumerate(m):
        if out:
            out -= 1
            peak = value
            continue
        found[t] = move
        value *= 1.0 + move
        peak = max(peak, value)
        if value < peak * (1.0 - fall):
            out = wait
    return found


def _carried(noise: Series, carry: float) -> Series:
    series = noise.copy()
    for t in range(1, series.size):
        series[t] += carry * series[t - 1]
    return series


SPANS = (("1999", "2018"), ("1999", "2005"), ("2006", "2012"), ("2013", "2018"))


def real_dividends() -> int:
    """Judge the market with its dividends against an index of prices; 1 when it is praised in spite of them."""
    import pandas as pd
    from arch.data import frenchdata, sp500

    factors = frenchdata.load()
    factors.index = pd.PeriodIndex([f"{one.value // 100}-{one.value % 100:02}" for one in factors.index], freq="M")
    prices = sp500.load()["Adj Close"].resample("ME").last().pct_change().dropna()
    prices.index = prices.index.to_period("M")
    whole = ((factors["Mkt-RF"] + factors["RF"]) / 100.0).reindex(prices.index).dropna()
    praised = 0
    for first, last in SPANS:
        total, index = whole[first:last], prices[first:last].reindex(whole[first:last].index)
        days = [str(one.end_time.date()) for one in total.index]
        series = OwnSeries(
            returns=dict(zip(days, total.tolist(), strict=True)),
            against=dict(zip(days, index.tolist(), strict=True)),
            year=12,
        )
        for allowed in (VerdictConfig().dividends, 0.0):
            config = VerdictConfig(
                draws=100, dividends=allowed, interest=VerdictConfig().interest if allowed else 0.0
            )
            verdict = assay_series(series, config, agent=f"the market, {first} to {last}")[0].verdict
            praised += bool(allowed) and verdict.kind in PRAISE
            print(f"dividends up to {allowed:.1%}: {verdict.label}\n   {verdict.sentence}")
    return int(praised > 0)


def main() -> int:
    """Judge every account in every market."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="markets")
    parser.add_argument("--first", type=int, default=40_000, help="seed of the first")
    parser.add_argument("--sessions", type=int, default=756)
    parser.add_argument("--hostile", action="store_true", help="twenty kinds of account without skill")
    parser.add_argument("--dividends", action="store_true", help="the real market against an index of prices")
    asked = parser.parse_args()
    if asked.dividends:
        return real_dividends()
    wrong, praised, count = 0, 0, 0
    for seed in range(asked.first, asked.first + asked.seeds):
        rng = np.random.default_rng(seed)
        spells = np.repeat(rng.uniform(0.006, 0.014, asked.sessions // 63 + 1), 63)[: asked.sessions]
        market = 0.0003 + spells * rng.standard_t(5, asked.sessions) / np.sqrt(5.0 / 3.0)
        days = tuple(str(day) for day in np.arange(asked.sessions) + np.datetime64("2015-01-01"))
        against = dict(zip(days, market.tolist(), strict=True))
        for name, (total, allowed) in (hostile if asked.hostile else accounts)(market, rng).items():
            series = OwnSeries(returns=dict(zip(days, total.tolist(), strict=True)), against=against)
            verdict = assay_series(series, VerdictConfig(draws=100), agent=name)[0].verdict
            count += 1
            if verdict.kind not in allowed:
                wrong += 1
                praised += verdict.kind in PRAISE
                print(f"{seed}: {name}: {verdict.kind}, not {' or '.join(allowed)}\n   {verdict.sentence}")
    found = rate_measure(wrong, count, nothing="nobody was judged", level=0.95)
    span = f"{100 * (found.low or 0.0):.1f} to {100 * (found.high or 0.0):.1f} %"
    print(
        f"{wrong} of {count} judged wrongly ({wrong / count:.1%}, {span}), {praised} of them praised; "
        f"{asked.seeds} markets of {asked.sessions} sessions"
    )
    return 0 if wrong <= 0.1 * count else 1


if __name__ == "__main__":
    sys.exit(main())
