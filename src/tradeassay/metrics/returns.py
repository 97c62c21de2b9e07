"""Returns and volatility of a value path.

Shapes: a *path* has shape (..., n + 1) and starts with the initial value; *returns* have shape (..., n).
Every function works along the last axis, so that one path and a thousand resampled ones take the same call.
NaN policy: a NaN in gives a NaN out, nothing is skipped; what is undefined is NaN.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Floats

_FLAT = 1e-12
"""A spread this small beside the largest return is rounding, not risk."""


def simple_returns(nav: Floats) -> Floats:
    """Return the simple returns of a path, shape (..., n), as fractions. NaN after a value at or below zero."""
    nav = np.asarray(nav, dtype=np.float64)
    before = np.where(nav[..., :-1] > 0, nav[..., :-1], np.nan)
    return np.asarray(nav[..., 1:] / before - 1.0)


def growth(returns: Floats) -> Floats:
    """Return the path of 1 invested at the start, shape (..., n + 1), from returns of shape (..., n)."""
    returns = np.asarray(returns, dtype=np.float64)
    path = np.empty((*returns.shape[:-1], returns.shape[-1] + 1))
    path[..., 0] = 1.0
    np.cumprod(1.0 + returns, axis=-1, out=path[..., 1:])
    return path


def cumulative_return(nav: Floats) -> Floats:
    """Return last value / first value - 1, a fraction over the whole window, not annualised."""
    nav = np.asarray(nav, dtype=np.float64)
    return np.asarray(nav[..., -1] / np.where(nav[..., 0] > 0, nav[..., 0], np.nan) - 1.0)


def annualised_return(nav: Floats, periods_per_year: float) -> Floats:
    """Return the geometric yearly return: (1 + cumulative return) ** (periods_per_year / n) - 1, a fraction.

    NaN when the path is empty or ends at or below zero.
    """
    nav = np.asarray(nav, dtype=np.float64)
    periods = nav.shape[-1] - 1
    if periods < 1:
        return np.full(nav.shape[:-1], np.nan)
    total = 1.0 + cumulative_return(nav)
    return np.asarray(np.power(np.where(total > 0, total, np.nan), periods_per_year / periods) - 1.0)


def volatility(returns: Floats, periods_per_year: float) -> Floats:
    """Return the yearly standard deviation: std(returns, ddof = 1) x sqrt(periods_per_year), a fraction.

    NaN with fewer than two returns.
    """
    return np.asarray(spread(returns) * np.sqrt(periods_per_year))


def spread(returns: Floats) -> Floats:
    """Return the sample standard deviation (ddof = 1) of one period; exactly 0 where returns do not vary.

    NaN with fewer than two returns.
    """
    returns = np.asarray(returns, dtype=np.float64)
    if returns.shape[-1] < 2:
        return np.full(returns.shape[:-1], np.nan)
    deviation = np.std(returns, axis=-1, ddof=1)
    return np.asarray(np.where(deviation <= _FLAT * np.abs(returns).max(axis=-1), 0.0, deviation))
