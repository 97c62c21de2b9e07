"""Arithmetic whose last bit is the same on every machine.

IEEE 754 fixes the last bit of ``+ - * /``, of square roots, of rounding and of comparisons. It does not fix
logarithms and exponentials (numpy and the C library choose a variant by CPU), nor the order in which a reduction
or a matrix product adds. Whatever must be reproducible to the byte uses elementwise operations and the functions
here. Plain numbers are added by :func:`tradeassay.core.measure.plain_sum`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_INV_LN2 = float.fromhex("0x1.71547652b82fep+0")
_SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
_LOG_SERIES = tuple(
    float.fromhex(one)
    for one in (
        "0x1.0p+0 0x1.55555555555aep-2 0x1.999999997ae5dp-3 0x1.2492494518370p-3 0x1.c71c4ffcc4142p-4 "
        "0x1.74669a1004d6ep-4 0x1.3999ab33ca2e3p-4 0x1.2f4e5bc67e798p-4"
    ).split()
)
"""atanh(s) / s as a polynomial in s * s: interpolated at Chebyshev nodes, error below 1e-17."""
_EXP_SERIES = tuple(1 / math.factorial(n) for n in range(14))


def log(values: ArrayLike) -> Floats:
    """Return natural logarithms within 2 ulp; NaN for zero, negative, infinite and missing values."""
    x = np.asarray(values, dtype=np.float64)
    mantissa, exponent = np.frexp(x)
    small = mantissa < _SQRT_HALF
    mantissa = mantissa * (1.0 + small)
    power = (exponent - small).astype(np.float64)
    # Long arrays are bound by memory rather than arithmetic, so everything happens in place.
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
    result: Floats = np.asarray(s)
    np.copyto(result, np.nan, where=~(x > 0))
    return result


def exp(values: ArrayLike) -> Floats:
    x = np.asarray(values, dtype=np.float64)
    power = np.rint(x * _INV_LN2)
    r = (x - power * _LN2_HIGH) - power * _LN2_LOW
    series = np.full_like(r, _EXP_SERIES[-1])
    for coefficient in reversed(_EXP_SERIES[:-1]):
        series *= r
        series += coefficient
    result: Floats = np.ldexp(series, np.nan_to_num(power).astype(np.int32))
    return result


def total(values: Floats, axis: int = -1) -> Floats:
    """Return sums along ``axis``, added one after another; 0 over nothing."""
    # A running sum has only one possible order; numpy's reductions choose theirs by layout and CPU.
    if values.shape[axis] == 0:
        return np.zeros(np.delete(values.shape, axis))
    result: Floats = np.add.accumulate(values, axis=axis).take(-1, axis=axis)
    return result


def mean(values: Floats, axis: int = -1) -> Floats:
    """Return means along ``axis`` (the sum of :func:`total` over the count)."""
    result: Floats = total(values, axis) / values.shape[axis]
    return result
