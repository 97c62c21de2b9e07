"""Rank probabilities and critical differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig, critical_difference, rank_probabilities

FEW = BootstrapConfig(draws=200)


def test_a_clear_winner_is_first_on_every_redrawn_history() -> None:
    rng = np.random.default_rng(0)
    returns = rng.normal(0, 0.005, (120, 3))
    returns[:, 1] += 0.01
    found = rank_probabilities(returns, ["a", "b", "c"], bootstrap=FEW)
    assert found.rank[1] == 1.0 and found.probability[1, 0] == 1.0
    assert found.low[1] == found.high[1] == 1.0
    assert found.beats[1, 0] == 1.0 and found.beats[0, 1] == 0.0


def test_twins_share_their_rank() -> None:
    one = np.random.default_rng(1).normal(0, 0.01, (60, 1))
    found = rank_probabilities(np.repeat(one, 2, axis=1), ["a", "b"], by="sharpe", bootstrap=FEW)
    assert found.rank.tolist() == [1.5, 1.5]
    assert found.probability == pytest.approx(0.5)
    assert found.beats[0, 1] == 0.5


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 100), st.integers(2, 5), st.integers(1, 3))
def test_rows_and_columns_sum_to_one(seed: int, agents: int, seeds: int) -> None:
    returns = np.random.default_rng(seed).normal(0, 0.01, (40, agents, seeds))
    found = rank_probabilities(returns, [str(k) for k in range(agents)], bootstrap=BootstrapConfig(draws=50))
    assert found.probability.sum(axis=0) == pytest.approx(1.0)
    assert found.probability.sum(axis=1) == pytest.approx(1.0)
    assert found.expected.sum() == pytest.approx(agents * (agents + 1) / 2)
    assert found.beats + found.beats.T == pytest.approx(1.0 - np.eye(agents))


def test_seeds_make_a_ranking_less_sure() -> None:
    rng = np.random.default_rng(2)
    returns = rng.normal(0, 0.003, (80, 2, 3))
    returns[:, 0] += 0.0006 * np.array([-4.0, 1.0, 6.0])
    many = rank_probabilities(returns, ["a", "b"], bootstrap=FEW).probability[0, 0]
    mean = rank_probabilities(returns.mean(axis=2), ["a", "b"], bootstrap=FEW).probability[0, 0]
    assert many < mean


def test_friedman_is_scipys_and_the_difference_is_the_books() -> None:
    scores = np.random.default_rng(3).normal(size=(14, 4))
    found = critical_difference(scores, ["a", "b", "c", "d"])
    statistic, p = friedmanchisquare(*scores.T)
    assert (found.statistic, found.p_value) == pytest.approx((statistic, p))
    # Demsar (2006): q is 2.569 for four classifiers; 14 data sets give a critical difference of 1.25.
    assert found.difference == pytest.approx(1.25, abs=0.005)
    assert sum(found.mean_ranks.values()) == pytest.approx(10.0)


def test_ties_are_handled_as_scipy_does() -> None:
    scores = np.round(np.random.default_rng(4).normal(size=(10, 4)))
    statistic, p = friedmanchisquare(*scores.T)
    found = critical_difference(scores, list("abcd"))
    assert (found.statistic, found.p_value) == pytest.approx((statistic, p))


def test_groups_are_neighbours_that_cannot_be_told_apart() -> None:
    scores = np.tile([10.0, 9.0, 1.0], (40, 1)) + np.random.default_rng(5).normal(0, 2.0, (40, 3))
    found = critical_difference(scores, ["best", "next", "last"])
    assert found.groups == (("best", "next"),)
    assert list(found.mean_ranks)[-1] == "last"
    alike = critical_difference(np.ones((5, 3)), ["a", "b", "c"])
    assert alike.p_value == 1.0 and alike.groups == (("a", "b", "c"),)


def test_nonsense() -> None:
    with pytest.raises(UserError, match="cannot be ranked"):
        rank_probabilities(np.zeros((5, 2)), ["a", "b"])
    with pytest.raises(UserError, match="lost everything"):
        rank_probabilities(np.full((30, 2), -1.0), ["a", "b"])
    with pytest.raises(UserError, match="agents"):
        rank_probabilities(np.zeros((30, 2)), ["a"])
    with pytest.raises(UserError, match="markets"):
        critical_difference(np.ones((1, 3)), ["a", "b", "c"])
