"""Each rule on a table small enough to work out by hand."""

from typing import Any

import numpy as np
import pytest

from tradeassay.agents import make_agent
from tradeassay.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay.core.orders import Decision
from tradeassay.core.view import Instrument


def ask(name: str, seen: Observation, seed: int = 1, **params: Any) -> Decision:
    agent = make_agent(name, params)
    agent.begin(EpisodeInfo(episode="e", seed=seed, rules=seen.rules), np.random.default_rng(seed))
    return agent.answer(AskDecision(seen))


def weights(decision: Decision) -> dict[str, float]:
    assert decision.status == "ok"
    assert all(order.unit == "target_weight" for order in decision.orders)
    return {order.symbol: round(order.amount, 12) for order in decision.orders}


def straight(*ends: float, rows: int = 300) -> np.ndarray:
    """Prices that go from 100 to the given ends in a straight line."""
    return np.linspace(np.full(len(ends), 100.0), np.array(ends), rows)


def test_cash_does_nothing(observe: Any) -> None:
    assert ask("cash", observe([[1.0]])) == Decision(reason="stays in cash")


def test_equal_weight_buys_once_and_holds(observe: Any) -> None:
    decision = ask("equal-weight", observe([[10.0, 20.0, np.nan, 5.0]], suspended=["S3"]), buffer=0.1)
    assert weights(decision) == {"S0": 0.45, "S1": 0.45}
    assert ask("equal-weight", observe([[10.0, 20.0]], held={"S0": (1, 10.0)})).orders == ()


def test_equal_weight_takes_the_most_traded_where_positions_are_few(observe: Any) -> None:
    seen = observe([[10.0, 40.0, 20.0, 30.0]], max_positions=2)
    decision = ask("equal-weight", seen, buffer=0.0)
    assert weights(decision) == {"S1": 0.5, "S3": 0.5}, "the whole account is invested, in two names"


def test_equal_weight_waits_for_a_price(observe: Any) -> None:
    assert "no name" in ask("equal-weight", observe(np.empty((0, 2)))).reason
    assert "one lot" in ask("equal-weight", observe([[10.0]], cash=1.0)).reason


def test_index_hold_buys_the_fund_of_the_benchmark(observe: Any) -> None:
    names = (
        Instrument(symbol="A"),
        Instrument(symbol="OTHERF", kind="index"),
        Instrument(symbol="IDXF", kind="index"),
    )
    seen = observe([[1.0, 2.0, 3.0]], instruments=names, benchmark_index="IDX")
    assert weights(ask("index-hold", seen, buffer=0.0)) == {"IDXF": 1.0}
    assert weights(ask("index-hold", observe([[1.0, 2.0, 3.0]], instruments=names), buffer=0.0)) == {"OTHERF": 1.0}


def test_index_hold_fails_without_a_fund(observe: Any) -> None:
    decision = ask("index-hold", observe([[1.0]]))
    assert decision.status == "failed"
    assert decision.failures[0].kind == "unsupported"
    assert "no index fund" in decision.reason


def test_momentum_takes_the_winners(observe: Any) -> None:
    seen = observe(straight(90.0, 130.0, 110.0, 120.0, 80.0, 70.0))
    assert weights(ask("momentum-12-1", seen, k=2, buffer=0.0)) == {"S1": 0.5, "S3": 0.5}
    assert weights(ask("momentum-12-1", observe(straight(90.0, 130.0, 110.0)), k=20, buffer=0.0)) == {"S1": 1.0}


def test_momentum_leaves_out_the_last_month(observe: Any) -> None:
    table = straight(120.0, 110.0)
    table[-20:, 1] = 500.0
    assert weights(ask("momentum-12-1", observe(table), k=1, buffer=0.0)) == {"S0": 1.0}


