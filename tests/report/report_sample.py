"""A made-up report that shows everything a page can show; the tests and the eyes look at the same one."""

import dataclasses
from datetime import date, timedelta

import numpy as np

from tradeassay.core.badges import Badges
from tradeassay.core.measure import not_scored
from tradeassay.metrics import (
    MEASURES,
    BootstrapConfig,
    EpisodeSeries,
    across_seeds,
    compare_to_baseline,
    growth,
    holm,
    score,
    series_from_nav,
    summarise,
)
from tradeassay.report.data import AgentData, CellData, DecisionNote, HoldingsOverTime, ReportData, Trade

QUICK = BootstrapConfig(draws=200)
ATTACK = "<script>window.hacked = 1</script><img src=x onerror='window.hacked=2'>"
RULES = """Daily trading of large caps (daily-us-v1)

Rule-based and model agents trade a hundred names once a day.

- Data: synthetic/us:7, sessions from 2024-01-02 to 2024-12-31; before that is history.
- Universe: the members of IDX as of each day; what left the index may still be sold.
- Money: you start with 100,000 in cash.
- You decide when the session opens. You know every bar up to the previous close, and today's opening prices.
- Orders fill at the session's open; the account is valued at its close.
"""


def weekdays(n: int, first: date = date(2024, 1, 2)) -> tuple[str, ...]:
    days = (first + timedelta(days=offset) for offset in range(3 * n))
    return tuple(str(day) for day in days if day.weekday() < 5)[:n]


def played(returns: np.ndarray, index: np.ndarray, sessions: tuple[str, ...], seed: int = 0) -> EpisodeSeries:
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
    name: str,
    paths: list[np.ndarray],
    sessions: tuple[str, ...],
    base: np.ndarray,
    *,
    baseline: bool = False,
    symbols: tuple[str, ...] = (),
    reason: str = "the trend is up and volume confirms it",
) -> AgentData:
    episodes = [played(returns, base, sessions, place) for place, returns in enumerate(paths)]
    scores = [score(episode, bootstrap=QUICK) for episode in episodes]
    versus = compare_to_baseline(np.stack([e.nav for e in episodes]), 1e5 * growth(base), bootstrap=QUICK)
    rng = np.random.default_rng(len(name))
    n = len(sessions)
    weights = np.abs(np.cumsum(rng.normal(0, 0.01, (len(symbols), n)), axis=1) + 0.8 / max(1, len(symbols)))
    trades = tuple(
        Trade(
            session=sessions[int(day)],
            symbol=symbol,
            quantity=float(rng.choice([-20, 20, 35])),
            price=float(price),
        )
        for symbol in symbols[:5]
        for day, price in zip(sorted(rng.choice(n, 6, replace=False)), rng.uniform(60, 140, 6), strict=True)
    )
    return AgentData(
        name=name,
        measures=across_seeds(episodes, scores, bootstrap=QUICK),
        baseline=baseline,
        seeds=len(paths),
        paths=tuple(tuple(float(value) for value in episode.nav) for episode in episodes),
        shown=len(paths) // 2,
        shown_seed=len(paths) // 2,
        versus_baseline=None if baseline else versus,
        holdings=HoldingsOverTime(symbols=symbols, weights=tuple(tuple(row) for row in weights.tolist())),
        trades=trades,
        rejections={"limit_up": 14, "insufficient_cash": 5, "lot": 2},
        failures={"schema": 3},
        decisions=tuple(
            DecisionNote(session=day, orders=("buy AAA to 10.0%", "sell BBB, 20 shares"), reason=reason)
            for day in sessions[:6]
        ),
        decisions_left_out=max(0, n - 6),
    )


def failed(name: str, reason: str) -> AgentData:
    nothing = {info.id: summarise([not_scored(reason)]) for info in MEASURES}
    return AgentData(
        name=name, measures=nothing, failure=reason, failed_episodes=((f"daily-us-v1__{name}__s0", reason),)
    )


def cell(place: int = 0, n: int = 250, *, title: str = "US large caps, daily", attack: bool = False) -> CellData:
    rng = np.random.default_rng(100 + place)
    sessions = weekdays(n)
    market = rng.normal(0.0004, 0.009, n)
    symbols = tuple(f"S{number:02d}" for number in range(14))

    def noisy(edge: float, own: float, seed: int) -> np.ndarray:
        return market + edge + np.random.default_rng(seed).normal(0, own, n)

    agents = [
        agent("equal-weight", [market], sessions, market, baseline=True, symbols=symbols),
        agent("momentum-12-1", [noisy(0.0002, 0.004, 1)], sessions, market, symbols=symbols),
        agent("oracle-reader", [noisy(0.0016, 0.004, 2)], sessions, market, symbols=symbols[:5]),
        agent("min-variance", [market * 0.5 + noisy(0, 0.001, 3) * 0.1], sessions, market, symbols=symbols[3:9]),
        agent("reversal", [noisy(-0.0018, 0.005, 4)], sessions, market, symbols=symbols[2:12]),
        agent("random", [noisy(-0.0003, 0.005, 5 + seed) for seed in range(5)], sessions, market, symbols=symbols),
        agent("vol-target", [market * 0.8], sessions, market, symbols=symbols[:1]),
        agent("sector-equal", [noisy(0.0, 0.001, 11)], sessions, market, symbols=symbols[:8]),
        agent("cash", [np.zeros(n)], sessions, market),
        failed("silent-model", f"no usable answer in any of {n} sessions (timeout {n})"),
    ]
    if attack:
        agents.append(
            agent(ATTACK, [noisy(0, 0.002, 30)], sessions, market, symbols=(ATTACK, "S01"), reason=ATTACK)
        )
    adjusted = holm([one.versus_baseline.p_value if one.versus_baseline else None for one in agents])
    agents = [
        AgentData(**{**{f: getattr(one, f) for f in one.__struct_fields__}, "p_adjusted": p})
        for one, p in zip(agents, adjusted, strict=True)
    ]
    prices = {
        symbol: tuple(float(value) for value in 100 * growth(rng.normal(0.0003, 0.015, n))[1:])
        for symbol in symbols
    }
    return CellData(
        id=f"cell{place}",
        title=title,
        benchmark="daily-us-v1",
        dataset="synthetic/us:7",
        badges=Badges(data="synthetic", convention="sound", biases=(ATTACK,) if attack else ()),
        sessions=sessions,
        agents=tuple(agents),
        baseline="equal-weight",
        rules=RULES,
        index_name="IDX",
        index=tuple(float(value) for value in 1000 * growth(market * 0.9)),
        prices=prices,
    )


def report(*, attack: bool = False) -> ReportData:
    return ReportData(
        title=ATTACK if attack else "Rule agents on three markets",
        cells=(
            cell(0, attack=attack),
            cell(1, 120, title="A-shares, daily"),
            cell(2, 60, title="Crypto, daily"),
        ),
        draws=200,
        hashes=(("data synthetic/us:7", "9f" * 32), ("spec", "ab" * 32)),
        versions=(("tradeassay", "0.1.0"), ("numpy", "2.4.6")),
        check="tradeassay verify demo",
    )
