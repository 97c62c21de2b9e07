"""Sums over windows of sessions, and factor values computed from these sums.

A window of 60 is the sum of blocks of 32, 16, 8 and 4 values, and a block of 2k is two blocks of k.
A sum therefore costs a few array additions and has no cancellation, unlike differences of
cumulative sums. It depends only on the values inside its window. It has the same bits whether it is
computed for one row or for many. Time is the first axis. Missing rows before the first value are
zero in sums and minus infinity in maxima.

The second half of the module turns sums into values. Each function there takes the number of
present values and their sums. It returns NaN if fewer than ``enough`` values are present or the
value is undefined. All implementations of the factors use these functions.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Bools, Floats, Ints

_Number = TypeVar("_Number", np.float64, np.uint8)

_ROUNDING = 1e-13
"""A sum of squared deviations below this share of the sum of squares is rounding noise."""

YEAR = float(np.sqrt(252.0))

_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
_LOG_SERIES = tuple(
    float.fromhex(one)
    for one in (
        "0x1.0p+0 0x1.55555555555aep-2 0x1.999999997ae5dp-3 0x1.2492494518370p-3 "
        "0x1.c71c4ffcc4142p-4 "
        "0x1.74669a1004d6ep-4 0x1.3999ab33ca2e3p-4 0x1.2f4e5bc67e798p-4"
    ).split()
)
"""atanh(s) / s as a polynomial in s * s: interpolated at Chebyshev nodes, error below 1e-17."""


def rolling_sum(values: NDArray[_Number], window: int) -> NDArray[_Number]:
    return rolling_sums(values, window)[0]


def rolling_sums(values: NDArray[_Number], *windows: int) -> list[NDArray[_Number]]:
    """Return :func:`rolling_sum` for several windows, which share their blocks."""
    widest = max(windows)
    blocks = [values]
    size = 1
    while size * 2 <= widest:
        block = blocks[-1]
        double = np.empty_like(block)
        double[:size] = block[:size]
        np.add(block[size:], block[:-size], out=double[size:])
        blocks.append(double)
        size *= 2
    return [_added(blocks, window) for window in windows]


def _added(blocks: list[NDArray[_Number]], window: int) -> NDArray[_Number]:
    """Return the sum over a window. Blocks are added from the largest and latest on."""
    level = window.bit_length() - 1
    offset = 1 << level
    largest, result = blocks[level], None
    for lower in reversed(range(level)):
        if window & (1 << lower):
            if result is None:
                result = np.empty_like(largest)
                result[:offset] = largest[:offset]
                np.add(largest[offset:], blocks[lower][:-offset], out=result[offset:])
            else:
                result[offset:] += blocks[lower][:-offset]
            offset += 1 << lower
    return largest.copy() if result is None else result


def rolling_max(values: Floats, window: int) -> Floats:
    block, size = values, 1
    while size * 2 <= window:
        block, size = _higher(block, size), size * 2
    return _higher(block, window - size) if window > size else block.copy()


def _higher(values: Floats, back: int) -> Floats:
    """Return the maximum of each value and the value ``back`` rows earlier."""
    result = np.empty_like(values)
    result[:back] = values[:back]
    np.maximum(values[back:], values[:-back], out=result[back:])
    return result


def window_sum(values: Floats, window: int) -> Floats:
    """Return only the last row of :func:`rolling_sum`, summed in the same order."""
    missing = window - values.shape[0]
    if missing > 0:
        values = np.concatenate([np.zeros((missing, *values.shape[1:])), values])
    total: Floats | None = None
    end, size = values.shape[0], 1 << (window.bit_length() - 1)
    while size:
        if window & size:
            block = values[end - size : end]
            while len(block) > 1:  # neighbours first
                block = block[0::2] + block[1::2]
            total = block[0] if total is None else total + block[0]
            end -= size
        size >>= 1
    assert total is not None
    return total


def centred(n: Floats, sums: Floats, squares: Floats) -> Floats:
    """Return sums of squared deviations from the mean, or exactly 0 for mere rounding noise."""
    # Work in place where possible. Long arrays are limited by memory bandwidth, not by arithmetic.
    deviations: Floats = sums * sums
    deviations /= n
    np.subtract(squares, deviations, out=deviations)
    np.copyto(deviations, 0.0, where=deviations <= _ROUNDING * squares)
    return deviations


def keep(values: Floats, known: Bools) -> Floats:
    # Several times faster than np.where if nearly all values are known.
    np.copyto(values, np.nan, where=~known)
    return values


def log(values: Floats) -> Floats:
    """Return natural logarithms within 2 ulp.

    The result is NaN for zero, negative, infinite and missing values.
    """
    # The digits of a series seed its resamples, and recorded intervals depend on these resamples.
    # So a factor must keep its last digit, even if numpy's own logarithm changes.
    mantissa, exponent = np.frexp(values)
    small = mantissa < _SQRT_HALF
    mantissa = mantissa * (1.0 + small)
    power = (exponent - small).astype(np.float64)
    # Long arrays are limited by memory bandwidth, so all operations work in place.
    with np.errstate(all="ignore"):
        s = mantissa - 1.0
        mantissa = np.add(mantissa, 1.0, out=np.asarray(mantissa))
        s = np.divide(s, mantissa, out=np.asarray(s))
    z = np.multiply(s, s, out=mantissa)
    series = np.full_like(s, _LOG_SERIES[-1])
    for coefficient in reversed(_LOG_SERIES[:-1]):
        series *= z
        series += coefficient
    s *= 2.0
    s *= series
    s += np.multiply(power, _LN2_LOW, out=series)
    power *= _LN2_HIGH
    s += power
    return keep(s, values > 0)


def average(n: Floats, sums: Floats, enough: int) -> Floats:
    return keep(sums / n, n >= enough)


def spread(n: Floats, deviations: Floats, enough: int) -> Floats:
    """Return the sample standard deviation (ddof 1) from :func:`centred` sums."""
    value: Floats = n - 1.0
    value = (
        np.divide(deviations, value, out=value)
        if value.shape == deviations.shape
        else deviations / value
    )
    return keep(np.sqrt(value, out=value), n >= enough)


def skewness(
    n: Floats, sums: Floats, squares: Floats, cubes: Floats, deviations: Floats, enough: int
) -> Floats:
    """Return the bias-corrected sample skewness (adjusted Fisher-Pearson).

    It is NaN without spread.
    """
    mean = sums / n
    value: Floats = 3.0 * mean
    value *= squares
    np.subtract(cubes, value, out=value)
    part: Floats = 2.0 * n
    for _ in range(3):
        part *= mean
    value += part
    value *= n
    less = n - 1.0
    scale = np.sqrt(np.divide(deviations, less, out=mean), out=mean)
    less *= np.subtract(n, 2.0, out=part)
    value /= less
    np.multiply(scale, scale, out=part)
    part *= scale
    value /= part
    return keep(value, (n >= enough) & (deviations > 0))


def correlation(
    n: Floats, x: Floats, y: Floats, product: Floats, deviations: tuple[Floats, Floats], enough: int
) -> Floats:
    """Return Pearson's correlation within [-1, 1], or NaN if a series has no spread.

    ``product`` contains the sums of products, ``deviations`` the :func:`centred` sums of both
    series.
    """
    both = deviations[0] * deviations[1]
    value: Floats = x * y
    value /= n
    np.subtract(product, value, out=value)
    value /= np.sqrt(both)
    np.minimum(np.maximum(value, -1.0, out=value), 1.0, out=value)
    return keep(value, (n >= enough) & (both > 0))


def relative_spread(n: Floats, sums: Floats, squares: Floats, enough: int) -> Floats:
    """Return the standard deviation divided by the mean, or NaN if the mean is not positive."""
    value = spread(n, centred(n, sums, squares), enough)
    value /= sums / n
    return keep(value, sums > 0)


def winsorise(values: Floats, low: float = 0.01, high: float = 0.99) -> Floats:
    """Return values limited to two quantiles of their row. NaN stays NaN.

    Names are on the last axis. Quantiles use the present values of each row and interpolate
    linearly between order statistics.
    """
    names = values.shape[-1]
    if names == 0:
        return values.copy()
    ordered = np.sort(values, axis=-1).reshape(-1, names)
    last = np.maximum(np.isfinite(ordered).sum(axis=-1) - 1, 0)
    shape = (*values.shape[:-1], 1)
    bottom = _quantile(ordered, last, low).reshape(shape)
    top = _quantile(ordered, last, high).reshape(shape)
    result: Floats = np.minimum(np.maximum(values, bottom), top)
    return result


def _quantile(ordered: Floats, last: Ints, share: float) -> Floats:
    place = last * share
    below = place.astype(np.int64)
    rows = np.arange(last.size)
    low = ordered[rows, below]
    result: Floats = low + (ordered[rows, np.minimum(below + 1, last)] - low) * (place - below)
    return result


def zscore(values: Floats) -> Floats:
    """Return (value - mean) / standard deviation (ddof 0) across the present names of each row.

    Names are on the last axis. NaN stays NaN. A row without spread, or with one name, becomes 0.
    """
    missing = np.isnan(values)
    n = np.maximum(values.shape[-1] - missing.sum(axis=-1), 1)[..., None]
    gap = values.copy()
    np.copyto(gap, 0.0, where=missing)
    # A running sum has a fixed order of addition. The order of numpy's sum depends on memory layout
    # and processor.
    mean = np.cumsum(gap, axis=-1)[..., -1:] / n
    np.subtract(values, mean, out=gap)
    np.copyto(gap, 0.0, where=missing)
    scale = np.sqrt(np.cumsum(gap * gap, axis=-1)[..., -1:] / n)
    flat = scale <= 1e-12 * np.abs(mean)
    np.copyto(scale, np.inf, where=flat)
    np.copyto(gap, np.nan, where=missing)
    gap /= scale
    return gap


def standardise(values: Floats) -> Floats:
    """Return z-scores of values winsorised at 1 and 99 %."""
    return zscore(winsorise(values))
