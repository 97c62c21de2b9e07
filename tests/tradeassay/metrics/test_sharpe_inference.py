"""Probabilistic and deflated Sharpe ratios."""

import math
from itertools import combinations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings, strategies as st

from tradeassay import metrics as m
from tradeassay.core.errors import UserError

FEW = m.BootstrapConfig(draws=200)
RETURNS = np.random.default_rng(4).standard_t(5, 250) * 0.01 + 0.001


def test_the_probability_written_out():
    ratio = RETURNS.mean() / RETURNS.std(ddof=1)
    skew, kurtosis = scipy.stats.skew(RETURNS), scipy.stats.kurtosis(RETURNS, fisher=False)
    error = math.sqrt(1 - skew * ratio + (kurtosis - 1) / 4 * ratio**2)
    expected = scipy.stats.norm.cdf((ratio - 0.5 / math.sqrt(252)) * math.sqrt(249) / error)
    found = m.probabilistic_sharpe(RETURNS, 0.5, bootstrap=FEW)
    assert found.value == pytest.approx(expected, rel=1e-11)
    assert found.low <= found.value <= found.high


def test_the_papers_example_of_a_minimum_track_record() -> None:
    # Bailey and Lopez de Prado (2012): a yearly ratio of 2 in normal daily returns beats 1 at 95 % in 2.73 years.
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200_000)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    returns = noise + 2.0 / math.sqrt(250)
    found = m.minimum_track_record(returns, 1.0, periods_per_year=250)
    assert found.value / 250 == pytest.approx(2.73, abs=0.02)


def test_the_papers_example_of_a_deflated_ratio() -> None:
    # Bailey and Lopez de Prado (2014): 2.5 a year over 1,250 days, skew -3, kurtosis 10; 100 trials with a
    # variance of 1/2 a year give an expected best of 1.79 a year (0.1132 a day) and a deflated ratio near 0.90.
    hurdle = m.expected_best_sharpe(100, 0.5)
    assert hurdle / math.sqrt(250) == pytest.approx(0.1132, abs=2e-4)
    ratio = 2.5 / math.sqrt(250)
    z = (
        (ratio - hurdle / math.sqrt(250))
        * math.sqrt(1249)
        / math.sqrt(1 + 3 * ratio + 9 / 4 * ratio**2)
    )
    assert scipy.stats.norm.cdf(z) == pytest.approx(0.9004, abs=1e-3)


def test_the_expected_best_is_that_of_simulated_trials_and_more_deflate_more():
    drawn = np.random.default_rng(0).normal(0, 0.7, (20_000, 50)).max(axis=1).mean()
    assert m.expected_best_sharpe(50, 0.49) == pytest.approx(drawn, rel=0.02)
    assert m.expected_best_sharpe(1, 0.49) == 0.0
    few = m.deflated_sharpe(RETURNS, trials=2, trial_variance=0.5, bootstrap=FEW)
    many = m.deflated_sharpe(RETURNS, trials=200, trial_variance=0.5, bootstrap=FEW)
    assert many.probability.value < few.probability.value and many.hurdle > few.hurdle
    assert few.sharpe == many.sharpe


@given(st.floats(1.0, 1e6), st.floats(0.0, 4.0))
def test_the_hurdle_never_falls_below_zero(trials, variance):
    assert (
        0.0
        <= m.expected_best_sharpe(trials, variance)
        <= m.expected_best_sharpe(trials * 2.0, variance) + 1e-12
    )


def slow(returns: np.ndarray, splits: int) -> tuple[float, float]:
    """The definition, word for word."""
    n, count = returns.shape
    blocks = np.array_split(returns[n - n // splits * splits :], splits)
    below, losses, ways = 0.0, 0, 0
    for half in combinations(range(splits), splits // 2):
        past = np.concatenate([blocks[k] for k in half])
        future = np.concatenate([blocks[k] for k in range(splits) if k not in half])
        best = int(np.argmax(past.mean(0) / past.std(0, ddof=1)))
        ahead = future.mean(0) / future.std(0, ddof=1)
        rank = 1 + (ahead < ahead[best]).sum()
        odds = rank / (count + 1)
        below += 0.5 if rank == (count + 1) / 2 else float(odds < 0.5)
        losses += ahead[best] < 0
        ways += 1
    return below / ways, losses / ways


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 6), st.sampled_from([4, 6, 8]))
def test_it_is_the_definition(seed, count, splits):
    returns = np.random.default_rng(seed).normal(0.0002, 0.01, (97, count))
    found = m.overfitting(returns, splits=splits)
    assert (found.probability.value, found.loss.value) == pytest.approx(
        slow(returns, splits), rel=1e-10
    )
    assert found.best.sum() == found.logits.size


def test_noise_is_overfitted_half_of_the_time_and_skill_is_not():
    for count in (2, 3, 5, 10):
        rng = np.random.default_rng(1)
        noise = [
            m.overfitting(rng.normal(0, 1, (160, count)), splits=8).probability.value
            for _ in range(60)
        ]
        assert np.mean(noise) == pytest.approx(0.5, abs=0.12), count
    skilled = np.random.default_rng(1).normal(0, 1, (800, 10))
    skilled[:, 3] += 0.3
    found = m.overfitting(skilled)
    assert found.probability.value < 0.01 and found.best[3] == found.logits.size == 12870
    assert found.probability.low is None and "share sessions" in str(found.probability.note)


def test_no_value_and_nonsense():
    assert "do not vary" in str(m.probabilistic_sharpe(np.full(30, 0.25)).reason)
    assert (
        m.probabilistic_sharpe(RETURNS[:2]).value
        is None
        is m.minimum_track_record(RETURNS[:2]).value
    )
    assert "no interval" in str(m.probabilistic_sharpe(RETURNS[:10]).note)
    assert "no length" in str(m.minimum_track_record(-RETURNS).reason)
    assert "two strategies" in str(m.overfitting(np.ones((50, 1))).probability.reason)
    assert "too few" in str(m.overfitting(np.ones((20, 3))).probability.reason)
    assert m.overfitting(np.zeros((64, 3))).slope is None
    for said, wrong in (
        ("trials", lambda: m.expected_best_sharpe(0.5, 1.0)),
        ("one series", lambda: m.probabilistic_sharpe(np.ones((2, 2)))),
        ("splits", lambda: m.overfitting(np.ones((50, 2)), splits=7)),
        ("two-dimensional", lambda: m.overfitting(np.ones(50))),
    ):
        with pytest.raises(UserError, match=said):
            wrong()
