"""Factor values for every session and name.

The value in row t uses rows up to and including t: it is what is known at the close of session t. Whoever
needs "strictly before day d" takes the row of the session before d, or the last row of an as-of view.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tradeassay.core import exact
from tradeassay.core.view import Bools, Floats
from tradeassay.factors import moments
from tradeassay.factors.bars import FactorBars
from tradeassay.factors.definition import FACTOR_NAMES, definition
from tradeassay.factors.last_row import SKIPPED, last_row
from tradeassay.factors.rolling import rolling_max, rolling_sum

_CELLS = 1 << 16
"""Cells per block: some ten arrays of this size fit into a core's second-level cache."""


def compute(factor: str, bars: FactorBars) -> Floats:
    """Return one factor, shape (sessions, names); raises :class:`UserError` for an unknown name."""
    value: Floats = _compute((definition(factor).name,), bars)[0]
    return value


def compute_all(bars: FactorBars) -> dict[str, Floats]:
    """Return all nine factors by name, each of shape (sessions, names)."""
    values = _compute(FACTOR_NAMES, bars)
    return {name: values[k] for k, name in enumerate(FACTOR_NAMES)}


def latest(factor: str, bars: FactorBars) -> Floats:
    """Return the last row of :func:`compute`, shape (names,), from the last bars only; NaN without bars."""
    chosen = definition(factor)
    if bars.close.shape[0] == 0:
        return np.full(bars.close.shape[1], np.nan)
    last: Floats = compute(chosen.name, bars.last(chosen.rows))[-1]
    return last


def latest_all(bars: FactorBars) -> dict[str, Floats]:
    """Return the last row of every factor by name, shape (names,) each."""
    values = last_row(bars)
    return {name: values[k] for k, name in enumerate(FACTOR_NAMES)}


