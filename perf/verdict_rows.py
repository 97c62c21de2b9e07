"""Measure the verdict on kinds of accounts that were once judged wrongly, with hundreds of new
accounts.

    python perf/verdict_rows.py [--accounts 200] [--first 730000] [--only convex,memory]

No model is called and no world is generated. Daily parts, or returns, are drawn with separate sizes
and judged through the public interface. *Praised* is skill, timing or mixed. Every row has an upper
or lower limit. The exit status is 1 if a row misses it by more than chance (Wilson, 95 %).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import rate_measure
from tradeassay.tables.account import OwnSeries
from tradeassay.verdict import AgentAssay, AgentFindings, VerdictConfig, judge
from tradeassay.verdict.evidence import ALPHA, INVESTED, MeanTest, memory_evidence
from tradeassay.verdict.record import LeakEvidence, LuckEvidence, Ranks
from tradeassay.verdict.returns import JudgingContext, assay_series, run_tests

Series = np.ndarray
Draw = np.random.Generator
Rows = dict[str, Series]
PRAISE = ("skill", "timing", "mixed")
CONFIG = VerdictConfig(draws=100)
YEAR, LONG = 252, 756


@dataclass
class Row:
    """One kind of account: the counted words, the upper or lower limit, and the verdicts."""

    name: str
    words: tuple[str, ...]
    most: float | None = None
    least: float | None = None
    said: Counter[str] = field(default_factory=Counter)

    def judged(self) -> tuple[Measure, bool]:
        """Return how often the words occurred, and whether the limit is certainly missed."""
        hits = sum(self.said[word] for word in self.words)
        share = rate_measure(hits, sum(self.said.values()), nothing="nobody was judged", level=0.95)
        low, high = share.low or 0.0, 1.0 if share.high is None else share.high
        missed = (self.most is not None and low > self.most) or (
            self.least is not None and high < self.least
        )
        return share, missed


def market(rng: Draw, n: int = LONG) -> Series:
    """Return a market's days, with fat tails and volatility clusters."""
    scale = np.empty(n)
    now = 1.0
    for day, shock in enumerate(rng.normal(0.0, 0.06, n)):
        now = float(np.exp(0.97 * np.log(now) + shock))
        scale[day] = now
    return 0.08 / YEAR + rng.uniform(0.008, 0.012) * scale * rng.standard_t(5, n) / np.sqrt(
        5.0 / 3.0
    )


def by_returns(total: Series, against: Series, cash: Series | None = None) -> AgentAssay:
    """Return the verdict on returns, with a market's returns and cash."""
    days = (np.datetime64("2001-01-01") + np.arange(total.size)).astype(str).tolist()
    table = OwnSeries(
        returns=dict(zip(days, total.tolist(), strict=True)),
        benchmark=dict(zip(days, against.tolist(), strict=True)),
        cash=None if cash is None else dict(zip(days, cash.tolist(), strict=True)),
    )
    config = CONFIG if cash is None else VerdictConfig(draws=100, interest=0.0, dividends=0.0)
    return assay_series(table, config, agent="own")[0]


def by_holdings(rows: Rows, masked: Rows | None = None) -> AgentAssay:
    """Return the verdict on daily parts and on those of a masked twin."""
    size = rows["common"].size
    both = [_whole(one) for one in (rows, masked) if one is not None]
    found = AgentFindings(
        setting="drawn",
        benchmark="drawn",
        dataset="drawn",
        agent="drawn",
        by_model=masked is not None,
        baseline=False,
        seeds=1,
        failed_seeds=0,
        sessions=size,
        first="2001-01-01",
        last="2003-12-31",
        total=not_scored("not measured yet"),
        market=not_scored("no index"),
        luck=LuckEvidence(percentile=not_scored("not asked for"), p=None),
        leaks=LeakEvidence(tested=True, sentence="nothing moved", bound=0.001),
        failure_rate=Measure(value=0.0, n=size),
        ranks=Ranks(of=1, by_return=1, by_selection=1),
    )
    days = tuple(str(day) for day in np.datetime64("2001-01-01") + np.arange(size))
    made = run_tests(found, both[0], YEAR, CONFIG, JudgingContext(sessions=days))
    if masked is not None:
        twin = memory_evidence(both[0], both[1], MeanTest(YEAR, CONFIG), against="blinded")
        made = type(made)(
            **{name: getattr(made, name) for name in made.__struct_fields__} | {"memory": twin}
        )
    return judge(made, CONFIG)


