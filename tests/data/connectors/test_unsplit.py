from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradeassay.data.connectors.yfinance import VendorSplit, factor_after, not_applied

DAYS = np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-03-01"))
RATIOS = st.sampled_from([0.1, 0.5, 1.5, 2.0, 3.0, 4.0, 20.0])


def test_factors_by_hand():
    days = DAYS[:4]
    splits = [VendorSplit(days[1], 4.0), VendorSplit(days[3], 0.5)]
    assert factor_after(days, splits).tolist() == [2.0, 0.5, 0.5, 1.0]
    assert factor_after(days, splits, same_day=True).tolist() == [2.0, 2.0, 0.5, 0.5]


@given(
    prices=st.lists(st.integers(100, 10_000_000), min_size=60, max_size=60),
    splits=st.dictionaries(st.integers(0, 59), RATIOS, max_size=4),
)
def test_undoing_what_a_vendor_does_gives_the_traded_prices(prices, splits):
    traded = np.array(prices) / 10_000
    events = [VendorSplit(DAYS[row], ratio) for row, ratio in splits.items()]
    adjusted = traded.copy()
    for row, ratio in splits.items():
        adjusted[:row] /= ratio
    back = np.round(adjusted * factor_after(DAYS, events), 4)
    assert back.tolist() == traded.tolist()


@pytest.mark.parametrize("ratio", [2.0, 4.0, 10.0, 0.1, 1.5])
def test_a_smooth_series_was_adjusted_and_a_jump_was_not(ratio):
    split = VendorSplit(DAYS[2], ratio)
    days, smooth = DAYS[:4], np.array([100.0, 101.0, 97.0, 99.0])
    assert not_applied(days, smooth, smooth, [split]) == []
    jump = np.array([100.0, 101.0, 97.0 / ratio, 99.0 / ratio])
    assert not_applied(days, jump, jump, [split]) == [split]


def test_small_and_unbounded_splits_are_taken_on_trust():
    days, flat = DAYS[:3], np.array([105.0, 105.0, 100.0])
    assert not_applied(days, flat, flat, [VendorSplit(days[2], 1.05)]) == []
    assert not_applied(days, flat, flat, [VendorSplit(days[0], 4.0), VendorSplit(DAYS[9], 4.0)]) == []