def _compute(names: Sequence[str], bars: FactorBars) -> Floats:
    sessions, columns = bars.close.shape
    values = np.empty((len(names), sessions, columns))
    step = max(1, _CELLS // max(1, sessions))
    with np.errstate(all="ignore"):
        for first in range(0, columns, step):
            block = _Block(bars, slice(first, first + step))
            for k, name in enumerate(names):
                values[k, :, first : first + step] = block.value(name)
    return values


class _Block:
    """Some columns, copied together; series shared by several factors are made once."""

    def __init__(self, bars: FactorBars, columns: slice) -> None:
        self._bars = bars
        self._columns = columns

    def value(self, name: str) -> Floats:
        enough = definition(name).enough
        value: Floats = getattr(self, f"_{name.lower()}")(enough)
        return value

    def _take(self, array: Floats) -> Floats:
        taken = np.array(array[:, self._columns], dtype=np.float64, order="C")
        if (taken <= 0).any():
            moments.keep(taken, taken > 0)
        return taken

    @cached_property
    def open(self) -> Floats:
        return self._take(self._bars.open)

    @cached_property
    def close(self) -> Floats:
        return self._take(self._bars.close)

    @cached_property
    def amount(self) -> Floats:
        return self._take(self._bars.amount)

    @cached_property
    def returns(self) -> Floats:
        return self.close / _shift(self.close) - 1.0

    @cached_property
    def _moments_60(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Count, sum, sum of squares, sum of cubes, sum of squared deviations."""
        x, n = _counted(self.returns, 60)
        square = x * x
        sums, squares = rolling_sum(x, 60), rolling_sum(square, 60)
        return n, sums, squares, rolling_sum(square * x, 60), moments.centred(n, sums, squares)

    def _mom_12_1(self, enough: int) -> Floats:
        sessions = self.close.shape[0]
        rows = np.arange(sessions, dtype=np.int32)[:, None]
        present = ~np.isnan(self.close)
        last = np.maximum.accumulate(np.where(present, rows, np.int32(-1)), axis=0)
        first = np.minimum.accumulate(np.where(present, rows, np.int32(sessions))[::-1], axis=0)[::-1]
        near = last[np.maximum(rows[:, 0] - (SKIPPED - 1), 0)]
        far = first[np.maximum(rows[:, 0] - 251, 0)]
        known = (rolling_sum(present.view(np.uint8), 252) >= enough) & (far <= near) & (near >= rows - 251)
        known &= rows >= SKIPPED - 1
        value = _at(self.close, np.maximum(near, 0)) / _at(self.close, np.minimum(far, sessions - 1))
        return moments.keep(value - 1.0, known)

    def _rv_60(self, enough: int) -> Floats:
        n, _, _, _, deviations = self._moments_60
        return moments.spread(n, deviations, enough) * moments.YEAR

    def _skew(self, enough: int) -> Floats:
        n, x, xx, xxx, deviations = self._moments_60
        return -moments.skewness(n, x, xx, xxx, deviations, enough)

    def _illiq(self, enough: int) -> Floats:
        x, n = _counted(np.abs(self.returns) / self.amount, 20)
        return exact.log(moments.average(n, rolling_sum(x, 20), enough))

    def _rev_on(self, enough: int) -> Floats:
        x, n = _counted(self.open / _shift(self.close) - 1.0, 20)
        return moments.average(n, rolling_sum(x, 20), enough)

    def _mom_id(self, enough: int) -> Floats:
        x, n = _counted(self.close / self.open - 1.0, 20)
        return moments.average(n, rolling_sum(x, 20), enough)

    def _corr_pv(self, enough: int) -> Floats:
        volume = self._take(self._bars.volume)
        change = exact.log(volume / _shift(volume))
        x, y, n = _counted_pair(self.returns, change, 20)
        sum_x, sum_y, product = (rolling_sum(z, 20) for z in (x, y, x * y))
        spread_x = moments.centred(n, sum_x, rolling_sum(x * x, 20))
        spread_y = moments.centred(n, sum_y, rolling_sum(y * y, 20))
        return moments.correlation(n, sum_x, sum_y, product, (spread_x, spread_y), enough)

    def _high_52w(self, enough: int) -> Floats:
        high = self._take(self._bars.high)
        present = ~np.isnan(high)
        np.copyto(high, -np.inf, where=~present)
        top = rolling_max(high, 252)
        known = rolling_sum(present.view(np.uint8), 252) >= enough
        rows = np.arange(high.shape[0], dtype=np.int32)[:, None]
        row = np.maximum.accumulate(np.where(np.isnan(self.close), np.int32(-1), rows), axis=0)
        close = _at(self.close, np.maximum(row, 0))
        return moments.keep(close / top, known & (row >= rows - 251))

    def _cv_vol(self, enough: int) -> Floats:
        x, n = _counted(self.amount, 20)
        return moments.relative_spread(n, rolling_sum(x, 20), rolling_sum(x * x, 20), enough)


def _shift(values: Floats) -> Floats:
    """Return the previous value; NaN before the first."""
    shifted = np.empty_like(values)
    shifted[:1] = np.nan
    shifted[1:] = values[:-1]
    return shifted


def _at(values: Floats, rows: NDArray[np.int32]) -> Floats:
    """Return each column's values at its own rows."""
    result: Floats = values[rows, np.arange(values.shape[1])]
    return result


def _count(present: Bools, window: int) -> Floats:
    counted: NDArray[np.uint8] = rolling_sum(present.view(np.uint8), window)
    return counted.astype(np.float64)


def _counted(values: Floats, window: int) -> tuple[Floats, Floats]:
    """Return the values with 0 for missing ones, and how many of a window are present."""
    present = np.isfinite(values)
    return _filled(values, present), _count(present, window)


def _counted_pair(x: Floats, y: Floats, window: int) -> tuple[Floats, Floats, Floats]:
    present = np.isfinite(x) & np.isfinite(y)
    return _filled(x, present), _filled(y, present), _count(present, window)


def _filled(values: Floats, present: Bools) -> Floats:
    if present.all():
        return values
    filled = values.copy()
    np.copyto(filled, 0.0, where=~present)
    return filled