def _whole(rows: Rows) -> Rows:
    """Return parts with their sums, and zeros for those that are not given."""
    nothing = np.zeros(rows["common"].size)
    rows = {"style": nothing, "tilt": rows.get("style", nothing), "selection": nothing} | rows
    rows = {"costs": nothing, "fills": nothing} | rows
    rows["trading"] = rows["costs"] + rows["fills"]
    rows[ALPHA] = rows["selection"] + rows["trading"]
    return rows | {"total": rows["common"] + rows["style"] + rows[ALPHA]}


def noise(rng: Draw, yearly: float, n: int = LONG) -> Series:
    """Return random days with an annual standard deviation."""
    return yearly / np.sqrt(YEAR) * rng.standard_t(6, n) / np.sqrt(1.5)


def timed(rng: Draw, m: Series, chance: float) -> Rows:
    """Return an account that is in and out for days at a time, right with probability
    ``chance``.
    """
    every = int(rng.integers(3, 8))
    ahead = np.add.reduceat(m, np.arange(0, m.size, every)) > 0.0
    right = rng.random(ahead.size) < chance
    share = np.repeat(np.where(ahead == right, 1.0, rng.uniform(0.0, 0.4)), every)[: m.size]
    return {"common": share * m, INVESTED: share, "market": m}


# One function a row of the list


def memory(rng: Draw) -> Iterator[tuple[Row, AgentAssay]]:
    """Remembered dates or styles, which a mask removes."""
    m, chosen = market(rng), noise(rng, 0.06)
    chance = rng.uniform(0.72, 0.9)
    dates, blind = timed(rng, m, chance), timed(rng, m, 0.5)
    said = by_holdings(dates | {"selection": chosen}, blind | {"selection": noise(rng, 0.06)})
    yield Row("remembers dates: praised", PRAISE, most=0.05), said
    yield Row("remembers dates: memory", ("memory",), least=0.8), said
    styles = styled(rng, rng.uniform(0.75, 0.95)), styled(rng, 0.5)
    invested = {"common": m, INVESTED: np.ones(m.size), "market": m}
    said = by_holdings(invested | styles[0], invested | styles[1])
    yield Row("remembers which style paid: praised", PRAISE, most=0.05), said
    yield Row("remembers which style paid: memory", ("memory",), least=0.8), said
    said = by_holdings(timed(rng, m, 0.75), timed(rng, m, 0.75))
    yield Row("times the market, masked or not: timing", ("timing", "mixed"), least=0.8), said
    nobody = timed(rng, m, 0.5) | {"selection": chosen}
    said = by_holdings(nobody, timed(rng, m, 0.5) | {"selection": noise(rng, 0.06)})
    yield Row("neither, in and out by chance: praised", PRAISE, most=0.05), said
    yield Row("neither, in and out by chance: blamed", ("memory", "worse", "leak"), most=0.05), said


def styled(rng: Draw, chance: float) -> Rows:
    """Return an account with changing exposure to a style for weeks, right with probability
    ``chance``.
    """
    premium = noise(rng, 0.05)
    every = int(rng.integers(5, 21))
    ahead = np.add.reduceat(premium, np.arange(0, LONG, every)) > 0.0
    right = rng.random(ahead.size) < chance
    lean = np.repeat(np.where(ahead == right, 1.0, -1.0) * rng.uniform(0.8, 1.5), every)[:LONG]
    return {"style": lean * premium, "tilt": lean.mean() * premium, "selection": noise(rng, 0.04)}


