"""A covariance matrix that can be trusted with few days and many names: the sample one, shrunk."""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Floats


def shrunk_covariance(returns: Floats, shrinkage: float | None = None) -> Floats:
    """Return (1 - s) S + s m I, where S is the sample covariance (divisor n) and m the mean variance.

    ``returns`` has shape (days, names), simple returns per day; NaN counts as that name's mean. With
    ``shrinkage`` None, s is the weight of Ledoit and Wolf (2004) that minimises the expected squared error.
    """
    counts = np.count_nonzero(~np.isnan(returns), axis=0)
    means = np.nansum(returns, axis=0) / np.maximum(counts, 1)
    centred = np.where(np.isnan(returns), 0.0, returns - means)
    days, names = centred.shape
    sample = centred.T @ centred / days
    mean_variance = float(np.trace(sample)) / names
    if shrinkage is None:
        distance = float(np.sum(sample**2)) / names - mean_variance**2
        squares = np.sum(centred**2, axis=1)
        noise = (float(np.sum(squares**2)) / days - float(np.sum(sample**2))) / (days * names)
        shrinkage = 1.0 if distance <= 0.0 else min(1.0, max(0.0, noise / distance))
    shrunk: Floats = (1.0 - shrinkage) * sample
    shrunk[np.diag_indices(names)] += shrinkage * mean_variance
    return shrunk
