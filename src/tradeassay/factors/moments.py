"""Factor values from window sums; shared by the array and the streaming form, so that both agree to the bit.

Every function takes the number of present values and their sums, and returns NaN where fewer than ``enough``
are present or the value is undefined.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Bools, Floats

_ROUNDING = 1e-13
"""A sum of squared deviations below this share of the sum of squares is rounding noise, not spread."""

YEAR = float(np.sqrt(252.0))


def centred(n: Floats, sums: Floats, squares: Floats) -> Floats:
    """Return sums of squared deviations from the mean, exactly 0 where only rounding is left."""
    # In place wherever it can be: long arrays wait for memory, not for arithmetic.
    deviations: Floats = sums * sums
    deviations /= n
    np.subtract(squares, deviations, out=deviations)
    np.copyto(deviations, 0.0, where=deviations <= _ROUNDING * squares)
    return deviations


def keep(values: Floats, known: Bools) -> Floats:
    """Return ``values``, made missing in place where they are not known."""
    # Several times faster than np.where when nearly everything is known.
    np.copyto(values, np.nan, where=~known)
    return values


def average(n: Floats, sums: Floats, enough: int) -> Floats:
    """Return the mean."""
    return keep(sums / n, n >= enough)


def spread(n: Floats, deviations: Floats, enough: int) -> Floats:
    """Return the sample standard deviation (ddof 1) from :func:`centred` sums."""
    value: Floats = n - 1.0
    value = np.divide(deviations, value, out=value) if value.shape == deviations.shape else deviations / value
    return keep(np.sqrt(value, out=value), n >= enough)


def skewness(n: Floats, sums: Floats, squares: Floats, cubes: Floats, deviations: Floats, enough: int) -> Floats:
    """Return the bias-corrected sample skewness (adjusted Fisher-Pearson); NaN without spread."""
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
    """Return Pearson's correlation, within [-1, 1]; NaN where either side has no spread.

    ``product`` holds the sums of products, ``deviations`` the :func:`centred` sums of both series.
    """
    both = deviations[0] * deviations[1]
    value: Floats = x * y
    value /= n
    np.subtract(product, value, out=value)
    value /= np.sqrt(both)
    np.minimum(np.maximum(value, -1.0, out=value), 1.0, out=value)
    return keep(value, (n >= enough) & (both > 0))


def relative_spread(n: Floats, sums: Floats, squares: Floats, enough: int) -> Floats:
    """Return standard deviation over mean; NaN where the mean is not positive."""
    value = spread(n, centred(n, sums, squares), enough)
    value /= sums / n
    return keep(value, sums > 0)
