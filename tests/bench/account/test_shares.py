"""Exposures at the close are priced as an account of its own for every cost level."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay_bench.account.compiled.shares import price_decisions
from tradeassay_bench.account.shares import COSTS_BP, DecisionList, decision_list


def naive(decisions: DecisionList, closes: np.ndarray, cost: float) -> tuple[float, list[float]]:
    """Carry an account bar by bar, as anybody would write it."""
    cash, held = 1.0, np.zeros(closes.shape[0])
    curve = []
    at = 0
    for bar in range(closes.shape[1]):
        equity = cash + float(held @ closes[:, bar])
        while at < len(decisions) and decisions.row[at] == bar:
            leg = int(decisions.leg[at])
            change = decisions.fraction[at] * equity / closes[leg, bar] - held[leg]
            cash -= change * closes[leg, bar] + abs(change) * closes[leg, bar] * cost
            held[leg] += change
            at += 1
        curve.append(cash + float(held @ closes[:, bar]))
    return curve[-1], curve


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(2, 40))
def test_every_cost_level_is_an_account_of_its_own(seed, legs, bars):
    generator = np.random.default_rng(seed)
    closes = 100 * np.exp(np.cumsum(generator.normal(0, 0.02, (legs, bars)), axis=1))
    rows = np.sort(generator.integers(0, bars, size=12))
    decisions = DecisionList(
        rows, generator.integers(0, legs, 12), generator.uniform(-0.4, 0.4, 12), np.full(12, -1)
    )
    priced = price_decisions(decisions, closes, curve=True)
    for level, cost in enumerate(COSTS_BP):
        final, curve = naive(decisions, closes, cost / 10_000)
        assert priced.final[level] == pytest.approx(final, rel=1e-12)
        assert priced.curve[level] == pytest.approx(curve, rel=1e-12)
    assert (np.diff(priced.fees) >= 0).all()


def test_money_by_hand():
    # Buy all at 100 with 10 bp, sell all at 110: 1 -> 0.999 in cash terms, then the gain, then the fee again.
    decisions = decision_list([(0, 0, 1.0, 0), (2, 0, 0.0, 1)])
    priced = price_decisions(decisions, np.array([[100.0, 105.0, 110.0]]), (10.0,), curve=True)
    value = 1 / 100
    after = 1 - 0.001 + value * 10
    assert priced.quantity[0].tolist() == [0.01, -0.01]
    assert priced.final[0] == pytest.approx(after - value * 110 * 0.001)
    assert priced.traded[0] == pytest.approx(1.0 + 1.1)
    assert priced.curve[0, 1] == pytest.approx(1 - 0.001 + value * 5)


def test_ruin_ends_an_account():
    decisions = decision_list([(0, 0, -1.0, 0), (2, 0, 1.0, 0)])
    priced = price_decisions(
        decisions, np.array([[100.0, 250.0, 250.0, 500.0]]), (0.0,), curve=True
    )
    assert priced.final[0] == 0.0
    assert priced.curve[0].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_bad_lists_are_refused():
    closes = np.array([[1.0, 2.0]])
    with pytest.raises(UserError, match="outside the bars"):
        price_decisions(decision_list([(5, 0, 1.0, 0)]), closes)
    with pytest.raises(UserError, match="leg"):
        price_decisions(decision_list([(0, 3, 1.0, 0)]), closes)
    with pytest.raises(ValueError, match="order"):
        decision_list([(1, 0, 1.0, 0), (0, 0, 1.0, 0)])
