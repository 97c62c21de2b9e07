"""Raw factor values to comparable exposures: cut the tails, then mean 0 and standard deviation 1 across names."""

from __future__ import annotations

import numpy as np

from tradeassay.core import exact
from tradeassay.core.view import Floats, Ints


def winsorise(values: Floats, low: float = 0.01, high: float = 0.99) -> Floats:
    """Return values cut at two quantiles of their row (linear between order statistics); NaN stays NaN.

    Names are the last axis. Quantiles are taken over the present values of each row.
    """
    ordered = np.sort(values, axis=-1)
    present: Ints = np.asarray(np.count_nonzero(~np.isnan(values), axis=-1), dtype=np.int64)
    return np.clip(values, _quantile(ordered, present, low), _quantile(ordered, present, high))


def _quantile(ordered: Floats, present: Ints, share: float) -> Floats:
    if ordered.shape[-1] == 0:
        return np.zeros((*ordered.shape[:-1], 1))
    place = np.maximum(present - 1, 0) * share
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(present - 1, 0))
    low = np.take_along_axis(ordered, below[..., None], axis=-1)
    step = np.take_along_axis(ordered, above[..., None], axis=-1) - low
    result: Floats = low + step * (place - below)[..., None]
    return result


def zscore(values: Floats) -> Floats:
    """Return (value - mean) / standard deviation (ddof 0) across the present names of each row.

    Names are the last axis; NaN stays NaN. A row without spread, or with one name, becomes 0.
    """
    known = ~np.isnan(values)
    n = np.maximum(np.count_nonzero(known, axis=-1), 1)[..., None].astype(np.float64)
    mean = exact.total(np.where(known, values, 0.0))[..., None] / n
    gap = np.where(known, values - mean, 0.0)
    scale = np.sqrt(exact.total(gap * gap)[..., None] / n)
    flat = scale <= 1e-12 * np.abs(mean)
    scaled = np.where(flat, 0.0, gap / np.where(flat, 1.0, scale))
    return np.where(known, scaled, np.nan)


def standardise(values: Floats) -> Floats:
    """Return :func:`zscore` of :func:`winsorise` at 1 and 99 %."""
    return zscore(winsorise(values))
