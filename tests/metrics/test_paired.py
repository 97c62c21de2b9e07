"""Wilcoxon tests, plain and clustered by window."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon as scipy_wilcoxon

from tradeassay.core.errors import UserError
from tradeassay.metrics import overlapping_clusters, wilcoxon, wilcoxon_clustered


def test_the_plain_test_is_scipys() -> None:
    differences = np.random.default_rng(0).normal(0.3, 1.0, 12)
    found = wilcoxon(differences)
    assert found.p_value == pytest.approx(scipy_wilcoxon(differences).pvalue)
    assert found.n == found.clusters == 12


def test_by_hand_five_gains_of_five() -> None:
    # All ranks positive: 1 + 2 + 3 + 4 + 5 = 15; two of 32 sign patterns are as extreme.
    found = wilcoxon(np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert (found.statistic, found.p_value, found.median) == (15.0, 0.0625, 0.3)
    assert found.smallest_p == 0.0625


def test_one_pair_per_cluster_is_the_plain_test() -> None:
    differences = np.random.default_rng(1).normal(0.4, 1.0, 10)
    one = wilcoxon_clustered(differences, range(10))
    assert one.p_value == pytest.approx(scipy_wilcoxon(differences, method="exact").pvalue)


def test_ten_seeds_of_one_window_prove_nothing() -> None:
    differences = np.linspace(0.1, 1.0, 10)
    assert wilcoxon(differences).p_value < 0.01
    found = wilcoxon_clustered(differences, ["W1"] * 10)
    assert found.p_value == 1.0 and found.clusters == 1 and found.smallest_p == 1.0


def test_two_clusters_by_hand() -> None:
    # Ranks 1 2 | 3 4 with signs + + | + -: sums 3 and -1. Every flip of +-3 +-1 is at least 2 away from zero.
    found = wilcoxon_clustered(np.array([1.0, 2.0, 3.0, -4.0]), ["a", "a", "b", "b"])
    assert found.statistic == 2.0 and found.p_value == 1.0 and found.smallest_p == 0.5


def test_many_clusters_use_the_normal_law() -> None:
    rng = np.random.default_rng(3)
    differences = rng.normal(0.0, 1.0, 80)
    clusters = np.repeat(np.arange(40), 2).tolist()
    p = wilcoxon_clustered(differences, clusters).p_value
    assert p is not None and 0.0 < p <= 1.0
    shifted = wilcoxon_clustered(differences + 2.0, clusters).p_value
    assert shifted is not None and shifted < 1e-6


def test_false_alarms_stay_at_their_level_where_the_plain_test_fails() -> None:
    rng = np.random.default_rng(8)
    sound = plain = 0
    for _ in range(200):
        differences = (rng.normal(size=(10, 1)) + 0.2 * rng.normal(size=(10, 6))).ravel()
        sound += wilcoxon_clustered(differences, np.repeat(np.arange(10), 6).tolist()).p_value <= 0.05
        plain += wilcoxon(differences).p_value <= 0.05
    assert sound <= 20
    assert plain >= 60


def test_nothing_and_nonsense() -> None:
    assert wilcoxon(np.zeros(4)).p_value is None
    assert wilcoxon_clustered(np.zeros(2), "ab").reason == "every difference is zero"
    with pytest.raises(UserError, match="missing"):
        wilcoxon(np.array([np.nan, 1.0]))
    with pytest.raises(UserError, match="clusters"):
        wilcoxon_clustered(np.ones(3), ["a"])


def test_windows_that_share_days_share_a_cluster() -> None:
    windows = [
        ("2024-03-01", "2024-04-30"),
        ("2024-01-01", "2024-02-15"),
        ("2024-02-15", "2024-02-20"),
        ("2025-01-01", "2025-01-02"),
    ]
    assert overlapping_clusters(windows) == [1, 0, 0, 2]
    assert overlapping_clusters([]) == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-5, 5).filter(lambda x: abs(x) > 1e-6), min_size=2, max_size=12))
def test_turning_every_sign_keeps_the_p_value(values: list[float]) -> None:
    clusters = [place % 4 for place in range(len(values))]
    one = wilcoxon_clustered(np.array(values), clusters)
    other = wilcoxon_clustered(-np.array(values), clusters)
    assert one.p_value == other.p_value
    assert one.p_value >= one.smallest_p
