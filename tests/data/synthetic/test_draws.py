"""Random numbers: right in distribution, and made so that no CPU can round them differently."""

from statistics import NormalDist

import numpy as np
import pytest

from tradeassay.data.synthetic.universe import GRID, Draws, _normal_table, normal_quantile


def test_streams_are_repeatable_and_independent() -> None:
    assert np.array_equal(Draws(3, "a").normal(50), Draws(3, "a").normal(50))
    assert not np.array_equal(Draws(3, "a").normal(50), Draws(3, "b").normal(50))
    assert not np.array_equal(Draws(3, "a").normal(50), Draws(4, "a").normal(50))
    first, second = Draws(1, "a").normal(20_000), Draws(1, "b").normal(20_000)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


def test_first_numbers_never_change() -> None:
    draws = Draws(7, "golden")
    assert draws.below(1000, 5).tolist() == [341, 476, 600, 96, 297]
    assert draws.normal(3).tolist() == [-0.6336784362792969, -0.7447280883789062, -0.00713348388671875]


def test_the_normal_table_is_the_quantile_function() -> None:
    table = _normal_table()
    places = [0, 1, 100, 9_999, 32_767, 32_768, 60_000, 65_535]
    for k in places:
        assert table[k] == pytest.approx(NormalDist().inv_cdf((k + 0.5) / 65_536), abs=1e-6)
    assert np.array_equal(table, -table[::-1]) and np.all(np.diff(table) > 0)


def test_no_entry_of_the_table_is_near_a_rounding_boundary() -> None:
    """Rounding moves a value by at most half a grid step; an error of some ulp could only matter at a boundary."""
    exact = normal_quantile((np.arange(1 << 15) + 0.5) / (1 << 16) + 0.5) * GRID
    margin = np.abs(exact - np.floor(exact) - 0.5).min()
    assert margin > 1e-6  # an ulp at this size is 1e-9


def test_moments() -> None:
    draws = Draws(0, "moments")
    normal, student = draws.normal(400_000), draws.student(400_000, 5)
    assert abs(normal.mean()) < 0.01 and abs(normal.std() - 1) < 0.01
    assert abs(student.mean()) < 0.01 and abs(student.std() - 1) < 0.02
    assert np.mean(student**4) > 5.0 > np.mean(normal**4)
    uniform = draws.uniform(100_000)
    assert 0.0 <= uniform.min() and uniform.max() < 1.0 and abs(uniform.mean() - 0.5) < 0.01


def test_whole_numbers_stay_in_bounds() -> None:
    draws = Draws(0, "bounds")
    assert set(draws.below(3, 1000).tolist()) == {0, 1, 2}
    assert {draws.integer(-1, 1) for _ in range(100)} == {-1, 0, 1}
    assert sorted(draws.order(50).tolist()) == list(range(50))
    assert draws.below(9, (0,)).size == 0 and draws.normal((2, 3)).shape == (2, 3)
    assert draws.chance(0.0, 100).sum() == 0 and draws.chance(1.0, 100).all()
    assert draws.rare(1.0, 4).tolist() == [0, 1, 2, 3]
