"""How long the blocks of a stationary bootstrap should be.

Politis and White (2004), "Automatic block-length selection for the dependent bootstrap", with the corrected
constant of Patton, Politis and White (2009): the mean block length that minimises the mean squared error of
the estimated variance of the sample mean.
"""

from __future__ import annotations

import math

import numpy as np

from tradeassay.core.view import Floats


def longest_block(n: int) -> float:
    """Return the longest mean block length tried for ``n`` observations: min(3 sqrt(n), n / 3), rounded up."""
    return float(math.ceil(min(3.0 * math.sqrt(n), n / 3.0)))


def mean_block_length(values: Floats) -> float:
    """Return the mean block length for one series of shape (n,), in observations, between 1 and the longest.

    1 (no blocks) for a series that does not vary or has fewer than eight observations.
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[0]
    if n < 8:
        return 1.0
    centred = values - values.mean()
    if np.abs(centred).max() <= 1e-12 * np.abs(values).max():
        return 1.0
    run = max(5, int(math.log10(n)))
    lags = min(math.ceil(math.sqrt(n)) + run, n - 2)
    covariance = np.array([np.sum(centred[k:] * centred[: n - k]) for k in range(lags + 1)]) / n
    window = _window(_correlations(centred, covariance * n), n, run, lags)
    k = np.arange(1, window + 1)
    taper = np.minimum(1.0, 2.0 * (1.0 - k / window))
    spectral_slope = 2.0 * float(np.sum(taper * k * covariance[k]))
    spectral_level = float(covariance[0] + 2.0 * np.sum(taper * covariance[k]))
    if spectral_level <= 0.0:
        # A flat-top estimate can turn negative; then only the upper bound is safe.
        return max(1.0, longest_block(n))
    length: float = abs(spectral_slope / spectral_level) ** (2.0 / 3.0) * n ** (1.0 / 3.0)
    return min(max(1.0, length), max(1.0, longest_block(n)))


def _correlations(centred: Floats, cross: Floats) -> Floats:
    """Return abs(autocorrelation) by lag, each scaled by the parts of the series that overlap."""
    squares = centred * centred
    head, tail = np.cumsum(squares), np.cumsum(squares[::-1])
    n = centred.shape[0]
    keep = n - 1 - np.arange(cross.shape[0])
    scale = np.sqrt(head[keep - 1] * tail[keep - 1])
    return np.abs(cross) / np.where(scale > 0, scale, np.inf)


def _window(correlations: Floats, n: int, run: int, lags: int) -> int:
    """Return twice the first lag after which ``run`` correlations in a row are insignificant, at most ``lags``."""
    quiet = correlations < 2.0 * math.sqrt(math.log10(n) / n)
    for lag in range(lags - run + 1):
        if quiet[lag : lag + run].all():
            return min(2 * max(lag, 1), lags)
    return lags
