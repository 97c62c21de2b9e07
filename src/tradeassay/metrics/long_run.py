"""The variance of a mean when observations depend on their neighbours."""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Floats


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
