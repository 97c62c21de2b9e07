"""Wilcoxon tests, plain and clustered by window."""

import numpy as np
import pytest
import scipy
from hypothesis import given, settings, strategies as st

from tradeassay import metrics as m
from tradeassay.core.errors import UserError
from tradeassay.metrics.cosine import cosine_t
from tradeassay.metrics.measures import growth


def test_the_tests_are_scipys_and_by_hand():
    differences = np.random.default_rng(0).normal(0.3, 1.0, 12)
    found = m.wilcoxon(differences)
    assert found.p_value == pytest.approx(scipy.stats.wilcoxon(differences).pvalue)
    assert found.n == found.clusters == 12
    one = m.wilcoxon_clustered(differences, range(12))  # one pair per cluster is the plain test
    assert one.p_value == pytest.approx(scipy.stats.wilcoxon(differences, method="exact").pvalue)
    # All ranks positive: 1 + 2 + 3 + 4 + 5 = 15; two of 32 sign patterns are as extreme.
    found = m.wilcoxon(np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert (found.statistic, found.p_value, found.median, found.smallest_p) == (
        15.0,
        0.0625,
        0.3,
        0.0625,
    )
    # Ranks 1 2 | 3 4 with signs + + | + -: sums 3 and -1. Every flip of +-3 +-1 is at least 2 away from zero.
    found = m.wilcoxon_clustered(np.array([1.0, 2.0, 3.0, -4.0]), ["a", "a", "b", "b"])
    assert (found.statistic, found.p_value, found.smallest_p) == (2.0, 1.0, 0.5)
    # Ten seeds of one window prove nothing.
    differences = np.linspace(0.1, 1.0, 10)
    assert m.wilcoxon(differences).p_value < 0.01
    found = m.wilcoxon_clustered(differences, ["W1"] * 10)
    assert (found.p_value, found.clusters, found.smallest_p) == (1.0, 1, 1.0)


def test_many_clusters_use_the_normal_law():
    differences, clusters = (
        np.random.default_rng(3).normal(0.0, 1.0, 80),
        np.repeat(np.arange(40), 2).tolist(),
    )
    assert 0.0 < m.wilcoxon_clustered(differences, clusters).p_value <= 1.0
    assert m.wilcoxon_clustered(differences + 2.0, clusters).p_value < 1e-6


def test_false_alarms_stay_at_their_level_where_the_plain_test_fails():
    rng = np.random.default_rng(8)
    sound = plain = 0
    for _ in range(200):
        differences = (rng.normal(size=(10, 1)) + 0.2 * rng.normal(size=(10, 6))).ravel()
        sound += (
            m.wilcoxon_clustered(differences, np.repeat(np.arange(10), 6).tolist()).p_value <= 0.05
        )
        plain += m.wilcoxon(differences).p_value <= 0.05
    assert sound <= 20
    assert plain >= 60


def test_nothing_and_nonsense_and_windows_that_share_days_share_a_cluster():
    assert m.wilcoxon(np.zeros(4)).p_value is None
    assert m.wilcoxon_clustered(np.zeros(2), "ab").reason == "every difference is zero"
    with pytest.raises(UserError, match="missing"):
        m.wilcoxon(np.array([np.nan, 1.0]))
    with pytest.raises(UserError, match="clusters"):
        m.wilcoxon_clustered(np.ones(3), ["a"])
    touching = [
        ("2024-03-01", "2024-04-30"),
        ("2024-01-01", "2024-02-15"),
        ("2024-02-15", "2024-02-20"),
    ]
    assert m.overlapping_clusters([*touching, ("2025-01-01", "2025-01-02")]) == [1, 0, 0, 2]
    assert m.overlapping_clusters([]) == []


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-5, 5).filter(lambda x: abs(x) > 1e-6), min_size=2, max_size=12))
def test_turning_every_sign_keeps_the_p_value(values):
    clusters = [place % 4 for place in range(len(values))]
    one, other = (m.wilcoxon_clustered(sign * np.array(values), clusters) for sign in (1.0, -1.0))
    assert one.p_value == other.p_value >= one.smallest_p