def test_momentum_is_measured_between_the_two_stated_closes(observe: Any) -> None:
    table = np.full((300, 2), 100.0)
    table[300 - 252, 0] = 50.0  # exactly at the start: S0 has doubled
    table[300 - 253, 1] = 1.0  # one day earlier: does not count
    assert weights(ask("momentum-12-1", observe(table), k=1, buffer=0.0)) == {"S0": 1.0}
    table[300 - 21, 1] = 300.0  # exactly at the end: S1 has tripled
    assert weights(ask("momentum-12-1", observe(table), k=1, buffer=0.0)) == {"S1": 1.0}


def test_momentum_keeps_a_held_name_that_still_ranks(observe: Any) -> None:
    table = straight(130.0, 120.0, 110.0)
    seen = observe(table, held={"S1": (1_000, 100.0)}, cash=1_000)
    assert ask("momentum-12-1", seen, k=1, keep=2.0, band=0.5).orders == ()
    assert [o.symbol for o in ask("momentum-12-1", seen, k=1, keep=1.0).orders] == ["S1", "S0"]


def test_a_gap_is_read_a_few_sessions_earlier(observe: Any) -> None:
    table = straight(130.0, 150.0)
    table[300 - 21, 1] = np.nan
    assert weights(ask("momentum-12-1", observe(table), k=1, buffer=0.0)) == {"S1": 1.0}
    table[300 - 30 : 300 - 15, 1] = np.nan
    assert weights(ask("momentum-12-1", observe(table), k=1, buffer=0.0)) == {"S0": 1.0}


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("momentum-12-1", 252),
        ("momentum-weighted", 63),
        ("reversal", 6),
        ("min-variance", 127),
        ("vol-target", 21),
    ],
)
def test_a_short_history_is_a_reason_to_abstain(observe: Any, name: str, needs: int) -> None:
    decision = ask(name, observe(straight(110.0, 120.0, rows=needs - 1)))
    assert decision == Decision(reason=f"needs {needs} sessions of history, has {needs - 1}")
    noise = np.random.default_rng(0).uniform(0.99, 1.01, (needs, 2))
    assert ask(name, observe(straight(110.0, 120.0, rows=needs) * noise)).orders


def test_momentum_weighted_follows_the_size_of_the_rise(observe: Any) -> None:
    seen = observe(straight(110.0, 130.0, 80.0, rows=63))
    assert weights(ask("momentum-weighted", seen, buffer=0.0, cap=1.0)) == {"S0": 0.25, "S1": 0.75}
    assert weights(ask("momentum-weighted", seen, buffer=0.0, cap=0.4)) == {"S0": 0.25, "S1": 0.4}


def test_momentum_weighted_sells_when_nothing_rises(observe: Any) -> None:
    seen = observe(straight(90.0, 80.0, rows=63), held={"S0": (10, 90.0)})
    assert [(o.symbol, o.amount, o.side) for o in ask("momentum-weighted", seen).orders] == [("S0", 10, "SELL")]


def test_reversal_takes_the_losers_of_the_last_five_sessions(observe: Any) -> None:
    table = np.full((20, 3), 100.0)
    table[-6, 1], table[-7, 2] = 150.0, 900.0
    assert weights(ask("reversal", observe(table), k=1, buffer=0.0)) == {"S1": 1.0}


def test_sectors_rotate_into_those_that_rose_most(observe: Any) -> None:
    names = tuple(Instrument(symbol=s, sector=sector) for s, sector in zip("ABC", ["x", "x", "y"], strict=True))
    table = np.full((10, 3), 100.0)
    table[-1] = 110.0, 106.0, 107.0  # x rose by 8 on average, y by 7
    seen = observe(table, instruments=names)
    assert weights(ask("sector-equal", seen, buffer=0.0, best=1, lookback=5)) == {"A": 0.5, "B": 0.5}


def test_sector_equal_splits_twice(observe: Any) -> None:
    names = tuple(
        Instrument(symbol=s, sector=sector) for s, sector in zip("ABCD", ["x", "x", "y", None], strict=True)
    )
    seen = observe([[1.0] * 4], instruments=names)
    third = round(1 / 3, 12)
    assert weights(ask("sector-equal", seen, buffer=0.0)) == {
        "A": round(1 / 6, 12),
        "B": round(1 / 6, 12),
        "C": third,
        "D": third,
    }


