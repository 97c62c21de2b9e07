"""Cosine intervals: by hand, against simulation, and where there is none."""

import math

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are first used

from tradeassay.core.errors import UserError
from tradeassay.metrics import (
    ar1_inflation,
    cosine_interval,
    cosine_variance,
    long_run_variance,
    mean_p_value,
    score,
    series_from_nav,
    variance_inflation,
)
from tradeassay.metrics.cosine import cosine_t, cosine_terms
from tradeassay.metrics.measures import growth


def returns(n: int = 120, seed: int = 1, mean: float = 0.0005) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 0.01, n)


def autoregressive(count: int, n: int, carry: float, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(count, n + 50))
    series = noise.copy()
    for t in range(1, n + 50):
        series[:, t] = carry * series[:, t - 1] + noise[:, t]
    return series[:, 50:]


def test_the_variance_is_the_mean_of_squared_cosine_transforms():
    values = returns()
    terms = cosine_terms(values.size)
    assert terms == int(0.4 * 120 ** (2 / 3))
    transforms = scipy.fft.dct(values, type=2, norm="ortho")[1 : terms + 1]
    assert cosine_variance(values) == pytest.approx((transforms**2).mean(), rel=1e-12)


def test_the_interval_is_students_with_as_many_degrees_of_freedom_as_terms():
    values = returns(250)
    found = cosine_interval(values, "mean")
    half = scipy.stats.t.ppf(0.975, cosine_terms(250)) * math.sqrt(float(cosine_variance(values)) / 250) * 252
    assert found.value == pytest.approx(values.mean() * 252)
    assert found.high == pytest.approx(values.mean() * 252 + half, rel=1e-9)
    assert found.low == pytest.approx(values.mean() * 252 - half, rel=1e-9)


def test_the_p_value_and_the_interval_agree():
    for seed in range(20):
        values = returns(100, seed=seed, mean=0.001)
        p = float(mean_p_value(values))
        on_the_edge = cosine_interval(values, "mean", level=1.0 - p)
        assert min(abs(on_the_edge.low), abs(on_the_edge.high)) < 1e-9


@pytest.mark.parametrize(("carry", "most"), [(0.0, 0.06), (0.2, 0.065)])
def test_dependence_does_not_break_the_level(carry, most):
    p = mean_p_value(autoregressive(4000, 250, carry))
    assert 0.04 < (p < 0.05).mean() < most


def test_one_series_and_many_take_the_same_call():
    table = autoregressive(5, 80, 0.3)
    t, freedom = cosine_t(table)
    assert freedom == cosine_terms(80)
    assert t[3] == pytest.approx(float(cosine_t(table[3])[0]))


def test_a_sharpe_ratio_is_the_one_of_the_measures_and_scale_does_not_move_it():
    one = cosine_interval(returns())
    assert one.value == score(series_from_nav(growth(returns())))["sharpe"].value
    other = cosine_interval(returns() * 3.0)
    assert (other.value, other.low) == (pytest.approx(one.value), pytest.approx(one.low))


def test_where_there_is_no_value_no_interval_and_no_question():
    short, holed = np.ones(1), np.r_[np.nan, returns(30)]
    for values, reason in ((short, "fewer than two"), (holed, "missing"), (np.full(40, 0.25), "not defined")):
        found = cosine_interval(values)
        assert found.value is None and reason in str(found.reason)
    found = cosine_interval(returns(10))
    assert found.value is not None and found.low is None and "10 sessions" in str(found.note)
    wrong = ((returns(), {"statistic": "median"}, "no interval for"), (np.ones((2, 3)), {}, "shape"))
    for values, asked, said in (*wrong, (returns(), {"level": 1.0}, "level")):
        with pytest.raises(UserError, match=said):
            cosine_interval(values, **asked)


def test_the_long_run_variance_by_hand_and_that_of_statsmodels() -> None:
    from statsmodels.stats.sandwich_covariance import S_hac_simple

    # Centred: -1, 0, 1. Variance 2/3; lag 1 has sum 0, lag 2 has sum -1 with weight 1 - 2/3.
    assert long_run_variance(np.array([1.0, 2.0, 3.0]), 0) == pytest.approx(2 / 3)
    assert long_run_variance(np.array([1.0, 2.0, 3.0]), 2) == pytest.approx((2 - 2 * (1 / 3)) / 3)
    values = np.random.default_rng(0).normal(size=200)
    reference = S_hac_simple((values - values.mean())[:, None], nlags=6)[0, 0] / 200
    assert long_run_variance(values, 6) == pytest.approx(reference, rel=1e-12)


def test_dependence_inflates_the_variance_of_a_mean():
    series = autoregressive(1, 20_000, 0.5, seed=3)[0]
    assert ar1_inflation(0.5) == 3.0
    assert variance_inflation(series, 60) == pytest.approx(3.0, rel=0.15)
    assert variance_inflation(np.ones(10), 3) == 1.0
