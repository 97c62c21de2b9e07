"""The nine factors of the last session alone, which is all that a decision needs.

The sums are added up in the order of :func:`~tradeassay.factors.rolling.rolling_sum`, so that the values equal
the last row of :func:`~tradeassay.factors.compute.compute_all` to the last bit, at a small part of its cost.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core import exact
from tradeassay.core.view import Bools, Floats, MarketView
from tradeassay.factors import moments
from tradeassay.factors.bars import FactorBars
from tradeassay.factors.definition import FACTOR_NAMES, definition

SKIPPED = 21
"""MOM_12_1 leaves out the last month: its nearer end is ``close[-21]``."""
_YEAR, _LONG, _SHORT = 252, 60, 20
_AT = {name: k for k, name in enumerate(FACTOR_NAMES)}
_ENOUGH = {name: definition(name).enough for name in FACTOR_NAMES}


def last_row(bars: FactorBars) -> Floats:
    """Return the factors at the close of the last session, shape (9, names), in the order of ``FACTOR_NAMES``.

    NaN where a value is missing, and everywhere without bars.
    """
    return _last_row(bars.open, bars.high, bars.close, bars.volume, bars.amount)


def last_row_of(view: MarketView) -> Floats:
    """Return the factors known now, shape (9, columns of the view); no more bars are read than they need."""
    return _last_row(
        view.bars("open", _SHORT),
        view.bars("high", _YEAR),
        view.bars("close", _YEAR),
        view.bars("volume", _SHORT + 1),
        view.bars("amount", _SHORT),
    )


def _last_row(opened: Floats, high: Floats, close: Floats, volume: Floats, amount: Floats) -> Floats:
    sessions, names = close.shape
    values = np.full((len(FACTOR_NAMES), names), np.nan)
    if sessions == 0 or names == 0:
        return values
    with np.errstate(all="ignore"):
        _year(close[-_YEAR:], high[-_YEAR:], values)
        near = _known(close[-(_LONG + 1) :])
        returns = near[1:] / near[:-1] - 1.0
        _long(returns, values)
        _short((opened, near[-(_SHORT + 1) :], volume, amount), returns[-_SHORT:], values)
    return values


def _known(array: Floats) -> Floats:
    """Return a copy with NaN for what is not positive."""
    taken = np.array(array, dtype=np.float64, order="C")
    np.copyto(taken, np.nan, where=~(taken > 0))
    return taken


def _tree(values: Floats) -> Floats:
    """Return the sum over the first axis, whose length is a power of two, neighbours first."""
    while values.shape[0] > 1:
        values = values[0::2] + values[1::2]
    first: Floats = values[0]
    return first


def _window_sum(values: Floats, window: int) -> Floats:
    """Return the sum of the last ``window`` rows; absent rows count as zero."""
    missing = window - values.shape[0]
    if missing > 0:
        values = np.concatenate([np.zeros((missing, *values.shape[1:])), values])
    end, size, total = values.shape[0], 1 << (window.bit_length() - 1), None
    while size:
        if window & size:
            block = _tree(values[end - size : end])
            total = block if total is None else total + block
            end -= size
        size >>= 1
    assert total is not None
    return total


def _year(close: Floats, high: Floats, values: Floats) -> None:
    """Fill MOM_12_1 and HIGH_52W."""
    present = close > 0
    highs = high > 0
    rows = close.shape[0]
    counted = _count(present)
    values[_AT["MOM_12_1"]] = _momentum(close, present, counted >= _ENOUGH["MOM_12_1"], rows)
    top = np.fmax.reduce(high, axis=0)
    last = close[-1].copy()
    for column in np.flatnonzero(~present[-1]).tolist():
        at = np.flatnonzero(present[:, column])
        last[column] = close[at[-1], column] if at.size else np.nan
    values[_AT["HIGH_52W"]] = moments.keep(last / top, _count(highs) >= _ENOUGH["HIGH_52W"])


def _count(present: Bools) -> Floats:
    # A window has at most 252 rows, so that a byte is wide enough, and bytes are added up fast.
    counted = np.add.reduce(present.view(np.uint8), axis=0, dtype=np.uint8)
    return np.asarray(counted.astype(np.float64))


def _momentum(close: Floats, present: Bools, known: Bools, rows: int) -> Floats:
    if rows < SKIPPED or not known.any():
        return np.full(close.shape[1], np.nan)
    month = rows - SKIPPED
    near, far = close[month].copy(), close[0].copy()
    for column in np.flatnonzero(known & ~(present[month] & present[0])).tolist():
        at = np.flatnonzero(present[: month + 1, column])
        near[column] = close[at[-1], column] if at.size else np.nan
        far[column] = close[at[0], column] if at.size else np.nan
    return moments.keep(near / far - 1.0, known)


def _long(returns: Floats, values: Floats) -> None:
    """Fill RV_60 and SKEW."""
    present = np.isfinite(returns)
    x = np.where(present, returns, 0.0)
    square = x * x
    n = _count(present)
    sums, squares, cubes = _window_sum(x, _LONG), _window_sum(square, _LONG), _window_sum(square * x, _LONG)
    deviations = moments.centred(n, sums, squares)
    values[_AT["RV_60"]] = moments.spread(n, deviations, _ENOUGH["RV_60"]) * moments.YEAR
    values[_AT["SKEW"]] = -moments.skewness(n, sums, squares, cubes, deviations, _ENOUGH["SKEW"])


def _short(bars: tuple[Floats, Floats, Floats, Floats], returns: Floats, values: Floats) -> None:
    """Fill the factors of twenty sessions from open, close (one row more), volume and amount."""
    close = bars[1]
    lagged = returns.shape[0]
    opened, amount = _known(bars[0][-_SHORT:]), _known(bars[3][-_SHORT:])
    volume = _known(bars[2][-(_SHORT + 1) :])
    rows = opened.shape[0]
    change = exact.log(volume[1:] / volume[:-1])
    # The first session of all has no predecessor: its row stays missing.
    series = np.full((rows, 4, close.shape[1]), np.nan)
    series[rows - lagged :, 0] = np.abs(returns) / amount[rows - lagged :]
    series[rows - lagged :, 1] = opened[rows - lagged :] / close[:-1] - 1.0
    series[:, 2] = close[-rows:] / opened - 1.0
    series[:, 3] = amount
    present = np.isfinite(series)
    np.copyto(series, 0.0, where=~present)
    n = _count(present)
    sums = _window_sum(series, _SHORT)
    means = moments.average(n[:3], sums[:3], _ENOUGH["ILLIQ"])
    values[_AT["ILLIQ"]] = exact.log(means[0])
    values[_AT["REV_ON"]] = means[1]
    values[_AT["MOM_ID"]] = means[2]
    squares = _window_sum(series[:, 3] * series[:, 3], _SHORT)
    values[_AT["CV_VOL"]] = moments.relative_spread(n[3], sums[3], squares, _ENOUGH["CV_VOL"])
    values[_AT["CORR_PV"]] = _correlation(returns, change)


def _correlation(returns: Floats, change: Floats) -> Floats:
    present = np.isfinite(returns) & np.isfinite(change)
    pair = np.stack([returns, change], axis=1)
    np.copyto(pair, 0.0, where=~present[:, None])
    n = _count(present)
    sums, squares = _window_sum(pair, _SHORT), _window_sum(pair * pair, _SHORT)
    product = _window_sum(pair[:, 0] * pair[:, 1], _SHORT)
    first, second = moments.centred(n, sums, squares)
    return moments.correlation(n, sums[0], sums[1], product, (first, second), _ENOUGH["CORR_PV"])
