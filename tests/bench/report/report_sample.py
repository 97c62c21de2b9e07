"""A made-up report that shows everything a page can show; the tests and the eyes look at the
same one.
"""

import dataclasses
import io
from datetime import date, timedelta
from functools import cache

import msgspec
import numpy as np
from rich.console import Console

from tradeassay.core.measure import Badges, not_scored
from tradeassay.metrics import (
    MEASURES,
    BootstrapConfig,
    across_seeds,
    compare_to_baseline,
    corrected,
    growth,
    score,
    series_from_nav,
    summarise,
)
from tradeassay_bench.core.orders import Order
from tradeassay_bench.report import render_html
from tradeassay_bench.runs.score import AgentScores
from tradeassay_bench.runs.summary import (
    AgentSummary,
    RunSummary,
    SettingSummary,
    completed_episode,
    completed_run,
)
from tradeassay_bench.runs.summary.rows import (
    DecisionNote,
    EpisodeDetail,
    HoldingsOverTime,
    OrderNote,
    Trade,
)

QUICK = BootstrapConfig(draws=200)
ORDERS = (
    Order(symbol="AAA", amount=0.1, unit="target_weight", side="BUY"),
    Order(symbol="BBB", amount=20, side="SELL"),
)
DONE = tuple(OrderNote(order=order, tone="filled", fate="bought") for order in ORDERS)
ATTACK = "<script>window.hacked = 1</script><img src=x onerror='window.hacked=2'>"
RULES = """Daily trading of large caps (daily-us-v1)

Rule-based and model agents trade a hundred names once a day.

- Data: synthetic/us:7, sessions from 2024-01-02 to 2024-12-31; before that is history.
- Universe: the members of IDX as of each day; what left the index may still be sold.
- Money: you start with 100,000 in cash.
- You decide when the session opens. You know every bar up to the previous close, and today's opening prices.
- Orders fill at the session's open; the account is valued at its close.
"""


