"""The logarithm and the exponential are right, and sums have one order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tradeassay.core import reproducible_math as exact


@given(st.floats(1e-300, 1e300))
def test_log_is_within_two_ulp(x: float) -> None:
    expected = np.log(x)
    assert abs(exact.log(x) - expected) <= 2 * np.spacing(max(abs(expected), 1e-16))


@given(st.floats(-700.0, 700.0))
def test_exp_is_within_two_ulp(x: float) -> None:
    assert abs(exact.exp(x) - np.exp(x)) <= 2 * np.spacing(np.exp(x))


def test_log_of_what_has_none_is_missing() -> None:
    assert np.isnan(exact.log([0.0, -1.0, np.nan])).all()
    assert exact.log([1.0])[0] == 0.0
    assert exact.exp([0.0])[0] == 1.0


@given(st.lists(st.floats(-1e6, 1e6), max_size=40))
def test_totals_add_from_left_to_right(values: list[float]) -> None:
    expected = 0.0
    for k, value in enumerate(values):
        expected = value if k == 0 else expected + value
    assert exact.total(np.array(values)) == expected


def test_totals_along_an_axis() -> None:
    values = np.arange(12.0).reshape(3, 4)
    assert exact.total(values, axis=0).tolist() == [12.0, 15.0, 18.0, 21.0]
    assert exact.mean(values).tolist() == [1.5, 5.5, 9.5]
    assert exact.total(np.empty((3, 0))).tolist() == [0.0, 0.0, 0.0]
