"""Studentised intervals and the long-run variance behind them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.sandwich_covariance import S_hac_simple

from tradeassay.core.errors import UserError
from tradeassay.metrics import (
    BootstrapConfig,
    ar1_inflation,
    long_run_variance,
    score,
    series_from_nav,
    sharpe_difference,
    studentised_interval,
    variance_inflation,
)
from tradeassay.metrics.measures import growth

FEW = BootstrapConfig(draws=200)


def returns(n: int = 120, seed: int = 1, mean: float = 0.0005) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 0.01, n)


def test_the_long_run_variance_by_hand() -> None:
    # Centred: -1, 0, 1. Variance 2/3; lag 1 has sum 0, lag 2 has sum -1 with weight 1 - 2/3.
    assert long_run_variance(np.array([1.0, 2.0, 3.0]), 0) == pytest.approx(2 / 3)
    assert long_run_variance(np.array([1.0, 2.0, 3.0]), 2) == pytest.approx((2 - 2 * (1 / 3)) / 3)


def test_the_long_run_variance_is_that_of_statsmodels() -> None:
    values = np.random.default_rng(0).normal(size=200)
    reference = S_hac_simple((values - values.mean())[:, None], nlags=6)[0, 0] / 200
    assert long_run_variance(values, 6) == pytest.approx(reference, rel=1e-12)


def test_dependence_inflates_the_variance_of_a_mean() -> None:
    rng = np.random.default_rng(3)
    noise, series = rng.normal(size=20_000), np.zeros(20_000)
    for t in range(1, 20_000):
        series[t] = 0.5 * series[t - 1] + noise[t]
    assert ar1_inflation(0.5) == 3.0
    assert variance_inflation(series, 60) == pytest.approx(3.0, rel=0.15)
    assert variance_inflation(np.ones(10), 3) == 1.0


def test_a_studentised_interval_holds_the_value_and_repeats_itself() -> None:
    one = studentised_interval(returns(), bootstrap=FEW)
    assert one == studentised_interval(returns(), bootstrap=FEW)
    assert one.low is not None and one.high is not None and one.value is not None
    assert one.low < one.value < one.high
    assert one.value == score(series_from_nav(growth(returns())), bootstrap=FEW)["sharpe"].value
    mean = studentised_interval(returns(), "mean", bootstrap=FEW)
    assert mean.value == pytest.approx(returns().mean() * 252)


def test_with_independent_normal_returns_it_is_nearly_students_interval() -> None:
    from scipy.stats import t

    values = returns(200, seed=5)
    found = studentised_interval(values, "mean", bootstrap=BootstrapConfig(draws=3000, block=1.0))
    half = t.ppf(0.975, 199) * values.std(ddof=1) / math.sqrt(200) * 252
    assert found.high == pytest.approx(values.mean() * 252 + half, abs=0.15 * half)
    assert found.low == pytest.approx(values.mean() * 252 - half, abs=0.15 * half)


def test_coverage_of_short_windows_is_better_than_the_percentile_intervals() -> None:
    config, hits, plain = BootstrapConfig(draws=100), 0, 0
    rng = np.random.default_rng(11)
    for _ in range(80):
        values = rng.normal(0.001, 0.01, 40)
        truth = 0.1 * math.sqrt(252)
        one = studentised_interval(values, bootstrap=config)
        other = score(series_from_nav(growth(values)), bootstrap=config)["sharpe"]
        hits += one.low <= truth <= one.high
        plain += other.low <= truth <= other.high
    assert hits / 80 > 0.9
    assert hits >= plain


def test_the_difference_of_two_sharpe_ratios() -> None:
    one, other = returns(seed=1), returns(seed=2)
    gap = sharpe_difference(one, other, bootstrap=FEW)
    turned = sharpe_difference(other, one, bootstrap=FEW)
    single = [studentised_interval(each, bootstrap=FEW).value for each in (one, other)]
    assert gap.value == pytest.approx(single[0] - single[1])
    assert gap.value == pytest.approx(-turned.value)
    same = sharpe_difference(one, one, bootstrap=FEW)
    assert same.value == 0.0 and same.low is None and "no standard error" in str(same.note)


@pytest.mark.parametrize(
    ("values", "reason"),
    [(np.ones(1), "fewer than two"), (np.r_[np.nan, returns(30)], "missing"), (np.full(40, 0.25), "not defined")],
)
def test_without_a_value_there_is_a_reason(values: np.ndarray, reason: str) -> None:
    found = studentised_interval(values, bootstrap=FEW)
    assert found.value is None and reason in str(found.reason)


def test_short_windows_have_a_value_and_a_note() -> None:
    found = studentised_interval(returns(10), bootstrap=FEW)
    assert found.value is not None and found.low is None and "10 sessions" in str(found.note)


def test_wrong_questions() -> None:
    with pytest.raises(UserError, match="no studentised interval"):
        studentised_interval(returns(), "median")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="shape"):
        studentised_interval(np.ones((2, 3)))
    with pytest.raises(UserError, match="against"):
        sharpe_difference(returns(10), returns(11))


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 10.0), st.integers(0, 50))
def test_scale_does_not_move_a_sharpe_ratio(scale: float, seed: int) -> None:
    values = returns(60, seed=seed)
    config = BootstrapConfig(draws=50, block=2.0)
    one = studentised_interval(values, bootstrap=config)
    other = studentised_interval(values * scale, bootstrap=config)
    assert other.value == pytest.approx(one.value, rel=1e-9)
