"""Corrections for looking at many results at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeassay.metrics import (
    AgainstBaseline,
    compare_to_baseline,
    corrected,
    mean_p_value,
    tiers,
)
from tradeassay.metrics.cosine import cosine_t
from tradeassay.metrics.measures import growth


def _twenty(rng: np.random.Generator, sessions: int, agents: int) -> np.ndarray:
    return rng.standard_t(4, (sessions, 1)) * 0.01 + rng.standard_t(4, (sessions, agents)) * 0.005


@pytest.mark.parametrize(("agents", "sessions"), [(2, 60), (5, 40), (20, 60), (20, 252)])
def test_agents_that_only_guess_share_one_tier_in_nineteen_tables_of_twenty(agents: int, sessions: int) -> None:
    rng = np.random.default_rng(agents * 1000 + sessions)
    tables = 400
    apart = sum(len(tiers(_twenty(rng, sessions, agents))) > 1 for _ in range(tables)) / tables
    assert 0.02 <= apart <= 0.08


def test_an_agent_that_is_better_has_a_tier_of_its_own() -> None:
    growth = _twenty(np.random.default_rng(0), 250, 6)
    growth[:, 4] += 0.01
    growth[:, 2] -= 0.01
    assert tiers(growth)[0] == [4] and tiers(growth)[-1] == [2]
    assert sorted(place for tier in tiers(growth) for place in tier) == list(range(6))


def test_two_are_told_apart_by_the_test_of_their_difference() -> None:
    rng = np.random.default_rng(3)
    for edge in np.linspace(0.0, 0.002, 40):
        growth = rng.normal(0.0, 0.004, (80, 2)) + np.array([edge, 0.0])
        assert (len(tiers(growth)) == 2) == (float(mean_p_value(growth[:, 0] - growth[:, 1])) < 0.05)


def test_twins_stay_together_and_a_constant_lead_is_certain() -> None:
    one = np.random.default_rng(1).normal(0, 0.01, 80)
    assert tiers(np.stack([one, one, one - 1e-4], axis=1)) == [[0, 1], [2]]
    assert tiers(one[:, None]) == [[0]]


def _against(*p_values: float) -> list[AgainstBaseline]:
    """Comparisons over 250 sessions whose p-values are about these."""
    rng = np.random.default_rng(7)
    noise = rng.normal(0, 0.004, (len(p_values), 250))
    noise -= noise.mean(axis=1, keepdims=True)
    t, freedom = cosine_t(noise + 1e-5)
    from scipy.special import stdtrit

    wanted = np.array([-stdtrit(freedom, p / 2.0) for p in p_values])
    market = rng.normal(0, 0.01, 250)
    paths = [growth(np.expm1(market + row + shift)) for row, shift in zip(noise, 1e-5 * wanted / t, strict=True)]
    return [compare_to_baseline(path, growth(np.expm1(market))) for path in paths]


def test_a_table_of_comparisons_allows_for_their_number_in_all_its_parts() -> None:
    alone = _against(0.02, 0.0001, 0.5)
    assert [one.distinguishable for one in alone] == [True, True, False]
    found = [one for one in corrected([*alone, None], 0.95) if one is not None]
    assert [one.p_value for one in found] == [one.p_value for one in alone]
    assert [one.p_adjusted for one in found] == pytest.approx([0.04, 0.0003, 0.5], rel=0.01)
    assert [one.side for one in found] == ["above", "above", None]
    few = [one for one in corrected(_against(0.03, 0.03, 0.5), 0.95) if one is not None]
    assert [one.side for one in few] == [None, None, None]
    assert few[0].difference.low < 0.0 < few[0].difference.high and few[0].difference.level > 0.95
    assert few[0].sentence.endswith("once the number of agents compared is allowed for")
    assert "allowed for" not in few[2].sentence
    assert few[0].said_of("the index").startswith("cannot be told apart from the index")


@given(st.lists(st.floats(1e-6, 0.9), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_the_interval_excludes_zero_exactly_when_the_adjusted_p_value_is_small(p_values: list[float]) -> None:
    for one in corrected(_against(*p_values), 0.95):
        assert one is not None and one.p_adjusted is not None
        assert one.distinguishable == (one.p_adjusted <= 0.05) or abs(one.p_adjusted - 0.05) < 1e-9
        assert ("beats" in one.sentence) == (one.side == "above")
