"""How much likelier a record is under skill than as luck's best of so many tries."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.metrics.cosine import cosine_t
from tradeassay.metrics.likelihood import SCALE, equal_tries, likelihood_ratio, normal_score

NORMAL = NormalDist()
TRIES = (1, 2, 5, 20, 200, 10_000)


def skill_density(score, years):
    """Integrate over the half-normal alpha ratio: the score is normal around ratio x
    sqrt(years).
    """
    ratio, step = np.linspace(0.0, 8.0 * SCALE, 200_001, retstep=True)
    prior = 2.0 * np.exp(-0.5 * (ratio / SCALE) ** 2) / (SCALE * math.sqrt(2.0 * math.pi))
    record = np.exp(-0.5 * (score - ratio * math.sqrt(years)) ** 2) / math.sqrt(2.0 * math.pi)
    return float(np.trapezoid(prior * record, dx=step))


def luck_density(score, tries):
    """Differentiate the distribution of the largest of so many normal scores."""
    width = 1e-4
    return (NORMAL.cdf(score + width) ** tries - NORMAL.cdf(score - width) ** tries) / (2 * width)


@pytest.mark.parametrize("years", [0.25, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("score", [0.5, 1.7, 2.5, 3.5])
@pytest.mark.parametrize("tries", [1, 2, 20])
def test_the_ratio_is_that_of_the_integrated_densities(score, years, tries):
    luck = max(luck_density(score, count) for count in range(1, tries + 1))
    expected = skill_density(score, years) / luck
    assert likelihood_ratio(score, years, tries) == pytest.approx(expected, rel=1e-5)


def test_ratios_worked_out_by_hand():
    # At a score of 0 half of the half-normal's normal mixture is left: 1 / sqrt(1 + years).
    assert likelihood_ratio(0.0, 3.0, 1) == pytest.approx(0.5)
    assert likelihood_ratio(0.0, 8.0, 1) == pytest.approx(1.0 / 3.0)
    # A record of no length says nothing: the skilled and the lucky have the same scores.
    assert likelihood_ratio(2.0, 0.0, 1) == pytest.approx(1.0)
    # Two tries: the density of the larger is 2 phi(z) Phi(z), so at 0 it is that of one try.
    assert likelihood_ratio(0.0, 3.0, 2) == pytest.approx(0.5)


def test_luck_is_the_best_of_so_many_draws():
    draws = np.random.default_rng(5).standard_normal((400_000, 20)).max(axis=1)
    low, high = 2.4, 2.6
    share = ((draws > low) & (draws < high)).mean() / (high - low)
    assert luck_density(2.5, 20) == pytest.approx(share, rel=0.03)


@given(st.floats(0.0, 8.0), st.floats(0.05, 40.0))
def test_more_tries_never_speak_for_skill(score, years):
    """A score that luck's best of a few tries explains is explained by a few of many tries as
    well.
    """
    ratios = [likelihood_ratio(score, years, tries) for tries in TRIES]
    assert all(one > 0.0 for one in ratios)
    assert ratios == sorted(ratios, reverse=True)


@given(st.floats(0.0, 8.0), st.floats(1.0, 40.0), st.sampled_from(TRIES))
def test_a_score_that_luck_rarely_has_is_the_likelier_under_skill_the_higher_it_is(
    more, years, tries
):
    rare = -NORMAL.inv_cdf(0.1 / tries)
    lower, higher = (likelihood_ratio(rare + more + up, years, tries) for up in (0.0, 0.1))
    assert higher > lower


@given(st.floats(0.0, 6.0), st.floats(0.05, 40.0))
def test_at_the_equal_tries_luck_looks_the_same(score, years):
    equal = equal_tries(score, years)
    if equal is None:
        assert likelihood_ratio(score, years, 1) <= 1.0
        return
    assert equal >= 2
    assert likelihood_ratio(score, years, equal - 1) > 1.0
    assert equal == 10**9 or likelihood_ratio(score, years, equal) <= 1.0


def test_equal_tries_at_known_scores():
    assert equal_tries(0.0, 3.0) is None
    assert equal_tries(1.0, 3.0) == 2
    few, many = equal_tries(2.0, 3.0), equal_tries(3.0, 3.0)
    assert 3 <= few < 10 < many < 100
    assert equal_tries(30.0, 3.0) == 10**9


@pytest.mark.parametrize("n", [60, 252, 2520])
@pytest.mark.parametrize("mean", [-0.1, 0.02, 0.1])
def test_the_score_has_the_tail_of_the_t_statistic(n, mean):
    from scipy.stats import t as student

    values = np.random.default_rng(n).normal(mean, 1.0, n)
    ratio, freedom = cosine_t(values)
    score = normal_score(values)
    assert math.copysign(1.0, score) == math.copysign(1.0, float(ratio))
    assert NORMAL.cdf(-abs(score)) == pytest.approx(
        student.sf(abs(float(ratio)), freedom), rel=1e-6
    )
    assert abs(score) <= abs(float(ratio))  # Student's tails are the heavier ones


def test_scores_at_the_edge_of_floats():
    assert math.isnan(normal_score(np.zeros(100)))
    noise = np.random.default_rng(1).normal(0.0, 1e-9, 2520)
    sure = normal_score(1.0 + noise)
    assert sure == 37.0 and normal_score(-1.0 + noise) == -37.0
    assert math.isfinite(likelihood_ratio(sure, 10.0, 20))


def test_records_of_skill_have_large_ratios_and_records_of_luck_small_ones():
    """Of 400 records of three years with an alpha ratio of 2 most, and of 400 of none hardly
    any, are above 1.
    """
    rng = np.random.default_rng(8)
    noise = rng.standard_normal((400, 756))

    def share(ratio):
        rows = noise + ratio / math.sqrt(252)
        found = [likelihood_ratio(max(0.0, normal_score(row)), 3.0, 20) for row in rows]
        return float(np.mean(np.array(found) > 1.0))

    assert share(2.0) > 0.6
    assert share(0.0) < 0.01
