"""Each factor is stated once; every form of it gives the same bits, however ragged the bars."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats
from tradeassay.factors import (
    FACTOR_NAMES,
    RECENT,
    FactorBars,
    FactorStream,
    compute,
    compute_all,
    last_row,
    latest,
    latest_all,
)
from tradeassay.factors.windows import rolling_sum, rolling_sums, window_sum


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


def fields(data: FactorBars) -> Floats:
    """Return bars as a stream takes them, shape (sessions, 5, names)."""
    return np.stack([data.open, data.high, data.close, data.volume, data.amount], axis=1)


def last(data: FactorBars, rows: int) -> FactorBars:
    return FactorBars(*(a[-rows:] for a in (data.open, data.high, data.close, data.volume, data.amount)))


def fed(data: FactorBars) -> Floats:
    stream = FactorStream(data.close.shape[1])
    for row in fields(data):
        stream.feed(row)
    return stream.values()


def primed(data: FactorBars) -> Floats:
    stream = FactorStream(data.close.shape[1])
    rows = fields(last(data, 255))
    stream.prime(rows[:, 1], rows[:, 2], rows[-RECENT:])
    return stream.values()


FORMS: dict[str, Callable[[FactorBars], Floats]] = {
    "the last row": last_row,
    "the last row by name": lambda data: np.stack([latest_all(data)[name] for name in FACTOR_NAMES]),
    "one factor's last row": lambda data: np.stack([latest(name, data) for name in FACTOR_NAMES]),
    "one factor over a year": lambda data: np.stack([compute(name, last(data, 252))[-1] for name in FACTOR_NAMES]),
    "a stream, fed": fed,
    "a stream, primed": primed,
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sessions=st.integers(1, 300),
    names=st.integers(1, 7),
    holes=st.sampled_from([0.0, 0.02, 0.15, 0.5, 1.0]),
)
def test_every_form_equals_the_whole_to_the_bit(form, seed, sessions, names, holes):
    data = bars(seed, sessions, names, holes)
    whole, found = compute_all(data), FORMS[form](data)
    for k, name in enumerate(FACTOR_NAMES):
        np.testing.assert_array_equal(found[k], whole[name][-1], err_msg=name)


@pytest.mark.parametrize("lonely", [False, True])
def test_every_row_is_the_last_row_of_its_history(make_bars, lonely):
    bars = make_bars(1100, 70, missing=0.01)
    if lonely:
        gone = np.random.default_rng(4).random(bars.volume.shape) < 0.03
        bars = FactorBars(bars.open, bars.high, bars.close, np.where(gone, np.nan, bars.volume), bars.amount)
    found = compute_all(bars)
    for row in (300, 1022, 1023, 1024, 1025, 1083, 1084, 1085, 1099):
        history = FactorBars(*(a[: row + 1] for a in (bars.open, bars.high, bars.close, bars.volume, bars.amount)))
        whole = np.stack([found[name][row] for name in FACTOR_NAMES])
        assert np.array_equal(last_row(history), whole, equal_nan=True), row


def test_shared_sums_are_those_of_each_window():
    values = np.random.default_rng(0).normal(size=(200, 3))
    for window, found in zip((60, 20, 1, 8, 7), rolling_sums(values, 60, 20, 1, 8, 7), strict=True):
        assert np.array_equal(found, rolling_sum(values, window))
        naive = np.array([values[max(0, row - window + 1) : row + 1].sum(axis=0) for row in range(200)])
        assert found == pytest.approx(naive, abs=1e-12)
        assert np.array_equal(window_sum(values, window), found[-1])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), first=st.integers(0, 255), more=st.integers(1, 90), holes=st.floats(0, 0.4))
def test_a_primed_stream_goes_on_as_a_fed_one(seed, first, more, holes):
    data = bars(seed, first + more, 3, holes)
    rows, whole = fields(data), np.stack([*compute_all(data).values()])
    fed, primed = FactorStream(3), FactorStream(3)
    for row in rows[:first]:
        fed.feed(row)
    primed.prime(rows[:first, 1], rows[:first, 2], rows[:first][-RECENT:])
    for at, row in enumerate(rows[first:], first):
        values = fed.push(row)
        assert values.tobytes() == primed.push(row).tobytes()
        np.testing.assert_array_equal(values, whole[:, at])


def test_only_a_fresh_stream_can_be_primed():
    stream = FactorStream(1)
    with pytest.raises(UserError, match="256 sessions"):
        stream.prime(np.ones((256, 1)), np.ones((256, 1)), np.ones((RECENT, 5, 1)))
    stream.feed(np.ones((5, 1)))
    with pytest.raises(UserError, match="has taken 1"):
        stream.prime(np.ones((3, 1)), np.ones((3, 1)), np.ones((3, 5, 1)))


def test_a_split_changes_no_value():
    data = bars(4, 300, 3, 0.02)
    rows = fields(data)
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
def test_nothing_in_nothing_out(shape):
    empty = FactorBars(*(np.empty(shape) for _ in range(5)))
    assert np.isnan(last_row(empty)).all() and last_row(empty).shape == (9, shape[1])
