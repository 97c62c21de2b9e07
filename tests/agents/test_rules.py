"""Each rule on a table small enough to work out by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tradeassay.agents import PortfolioConfig, Rebalancer, make_agent, trades_towards
from tradeassay.agents.rules import least_variance, onto_capped_simplex, shrunk_covariance
from tradeassay.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay.core.errors import AgentError
from tradeassay.core.orders import Decision, Order
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


def test_cash_does_nothing(observe):
    assert ask("cash", observe([[1.0]])) == Decision(reason="stays in cash")


def test_equal_weight_buys_once_and_holds(observe):
    decision = ask("equal-weight", observe([[10.0, 20.0, np.nan, 5.0]], suspended=["S3"]), buffer=0.1)
    assert weights(decision) == {"S0": 0.45, "S1": 0.45}
    assert ask("equal-weight", observe([[10.0, 20.0]], held={"S0": (1, 10.0)})).orders == ()


def test_equal_weight_takes_the_most_traded_where_positions_are_few(observe):
    seen = observe([[10.0, 40.0, 20.0, 30.0]], max_positions=2)
    decision = ask("equal-weight", seen, buffer=0.0)
    assert weights(decision) == {"S1": 0.5, "S3": 0.5}, "the whole account is invested, in two names"


def test_equal_weight_waits_for_a_price(observe):
    assert "no name" in ask("equal-weight", observe(np.empty((0, 2)))).reason
    assert "one lot" in ask("equal-weight", observe([[10.0]], cash=1.0)).reason


def test_index_hold_buys_the_fund_of_the_benchmark(observe):
    funds = (Instrument(symbol=symbol, kind="index") for symbol in ("OTHERF", "IDXF"))
    names = (Instrument(symbol="A"), *funds)
    seen = observe([[1.0, 2.0, 3.0]], instruments=names, benchmark_index="IDX")
    assert weights(ask("index-hold", seen, buffer=0.0)) == {"IDXF": 1.0}
    assert weights(ask("index-hold", observe([[1.0, 2.0, 3.0]], instruments=names), buffer=0.0)) == {"OTHERF": 1.0}


def test_index_hold_fails_without_a_fund(observe):
    decision = ask("index-hold", observe([[1.0]]))
    assert decision.status == "failed"
    assert decision.failures[0].kind == "unsupported"
    assert "no index fund" in decision.reason


def test_momentum_takes_the_winners(observe):
    seen = observe(straight(90.0, 130.0, 110.0, 120.0, 80.0, 70.0))
    assert weights(ask("momentum-12-1", seen, k=2, buffer=0.0)) == {"S1": 0.5, "S3": 0.5}
    assert weights(ask("momentum-12-1", observe(straight(90.0, 130.0, 110.0)), k=20, buffer=0.0)) == {"S1": 1.0}


def test_momentum_leaves_out_the_last_month(observe):
    table = straight(120.0, 110.0)
    table[-20:, 1] = 500.0
    assert weights(ask("momentum-12-1", observe(table), k=1, buffer=0.0)) == {"S0": 1.0}


def test_momentum_is_measured_between_the_two_stated_closes(observe):
    table = np.full((300, 2), 100.0)
    table[300 - 252, 0] = 50.0  # exactly at the start: S0 has doubled
    table[300 - 253, 1] = 1.0  # one day earlier: does not count
    assert weights(ask("momentum-12-1", observe(table), k=1, buffer=0.0)) == {"S0": 1.0}
    table[300 - 21, 1] = 300.0  # exactly at the end: S1 has tripled
    assert weights(ask("momentum-12-1", observe(table), k=1, buffer=0.0)) == {"S1": 1.0}


def test_momentum_keeps_a_held_name_that_still_ranks(observe):
    table = straight(130.0, 120.0, 110.0)
    seen = observe(table, held={"S1": (1_000, 100.0)}, cash=1_000)
    assert ask("momentum-12-1", seen, k=1, keep=2.0, band=0.5).orders == ()
    assert [o.symbol for o in ask("momentum-12-1", seen, k=1, keep=1.0).orders] == ["S1", "S0"]


def test_a_gap_is_read_a_few_sessions_earlier(observe):
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
def test_a_short_history_is_a_reason_to_abstain(observe, name, needs):
    decision = ask(name, observe(straight(110.0, 120.0, rows=needs - 1)))
    assert decision == Decision(reason=f"needs {needs} sessions of history, has {needs - 1}")
    noise = np.random.default_rng(0).uniform(0.99, 1.01, (needs, 2))
    assert ask(name, observe(straight(110.0, 120.0, rows=needs) * noise)).orders


def test_momentum_weighted_follows_the_size_of_the_rise(observe):
    seen = observe(straight(110.0, 130.0, 80.0, rows=63))
    assert weights(ask("momentum-weighted", seen, buffer=0.0, cap=1.0)) == {"S0": 0.25, "S1": 0.75}
    assert weights(ask("momentum-weighted", seen, buffer=0.0, cap=0.4)) == {"S0": 0.25, "S1": 0.4}


def test_momentum_weighted_sells_when_nothing_rises(observe):
    seen = observe(straight(90.0, 80.0, rows=63), held={"S0": (10, 90.0)})
    assert [(o.symbol, o.amount, o.side) for o in ask("momentum-weighted", seen).orders] == [("S0", 10, "SELL")]


def test_reversal_takes_the_losers_of_the_last_five_sessions(observe):
    table = np.full((20, 3), 100.0)
    table[-6, 1], table[-7, 2] = 150.0, 900.0
    assert weights(ask("reversal", observe(table), k=1, buffer=0.0)) == {"S1": 1.0}


def test_sectors_rotate_into_those_that_rose_most(observe):
    names = tuple(Instrument(symbol=s, sector=sector) for s, sector in zip("ABC", ["x", "x", "y"], strict=True))
    table = np.full((10, 3), 100.0)
    table[-1] = 110.0, 106.0, 107.0  # x rose by 8 on average, y by 7
    seen = observe(table, instruments=names)
    assert weights(ask("sector-equal", seen, buffer=0.0, best=1, lookback=5)) == {"A": 0.5, "B": 0.5}


def test_sector_equal_splits_twice(observe):
    names = tuple(
        Instrument(symbol=s, sector=sector) for s, sector in zip("ABCD", ["x", "x", "y", None], strict=True)
    )
    seen = observe([[1.0] * 4], instruments=names)
    sixth, third = round(1 / 6, 12), round(1 / 3, 12)
    assert weights(ask("sector-equal", seen, buffer=0.0)) == {"A": sixth, "B": sixth, "C": third, "D": third}


def test_random_depends_on_its_generator_alone(observe):
    seen = observe([[10.0] * 30])
    one, same, other = (ask("random", seen, seed, k=5) for seed in (1, 1, 2))
    assert one == same != other
    assert len(one.orders) == 5


def test_random_exchanges_the_stated_share(observe):
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


def test_min_variance_prefers_the_calm_name(observe):
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


def test_min_variance_shuns_a_name_that_never_moved(observe):
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


def test_rules_rest_between_rebalancings_and_repeat_themselves_when_asked_again(observe):
    agent = make_agent("sector-equal", {"every": 2})
    seen = observe([[10.0, 10.0]])
    agent.begin(EpisodeInfo(episode="e", seed=0, rules=seen.rules), np.random.default_rng(0))
    first = agent.answer(AskDecision(seen))
    assert first.orders and agent.answer(AskDecision(seen, 2, "again")) == first
    assert agent.answer(AskDecision(observe([[10.0, 10.0]], step=1))).orders == ()
    assert agent.answer(AskDecision(observe([[10.0, 10.0]], step=2))).orders == first.orders


@given(st.integers(1, 12), st.integers(0, 10_000), st.floats(0.05, 1.0))
def test_projection_is_feasible_and_nearest(n, seed, cap):
    cap = max(cap, 1.0 / n)
    rng = np.random.default_rng(seed)
    point = rng.normal(size=n)
    found = onto_capped_simplex(point, cap)
    assert abs(found.sum() - 1.0) < 1e-9 and found.min() >= 0.0 and found.max() <= cap + 1e-12
    # Nearest: moving a little from any name to any other never comes closer (the optimality condition).
    pull = point - found
    free_to_rise, free_to_fall = found < cap - 1e-9, found > 1e-9
    if free_to_rise.any() and free_to_fall.any():
        assert pull[free_to_rise].max() <= pull[free_to_fall].min() + 1e-8


def test_projection_by_hand():
    assert np.allclose(onto_capped_simplex(np.array([0.5, 0.5]), 1.0), [0.5, 0.5])
    assert np.allclose(onto_capped_simplex(np.array([2.0, 0.0]), 1.0), [1.0, 0.0])
    assert np.allclose(onto_capped_simplex(np.array([2.0, 0.0, 0.0]), 0.5), [0.5, 0.25, 0.25])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.integers(0, 10_000), st.sampled_from([0.1, 0.3, 1.0]))
def test_no_shift_between_two_names_lowers_the_variance(n, seed, cap):
    returns = np.random.default_rng(seed).normal(size=(60, n)) * np.linspace(0.005, 0.05, n)
    covariance = shrunk_covariance(returns)
    weights = least_variance(covariance, cap)
    cap = max(cap, 1.0 / n)
    gradient = covariance @ weights
    rise, fall = weights < cap - 1e-7, weights > 1e-7
    assert abs(weights.sum() - 1.0) < 1e-9
    if rise.any():
        assert gradient[rise].min() >= gradient[fall].max() - 1e-5 * np.abs(gradient).max()


def test_shrinkage_by_hand():
    returns = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    # The sample covariance is diag(0.5, 2), the mean variance 1.25.
    assert np.allclose(shrunk_covariance(returns, 0.0), np.diag([0.5, 2.0]))
    assert np.allclose(shrunk_covariance(returns, 1.0), np.diag([1.25, 1.25]))
    assert np.allclose(shrunk_covariance(returns, 0.5), np.diag([0.875, 1.625]))
    # Ledoit-Wolf: distance = (0.25 + 4)/2 - 1.25^2 = 0.5625; noise = ((1+1+16+16)/4 - 4.25) / (4 x 2) = 0.53125.
    assert np.allclose(
        shrunk_covariance(returns),
        0.53125 / 0.5625 * 1.25 * np.eye(2) + (1 - 0.53125 / 0.5625) * np.diag([0.5, 2.0]),
    )


def test_shrinkage_agrees_with_the_textbook_sum():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 8)) * np.linspace(1, 2, 8)
    x -= x.mean(axis=0)
    n, p = x.shape
    sample = x.T @ x / n
    mean = np.trace(sample) / p
    distance = np.sum((sample - mean * np.eye(p)) ** 2) / p
    noise = sum(np.sum((np.outer(row, row) - sample) ** 2) for row in x) / n**2 / p
    weight = min(noise, distance) / distance
    assert np.allclose(shrunk_covariance(x), weight * mean * np.eye(p) + (1 - weight) * sample)


def test_a_missing_return_counts_as_the_mean():
    returns = np.array([[1.0, 1.0], [-1.0, np.nan], [0.0, -1.0]])
    assert np.allclose(np.diag(shrunk_covariance(returns, 0.0)), [2 / 3, 2 / 3])


def weight(symbol: str, amount: float) -> Order:
    return Order(symbol=symbol, amount=pytest.approx(amount), unit="target_weight")


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (None, "a NoneType .return a dict of weights"),
        (["S0"], "a list"),
        ({"S0": np.nan}, "the target of S0 is nan"),
        ({"S0": 0.5, "S1": -0.5}, "the target of S1 is -0.5"),
        ({"S0": np.inf}, "the target of S0 is inf"),
        ({"S0": "0.5"}, "the target of S0 is 0.5"),
        ({"S0": None}, "the target of S0 is None"),
        ({"S0": np.array([0.1, 0.2])}, "the target of S0 is"),
    ],
)
def test_targets_that_say_nothing_are_no_decision(observe, targets, said):
    class Odd(Rebalancer[PortfolioConfig]):
        def targets(self, observation):
            return targets

    with pytest.raises(AgentError, match=said):
        Odd(PortfolioConfig()).answer(AskDecision(observe([[10.0, 20.0]], held={"S0": (1, 10.0)})))


def test_weights_of_any_library_are_weights(observe):
    class Single(Rebalancer[PortfolioConfig]):
        def targets(self, observation):
            return {"S0": np.float32(0.5), "S1": np.int64(0)}

    decision = Single(PortfolioConfig(buffer=0.0)).answer(AskDecision(observe([[10.0, 20.0]])))
    assert decision.orders == (weight("S0", 0.5),) and type(decision.orders[0].amount) is float


def test_buys_are_scaled_to_leave_the_buffer(observe):
    seen = observe([[10.0, 20.0]])
    orders = trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.1, band=0.0)
    assert orders == (weight("S0", 0.45), weight("S1", 0.45))


def test_sells_come_before_buys_and_a_name_without_target_is_sold_whole(observe: Any) -> None:
    # NAV 100,000: 60,000 in S0, 20,000 in S1, 20,000 cash; wanted: S1 and S2 at a half each.
    seen = observe([[10.0, 20.0, 5.0]], held={"S0": (6_000, 10.0), "S1": (1_000, 20.0)}, cash=20_000)
    orders = trades_towards(seen, {"S1": 0.5, "S2": 0.5}, buffer=0.0, band=0.1)
    assert orders == (Order(symbol="S0", amount=6_000, side="SELL"), weight("S1", 0.5), weight("S2", 0.5))


def test_a_reduction_is_a_sale_and_comes_first(observe):
    seen = observe([[10.0, 20.0]], held={"S1": (4_000, 20.0)}, cash=20_000)
    orders = trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.0, band=0.1)
    assert [order.symbol for order in orders] == ["S1", "S0"]


def test_a_name_inside_the_band_is_left_alone(observe: Any) -> None:
    # S0 weighs 0.44 where 0.5 is wanted: off by 12 % of the target.
    seen = observe([[10.0, 20.0]], held={"S0": (4_400, 10.0)}, cash=56_000)
    assert [o.symbol for o in trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.0, band=0.2)] == ["S1"]
    assert [o.symbol for o in trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.0, band=0.1)] == ["S0", "S1"]


def test_less_than_a_lot_is_not_asked_for(observe: Any) -> None:
    # Half of 10,000 buys 100 shares at 49 but not at 51.
    seen = observe([[49.0, 51.0]], lot=100.0, cash=10_000.0)
    assert [o.symbol for o in trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.0, band=0.0)] == ["S0"]


def test_a_suspended_holding_is_paid_for_by_the_others(observe: Any) -> None:
    # 40 % sits in S0, which does not trade: 60 % is left for the two targets.
    seen = observe([[10.0, 10.0, 10.0]], held={"S0": (4_000, 10.0)}, cash=60_000, suspended=["S0"])
    orders = trades_towards(seen, {"S1": 0.5, "S2": 0.5}, buffer=0.0, band=0.0)
    assert orders == (weight("S1", 0.3), weight("S2", 0.3))


def test_only_the_unlocked_part_is_sold(observe):
    seen = observe([[10.0, 10.0]], held={"S0": (4_000, 10.0)}, cash=60_000, locked={"S0": 1_000})
    orders = trades_towards(seen, {"S1": 1.0}, buffer=0.0, band=0.0)
    # 10,000 of S0 stays locked, so 90 % is free for S1.
    assert orders == (Order(symbol="S0", amount=3_000, side="SELL"), weight("S1", 0.9))


def test_limits_of_the_market_are_kept(observe):
    seen = observe([[10.0] * 4], max_weight=0.2, max_positions=3)
    orders = trades_towards(seen, dict.fromkeys(seen.universe, 0.25), buffer=0.0, band=0.0)
    assert orders == tuple(weight(f"S{i}", 0.2) for i in range(3))


def test_today_s_open_is_the_price_when_it_is_known(observe):
    seen = observe([[49.0]], lot=100.0, cash=5_000.0, opens=[51.0])
    assert trades_towards(seen, {"S0": 1.0}, buffer=0.0, band=0.0) == ()


def test_an_account_without_money_asks_for_nothing(observe):
    assert trades_towards(observe([[10.0]], cash=0.0), {"S0": 1.0}, buffer=0.0, band=0.0) == ()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_asked_for_can_be_paid(observe, data):
    n = data.draw(st.integers(1, 6))
    prices = data.draw(st.lists(st.floats(1.0, 500.0), min_size=n, max_size=n))
    held = {
        f"S{i}": (float(data.draw(st.integers(1, 1_000))), prices[i]) for i in range(n) if data.draw(st.booleans())
    }
    suspended = [f"S{i}" for i in range(n) if data.draw(st.integers(0, 4)) == 0]
    raw = data.draw(st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n))
    targets = {f"S{i}": w / max(sum(raw), 1.0) for i, w in enumerate(raw)}
    seen = observe([prices], held=held, suspended=suspended, cash=data.draw(st.floats(0.0, 1e6)))
    buffer = data.draw(st.floats(0.0, 0.5))
    orders = trades_towards(seen, targets, buffer=buffer, band=data.draw(st.floats(0.0, 0.5)))
    assert not {order.symbol for order in orders} & set(suspended)
    assert len({order.symbol for order in orders}) == len(orders)
    cash, nav, account = seen.account.cash, seen.account.nav, seen.account
    moves = []
    for order in orders:
        now = account.positions[order.symbol].value if order.symbol in account.positions else 0.0
        moves.append(now if order.side == "SELL" else now - order.amount * nav)
    cash += sum(moves)
    # What cannot be sold may weigh more than everything that is wanted; then nothing at all is bought.
    bought = any(now < 0 for now in moves)
    # A reduction below one lot is left out, which can cost the others up to that lot.
    assert not bought or cash >= min(buffer * nav, account.cash) - n * max(prices) - 1e-9 * nav
