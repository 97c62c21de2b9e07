"""Other futures: the past is untouched, the clock goes on, bars are bars."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.typing import NDArray

from tradeassay.core.errors import UserError
from tradeassay_programs.code.lookahead.bench import bench_columns
from tradeassay_programs.code.lookahead.futures import Feeds, other_future


def two_feeds(bars: int = 60) -> dict[str, NDArray]:
    daily = bench_columns("daily")
    columns = {f"A/{name}": values[:bars] for name, values in daily.items()}
    columns |= {f"B/{name}": values[500 : 500 + bars] for name, values in daily.items()}
    return columns | {"B/time": daily["time"][:bars]}


@example(known=51, seed=0, mirror=False)  # draws the true bars first
@given(st.integers(1, 59), st.integers(0, 99), st.booleans())
@settings(max_examples=40, deadline=None)
def test_only_the_future_changes_and_highs_stay_above_lows(known, seed, mirror):
    columns = two_feeds()
    feeds = Feeds.of(columns)
    made = other_future(feeds, known, 60, np.random.default_rng(seed), mirror=mirror)
    assert list(made) == list(columns)
    for name, values in columns.items():
        np.testing.assert_array_equal(made[name][:known], values[:known])
        if name.endswith("time"):
            np.testing.assert_array_equal(made[name], values)
    for feed in ("A", "B"):
        opened, high, low, close = (
            made[f"{feed}/{name}"] for name in ("open", "high", "low", "close")
        )
        assert (high >= np.maximum(opened, close)).all()
        assert (low <= np.minimum(opened, close)).all()
        assert (low > 0).all()
        if known < 59:
            assert (close[known:] != columns[f"{feed}/close"][known:]).any()


def test_a_mirror_turns_a_rise_into_the_same_fall():
    close = np.array([100.0, 110.0, 121.0]) * np.pi  # on no grid
    columns = {"close": close, "high": close * 1.1, "low": close / 1.2, "open": close}
    made = other_future(Feeds.of(columns), 1, 3, np.random.default_rng(0), mirror=True)
    np.testing.assert_allclose(made["close"] / np.pi, [100.0, 100 / 1.1, 100 / 1.21])
    np.testing.assert_allclose(made["high"][1:], made["close"][1:] * 1.2)
    np.testing.assert_allclose(made["low"][1:], made["close"][1:] / 1.1)


def test_spreads_may_be_negative_and_whole_prices_stay_whole():
    spread = np.array([-1.0, 2.0, -3.0, 4.0])
    made = other_future(Feeds.of({"close": spread}), 2, 4, np.random.default_rng(0), mirror=True)
    np.testing.assert_allclose(made["close"], [-1.0, 2.0, 7.0, 0.0])
    ticks = {"close": np.array([100, 104, 108, 90])}
    made = other_future(Feeds.of(ticks), 2, 4, np.random.default_rng(0), mirror=False)
    assert made["close"].dtype == np.int64


def test_columns_that_cannot_be_cut():
    with pytest.raises(UserError, match="no columns"):
        Feeds.of({})
    with pytest.raises(UserError, match="differ in length"):
        Feeds.of({"open": np.zeros(2), "close": np.zeros(3)})
    with pytest.raises(UserError, match="differ in length"):
        Feeds.of({"A/close": np.zeros(2), "B/close": np.zeros(3)})