def test_random_depends_on_its_generator_alone(observe: Any) -> None:
    seen = observe([[10.0] * 30])
    one, same, other = (ask("random", seen, seed, k=5) for seed in (1, 1, 2))
    assert one == same != other
    assert len(one.orders) == 5


def test_random_exchanges_the_stated_share(observe: Any) -> None:
    agent = make_agent("random", {"k": 10, "turnover": 0.5, "every": 1})
    seen = observe([[10.0] * 200])
    agent.begin(EpisodeInfo(episode="e", seed=0, rules=seen.rules), np.random.default_rng(0))
    names = [order.symbol for order in agent.answer(AskDecision(seen)).orders]
    changed = []
    for step in range(1, 60):
        held = {name: (980.0, 10.0) for name in names}
        decision = agent.answer(AskDecision(observe([[10.0] * 200], held=held, cash=2_000, step=step)))
        sold = {order.symbol for order in decision.orders if order.side == "SELL"}
        bought = [order.symbol for order in decision.orders if order.side is None]
        assert len(sold) == len(bought) and not sold & set(bought)
        changed.append(len(sold))
        names = [name for name in names if name not in sold] + bought
    assert 4.0 < np.mean(changed) < 6.0


def test_min_variance_prefers_the_calm_name(observe: Any) -> None:
    rng = np.random.default_rng(3)
    # Two independent names: the weights go as 1 / variance, here 4 to 1.
    steps = rng.choice([-1.0, 1.0], size=(126, 2)) * np.array([0.01, 0.02])
    steps -= steps.mean(axis=0)
    table = 100.0 * np.vstack([np.ones(2), np.cumprod(1.0 + steps, axis=0)])
    variances = np.var(steps, axis=0)
    covariance = np.mean((steps - steps.mean(0))[:, 0] * (steps - steps.mean(0))[:, 1])
    first = (variances[1] - covariance) / (variances.sum() - 2 * covariance)
    found = weights(ask("min-variance", observe(table), cap=1.0, shrinkage=0.0, buffer=0.0))
    assert found["S0"] == pytest.approx(first, abs=1e-5)
    assert weights(ask("min-variance", observe(table), cap=0.6, buffer=0.0)) == {"S0": 0.6, "S1": 0.4}


def test_min_variance_shuns_a_name_that_never_moved(observe: Any) -> None:
    table = np.random.default_rng(0).uniform(90, 110, (127, 3))
    table[:, 2] = 50.0
    assert set(weights(ask("min-variance", observe(table), cap=1.0))) == {"S0", "S1"}


def test_vol_target_holds_less_when_it_swings_more(observe: Any) -> None:
    # +-2 % a day by turns: about 32 % a year, so a tenth of a year's swing needs 31 % invested.
    closes = 100.0 * np.cumprod(np.where(np.arange(21) % 2 == 0, 1.02, 0.98))[:, None]
    past = closes[1:, 0] / closes[:-1, 0] - 1
    exposure = 0.1 / (past.std(ddof=1) * np.sqrt(252))
    assert weights(ask("vol-target", observe(closes), buffer=0.0)) == {"S0": pytest.approx(exposure, abs=1e-11)}
    assert weights(ask("vol-target", observe(closes), buffer=0.0, volatility=9.0)) == {"S0": 1.0}


def test_rules_rest_between_rebalancings_and_repeat_themselves_when_asked_again(observe: Any) -> None:
    agent = make_agent("sector-equal", {"every": 2})
    seen = observe([[10.0, 10.0]])
    agent.begin(EpisodeInfo(episode="e", seed=0, rules=seen.rules), np.random.default_rng(0))
    first = agent.answer(AskDecision(seen))
    assert first.orders and agent.answer(AskDecision(seen, 2, "again")) == first
    assert agent.answer(AskDecision(observe([[10.0, 10.0]], step=1))).orders == ()
    assert agent.answer(AskDecision(observe([[10.0, 10.0]], step=2))).orders == first.orders
