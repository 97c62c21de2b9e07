"""Each measure by hand, against empyrical, and on a stack of series at once."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay import metrics as m

NAV = np.array([100.0, 110.0, 99.0, 108.9, 103.455])
"""+10 %, -10 %, +10 %, -5 %."""
RETURNS = np.array([0.10, -0.10, 0.10, -0.05])


INDEX = np.array([0.05, -0.05, 0.10, -0.10])
ACTIVE = np.array([0.05, -0.05, 0.0, 0.05])
# Everything bought on the first of four days, everything sold on the last: half of two accounts.
TRADED, BEFORE = np.array([100.0, 0.0, 0.0, 110.0]), np.array([100.0, 100.0, 100.0, 110.0])
# Mean 0.0125; deviations 0.0875, -0.1125, 0.0875, -0.0625; their squares sum to 0.031875; divided by 3.
SPREAD, YEAR = math.sqrt(0.031875 / 3), math.sqrt(252)
FLAT, HOLED, ONE, NONE = (
    np.full(300, 0.1 / 3),
    np.array([0.1, np.nan, -0.1]),
    np.array([0.1]),
    np.array([]),
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (m.simple_returns(NAV), RETURNS),
        (m.growth(RETURNS) * 100, NAV),
        (m.cumulative_return(NAV), 0.03455),
        (m.annualised_return(NAV, 8), 1.03455**2 - 1),
        (m.volatility(RETURNS, 1), SPREAD),
        (m.volatility(RETURNS, 252), SPREAD * YEAR),
        (m.sharpe(RETURNS, 252), 0.0125 / SPREAD * YEAR),
        (m.sharpe(RETURNS, 252, 0.0125), 0.0),
        # Squared losses 0.01 + 0.0025 over FOUR periods.
        (m.downside_deviation(RETURNS), math.sqrt(0.0125 / 4)),
        (m.sortino(RETURNS, 252), 0.0125 / math.sqrt(0.0125 / 4) * YEAR),
        # Losses -0.10 and -0.05: standard deviation with n - 1 is 0.05 / sqrt(2), and nothing is annualised.
        (m.sortino_stockbench(RETURNS), 0.0125 / (0.05 / math.sqrt(2))),
        # The initial value is the first peak.
        (m.max_drawdown(NAV), -0.10),
        (m.max_drawdown(np.array([100.0, 80.0, 90.0])), -0.20),
        (m.max_drawdown(np.array([100.0, 101.0])), 0.0),
        (m.drawdowns(NAV), [0, 0, -0.1, -0.01, -0.0595]),
        (m.calmar(NAV, 4), 0.03455 / 0.10),
        (m.information_ratio(RETURNS, INDEX, 252), ACTIVE.mean() / ACTIVE.std(ddof=1) * YEAR),
        (m.turnover(TRADED, BEFORE, 4), 1.0),
        (m.cost_rate(np.array([1.0, 0, 0, 1.1]), BEFORE, 4), 0.02),
        (m.concentration(np.array([50.0, 50.0])), 0.5),
        (m.concentration(np.array([50.0, -50.0])), 0.5),
        (m.concentration(np.array([90.0, 10.0])), 0.82),
        (m.abstention_rate(np.array([1, 0, 0, 1])), 0.5),
        (m.failure_rate(np.array([True, False])), 0.5),
        (m.rejection_rate(np.array([1, 0]), np.array([3, 1])), 0.25),
        (m.hit_rate(np.array([0.1, -0.1, 0.2, 0.0])), 2 / 3),
        (m.cash_ratio(np.array([50.0, 25.0]), np.array([100.0, 100.0])), 0.375),
        # What does not vary has no risk and no ratio, even when rounding says it does.
        (m.volatility(FLAT, 252), 0.0),
        (m.sharpe(FLAT, 252), np.nan),
        (m.sharpe(np.zeros(5), 252), np.nan),
        (m.information_ratio(RETURNS, RETURNS, 252), np.nan),
        (m.calmar(np.array([1.0, 1.1, 1.2]), 252), np.nan),
        (m.sortino_stockbench(np.array([0.1, -0.05, 0.1])), np.nan),
        (m.sortino_stockbench(np.array([0.1, -0.05, -0.05])), np.nan),
        (m.concentration(NONE), np.nan),
        (m.rejection_rate(np.array([0]), np.array([0])), np.nan),
        # Too short is not a number, and a hole is not skipped.
        (
            [
                m.volatility(ONE, 252),
                m.sharpe(ONE, 252),
                m.sortino(NONE, 252),
                m.failure_rate(NONE),
            ],
            [np.nan] * 4,
        ),
        (m.annualised_return(np.array([100.0]), 252), np.nan),
        (
            [
                m.sharpe(HOLED, 1),
                m.sortino(HOLED, 1),
                m.sortino_stockbench(HOLED),
                m.hit_rate(HOLED),
            ],
            [np.nan] * 4,
        ),
        (m.max_drawdown(np.array([1.0, np.nan, 2.0])), np.nan),
    ],
)
def test_by_hand(value, expected):
    assert np.asarray(value) == pytest.approx(np.asarray(expected), abs=1e-12, nan_ok=True)


@pytest.mark.slow
def test_against_empyrical():
    empyrical = pytest.importorskip("empyrical", reason="a peer that make test-all installs")
    rng = np.random.default_rng(11)
    for n in (30, 83, 500):
        returns = rng.standard_t(5, n) * 0.01
        index = rng.normal(0, 0.01, n)
        nav = m.growth(returns) * 1e5
        for ours, theirs in (
            (m.cumulative_return(nav), empyrical.cum_returns_final(returns)),
            (m.annualised_return(nav, 252), empyrical.annual_return(returns)),
            (m.volatility(returns, 252), empyrical.annual_volatility(returns)),
            (m.sharpe(returns, 252, 1e-4), empyrical.sharpe_ratio(returns, 1e-4)),
            (m.sortino(returns, 252), empyrical.sortino_ratio(returns)),
            (m.max_drawdown(nav), empyrical.max_drawdown(returns)),
            (m.calmar(nav, 252), empyrical.calmar_ratio(returns)),
            (m.information_ratio(returns, index, 1), empyrical.excess_sharpe(returns, index)),
        ):
            assert float(ours) == pytest.approx(theirs, rel=1e-10)


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=40))
def test_one_call_for_many_series_equals_many_calls(values):
    one = np.array(values)
    two = np.stack([one, one[::-1]])
    for measure in (
        lambda r: m.sharpe(r, 252),
        lambda r: m.sortino(r, 252),
        m.sortino_stockbench,
        lambda r: m.volatility(r, 252),
        m.hit_rate,
        lambda r: m.max_drawdown(m.growth(r)),
        lambda r: m.calmar(m.growth(r), 252),
    ):
        stacked = measure(two)
        assert stacked.shape == (2,)
        np.testing.assert_allclose(
            stacked, [measure(one), measure(one[::-1])], rtol=1e-9, atol=1e-12
        )


@given(st.lists(st.floats(-0.9, 2.0), min_size=1, max_size=60))
def test_drawdown_is_between_minus_one_and_zero_and_ignores_the_currency(values):
    nav = m.growth(np.array(values))
    deepest = float(m.max_drawdown(nav))
    assert -1.0 <= deepest <= 0.0
    assert float(m.max_drawdown(nav * 1000)) == pytest.approx(deepest, abs=1e-12)
