"""Factor values from window sums; shared by the array and the streaming form, so that both agree to the bit.

Every function takes the number of present values and their sums, and returns NaN where fewer than ``enough``
are present or the value is undefined.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core import exact
from tradeassay.core.view import Floats

_ROUNDING = 1e-13
"""A sum of squared deviations below this share of the sum of squares is rounding noise, not spread."""

YEAR = float(np.sqrt(252.0))


def centred(n: Floats, sums: Floats, squares: Floats) -> Floats:
    """Return sums of squared deviations from the mean, exactly 0 where only rounding is left."""
    deviations = squares - sums * sums / n
    return np.where(deviations <= _ROUNDING * squares, 0.0, deviations)


def average(n: Floats, sums: Floats, enough: int) -> Floats:
    """Return the mean."""
    return np.where(n >= enough, sums / n, np.nan)


def spread(n: Floats, sums: Floats, squares: Floats, enough: int) -> Floats:
    """Return the sample standard deviation (ddof 1)."""
    return np.where(n >= enough, np.sqrt(centred(n, sums, squares) / (n - 1.0)), np.nan)


def skewness(n: Floats, sums: Floats, squares: Floats, cubes: Floats, enough: int) -> Floats:
    """Return the bias-corrected sample skewness (adjusted Fisher-Pearson); NaN without spread."""
    deviations = centred(n, sums, squares)
    mean = sums / n
    third = cubes - 3.0 * mean * squares + 2.0 * n * mean * mean * mean
    scale = np.sqrt(deviations / (n - 1.0))
    value = third * n / ((n - 1.0) * (n - 2.0)) / (scale * scale * scale)
    return np.where((n >= enough) & (deviations > 0), value, np.nan)


def correlation(n: Floats, x: Floats, y: Floats, xx: Floats, yy: Floats, xy: Floats, enough: int) -> Floats:
    """Return Pearson's correlation, within [-1, 1]; NaN where either side has no spread."""
    var_x, var_y = centred(n, x, xx), centred(n, y, yy)
    value = (xy - x * y / n) / np.sqrt(var_x * var_y)
    inside = np.minimum(np.maximum(value, -1.0), 1.0)
    return np.where((n >= enough) & (var_x > 0) & (var_y > 0), inside, np.nan)


def log_average(n: Floats, sums: Floats, enough: int) -> Floats:
    """Return the logarithm of the mean; NaN where the mean is not positive."""
    return exact.log(average(n, sums, enough))


def relative_spread(n: Floats, sums: Floats, squares: Floats, enough: int) -> Floats:
    """Return standard deviation over mean; NaN where the mean is not positive."""
    mean = sums / n
    return np.where(mean > 0, spread(n, sums, squares, enough) / mean, np.nan)
