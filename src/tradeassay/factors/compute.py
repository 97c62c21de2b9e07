"""Factor values for every session and name.

The value in row t uses rows up to and including t: it is what is known at the close of session t. Whoever
needs "strictly before day d" takes the row of the session before d, or the last row of an as-of view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tradeassay.core import exact
from tradeassay.core.view import Bools, Floats
from tradeassay.factors import moments
from tradeassay.factors.bars import FactorBars
from tradeassay.factors.definition import FACTOR_NAMES, definition
from tradeassay.factors.last_row import SKIPPED, last_row
from tradeassay.factors.rolling import rolling_max, rolling_sum, rolling_sums

_CELLS = 1 << 16
"""Cells per block: some ten arrays of this size fit into a core's second-level cache."""
_WIDTH = 64
"""Names per block of the shorter factors: whole cache lines of a row."""
_REACH = 64
"""Bars up to which a factor is a shorter one; blocks of the others span all sessions."""


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
    places = {name: k for k, name in enumerate(names)}
    long = [name for name in names if definition(name).rows > _REACH]
    short = [name for name in names if definition(name).rows <= _REACH]
    with np.errstate(all="ignore"):
        _fill(
            values,
            {name: places[name] for name in long},
            bars,
            max(1, sessions),
            max(1, _CELLS // max(1, sessions)),
        )
        _fill(values, {name: places[name] for name in short}, bars, _CELLS // _WIDTH, _WIDTH)
    return values


def _fill(values: Floats, places: Mapping[str, int], bars: FactorBars, height: int, width: int) -> None:
    """Compute factors in blocks of ``height`` sessions and ``width`` names.

    A block begins as many sessions early as its factors look back, so that its values are those of the whole.
    """
    if not places:
        return
    sessions, columns = bars.close.shape
    lead = max(definition(name).rows for name in places) - 1
    for first in range(0, columns, width):
        for start in range(0, sessions, height):
            early, stop = max(0, start - lead), min(start + height, sessions)
            block = _Block(bars, slice(early, stop), slice(first, first + width))
            for name, k in places.items():
                values[k, start:stop, first : first + width] = block.value(name)[start - early :]


class _Block:
    """Some sessions of some columns, copied together; series shared by several factors are made once."""

    def __init__(self, bars: FactorBars, rows: slice, columns: slice) -> None:
        self._bars = bars
        self._rows = rows
        self._columns = columns

    def value(self, name: str) -> Floats:
        enough = definition(name).enough
        value: Floats = getattr(self, f"_{name.lower()}")(enough)
        return value

    def _take(self, array: Floats) -> Floats:
        taken = np.array(array[self._rows, self._columns], dtype=np.float64, order="C")
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
        return _change(self.close, _shift(self.close))

    @cached_property
    def _returns_present(self) -> Bools:
        return np.isfinite(self.returns)

    @cached_property
    def _return_sums(self) -> tuple[list[Floats], list[Floats], Floats]:
        """Sums of returns and of their squares over 60 and 20 sessions, and of their cubes over 60."""
        x = _filled(self.returns, self._returns_present)
        square = x * x
        return rolling_sums(x, 60, 20), rolling_sums(square, 60, 20), rolling_sum(square * x, 60)

    @cached_property
    def _moments_60(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Count, sum, sum of squares, sum of cubes, sum of squared deviations."""
        n = _count(self._returns_present, 60)
        sums, squares, cubes = self._return_sums
        return n, sums[0], squares[0], cubes, moments.centred(n, sums[0], squares[0])

    def _mom_12_1(self, enough: int) -> Floats:
        known = self._enough(self.close, enough)
        known[: SKIPPED - 1] = False
        near = _nearest(self.close, SKIPPED - 1, -1, known)
        return moments.keep(near / _nearest(self.close, 251, 1, known) - 1.0, known)

    @staticmethod
    def _enough(values: Floats, enough: int) -> Bools:
        """Return where at least ``enough`` of the last 252 values are present."""
        counted = rolling_sum((~np.isnan(values)).view(np.uint8), 252)
        known: Bools = counted >= enough
        return known

    def _rv_60(self, enough: int) -> Floats:
        n, _, _, _, deviations = self._moments_60
        return moments.spread(n, deviations, enough) * moments.YEAR

    def _skew(self, enough: int) -> Floats:
        n, x, xx, xxx, deviations = self._moments_60
        return -moments.skewness(n, x, xx, xxx, deviations, enough)

    def _illiq(self, enough: int) -> Floats:
        ratio = np.abs(self.returns)
        ratio /= self.amount
        return exact.log(_mean_20(ratio, enough))

    def _rev_on(self, enough: int) -> Floats:
        return _mean_20(_change(self.open, _shift(self.close)), enough)

    def _mom_id(self, enough: int) -> Floats:
        return _mean_20(_change(self.close, self.open), enough)

    def _corr_pv(self, enough: int) -> Floats:
        volume = self._take(self._bars.volume)
        y = exact.log(volume / _shift(volume))
        present = self._returns_present & np.isfinite(y)
        n = _count(present, 20)
        x, y = _filled(self.returns, present), _filled(y, present)
        if np.array_equal(present, self._returns_present):
            (_, sum_x), (_, squares), _ = self._return_sums
        else:
            sum_x, squares = rolling_sum(x, 20), rolling_sum(x * x, 20)
        sum_y, product = rolling_sum(y, 20), rolling_sum(x * y, 20)
        spread_x = moments.centred(n, sum_x, squares)
        spread_y = moments.centred(n, sum_y, rolling_sum(np.multiply(y, y, out=y), 20))
        return moments.correlation(n, sum_x, sum_y, product, (spread_x, spread_y), enough)

    def _high_52w(self, enough: int) -> Floats:
        high = self._take(self._bars.high)
        known = self._enough(high, enough)
        np.copyto(high, -np.inf, where=np.isnan(high))
        return moments.keep(_nearest(self.close, 0, -1, known) / rolling_max(high, 252), known)

    def _cv_vol(self, enough: int) -> Floats:
        present = np.isfinite(self.amount)
        x, n = _filled(self.amount, present), _count(present, 20)
        return moments.relative_spread(n, rolling_sum(x, 20), rolling_sum(x * x, 20), enough)


def _shift(values: Floats) -> Floats:
    """Return the previous value; NaN before the first."""
    shifted = np.empty_like(values)
    shifted[:1] = np.nan
    shifted[1:] = values[:-1]
    return shifted


def _nearest(close: Floats, back: int, step: int, known: Bools) -> Floats:
    """Return the close ``back`` rows before each row (the first one where there are fewer).

    Where it is missing and the value will be ``known``, the next present one in the direction of ``step``
    (1 = later, -1 = earlier) within the year that ends at the row; few are, so they are looked up one by one.
    """
    rows, columns = close.shape
    found = np.empty_like(close)
    found[:back] = close[:1]
    found[back:] = close[: max(rows - back, 0)]
    lost = np.flatnonzero(np.isnan(found) & known)
    oldest = np.maximum(lost // columns - 251, 0) * columns
    place = lost - back * columns
    place = np.where(place < 0, lost % columns, place)
    flat = close.reshape(-1)
    while lost.size:
        place = place + step * columns
        inside = (place >= oldest) & (place <= lost)
        lost, place, oldest = lost[inside], place[inside], oldest[inside]
        values = flat[place]
        found.reshape(-1)[lost] = values
        still = np.isnan(values)
        lost, place, oldest = lost[still], place[still], oldest[still]
    return found


def _count(present: Bools, window: int) -> Floats:
    counted: NDArray[np.uint8] = rolling_sum(present.view(np.uint8), window)
    return counted.astype(np.float64)


def _change(now: Floats, before: Floats) -> Floats:
    """Return now / before - 1."""
    change: Floats = now / before
    change -= 1.0
    return change


def _mean_20(values: Floats, enough: int) -> Floats:
    """Return the mean of what is present in 20 sessions; ``values`` are spent: missing ones become 0."""
    present = np.isfinite(values)
    if not present.all():
        np.copyto(values, 0.0, where=~present)
    return moments.average(_count(present, 20), rolling_sum(values, 20), enough)


def _filled(values: Floats, present: Bools) -> Floats:
    if present.all():
        return values
    filled = values.copy()
    np.copyto(filled, 0.0, where=~present)
    return filled
