"""Values do not depend on the blocks they are computed in, nor on which fields happen to be missing."""

import numpy as np
import pytest

from tradeassay.factors import FACTOR_NAMES, FactorBars, compute_all, last_row
from tradeassay.factors.rolling import rolling_sum, rolling_sums


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
