"""Intervals: the stationary bootstrap is right by construction, like arch's, and covers; cosine
ones by hand.
"""

import math

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are first used
from hypothesis import given, settings, strategies as st

from tradeassay import metrics as m
from tradeassay.core.errors import UserError
from tradeassay.metrics import intervals
from tradeassay.metrics.cosine import cosine_t, cosine_terms
from tradeassay.metrics.measures import growth

USUAL = m.BootstrapConfig()


def autoregressive(shape, phi: float, seed: int = 0) -> np.ndarray:
    return scipy.signal.lfilter(
        [1.0], [1.0, -phi], np.random.default_rng(seed).standard_normal(shape)
    )


@pytest.mark.parametrize("n", [20, 83, 250, 1000])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.8, 0.97, -0.4])
def test_block_length_is_archs(n, phi):
    from arch.bootstrap import optimal_block_length

    values = autoregressive(n, phi, n)
    expected = float(optimal_block_length(values)["stationary"].iloc[0])
    assert m.mean_block_length(values) == pytest.approx(max(1.0, expected), rel=1e-9)


def test_what_makes_blocks_long_and_what_cannot_be_measured():
    for still in (np.zeros(100), np.full(100, 0.1), np.arange(5.0)):
        assert m.mean_block_length(still) == 1.0
    assert m.mean_block_length(np.arange(100.0)) <= intervals._longest_block(100)
    rng = np.random.default_rng(2)
    spells = rng.standard_normal(600) * np.where((np.arange(600) // 60) % 2 == 0, 0.2, 3.0)
    assert intervals.choose_block(spells, USUAL) > 5 * m.mean_block_length(spells)


@settings(max_examples=30)
@given(st.integers(1, 80), st.floats(1, 30), st.integers(0, 2**64))
def test_resamples_are_rows_of_places(n, block, seed):
    rows = np.concatenate(list(m.resamples(n, 7, block, seed)))
    assert rows.shape == (7, n) and rows.min() >= 0 and rows.max() < n


def test_blocks_have_the_asked_mean_length_and_every_session_the_same_chance():
    n, block = 200, 8.0
    rows = np.concatenate(list(m.resamples(n, 4000, block, 5)))
    follows = (rows[:, 1:] - rows[:, :-1]) % n == 1
    # A new block continues by chance once in n.
    assert 1.0 / (1.0 - follows.mean()) == pytest.approx(block, rel=0.06)
    share = np.bincount(rows.ravel(), minlength=n) / rows.size
    assert share == pytest.approx(np.full(n, 1 / n), rel=0.15)
    plain = np.concatenate(list(m.resamples(100, 500, 1.0, 1)))
    assert ((plain[:, 1:] - plain[:, :-1]) % 100 == 1).mean() == pytest.approx(0.01, abs=0.004)


def test_the_stream_is_pinned_and_chunks_do_not_change_the_rows(monkeypatch):
    # numpy guarantees the raw stream of PCG64; a change here would silently change every stored interval.
    assert next(m.resamples(10, 1, 3.0, 2024)).tolist() == [[6, 7, 3, 4, 9, 0, 1, 2, 3, 1]]
    assert intervals.seed_resamples(3, 2, 7).tolist() == [[2, 0, 0], [0, 2, 1]]
    whole = np.concatenate(list(m.resamples(50, 40, 4.0, 9)))
    monkeypatch.setattr("tradeassay.metrics.intervals.CHUNK", 150)
    parts = list(m.resamples(50, 40, 4.0, 9))
    assert len(parts) == 14 and (np.concatenate(parts) == whole).all()


def test_like_archs_bootstrap():
    from arch.bootstrap import StationaryBootstrap

    values = autoregressive(300, 0.5, 4) * 0.01 + 0.001
    block = m.mean_block_length(values)
    ours = np.concatenate(
        [m.sharpe(values[rows], 252) for rows in m.resamples(300, 2000, block, 3)]
    )
    drawn = StationaryBootstrap(block, values, seed=np.random.default_rng(8))
    theirs = drawn.apply(lambda x: float(m.sharpe(x, 252)), 2000)
    assert ours.mean() == pytest.approx(theirs.mean(), abs=4 * theirs.std() / np.sqrt(2000) * 1.5)
    assert ours.std() == pytest.approx(theirs.std(), rel=0.08)
    for tail in (0.025, 0.975):
        assert np.quantile(ours, tail) == pytest.approx(
            np.quantile(theirs, tail), abs=0.2 * theirs.std()
        )


def covers(values, block, draws, seed):
    """Return whether the interval of a mean that is truly 0 holds it."""
    means = np.concatenate(
        [values[rows].mean(axis=1) for rows in m.resamples(values.size, draws, block, seed)]
    )
    low, high = np.quantile(means, [0.025, 0.975])
    return low <= 0.0 <= high


@pytest.mark.parametrize(("phi", "least"), [(0.0, 0.89), (0.3, 0.84)])
def test_intervals_cover_the_truth_about_as_often_as_they_say(phi, least):
    worlds = [autoregressive(250, phi, 1000 + trial) for trial in range(200)]
    covered = [
        covers(one, intervals.choose_block(one, USUAL), 300, intervals.content_seed(USUAL, one))
        for one in worlds
    ]
    assert least <= np.mean(covered) <= 0.99


def test_an_interval_without_blocks_would_lie():
    """With autocorrelated returns the plain bootstrap is far too sure: blocks are not
    decoration.
    """
    worlds = [autoregressive(250, 0.6, 5000 + trial) for trial in range(60)]
    plain = [covers(one, 1.0, 200, trial) for trial, one in enumerate(worlds)]
    blocks = [
        covers(one, intervals.choose_block(one, USUAL), 200, trial)
        for trial, one in enumerate(worlds)
    ]
    assert np.mean(plain) < 0.75 < np.mean(blocks)


def test_percentile_interval_needs_most_resamples():
    drawn = np.arange(1000.0)
    assert intervals.percentile_interval(drawn, 0.9) == pytest.approx((49.95, 949.05))
    drawn[:40] = np.nan
    assert intervals.percentile_interval(drawn, 0.9) is not None
    drawn[:60] = np.nan
    assert intervals.percentile_interval(drawn, 0.9) is None


def test_wilson_by_hand() -> None:
    # 0 of 10 at 95 %: high = z^2 / (n + z^2).
    assert m.wilson_interval(0, 10, 0.95) == (0.0, pytest.approx(3.841459 / 13.841459, rel=1e-6))
    assert m.wilson_interval(10, 10, 0.95)[1] == 1.0
    assert m.wilson_interval(5, 10, 0.95) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    rate = m.rate_measure(0, 20, nothing="none")
    assert (rate.value, rate.low) == (0.0, 0.0) and rate.high == pytest.approx(0.1611, abs=1e-4)
    assert m.rate_measure(0, 0, nothing="nothing happened").reason == "nothing happened"


@pytest.mark.parametrize(
    ("freedom", "level", "printed"),
    [(1, 0.95, 12.706), (4, 0.95, 2.776), (10, 0.99, 3.169), (30, 0.90, 1.697), (1e9, 0.95, 1.960)],
)
def test_student_s_interval_reaches_as_far_as_printed_tables_say(freedom, level, printed):
    assert intervals.student_reach(freedom, level) == pytest.approx(printed, abs=5e-4)


def test_significant_digits():
    long = (0.1 + 0.2, -123456.7890123456, 0.0, 1.5e-300)
    assert [intervals.significant(one) for one in long] == [0.3, -123456.789012, 0.0, 1.5e-300]


@pytest.mark.parametrize(
    "settings", [{"draws": 0}, {"level": 1.0}, {"block": 0.5}, {"shortest": 0.0}, {"least": 1}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UserError, match=r"\("):
        m.BootstrapConfig(**settings)


# Cosine intervals


def returns(n: int = 120, seed: int = 1, mean: float = 0.0005) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 0.01, n)


def test_the_variance_is_the_mean_of_squared_cosine_transforms_and_the_interval_students():
    values = returns()
    terms = cosine_terms(values.size)
    assert terms == int(0.4 * 120 ** (2 / 3))
    transforms = scipy.fft.dct(values, type=2, norm="ortho")[1 : terms + 1]
    assert m.cosine_variance(values) == pytest.approx((transforms**2).mean(), rel=1e-12)
    values = returns(250)
    found, middle = m.cosine_interval(values, "mean"), values.mean() * 252
    half = (
        scipy.stats.t.ppf(0.975, cosine_terms(250))
        * math.sqrt(float(m.cosine_variance(values)) / 250)
        * 252
    )
    assert (found.value, found.low, found.high) == pytest.approx(
        (middle, middle - half, middle + half), rel=1e-9
    )


def test_the_p_value_and_the_interval_agree():
    for seed in range(20):
        values = returns(100, seed=seed, mean=0.001)
        on_the_edge = m.cosine_interval(values, "mean", level=1.0 - float(m.mean_p_value(values)))
        assert min(abs(on_the_edge.low), abs(on_the_edge.high)) < 1e-9


@pytest.mark.parametrize(("carry", "most"), [(0.0, 0.06), (0.2, 0.065)])
def test_dependence_does_not_break_the_level(carry, most):
    p = m.mean_p_value(autoregressive((4000, 300), carry)[:, 50:])
    assert 0.04 < (p < 0.05).mean() < most


def test_one_series_and_many_take_the_same_call():
    table = autoregressive((5, 130), 0.3)[:, 50:]
    t, freedom = cosine_t(table)
    assert freedom == cosine_terms(80)
    assert t[3] == pytest.approx(float(cosine_t(table[3])[0]))


def test_a_sharpe_ratio_is_the_one_of_the_measures_and_scale_does_not_move_it():
    one, other = m.cosine_interval(returns()), m.cosine_interval(returns() * 3.0)
    assert one.value == m.score(m.series_from_nav(growth(returns())))["sharpe"].value
    assert (other.value, other.low) == (pytest.approx(one.value), pytest.approx(one.low))


def test_where_there_is_no_value_no_interval_and_no_question():
    short, holed = np.ones(1), np.r_[np.nan, returns(30)]
    for values, reason in (
        (short, "fewer than two"),
        (holed, "missing"),
        (np.full(40, 0.25), "not defined"),
    ):
        found = m.cosine_interval(values)
        assert found.value is None and reason in str(found.reason)
    found = m.cosine_interval(returns(10))
    assert found.value is not None and found.low is None and "10 sessions" in str(found.note)
    wrong = (
        (returns(), {"statistic": "median"}, "no interval for"),
        (np.ones((2, 3)), {}, "shape"),
    )
    for values, asked, said in (*wrong, (returns(), {"level": 1.0}, "level")):
        with pytest.raises(UserError, match=said):
            m.cosine_interval(values, **asked)


def test_the_long_run_variance_by_hand_and_that_of_statsmodels() -> None:
    from statsmodels.stats.sandwich_covariance import S_hac_simple

    # Centred: -1, 0, 1. Variance 2/3; lag 1 has sum 0, lag 2 has sum -1 with weight 1 - 2/3.
    assert m.long_run_variance(np.array([1.0, 2.0, 3.0]), 0) == pytest.approx(2 / 3)
    assert m.long_run_variance(np.array([1.0, 2.0, 3.0]), 2) == pytest.approx((2 - 2 * (1 / 3)) / 3)
    values = np.random.default_rng(0).normal(size=200)
    reference = S_hac_simple((values - values.mean())[:, None], nlags=6)[0, 0] / 200
    assert m.long_run_variance(values, 6) == pytest.approx(reference, rel=1e-12)
    # Dependence inflates the variance of a mean.
    assert m.ar1_inflation(0.5) == 3.0 and m.variance_inflation(np.ones(10), 3) == 1.0
    assert m.variance_inflation(autoregressive(20_000, 0.5, seed=3), 60) == pytest.approx(
        3.0, rel=0.15
    )
