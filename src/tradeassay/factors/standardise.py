"""Raw factor values to comparable exposures: cut the tails, then mean 0 and standard deviation 1 across names."""

from __future__ import annotations

import numpy as np

from tradeassay.core import reproducible_math as exact
from tradeassay.core.view import Floats, Ints


def winsorise(values: Floats, low: float = 0.01, high: float = 0.99) -> Floats:
    """Return values cut at two quantiles of their row (linear between order statistics); NaN stays NaN.

    Names are the last axis. Quantiles are taken over the present values of each row.
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

    Names are the last axis; NaN stays NaN. A row without spread, or with one name, becomes 0.
    """
    missing = np.isnan(values)
    n = np.maximum(values.shape[-1] - missing.sum(axis=-1), 1)[..., None]
    gap = values.copy()
    np.copyto(gap, 0.0, where=missing)
    mean = exact.total(gap)[..., None] / n
    np.subtract(values, mean, out=gap)
    np.copyto(gap, 0.0, where=missing)
    scale = np.sqrt(exact.total(gap * gap)[..., None] / n)
    flat = scale <= 1e-12 * np.abs(mean)
    np.copyto(scale, np.inf, where=flat)
    np.copyto(gap, np.nan, where=missing)
    gap /= scale
    return gap


def standardise(values: Floats) -> Floats:
    """Return :func:`zscore` of :func:`winsorise` at 1 and 99 %."""
    return zscore(winsorise(values))
