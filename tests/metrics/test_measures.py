"""Each measure by hand, against empyrical, and on a stack of series at once."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay import metrics as m

NAV = np.array([100.0, 110.0, 99.0, 108.9, 103.455])
"""+10 %, -10 %, +10 %, -5 %."""
RETURNS = np.array([0.10, -0.10, 0.10, -0.05])


def test_returns_of_a_path():
    assert m.simple_returns(NAV) == pytest.approx(RETURNS)
    assert m.growth(RETURNS) * 100 == pytest.approx(NAV)
    assert float(m.cumulative_return(NAV)) == pytest.approx(0.03455)
    assert float(m.annualised_return(NAV, 8)) == pytest.approx(1.03455**2 - 1)


def test_volatility_by_hand() -> None:
    # Mean 0.0125; deviations 0.0875, -0.1125, 0.0875, -0.0625; their squares sum to 0.031875; divided by 3.
    assert float(m.volatility(RETURNS, 1)) == pytest.approx(math.sqrt(0.031875 / 3))
    assert float(m.volatility(RETURNS, 252)) == pytest.approx(math.sqrt(0.031875 / 3 * 252))


def test_sharpe_by_hand():
    assert float(m.sharpe(RETURNS, 252)) == pytest.approx(0.0125 / math.sqrt(0.031875 / 3) * math.sqrt(252))
    assert float(m.sharpe(RETURNS, 252, 0.0125)) == pytest.approx(0.0, abs=1e-12)


def test_sortino_counts_all_periods_in_the_downside() -> None:
    # Squared losses 0.01 + 0.0025 over FOUR periods.
    assert float(m.downside_deviation(RETURNS)) == pytest.approx(math.sqrt(0.0125 / 4))
    assert float(m.sortino(RETURNS, 252)) == pytest.approx(0.0125 / math.sqrt(0.0125 / 4) * math.sqrt(252))


def test_stockbench_sortino_uses_the_spread_of_losses_and_no_year() -> None:
    # Losses -0.10 and -0.05: standard deviation with n - 1 is 0.05 / sqrt(2).
    assert float(m.sortino_stockbench(RETURNS)) == pytest.approx(0.0125 / (0.05 / math.sqrt(2)))
    assert math.isnan(m.sortino_stockbench(np.array([0.1, -0.05, 0.1])))
    assert math.isnan(m.sortino_stockbench(np.array([0.1, -0.05, -0.05])))


def test_max_drawdown_includes_the_initial_value():
    assert float(m.max_drawdown(NAV)) == pytest.approx(-0.10)
    assert float(m.max_drawdown(np.array([100.0, 80.0, 90.0]))) == pytest.approx(-0.20)
    assert float(m.max_drawdown(np.array([100.0, 101.0]))) == 0.0
    assert m.drawdowns(NAV) == pytest.approx([0, 0, -0.1, -0.01, -0.0595])


def test_calmar_by_hand():
    assert float(m.calmar(NAV, 4)) == pytest.approx(0.03455 / 0.10)
    assert math.isnan(m.calmar(np.array([1.0, 1.1, 1.2]), 252))


def test_information_ratio_by_hand():
    index = np.array([0.05, -0.05, 0.10, -0.10])
    active = np.array([0.05, -0.05, 0.0, 0.05])
    expected = active.mean() / active.std(ddof=1) * math.sqrt(252)
    assert float(m.information_ratio(RETURNS, index, 252)) == pytest.approx(expected)
    assert math.isnan(m.information_ratio(RETURNS, RETURNS, 252))


def test_turnover_is_one_way() -> None:
    # Everything bought on the first of four days, everything sold on the last: half of two accounts.
    traded, before = np.array([100.0, 0.0, 0.0, 110.0]), np.array([100.0, 100.0, 100.0, 110.0])
    assert float(m.turnover(traded, before, 4)) == pytest.approx(1.0)
    assert float(m.cost_rate(np.array([1.0, 0, 0, 1.1]), before, 4)) == pytest.approx(0.02)


def test_concentration():
    assert float(m.concentration(np.array([50.0, 50.0]))) == pytest.approx(0.5)
    assert float(m.concentration(np.array([50.0, -50.0]))) == pytest.approx(0.5)
    assert float(m.concentration(np.array([90.0, 10.0]))) == pytest.approx(0.82)
    assert math.isnan(m.concentration(np.array([])))


def test_rates():
    assert float(m.abstention_rate(np.array([1, 0, 0, 1]))) == 0.5
    assert float(m.failure_rate(np.array([True, False]))) == 0.5
    assert float(m.rejection_rate(np.array([1, 0]), np.array([3, 1]))) == 0.25
    assert math.isnan(m.rejection_rate(np.array([0]), np.array([0])))
    assert float(m.hit_rate(np.array([0.1, -0.1, 0.2, 0.0]))) == pytest.approx(2 / 3)
    assert float(m.cash_ratio(np.array([50.0, 25.0]), np.array([100.0, 100.0]))) == pytest.approx(0.375)


def test_what_does_not_vary_has_no_sharpe_even_when_rounding_says_it_does():
    flat = np.full(300, 0.1 / 3)
    assert float(m.volatility(flat, 252)) == 0.0
    assert math.isnan(m.sharpe(flat, 252))
    assert math.isnan(m.sharpe(np.zeros(5), 252))


def test_too_short_is_not_a_number():
    one, none = np.array([0.1]), np.array([])
    for value in (m.volatility(one, 252), m.sharpe(one, 252), m.sortino(none, 252), m.failure_rate(none)):
        assert math.isnan(value)
    assert math.isnan(m.annualised_return(np.array([100.0]), 252))


def test_a_hole_is_not_skipped():
    holed = np.array([0.1, np.nan, -0.1])
    for value in (m.sharpe(holed, 1), m.sortino(holed, 1), m.sortino_stockbench(holed), m.hit_rate(holed)):
        assert math.isnan(value)
    assert math.isnan(m.max_drawdown(np.array([1.0, np.nan, 2.0])))


@pytest.mark.slow
def test_against_empyrical():
    empyrical = pytest.importorskip("empyrical", reason="a peer that make test-all installs")
    rng = np.random.default_rng(11)
    for n in (30, 83, 500):
        returns = rng.standard_t(5, n) * 0.01
        index = rng.normal(0, 0.01, n)
        nav = m.growth(returns) * 1e5
        assert float(m.cumulative_return(nav)) == pytest.approx(empyrical.cum_returns_final(returns), rel=1e-10)
        assert float(m.annualised_return(nav, 252)) == pytest.approx(empyrical.annual_return(returns), rel=1e-10)
        assert float(m.volatility(returns, 252)) == pytest.approx(empyrical.annual_volatility(returns), rel=1e-10)
        assert float(m.sharpe(returns, 252, 1e-4)) == pytest.approx(
            empyrical.sharpe_ratio(returns, 1e-4), rel=1e-10
        )
        assert float(m.sortino(returns, 252)) == pytest.approx(empyrical.sortino_ratio(returns), rel=1e-10)
        assert float(m.max_drawdown(nav)) == pytest.approx(empyrical.max_drawdown(returns), rel=1e-10)
        assert float(m.calmar(nav, 252)) == pytest.approx(empyrical.calmar_ratio(returns), rel=1e-10)
        assert float(m.information_ratio(returns, index, 1)) == pytest.approx(
            empyrical.excess_sharpe(returns, index), rel=1e-10
        )


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
        np.testing.assert_allclose(stacked, [measure(one), measure(one[::-1])], rtol=1e-9, atol=1e-12)


@given(st.lists(st.floats(-0.9, 2.0), min_size=1, max_size=60))
def test_drawdown_is_between_minus_one_and_zero_and_ignores_the_currency(values):
    nav = m.growth(np.array(values))
    deepest = float(m.max_drawdown(nav))
    assert -1.0 <= deepest <= 0.0
    assert float(m.max_drawdown(nav * 1000)) == pytest.approx(deepest, abs=1e-12)
