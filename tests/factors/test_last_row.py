"""The last row alone equals the last row of everything, to the bit, however ragged the bars are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeassay.core.errors import UserError
from tradeassay.factors import FACTOR_NAMES, FactorBars, FactorStream, compute, compute_all, last_row, latest_all


def bars(seed: int, sessions: int, names: int, holes: float) -> FactorBars:
    rng = np.random.default_rng(seed)
    close = 10 * np.exp(np.cumsum(rng.normal(0, 0.02, (sessions, names)), axis=0))
    opened = close * np.exp(rng.normal(0, 0.01, close.shape))
    volume = rng.uniform(1e5, 1e6, close.shape)
    arrays = [opened, np.maximum(opened, close) * 1.01, close, volume, volume * close]
    for array in arrays:
        array[rng.random(close.shape) < holes] = np.nan
        array[rng.random(close.shape) < holes / 10] = 0.0
    return FactorBars(*arrays)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000), sessions=st.integers(1, 300), names=st.integers(1, 7),
    holes=st.sampled_from([0.0, 0.02, 0.15, 0.5, 1.0]),
)  # fmt: skip
def test_equal_to_the_bit(seed: int, sessions: int, names: int, holes: float) -> None:
    data = bars(seed, sessions, names, holes)
    whole, last = compute_all(data), last_row(data)
    for k, name in enumerate(FACTOR_NAMES):
        np.testing.assert_array_equal(last[k], whole[name][-1], err_msg=name)
        np.testing.assert_array_equal(last[k], compute(name, data.last(252))[-1], err_msg=name)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), first=st.integers(0, 255), more=st.integers(1, 90), holes=st.floats(0, 0.4))
def test_a_primed_stream_goes_on_as_a_fed_one(seed: int, first: int, more: int, holes: float) -> None:
    data = bars(seed, first + more, 3, holes)
    rows = np.stack([data.open, data.high, data.close, data.volume, data.amount], axis=1)
    fed, primed = FactorStream(3), FactorStream(3)
    for row in rows[:first]:
        fed.feed(row)
    primed.prime(rows[:first])
    for row in rows[first:]:
        assert fed.push(row).tobytes() == primed.push(row).tobytes()


def test_only_a_fresh_stream_can_be_primed() -> None:
    stream = FactorStream(1)
    with pytest.raises(UserError, match="256 sessions"):
        stream.prime(np.ones((256, 5, 1)))
    stream.feed(np.ones((5, 1)))
    with pytest.raises(UserError, match="has taken 1"):
        stream.prime(np.ones((3, 5, 1)))


def test_a_split_changes_no_value() -> None:
    data = bars(4, 300, 3, 0.02)
    rows = np.stack([data.open, data.high, data.close, data.volume, data.amount], axis=1)
    plain, split = FactorStream(3), FactorStream(3)
    unit = np.array([0.5, 0.5, 0.5, 2.0, 1.0])[:, None]
    for at, row in enumerate(rows):
        if at == 280:
            split.rescale(np.array([1]), np.array([0.5]))
        other = row.copy()
        other[:, 1:2] *= unit if at >= 280 else 1.0
        np.testing.assert_allclose(split.push(other), plain.push(row), rtol=1e-9)
    np.testing.assert_allclose(split.last_close * [1, 2, 1], plain.last_close)
    np.testing.assert_allclose(split.known_close * [1, 2, 1], plain.known_close)


@pytest.mark.parametrize("shape", [(0, 3), (5, 0)])
def test_nothing_in_nothing_out(shape: tuple[int, int]) -> None:
    empty = FactorBars(*(np.empty(shape) for _ in range(5)))
    assert np.isnan(last_row(empty)).all() and last_row(empty).shape == (9, shape[1])


def test_latest_all_is_the_last_row_by_name() -> None:
    data = bars(1, 260, 4, 0.02)
    for k, (name, values) in enumerate(latest_all(data).items()):
        assert name == FACTOR_NAMES[k]
        np.testing.assert_array_equal(values, last_row(data)[k])