def costs(rng: Draw) -> Iterator[tuple[Row, AgentAssay]]:
    """Accounts whose result was caused by costs, and accounts whose result was not."""
    m = market(rng)
    held = {"common": m, INVESTED: np.ones(m.size), "market": m}
    spread = rng.uniform(0.05, 0.1)
    paid = np.abs(noise(rng, 0.01))
    gain = spread * rng.uniform(2.2, 3.0) / YEAR

    def pays(share: float) -> Series:
        return -paid / paid.mean() * share

    names = noise(rng, spread)
    names += gain - names.mean()
    half = rng.uniform(0.1, 0.39)
    said = by_holdings(held | {"selection": names, "costs": pays(gain * rng.uniform(0.9, 1.1))})
    yield Row("costs as large as the edge: costs", ("costs",), least=0.9), said
    fills = noise(rng, spread)
    fills += -gain * (1.0 - half) - fills.mean()
    said = by_holdings(held | {"selection": names, "fills": fills, "costs": pays(gain * half)})
    yield Row("fills took the edge, costs 10 to 39 % of it: costs", ("costs",), most=0.05), said
    weak = noise(rng, spread)
    weak += spread * 1.25 / YEAR - weak.mean()
    said = by_holdings(
        held | {"selection": weak, "costs": pays(spread * rng.uniform(0.1, 0.4) / YEAR)}
    )
    yield Row("gross just certain, net just not: costs", ("costs",), most=0.05), said
    lost = noise(rng, spread)
    lost += -gain * (1.0 - half) - lost.mean()
    said = by_holdings(held | {"selection": lost, "costs": pays(gain * half)})
    yield Row("names lost, costs 10 to 39 % of it: costs", ("costs",), most=0.05), said
    said = by_holdings(held | {"selection": noise(rng, spread)})
    yield Row("a null without costs: costs", ("costs",), most=0.0), said
    yield Row("a null without costs: praised", PRAISE, most=0.05), said


def convex(rng: Draw) -> Iterator[tuple[Row, AgentAssay]]:
    """Convexity bought and sold at a fair price, and switching betas, without timing or
    selection.
    """
    m = market(rng)
    every = int(rng.integers(5, 21))
    beta = np.repeat(np.where(rng.random(LONG) < 0.5, 1.0, rng.uniform(0.0, 0.5)), every)[:LONG]
    for name, total in {
        "market plus a put": m + options(m, rng, -rng.uniform(0.0, 0.06), call=False),
        "straddles": 0.5 * (options(m, rng, 0.0, call=True) + options(m, rng, 0.0, call=False)),
        "short strangles": -0.5
        * (
            options(m, rng, rng.uniform(0.01, 0.05), call=True)
            + options(m, rng, -rng.uniform(0.01, 0.05), call=False)
        ),
        "doubling": doubled(m, rng.uniform(0.3, 0.6)),
        "a weekly coin": beta * m,
        "switching betas": m * np.where(rng.random(LONG) < 0.5, 1.5, 0.5) + noise(rng, 0.01),
    }.items():
        yield Row(f"{name}: praised", PRAISE, most=0.05), by_returns(total + noise(rng, 0.005), m)
    share = np.where((m > 0) == (rng.random(LONG) < 0.62), 1.0, 0.0)
    yield Row("a true timer, by returns: found", PRAISE, least=0.8), by_returns(share * m, m)


