"""What a program may return as target positions, and what it is told when it returned something else."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from tradeassay.code.frames import BadTargets, read_targets


@pytest.mark.parametrize(
    "column",
    [np.array([0.0, 1.0 + 1e-12, -1.0, 0.5]), np.array([0, 1, -1, 0]), np.array([False, True, True, False])],
)
def test_numbers_and_flags_are_targets_and_a_hair_beyond_one_counts_as_one(column):
    found = read_targets({"whatever": column}, 4, ["A"])
    assert found.shape == (4, 1)
    assert found[:, 0].tolist() == np.clip(column.astype(float), -1, 1).tolist()


def test_several_assets_are_told_apart_by_name():
    columns = {"B": np.array([0.0, -0.5]), "A": np.array([0.25, 0.25])}
    assert read_targets(columns, 2, ["A", "B"]).tolist() == [[0.25, 0.0], [0.25, -0.5]]


@pytest.mark.parametrize(
    ("columns", "assets", "said"),
    [
        ({"value": np.array([0.0, 1.0])}, "A", "2 targets for 3 rows"),
        ({"value": np.array([1.0])}, "A", "1 targets for 3 rows"),
        ({"value": np.array([0.0, np.nan, np.nan])}, "A", "2 targets are NaN, the first in row 1"),
        ({"value": np.array(["buy", "sell", None], dtype=object)}, "A", "texts or missing values"),
        ({"value": np.array(["2024-01-01"] * 3, dtype="M8[ns]")}, "A", "times"),
        ({"value": np.array([0.0, 1.5, 0.0])}, "A", "outside -1 .. 1, the first in row 1: 1.5"),
        ({"value": np.array([0.0, -np.inf, 0.0])}, "A", "outside -1 .. 1"),
        ({"value": np.array([0, 0, 100])}, "A", "row 2: 100"),
        ({}, "A", "0 columns"),
        ({"side": np.zeros(3), "size": np.zeros(3)}, "A", "2 columns"),
        ({"value": np.zeros(3)}, "AB", "no column for asset A"),
        ({"A": np.zeros(3), "B": np.zeros(3), "cash": np.zeros(3)}, "AB", "'cash', which is no asset"),
        ({"A": np.zeros(3), "B": np.full(3, np.nan)}, "AB", "3 targets for asset B are NaN"),
    ],
)
def test_anything_else_is_refused_with_the_reason(columns, assets, said):
    with pytest.raises(BadTargets) as caught:
        read_targets(columns, 3, list(assets))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    hnp.arrays(st.sampled_from([np.float64, np.int64, np.bool_, np.dtype("M8[ns]")]), st.integers(0, 12)),
    st.integers(1, 12),
)
def test_whatever_comes_back_is_targets_or_a_clear_refusal(column, rows):
    try:
        found = read_targets({"value": column}, rows, ["A"])
    except BadTargets as error:
        assert str(error)
        return
    assert found.shape == (rows, 1)
    assert np.isfinite(found).all()
    assert (np.abs(found) <= 1.0).all()
