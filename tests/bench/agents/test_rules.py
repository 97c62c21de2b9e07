"""Each rule on a table small enough to work out by hand."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tradeassay_bench.agents import PortfolioConfig, Rebalancer, make_agent, trades_towards
from tradeassay_bench.agents.rules import least_variance, onto_capped_simplex, shrunk_covariance
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay_bench.core.errors import AgentError
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.view import Instrument


def begun(name: str, seen: Observation, seed: int = 1, **params: Any) -> Any:
    agent = make_agent(name, params)
    agent.begin(EpisodeInfo(episode="e", seed=seed, rules=seen.rules), np.random.default_rng(seed))
    return agent


def ask(name: str, seen: Observation, seed: int = 1, **params: Any) -> Decision:
    return begun(name, seen, seed, **params).answer(AskDecision(seen))


def weights(decision: Decision) -> dict[str, float]:
    assert decision.status == "ok" and all(
        order.unit == "target_weight" for order in decision.orders
    )
    return {order.symbol: round(order.amount, 12) for order in decision.orders}


def straight(*ends: float, rows: int = 300) -> np.ndarray:
    """Prices that go from 100 to the given ends in a straight line."""
    return np.linspace(np.full(len(ends), 100.0), np.array(ends), rows)


def changed(table: Any, *changes: tuple[Any, int, float]) -> np.ndarray:
    """Prices with some rows of some columns set to something else."""
    table = np.array(table, dtype=float)
    for rows, column, price in changes:
        table[rows, column] = price
    return table


def listed(sectors: str) -> tuple[Instrument, ...]:
    """Names A, B ... with a sector of one letter each; a blank has none."""
    pairs = zip("ABCD", sectors, strict=False)
    return tuple(
        Instrument(symbol=symbol, sector=sector.strip() or None) for symbol, sector in pairs
    )


FUNDS = (
    Instrument(symbol="A"),
    *(Instrument(symbol=symbol, kind="index") for symbol in ("OTHERF", "IDXF")),
)
FEW = {"max_positions": 2}
FLAT = np.full((300, 2), 100.0)
DOUBLED = changed(FLAT, (300 - 252, 0, 50.0), (300 - 253, 1, 1.0))
"""S0 has doubled since exactly the first stated close; what S1 did a day before that does not
count.
"""
TRIPLED = changed(DOUBLED, (300 - 21, 1, 300.0))
"""S1 has tripled until exactly the last stated close."""
LATE = changed(straight(120.0, 110.0), (slice(-20, None), 1, 500.0))
GAP = changed(straight(130.0, 150.0), (300 - 21, 1, np.nan))
GAPS = changed(GAP, (slice(300 - 30, 300 - 15), 1, np.nan))
RISES = straight(110.0, 130.0, 80.0, rows=63)
FELL = changed(np.full((20, 3), 100.0), (-6, 1, 150.0), (-7, 2, 900.0))
SIXTH, THIRD = round(1 / 6, 12), round(1 / 3, 12)
SPLIT_TWICE = {"A": SIXTH, "B": SIXTH, "C": THIRD, "D": THIRD}
ROTATES = changed(np.full((10, 3), 100.0), (-1, 0, 110.0), (-1, 1, 106.0), (-1, 2, 107.0))
"""The sector of A and B rose by 8 on average, that of C by 7."""
WEIGHTS: tuple[tuple[str, dict[str, Any], Any, dict[str, Any], dict[str, float]], ...] = (
    # rule, parameters (with a buffer of 0 but where one is given), closes, what else is seen, wanted weights
    (
        "equal-weight",
        {"buffer": 0.1},
        [[10, 20, np.nan, 5]],
        {"suspended": ["S3"]},
        {"S0": 0.45, "S1": 0.45},
    ),
    ("equal-weight", {}, [[10, 40, 20, 30]], FEW, {"S1": 0.5, "S3": 0.5}),  # the most traded ones
    (
        "index-hold",
        {},
        [[1, 2, 3]],
        {"instruments": FUNDS, "benchmark_index": "IDX"},
        {"IDXF": 1.0},
    ),
    ("index-hold", {}, [[1, 2, 3]], {"instruments": FUNDS}, {"OTHERF": 1.0}),
    ("momentum-12-1", {"k": 2}, straight(90, 130, 110, 120, 80, 70), {}, {"S1": 0.5, "S3": 0.5}),
    (
        "momentum-12-1",
        {"k": 20},
        straight(90, 130, 110),
        {},
        {"S1": 1.0},
    ),  # a third of the universe at most
    ("momentum-12-1", {"k": 1}, LATE, {}, {"S0": 1.0}),  # the last month does not count
    ("momentum-12-1", {"k": 1}, DOUBLED, {}, {"S0": 1.0}),
    ("momentum-12-1", {"k": 1}, TRIPLED, {}, {"S1": 1.0}),
    ("momentum-12-1", {"k": 1}, GAP, {}, {"S1": 1.0}),  # a gap is read a few sessions earlier
    ("momentum-12-1", {"k": 1}, GAPS, {}, {"S0": 1.0}),  # and no more than a few
    ("momentum-weighted", {"cap": 1.0}, RISES, {}, {"S0": 0.25, "S1": 0.75}),
    ("momentum-weighted", {"cap": 0.4}, RISES, {}, {"S0": 0.25, "S1": 0.4}),
    ("reversal", {"k": 1}, FELL, {}, {"S1": 1.0}),  # the loser of the last five sessions
    ("sector-equal", {}, [[1, 1, 1, 1]], {"instruments": listed("xxy ")}, SPLIT_TWICE),
    (
        "sector-equal",
        {"best": 1, "lookback": 5},
        ROTATES,
        {"instruments": listed("xxy")},
        {"A": 0.5, "B": 0.5},
    ),
)


@pytest.mark.parametrize(("name", "params", "closes", "more", "wanted"), WEIGHTS)
def test_a_rule_wants_what_its_words_say(observe, name, params, closes, more, wanted):
    assert weights(ask(name, observe(closes, **more), **{"buffer": 0.0, **params})) == wanted


def test_who_buys_once_holds_and_waits_for_a_price(observe):
    assert ask("cash", observe([[1.0]])) == Decision(reason="stays in cash")
    assert ask("equal-weight", observe([[10.0, 20.0]], held={"S0": (1, 10.0)})).orders == ()
    assert "no name" in ask("equal-weight", observe(np.empty((0, 2)))).reason
    assert "one lot" in ask("equal-weight", observe([[10.0]], cash=1.0)).reason
    no_fund = ask("index-hold", observe([[1.0]]))
    assert no_fund.status == "failed" and no_fund.failures[0].kind == "unsupported"
    assert "no index fund" in no_fund.reason


def test_momentum_keeps_a_held_name_that_still_ranks(observe):
    seen = observe(straight(130.0, 120.0, 110.0), held={"S1": (1_000, 100.0)}, cash=1_000)
    assert ask("momentum-12-1", seen, k=1, keep=2.0, band=0.5).orders == ()
    assert [o.symbol for o in ask("momentum-12-1", seen, k=1, keep=1.0).orders] == ["S1", "S0"]


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


def test_momentum_weighted_sells_when_nothing_rises(observe):
    seen = observe(straight(90.0, 80.0, rows=63), held={"S0": (10, 90.0)})
    assert [(o.symbol, o.amount, o.side) for o in ask("momentum-weighted", seen).orders] == [
        ("S0", 10, "SELL")
    ]


def test_random_depends_on_its_generator_alone_and_exchanges_the_stated_share(observe):
    seen = observe([[10.0] * 30])
    one, same, other = (ask("random", seen, seed, k=5) for seed in (1, 1, 2))
    assert one == same != other and len(one.orders) == 5
    seen = observe([[10.0] * 200])
    agent = begun("random", seen, 0, k=10, turnover=0.5, every=1)
    names = [order.symbol for order in agent.answer(AskDecision(seen)).orders]
    exchanged = []
    for step in range(1, 60):
        held = {name: (980.0, 10.0) for name in names}
        decision = agent.answer(
            AskDecision(observe([[10.0] * 200], held=held, cash=2_000, step=step))
        )
        sold = {order.symbol for order in decision.orders if order.side == "SELL"}
        bought = [order.symbol for order in decision.orders if order.side is None]
        assert len(sold) == len(bought) and not sold & set(bought)
        exchanged.append(len(sold))
        names = [name for name in names if name not in sold] + bought
    assert 4.0 < np.mean(exchanged) < 6.0


def test_min_variance_prefers_the_calm_name_and_shuns_one_that_never_moved(observe):
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
    assert weights(ask("min-variance", observe(table), cap=0.6, buffer=0.0)) == {
        "S0": 0.6,
        "S1": 0.4,
    }
    table = np.random.default_rng(0).uniform(90, 110, (127, 3))
    table[:, 2] = 50.0
    assert set(weights(ask("min-variance", observe(table), cap=1.0))) == {"S0", "S1"}


def test_vol_target_holds_less_when_it_swings_more(observe: Any) -> None:
    # +-2 % a day by turns: about 32 % a year, so a tenth of a year's swing needs 31 % invested.
    closes = 100.0 * np.cumprod(np.where(np.arange(21) % 2 == 0, 1.02, 0.98))[:, None]
    past = closes[1:, 0] / closes[:-1, 0] - 1
    exposure = 0.1 / (past.std(ddof=1) * np.sqrt(252))
    assert weights(ask("vol-target", observe(closes), buffer=0.0)) == {
        "S0": pytest.approx(exposure, abs=1e-11)
    }
    assert weights(ask("vol-target", observe(closes), buffer=0.0, volatility=9.0)) == {"S0": 1.0}


def test_rules_rest_between_rebalancings_and_repeat_themselves_when_asked_again(observe):
    seen, rests, again = (observe([[10.0, 10.0]], step=step) for step in range(3))
    agent = begun("sector-equal", seen, every=2)
    first = agent.answer(AskDecision(seen))
    assert first.orders and agent.answer(AskDecision(seen, 2, "again")) == first
    assert agent.answer(AskDecision(rests)).orders == ()
    assert agent.answer(AskDecision(again)).orders == first.orders


@given(st.integers(1, 12), st.integers(0, 10_000), st.floats(0.05, 1.0))
def test_projection_is_feasible_and_nearest(n, seed, cap):
    cap = max(cap, 1.0 / n)
    point = np.random.default_rng(seed).normal(size=n)
    found = onto_capped_simplex(point, cap)
    assert abs(found.sum() - 1.0) < 1e-9 and found.min() >= 0.0 and found.max() <= cap + 1e-12
    # Nearest: moving a little from any name to any other never comes closer (the optimality condition).
    pull = point - found
    free_to_rise, free_to_fall = found < cap - 1e-9, found > 1e-9
    if free_to_rise.any() and free_to_fall.any():
        assert pull[free_to_rise].max() <= pull[free_to_fall].min() + 1e-8


def test_projection_by_hand():
    for point, cap, nearest in (
        ([0.5, 0.5], 1.0, [0.5, 0.5]),
        ([2.0, 0.0], 1.0, [1.0, 0.0]),
        ([2.0, 0.0, 0.0], 0.5, [0.5, 0.25, 0.25]),
    ):
        assert np.allclose(onto_capped_simplex(np.array(point), cap), nearest)


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


def test_shrinkage_by_hand_and_by_the_textbook_sum():
    returns = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    # The sample covariance is diag(0.5, 2), the mean variance 1.25.
    for shrinkage, diagonal in ((0.0, [0.5, 2.0]), (1.0, [1.25, 1.25]), (0.5, [0.875, 1.625])):
        assert np.allclose(shrunk_covariance(returns, shrinkage), np.diag(diagonal))
    # Ledoit-Wolf: distance = (0.25 + 4)/2 - 1.25^2 = 0.5625; noise = ((1+1+16+16)/4 - 4.25) / (4 x 2) = 0.53125.
    share = 0.53125 / 0.5625
    assert np.allclose(
        shrunk_covariance(returns), share * 1.25 * np.eye(2) + (1 - share) * np.diag([0.5, 2.0])
    )
    x = np.random.default_rng(5).normal(size=(40, 8)) * np.linspace(1, 2, 8)
    x -= x.mean(axis=0)
    n, p = x.shape
    sample = x.T @ x / n
    mean = np.trace(sample) / p
    distance = np.sum((sample - mean * np.eye(p)) ** 2) / p
    noise = sum(np.sum((np.outer(row, row) - sample) ** 2) for row in x) / n**2 / p
    weight = min(noise, distance) / distance
    assert np.allclose(shrunk_covariance(x), weight * mean * np.eye(p) + (1 - weight) * sample)
    # A missing return counts as the mean.
    returns = np.array([[1.0, 1.0], [-1.0, np.nan], [0.0, -1.0]])
    assert np.allclose(np.diag(shrunk_covariance(returns, 0.0)), [2 / 3, 2 / 3])


class Named(Rebalancer[PortfolioConfig]):
    """Wants what it is told to want."""

    wanted: Any = None

    def targets(self, observation):
        return self.wanted


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (None, "got a NoneType .return weights by symbol"),
        (["S0"], "a list"),
        ({"S0": np.nan}, "expected weights of 0 or more, got nan for S0"),
        ({"S0": 0.5, "S1": -0.5}, "expected weights of 0 or more, got -0.5 for S1"),
        ({"S0": np.inf}, "expected weights of 0 or more, got inf for S0"),
        ({"S0": "0.5"}, "expected weights of 0 or more, got 0.5 for S0"),
        ({"S0": None}, "expected weights of 0 or more, got None for S0"),
        ({"S0": np.array([0.1, 0.2])}, "expected weights of 0 or more, got"),
    ],
)
def test_targets_that_say_nothing_are_no_decision(observe, targets, said):
    rule = Named(PortfolioConfig())
    rule.wanted = targets
    with pytest.raises(AgentError, match=said):
        rule.answer(AskDecision(observe([[10.0, 20.0]], held={"S0": (1, 10.0)})))


def test_weights_of_any_library_are_weights(observe):
    rule = Named(PortfolioConfig(buffer=0.0))
    rule.wanted = {"S0": np.float32(0.5), "S1": np.int64(0)}
    (order,) = rule.answer(AskDecision(observe([[10.0, 20.0]]))).orders
    assert (
        order == Order(symbol="S0", amount=0.5, unit="target_weight")
        and type(order.amount) is float
    )


TOWARDS = tomllib.loads((Path(__file__).parent / "towards.toml").read_text())["case"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["about"]) for case in TOWARDS])
def test_orders_bring_the_account_towards_its_targets(observe, case):
    words = case["orders"].split()
    wanted = tuple(
        Order(symbol=symbol, amount=float(amount[1:]), side="SELL")
        if amount.startswith("!")
        else Order(symbol=symbol, amount=pytest.approx(float(amount)), unit="target_weight")
        for symbol, amount in zip(words[::2], words[1::2], strict=True)
    )
    seen = observe([case["prices"]], **case.get("seen", {}))
    how = {"buffer": case.get("buffer", 0.0), "band": case.get("band", 0.0)}
    assert trades_towards(seen, case["targets"], **how) == wanted


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_asked_for_can_be_paid(observe, data):
    n = data.draw(st.integers(1, 6))
    prices = data.draw(st.lists(st.floats(1.0, 500.0), min_size=n, max_size=n))
    held = {
        f"S{i}": (float(data.draw(st.integers(1, 1_000))), prices[i])
        for i in range(n)
        if data.draw(st.booleans())
    }
    suspended = [f"S{i}" for i in range(n) if data.draw(st.integers(0, 4)) == 0]
    raw = data.draw(st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n))
    targets = {f"S{i}": w / max(sum(raw), 1.0) for i, w in enumerate(raw)}
    seen = observe([prices], held=held, suspended=suspended, cash=data.draw(st.floats(0.0, 1e6)))
    buffer = data.draw(st.floats(0.0, 0.5))
    orders = trades_towards(seen, targets, buffer=buffer, band=data.draw(st.floats(0.0, 0.5)))
    assert not {order.symbol for order in orders} & set(suspended)
    assert len({order.symbol for order in orders}) == len(orders)
    account = seen.account
    moves = []
    for order in orders:
        now = account.positions[order.symbol].value if order.symbol in account.positions else 0.0
        moves.append(now if order.side == "SELL" else now - order.amount * account.nav)
    cash = account.cash + sum(moves)
    # What cannot be sold may weigh more than everything that is wanted; then nothing at all is bought.
    bought = any(now < 0 for now in moves)
    # A reduction below one lot is left out, which can cost the others up to that lot.
    assert (
        not bought
        or cash >= min(buffer * account.nav, account.cash) - n * max(prices) - 1e-9 * account.nav
    )
