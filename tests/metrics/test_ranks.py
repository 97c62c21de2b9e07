"""Critical differences."""

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from tradeassay.core.errors import UserError
from tradeassay.metrics import critical_difference


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
    with pytest.raises(UserError, match="markets"):
        critical_difference(np.ones((1, 3)), ["a", "b", "c"])