def options(m: Series, rng: Draw, strike: float, *, call: bool) -> Series:
    """Return the daily gains of one option on the market, bought for a month at a time.

    Its price is Black and Scholes' at the volatility of the sixty days before, marked every day.
    """
    from scipy.special import ndtr

    n, term = m.size, 21
    found = np.zeros(n)
    # What comes at that price on average: the drift is not in it.
    for start in range(0, n, term):
        days = m[start : start + term]
        vol = m[max(0, start - 60) : start].std() if start >= 60 else m[:60].std()
        level = np.concatenate([[1.0], np.cumprod(1.0 + days)])
        left = (term - np.arange(level.size)) * vol**2
        struck = 1.0 + strike
        with np.errstate(divide="ignore"):
            root = np.sqrt(np.maximum(left, 1e-12))
            up = (np.log(level / struck) + 0.5 * left) / root
        value = level * ndtr(up) - struck * ndtr(up - root)
        value = value if call else value - level + struck
        found[start : start + term] = np.diff(value)[: days.size]
    return found


def doubled(m: Series, first: float) -> Series:
    """Return an account that doubles after every loss, up to four times, and restarts after a
    gain.
    """
    stake, made = first, np.empty(m.size)
    for day, move in enumerate(m.tolist()):
        made[day] = stake * move
        stake = first if move > 0 else min(2.0 * stake, 16.0 * first, 2.0)
    return made


def sold(rng: Draw) -> Iterator[tuple[Row, AgentAssay]]:
    """Overpriced insurance sold, and a ratio of 2 in the same market without it."""
    # Jumps of a tenth of a percent of days, half of them down: crashes that most windows do not hold.
    m = market(rng) + np.where(rng.random(LONG) < 0.001, rng.normal(-0.01, 0.03, LONG), 0.0)

    def rest() -> Series:
        return rng.uniform(0.0, 0.5) * m + noise(
            rng, float(np.exp(rng.uniform(np.log(0.001), np.log(0.02))))
        )

    for span, word in ((5, "weekly"), (21, "monthly")):
        near, far = 0.03 * np.sqrt(span / 5.0), 0.05 * np.sqrt(span / 5.0)
        for times in (1.5, 3.0):
            name = f"puts sold {word}, {near:.0%} below, {times:g} times their worth: praised"
            yield (
                Row(name, PRAISE, most=0.05),
                by_returns(rest() + insured(m, rng, near, span, times), m),
            )
        said = by_returns(rest() + 2.0 * insured(m, rng, far, span, 4.0), m)
        yield (
            Row(
                f"puts sold {word}, {far:.0%} below, 4 times their worth: praised",
                PRAISE,
                most=0.05,
            ),
            said,
        )
    ladder = np.mean([insured(m, rng, 0.03, 5, 2.0, first=first) for first in range(5)], axis=0)
    yield (
        Row("a fifth of weekly puts sold a day: praised", PRAISE, most=0.05),
        by_returns(rest() + ladder, m),
    )
    wings = insured(m, rng, 0.025, 5, 1.5) + insured(m, rng, 0.025, 5, 1.5, sign=1.0)
    yield Row("strangles sold weekly: praised", PRAISE, most=0.05), by_returns(rest() + wings, m)
    spread = insured(m, rng, 0.02, 5, 2.0, first=0) - insured(m, rng, 0.05, 5, 2.0, first=0)
    yield (
        Row("put spreads sold weekly: praised", PRAISE, most=0.05),
        by_returns(rest() + 2.0 * spread, m),
    )
    calls = m + insured(m, rng, 0.03, 21, 2.0, sign=1.0) + noise(rng, 0.01)
    yield (
        Row("calls sold monthly on what is held: praised", PRAISE, most=0.05),
        by_returns(calls, m),
    )
    marked = (
        rest()
        - rng.uniform(0.5, 1.5) * options(m, rng, -0.04, call=False)
        + rng.uniform(0.02, 0.05) / YEAR
    )
    yield Row("puts sold monthly, marked daily: praised", PRAISE, most=0.05), by_returns(marked, m)
    skilled = rng.uniform(0.3, 1.0) * m + 0.08 * 2.0 / YEAR + noise(rng, 0.08)
    yield Row("ratio 2 by returns: found", PRAISE, least=0.85), by_returns(skilled, m)
    yield Row("ratio 2 by returns: tail risk", ("tail",), most=0.02), by_returns(skilled, m)


