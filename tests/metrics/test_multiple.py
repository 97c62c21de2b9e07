"""Corrections for looking at many results at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeassay.core.errors import UserError
from tradeassay.metrics import (
    BootstrapConfig,
    benjamini_hochberg,
    compare_to_baseline,
    holm,
    simultaneous_differences,
    simultaneous_intervals,
)
from tradeassay.metrics.measures import growth

FEW = BootstrapConfig(draws=200)


@settings(deadline=None)  # the first call imports scipy
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_benjamini_and_hochberg_is_the_step_up_of_their_paper(p_values: list[float]) -> None:
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    expected, lowest = [0.0] * len(p_values), 1.0
    for rank in range(len(order), 0, -1):
        lowest = min(lowest, p_values[order[rank - 1]] * len(order) / rank)
        expected[order[rank - 1]] = lowest
    assert benjamini_hochberg(p_values) == pytest.approx(expected, abs=1e-9)
    adjusted = holm(p_values)
    assert all(bh <= strict + 1e-12 for bh, strict in zip(benjamini_hochberg(p_values), adjusted, strict=True))


def test_what_was_not_tested_is_not_counted() -> None:
    assert benjamini_hochberg([0.02, None, 0.04]) == [0.04, None, 0.04]
    assert benjamini_hochberg([]) == []


def test_intervals_for_many_are_wider_than_for_one() -> None:
    values = np.random.default_rng(0).normal(0, 1, (100, 12))
    alone = simultaneous_intervals(values[:, :1], bootstrap=FEW)[0]
    among = simultaneous_intervals(values, bootstrap=FEW)
    assert among[0].high - among[0].low > 1.2 * (alone.high - alone.low)
    assert all(one.low < one.value < one.high for one in among)


def test_agents_that_do_the_same_cost_nothing() -> None:
    one = np.random.default_rng(1).normal(0, 1, (80, 1))
    twins = simultaneous_intervals(np.repeat(one, 8, axis=1), bootstrap=BootstrapConfig(draws=400))
    alone = simultaneous_intervals(one, bootstrap=BootstrapConfig(draws=400))[0]
    assert twins[0].high - twins[0].low == pytest.approx(alone.high - alone.low, rel=0.08)


def test_together_they_cover_at_their_level() -> None:
    """Also in a short window of dependent sessions, and with the block length that is chosen by default."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(100):
        noise = rng.normal(0, 1, (61, 6)) + rng.normal(0, 1, (61, 1))
        found = simultaneous_intervals(noise[1:] + 0.2 * noise[:-1], bootstrap=BootstrapConfig(draws=75))
        covered += all(one.low <= 0.0 <= one.high for one in found)
    assert covered >= 90


def test_a_series_that_never_moves_is_left_alone() -> None:
    values = np.random.default_rng(2).normal(0, 1, (60, 2))
    values[:, 1] = 0.5
    moving, still = simultaneous_intervals(values, bootstrap=FEW)
    assert (still.value, still.low, still.high) == (0.5, 0.5, 0.5)
    assert moving.low < moving.high


def test_differences_against_a_baseline() -> None:
    rng = np.random.default_rng(3)
    market = rng.normal(0.0004, 0.01, 150)
    base = growth(market)
    agents = [growth(market + rng.normal(shift, 0.004, (2, 150))) for shift in (0.0, 0.003)]
    dead = np.r_[1.0, np.zeros(150)]
    found = simultaneous_differences([*agents, dead, base[:-1]], base, bootstrap=FEW)
    assert found[0].low < 0.0 < found[0].high
    assert found[1].low > 0.0
    assert found[1].value == pytest.approx(
        compare_to_baseline(agents[1], base, bootstrap=FEW).difference.value, rel=1e-9
    )
    assert "nothing or less" in str(found[2].reason) and "differ" in str(found[3].reason)
    assert simultaneous_differences([base], dead)[0].value is None
    assert simultaneous_differences([], base) == []


def test_too_short_and_wrong() -> None:
    assert simultaneous_intervals(np.ones((5, 2)))[1].value is None
    with pytest.raises(UserError, match="two-dimensional"):
        simultaneous_intervals(np.ones(30))
