"""The equal-weight agent against a baseline written down here by plain arithmetic: the same NAV,
to the bit.
"""

import math
from typing import Any

import numpy as np
import pytest

from tradeassay_bench.agents import make_agent
from tradeassay_bench.benchmarks import day, play_day
from tradeassay_bench.core.agent import EpisodeInfo
from tradeassay_bench.core.events import Marked
from tradeassay_bench.data import Panel
from tradeassay_bench.play import Market, MarketConfig

BUFFER = 0.005


def eventful(panel: Any, seed: int, rows: int = 60, columns: int = 8) -> Panel:
    """Return a random market with suspensions, dividends, splits and a delisting."""
    rng = np.random.default_rng(seed)
    closes = np.round(
        rng.uniform(5, 80, columns) * np.cumprod(1 + rng.normal(0, 0.02, (rows, columns)), 0), 2
    )
    opens = np.round(closes * (1 + rng.normal(0, 0.01, (rows, columns))), 2)
    splits = (("S1", "split", 20, 2.0), ("S2", "split", 31, 1.5))
    for _, _, row, ratio in splits:
        column = 1 if ratio == 2.0 else 2
        opens[row:, column] = np.round(opens[row:, column] / ratio, 2)
        closes[row:, column] = np.round(closes[row:, column] / ratio, 2)
    opens[40:, 7] = closes[40:, 7] = np.nan
    return panel(
        opens,
        closes,
        delisted={"S7": 39},
        suspended=[(1, 5), (15, 3), (16, 3), (31, 4), (59, 0)],
        actions=(
            *splits,
            ("S0", "dividend", 10, 0.37),
            ("S1", "dividend", 20, 0.2),
            ("S3", "dividend", 16, 0.11),
        ),
    )


def simulate_buy_and_hold(
    table: Panel,
    first: int,
    cash: float,
    *,
    lot: float,
    bps: float,
    slip: float,
    least: float,
    fill: str,
    mark: str,
) -> list[float]:
    """Buy equal amounts at the first session's price and hold: cash, shares, dividends, splits,
    nothing else.
    """
    opens, closes, halted = table.bars["open"], table.bars["close"], table.suspended
    prices, marks = (closes if fill == "close" else opens), (closes if mark == "close" else opens)
    # Before the session only the previous day's suspensions are known; a name halted today costs its share.
    asked = [c for c in range(len(table.listings)) if not halted[first - 1, c]]
    share = (1.0 / len(asked)) * (1.0 - BUFFER)
    start, shares, last = cash, dict[int, float](), dict[int, float]()
    for c in asked:
        if halted[first, c]:
            continue
        price = prices[first, c]
        whole = math.floor(share * start / price / lot + 1e-6) * lot
        value = whole * (price * (1 + slip * 1e-4))
        if whole:
            cash = cash + (-value - max(value * bps * 1e-4, least))
            shares[c], last[c] = whole, price
    navs = []
    for row in range(first, len(table.sessions)):
        today = str(table.sessions[row])
        actions = [a for a in table.actions if a.ex_date == today]
        for action in sorted(actions, key=lambda a: a.kind):
            c = int(action.symbol[1:])
            if row == first or c not in shares:
                continue
            if action.kind == "dividend":
                cash += action.value * shares[c]
                last[c] -= action.value
            else:
                exact = shares[c] * action.value
                shares[c] = math.floor(exact + 1e-6)
                cash += (exact - shares[c]) * last[c] / action.value
                last[c] /= action.value
        for c, listing in enumerate(table.listings):
            if listing.delisted is not None and listing.delisted < today and c in shares:
                cash += shares.pop(c) * last.pop(c)
        for c in shares:
            if not halted[row, c]:
                last[c] = marks[row, c]
        navs.append(cash + sum(shares[c] * last[c] for c in shares))
    return navs


def play(snapshot: Any, config: MarketConfig, name: str = "equal-weight") -> list[float]:
    market, agent = Market(snapshot, config), make_agent(name)
    agent.begin(EpisodeInfo(episode="e", seed=0, rules=market.rules), np.random.default_rng(0))
    seen, navs = market.reset(), []
    while seen is not None:
        before = seen.account
        assert before.cash + sum(p.value for p in before.positions.values()) == pytest.approx(
            before.nav, rel=1e-14
        )
        record, seen = market.step(play_day(day(seen), agent))
        marked = record.events[-1]
        assert isinstance(marked, Marked)
        assert marked.nav == marked.cash + marked.positions
        navs.append(marked.nav)
    return navs


@pytest.mark.parametrize(
    ("venue", "costs"),
    [
        ("us-v1", {"lot": 1.0, "bps": 1.0, "slip": 2.0, "least": 0.0}),
        ("ashare-flat-v1", {"lot": 100.0, "bps": 5.0, "slip": 0.0, "least": 5.0}),
    ],
)
@pytest.mark.parametrize(
    ("fill", "mark"), [("open", "close"), ("open", "open"), ("close", "close")]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_equal_weight_is_the_baseline_to_the_last_bit(panel, store, venue, costs, fill, mark, seed):
    table = eventful(panel, seed)
    config = MarketConfig(
        venue=venue, first="2024-01-03", last="2024-02-29", cash=1e5, fill=fill, mark=mark
    )
    assert play(store(table), config) == simulate_buy_and_hold(
        table, 2, 1e5, fill=fill, mark=mark, **costs
    )


def test_equal_weight_worked_out_by_hand(panel, store):
    # 1,000 buys at the second open: 0.4975 x 1,000 = 497.50 each, 49 shares at 10.002 and 24 at 20.004.
    table = panel([[10.0, 20.0]] * 3, [[10.0, 20.0], [11.0, 20.0], [11.0, 30.0]])
    config = MarketConfig(venue="us-v1", first="2024-01-02", last="2024-01-03", cash=1000.0)
    spent = 49 * 10.002 + 24 * 20.004
    cash = 1000.0 - spent * 1.0001
    found = play(store(table), config)
    assert found == pytest.approx([cash + 49 * 11 + 24 * 20, cash + 49 * 11 + 24 * 30], rel=1e-14)


@pytest.mark.parametrize("venue", ["us-v1", "us-fractional-v1", "ashare-flat-v1", "crypto-v1"])
def test_cash_stays_what_it_was(panel, store, venue):
    config = MarketConfig(venue=venue, first="2024-01-02", last="2024-02-29", cash=12_345.67)
    assert set(play(store(eventful(panel, 3)), config, "cash")) == {12_345.67}