def insured(
    m: Series,
    rng: Draw,
    strike: float,
    span: int,
    times: float,
    *,
    sign: float = -1.0,
    first: int | None = None,
) -> Series:
    """Return what sellers of options of ``span`` sessions book: premiums by the day, what is paid
    when they end.

    Their worth is the mean over 20,000 terms drawn from the market's own days.
    """
    first = int(rng.integers(span)) if first is None else first
    paid = np.maximum(
        sign * (np.prod(1.0 + rng.choice(m, (20_000, span)), axis=1) - 1.0) - strike, 0.0
    )
    found = np.full(m.size, times * float(paid.mean()) / span)
    for start in range(first, m.size - span + 1, span):
        move = float(np.prod(1.0 + m[start : start + span])) - 1.0
        found[start + span - 1] -= max(sign * move - strike, 0.0)
    return found


def style(rng: Draw) -> Iterator[tuple[Row, AgentAssay]]:
    """Styles that are timed, held, or changed at random."""
    m = market(rng)
    held = {"common": m, INVESTED: np.ones(m.size), "market": m}
    yield (
        Row("times styles: timing", ("timing", "mixed"), least=0.8),
        by_holdings(held | styled(rng, 0.85)),
    )
    yield (
        Row("changes styles by chance: praised", PRAISE, most=0.05),
        by_holdings(held | styled(rng, 0.5)),
    )
    premium = noise(rng, 0.05) + rng.uniform(0.02, 0.06) / YEAR
    tilt = {"style": premium, "tilt": premium, "selection": noise(rng, 0.04)}
    yield Row("leans to one style that pays: praised", PRAISE, most=0.05), by_holdings(held | tilt)


def neutral(rng: Draw) -> Iterator[tuple[Row, AgentAssay]]:
    """Accounts without market exposure that earn interest on all their money, with cash given.

    The test of a mean detects 92 % of ratios of 2, and 100 % of ratios of 3, over this many
    sessions.
    """
    m = market(rng)
    cash = np.repeat(rng.uniform(0.0, 0.05, LONG // 63), 63) / YEAR
    for ratio, least in ((2.0, 0.89), (3.0, 0.97)):
        total = cash + 0.02 * ratio / YEAR + rng.normal(0.0, 0.02 / np.sqrt(YEAR), LONG)
        yield (
            Row(f"market-neutral, ratio {ratio:.0f}: found", PRAISE, least=least),
            by_returns(total, m, cash),
        )
    total = cash + rng.normal(0.0, 0.02 / np.sqrt(YEAR), LONG)
    yield Row("market-neutral, no skill: praised", PRAISE, most=0.05), by_returns(total, m, cash)


ROWS: dict[str, Callable[[Draw], Iterator[tuple[Row, AgentAssay]]]] = {
    "memory": memory,
    "costs": costs,
    "convex": convex,
    "sold": sold,
    "style": style,
    "neutral": neutral,
}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accounts", type=int, default=200)
    parser.add_argument("--first", type=int, default=730_000)
    parser.add_argument("--only", default=",".join(ROWS))
    asked = parser.parse_args()
    failed = False
    print("| account | accounts | said | bar |")
    print("|---|---|---|---|")
    for name in asked.only.split(","):
        rows: dict[str, Row] = {}
        for number in range(asked.accounts):
            for row, judged in ROWS[name](np.random.default_rng([asked.first, number])):
                rows.setdefault(row.name, row).said[judged.verdict.kind] += 1
        for row in rows.values():
            share, missed = row.judged()
            bar = f"at most {row.most:.0%}" if row.most is not None else f"at least {row.least:.0%}"
            failed |= missed
            span = f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"
            print(f"| {row.name} | {share.n} | {span} | {bar}{': missed' if missed else ''} |")
            print(f"    {dict(row.said)}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