def printed(what, width=160):
    """Return something as a terminal of a width shows it."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False, highlight=False)
    console.print(what)
    return console.file.getvalue()


def weekdays(n, first=date(2024, 1, 2)):
    days = (first + timedelta(days=offset) for offset in range(3 * n))
    return tuple(str(day) for day in days if day.weekday() < 5)[:n]


def played(returns, index, sessions, seed=0):
    """A series with some trading, idle cash and refusals in it."""
    n = len(sessions)
    rng = np.random.default_rng(seed)
    nav = 1e5 * growth(returns)
    orders = rng.integers(0, 4, n)
    series = series_from_nav(nav, sessions=sessions, index=1000 * growth(index * 0.9))
    return dataclasses.replace(
        series,
        cash=nav[1:] * rng.uniform(0.02, 0.2, n),
        traded=nav[:-1] * rng.uniform(0, 0.1, n) * (orders > 0),
        costs=nav[:-1] * 2e-5 * (orders > 0),
        hhi=rng.uniform(0.05, 0.2, n),
        orders=orders,
        rejected=np.minimum(orders, rng.integers(0, 2, n)),
        abstained=orders == 0,
    )


def agent(
    name,
    paths,
    sessions,
    base,
    *,
    baseline=False,
    symbols=(),
    reason="the trend is up and volume confirms it",
):
    episodes = [played(returns, base, sessions, place) for place, returns in enumerate(paths)]
    scores = [score(episode, bootstrap=QUICK) for episode in episodes]
    versus = compare_to_baseline(
        np.stack([e.nav for e in episodes]), 1e5 * growth(base), bootstrap=QUICK
    )
    rng = np.random.default_rng(len(name))
    n = len(sessions)
    weights = np.abs(
        np.cumsum(rng.normal(0, 0.01, (len(symbols), n)), axis=1) + 0.8 / max(1, len(symbols))
    )
    trades = tuple(
        Trade(
            session=sessions[int(day)],
            symbol=symbol,
            quantity=float(rng.choice([-20, 20, 35])),
            price=float(price),
        )
        for symbol in symbols[:5]
        for day, price in zip(
            sorted(rng.choice(n, 6, replace=False)), rng.uniform(60, 140, 6), strict=True
        )
    )
    row = scored(
        name, across_seeds(episodes, scores, bootstrap=QUICK), len(paths), baseline=baseline
    )
    navs = tuple(tuple(float(value) for value in episode.nav) for episode in episodes)
    detail = EpisodeDetail(
        place=len(paths) // 2,
        seed=len(paths) // 2,
        holdings=HoldingsOverTime(
            symbols=symbols, weights=tuple(tuple(row) for row in weights.tolist())
        ),
        trades=trades,
        decisions=tuple(
            DecisionNote(session=day, orders=DONE, reason=reason) for day in sessions[:6]
        ),
        decisions_left_out=max(0, n - 6),
    )
    return AgentSummary(
        row=msgspec.structs.replace(row, versus_baseline=None if baseline else versus),
        paths=navs,
        rejections={"limit_up": 14, "insufficient_cash": 5, "lot": 2},
        failures={"schema": 3},
        detail=completed_episode(detail, sessions, navs[len(paths) // 2], 252),
    )


def scored(name, measures, seeds=1, *, baseline=False):
    return AgentScores(
        setting="cell0",
        benchmark="daily-us-v1",
        dataset="synthetic/us:7",
        agent=name,
        baseline=baseline,
        added=False,
        episodes=tuple(f"daily-us-v1__{name}__s{seed}" for seed in range(seeds)),
        failed=0,
        measures=measures,
        versus_baseline=None,
    )


def failed(name, reason):
    nothing = {info.id: summarise([not_scored(reason)]) for info in MEASURES}
    row = scored(name, nothing)
    return AgentSummary(row=row, failure=reason, failed_episodes=((row.episodes[0], reason),))


def cell(place=0, n=250, *, title="US large caps, daily", attack=False):
    rng = np.random.default_rng(100 + place)
    sessions = weekdays(n)
    market = rng.normal(0.0004, 0.009, n)
    symbols = tuple(f"S{number:02d}" for number in range(14))

    def noisy(edge, own, seed):
        return market + edge + np.random.default_rng(seed).normal(0, own, n)

    agents = [
        agent("equal-weight", [market], sessions, market, baseline=True, symbols=symbols),
        agent("momentum-12-1", [noisy(0.0002, 0.004, 1)], sessions, market, symbols=symbols),
        agent("oracle-reader", [noisy(0.0016, 0.004, 2)], sessions, market, symbols=symbols[:5]),
        agent(
            "min-variance",
            [market * 0.5 + noisy(0, 0.001, 3) * 0.1],
            sessions,
            market,
            symbols=symbols[3:9],
        ),
        agent("reversal", [noisy(-0.0018, 0.005, 4)], sessions, market, symbols=symbols[2:12]),
        agent(
            "random",
            [noisy(-0.0003, 0.005, 5 + seed) for seed in range(5)],
            sessions,
            market,
            symbols=symbols,
        ),
        agent("vol-target", [market * 0.8], sessions, market, symbols=symbols[:1]),
        agent("sector-equal", [noisy(0.0, 0.001, 11)], sessions, market, symbols=symbols[:8]),
        agent("cash", [np.zeros(n)], sessions, market),
        failed("silent-model", f"no usable answer in any of {n} sessions (timeout {n})"),
    ]
    if attack:
        agents.append(
            agent(
                ATTACK,
                [noisy(0, 0.002, 30)],
                sessions,
                market,
                symbols=(ATTACK, "S01"),
                reason=ATTACK,
            )
        )
    agents = [
        msgspec.structs.replace(one, row=msgspec.structs.replace(one.row, versus_baseline=versus))
        for one, versus in zip(agents, corrected([one.versus for one in agents], 0.95), strict=True)
    ]
    prices = {
        symbol: tuple(float(value) for value in 100 * growth(rng.normal(0.0003, 0.015, n))[1:])
        for symbol in symbols
    }
    return bare_cell(
        agents,
        sessions,
        id=f"cell{place}",
        title=title,
        badges=Badges(data="synthetic", convention="corrected", biases=(ATTACK,) if attack else ()),
        rules=RULES,
        index_name="IDX",
        index=tuple(float(value) for value in 1000 * growth(market * 0.9)),
        prices=prices,
    )


def bare_cell(agents, sessions, **changes):
    """Return a cell of the daily benchmark on synthetic data, or what changes of it."""
    badges = Badges(data="synthetic", convention="corrected")
    names = {
        "id": "c",
        "title": "A market",
        "benchmark": "daily-us-v1",
        "dataset": "synthetic/us:7",
    }
    fields = {**names, "badges": badges, "baseline": "equal-weight", **changes}
    return SettingSummary(agents=tuple(agents), sessions=sessions, **fields)


@cache
def report(*, attack=False):
    return completed_run(
        RunSummary(
            title=ATTACK if attack else "Rule agents on three markets",
            settings=(
                cell(0, attack=attack),
                cell(1, 120, title="A-shares, daily"),
                cell(2, 60, title="Crypto, daily"),
            ),
            draws=200,
            hashes=(("data synthetic/us:7", "9f" * 32), ("spec", "ab" * 32)),
            versions=(("tradeassay", "0.1.0"), ("numpy", "2.4.6")),
            check="tradeassay verify demo",
        )
    )


@cache
def page_text(*, attack=False):
    """Return the page of the report."""
    return render_html(report(attack=attack))
