"""Reward per unit of risk.

Shapes and NaN policy as in :mod:`tradeassay.metrics.returns`. A ratio whose denominator is zero has no
value: NaN, never infinity and never zero. ``risk_free`` is a simple return *per period*.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Floats
from tradeassay.metrics.drawdown import max_drawdown
from tradeassay.metrics.returns import annualised_return, spread


def sharpe(returns: Floats, periods_per_year: float, risk_free: float = 0.0) -> Floats:
    """Return mean(returns - risk_free) / std(returns - risk_free, ddof = 1) x sqrt(periods_per_year)."""
    excess = np.asarray(returns, dtype=np.float64) - risk_free
    return np.asarray(_ratio(_mean(excess), spread(excess)) * np.sqrt(periods_per_year))


def downside_deviation(returns: Floats, threshold: float = 0.0) -> Floats:
    """Return sqrt(mean(min(returns - threshold, 0) ** 2)) of one period; the mean runs over *all* periods."""
    below = np.minimum(np.asarray(returns, dtype=np.float64) - threshold, 0.0)
    return np.asarray(np.sqrt(_mean(below * below)))


def sortino(returns: Floats, periods_per_year: float, risk_free: float = 0.0) -> Floats:
    """Return mean(returns - risk_free) / downside_deviation(returns, risk_free) x sqrt(periods_per_year).

    The denominator is the root mean square of the shortfalls over all periods, good ones counting as
    zero (Sortino and van der Meer's target semideviation). NaN when no period fell short.
    """
    excess = np.asarray(returns, dtype=np.float64) - risk_free
    return np.asarray(_ratio(_mean(excess), downside_deviation(excess)) * np.sqrt(periods_per_year))


def sortino_stockbench(returns: Floats) -> Floats:
    """Return StockBench's Sortino: mean(returns) / std(negative returns, ddof = 1), per period, *not annualised*.

    It differs from :func:`sortino` in three ways: the denominator is the spread of the losing periods
    around their own mean, not their distance from zero; winning periods do not count in it; and nothing
    is annualised. An agent that loses the same amount every time has no value here. NaN with fewer than
    two losing periods.
    """
    returns = np.asarray(returns, dtype=np.float64)
    losing = returns < 0
    count = losing.sum(axis=-1)
    losses = np.where(losing, returns, 0.0)
    centre = losses.sum(axis=-1) / np.maximum(count, 1)
    off = np.where(losing, returns - centre[..., None], 0.0)
    variance = (off * off).sum(axis=-1) / np.maximum(count - 1, 1)
    size = np.abs(losses).max(axis=-1, initial=0.0)
    deviation = np.where((count < 2) | (variance <= (1e-12 * size) ** 2), 0.0, np.sqrt(variance))
    return _ratio(_mean(returns), np.where(np.isnan(returns).any(axis=-1), np.nan, deviation))


def calmar(nav: Floats, periods_per_year: float) -> Floats:
    """Return annualised return / abs(max drawdown) of a path. NaN when it never fell."""
    return _ratio(annualised_return(nav, periods_per_year), -max_drawdown(nav))


def information_ratio(returns: Floats, index_returns: Floats, periods_per_year: float) -> Floats:
    """Return mean(active) / std(active, ddof = 1) x sqrt(periods_per_year), active = returns - index_returns."""
    return sharpe(np.asarray(returns, dtype=np.float64) - index_returns, periods_per_year)


def _mean(values: Floats) -> Floats:
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(values.mean(axis=-1))


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(above / np.where(below > 0, below, np.nan))
