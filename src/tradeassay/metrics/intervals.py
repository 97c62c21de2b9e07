"""Intervals from resampled values, Wilson's for shares, and the variance of a mean of dependent values."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats

_MOST_UNDEFINED = 0.05


def significant(value: float, digits: int = 12) -> float:
    """Return ``value`` rounded to ``digits`` significant digits.

    Stored numbers are rounded so that the last bits, in which machines may differ, do not change a file.
    """
    return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value


def between(value: float, ends: tuple[float, float], level: float, n: int, note: str | None = None) -> Measure:
    """Return a measure with its interval, rounded as stored numbers are."""
    low, high = (significant(float(end)) for end in ends)
    return Measure(value=significant(value), low=low, high=high, level=level, n=n, note=note)


def percentile_interval(drawn: Floats, level: float) -> tuple[float, float] | None:
    """Return the central ``level`` interval of resampled values, shape (draws,).

    None when more than 5 % of the resamples have no value: the rest would be a biased picture.
    """
    defined = drawn[np.isfinite(drawn)]
    if defined.size == 0 or defined.size < (1.0 - _MOST_UNDEFINED) * drawn.size:
        return None
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return significant(float(low)), significant(float(high))


def wilson_interval(successes: float, n: int, level: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share (Wilson 1927); it stays inside 0..1 and has width at 0 and 1."""
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At the ends the formula gives 0 and 1 apart from rounding.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return significant(low), significant(high)


def measure_from(value: float, drawn: Floats | None, *, level: float, n: int, note: str | None = None) -> Measure:
    """Return a measure with its percentile interval, or with a note when none can be given.

    ``drawn`` are resampled values, None when ``note`` says why there are none.
    """
    if not math.isfinite(value):
        return not_scored("it is not defined for this series")
    bounds = None if drawn is None else percentile_interval(drawn, level)
    if drawn is not None and bounds is None:
        undefined = 100.0 * (1.0 - np.isfinite(drawn).mean())
        note = f"no interval: {undefined:.0f} % of the resamples have no value"
    low, high = bounds if bounds is not None else (None, None)
    return Measure(value=significant(value), low=low, high=high, level=level, n=n, note=note)


def rate_measure(successes: int, n: int, *, nothing: str, level: float = 0.95) -> Measure:
    """Return successes / n with Wilson's score interval, or no value because of ``nothing`` when n is 0."""
    if n == 0:
        return not_scored(nothing)
    low, high = wilson_interval(successes, n, level)
    return Measure(
        value=significant(successes / n), low=low, high=high, level=level, n=n, note="interval by Wilson's formula"
    )


def long_run_variance(values: Floats, lags: int) -> Floats:
    """Return the variance of sqrt(n) x mean along the last axis, by Bartlett's kernel (Newey and West 1987).

    ``values`` has shape (..., n); ``lags`` autocovariances are counted, 0 gives the plain variance (divided by n).
    Never negative; NaN with no observation.
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    if n == 0:
        return np.full(values.shape[:-1], np.nan)
    centred = values - values.mean(axis=-1, keepdims=True)
    total = (centred * centred).sum(axis=-1)
    for lag in range(1, min(lags, n - 1) + 1):
        total = total + 2.0 * (1.0 - lag / (lags + 1.0)) * (centred[..., lag:] * centred[..., :-lag]).sum(axis=-1)
    return np.asarray(total / n)


def variance_inflation(values: Floats, lags: int) -> float:
    """Return how many times larger the variance of the mean is than for independent observations.

    1 for a series that does not vary. The effective number of observations is n divided by this.
    """
    plain = float(long_run_variance(values, 0))
    return float(long_run_variance(values, lags)) / plain if plain > 0.0 else 1.0


def ar1_inflation(correlation: float) -> float:
    """Return the variance inflation of a first-order autoregression: (1 + c) / (1 - c)."""
    return (1.0 + correlation) / (1.0 - correlation)