def _twenty(rng: np.random.Generator, sessions: int, agents: int) -> np.ndarray:
    return rng.standard_t(4, (sessions, 1)) * 0.01 + rng.standard_t(4, (sessions, agents)) * 0.005


@pytest.mark.parametrize(("agents", "sessions"), [(2, 60), (5, 40), (20, 60), (20, 252)])
def test_agents_that_only_guess_share_one_tier_in_nineteen_tables_of_twenty(agents, sessions):
    rng = np.random.default_rng(agents * 1000 + sessions)
    tables = 400
    apart = sum(len(m.tiers(_twenty(rng, sessions, agents))) > 1 for _ in range(tables)) / tables
    assert 0.02 <= apart <= 0.08


def test_an_agent_that_is_better_has_a_tier_of_its_own():
    growth = _twenty(np.random.default_rng(0), 250, 6)
    growth[:, 4] += 0.01
    growth[:, 2] -= 0.01
    assert m.tiers(growth)[0] == [4] and m.tiers(growth)[-1] == [2]
    assert sorted(place for tier in m.tiers(growth) for place in tier) == list(range(6))


def test_two_are_told_apart_by_the_test_of_their_difference():
    rng = np.random.default_rng(3)
    for edge in np.linspace(0.0, 0.002, 40):
        growth = rng.normal(0.0, 0.004, (80, 2)) + np.array([edge, 0.0])
        assert (len(m.tiers(growth)) == 2) == (
            float(m.mean_p_value(growth[:, 0] - growth[:, 1])) < 0.05
        )


def test_twins_stay_together_and_a_constant_lead_is_certain():
    one = np.random.default_rng(1).normal(0, 0.01, 80)
    assert m.tiers(np.stack([one, one, one - 1e-4], axis=1)) == [[0, 1], [2]]
    assert m.tiers(one[:, None]) == [[0]]


def _against(*p_values: float) -> list[m.AgainstBaseline]:
    """Comparisons over 250 sessions whose p-values are about these."""
    rng = np.random.default_rng(7)
    noise = rng.normal(0, 0.004, (len(p_values), 250))
    noise -= noise.mean(axis=1, keepdims=True)
    t, freedom = cosine_t(noise + 1e-5)
    from scipy.special import stdtrit

    wanted = np.array([-stdtrit(freedom, p / 2.0) for p in p_values])
    market = rng.normal(0, 0.01, 250)
    paths = [
        growth(np.expm1(market + row + shift))
        for row, shift in zip(noise, 1e-5 * wanted / t, strict=True)
    ]
    return [m.compare_to_baseline(path, growth(np.expm1(market))) for path in paths]


def test_a_table_of_comparisons_allows_for_their_number_in_all_its_parts():
    alone = _against(0.02, 0.0001, 0.5)
    assert [one.distinguishable for one in alone] == [True, True, False]
    found = [one for one in m.corrected([*alone, None], 0.95) if one is not None]
    assert [one.p_value for one in found] == [one.p_value for one in alone]
    assert [one.p_adjusted for one in found] == pytest.approx([0.04, 0.0003, 0.5], rel=0.01)
    assert [one.side for one in found] == ["above", "above", None]
    few = [one for one in m.corrected(_against(0.03, 0.03, 0.5), 0.95) if one is not None]
    assert [one.side for one in few] == [None, None, None]
    assert few[0].difference.low < 0.0 < few[0].difference.high and few[0].difference.level > 0.95
    assert few[0].sentence.endswith("once the number of agents compared is allowed for")
    assert "allowed for" not in few[2].sentence
    assert few[0].said_of("the index").startswith("cannot be told apart from the index")


@given(st.lists(st.floats(1e-6, 0.9), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_the_interval_excludes_zero_exactly_when_the_adjusted_p_value_is_small(p_values):
    for one in m.corrected(_against(*p_values), 0.95):
        assert one.distinguishable == (one.p_adjusted <= 0.05) or abs(one.p_adjusted - 0.05) < 1e-9
        assert ("beats" in one.sentence) == (one.side == "above")
