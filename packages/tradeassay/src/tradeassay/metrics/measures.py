"""The measures as pure functions: returns, risk, reward per risk, and portfolio management.

Shapes: a *path* has shape (..., n + 1) and starts with the initial value. *Returns*, and all other
series with one number per session, have shape (..., n). Every function works along the last axis.
One path and a thousand resampled paths take the same call.

NaN policy: a NaN input gives a NaN result, and nothing is skipped. An undefined value is NaN. A
ratio with a denominator of zero is NaN, never infinity and never zero.

``risk_free`` is a simple return *per period*. ``nav_before`` is the account's value at the end of
the previous session. Rates of conduct are shares between 0 and 1, not annualised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats

_FLAT = 1e-12
"""A spread below this share of the largest return is rounding noise."""


def simple_returns(nav: Floats) -> Floats:
    """Return the simple returns of a path as fractions, shape (..., n).

    A return is NaN after a value at or below zero.
    """
    nav = np.asarray(nav, dtype=np.float64)
    before = np.where(nav[..., :-1] > 0, nav[..., :-1], np.nan)
    return np.asarray(nav[..., 1:] / before - 1.0)


def growth(returns: Floats) -> Floats:
    """Return the path of an investment of 1, shape (..., n + 1), from returns of shape (..., n)."""
    returns = np.asarray(returns, dtype=np.float64)
    path = np.empty((*returns.shape[:-1], returns.shape[-1] + 1))
    path[..., 0] = 1.0
    np.add(returns, 1.0, out=path[..., 1:])
    np.cumprod(path[..., 1:], axis=-1, out=path[..., 1:])
    return path


def cumulative_return(nav: Floats) -> Floats:
    """Return last value / first value - 1, a fraction for the whole window, not annualised."""
    nav = np.asarray(nav, dtype=np.float64)
    return np.asarray(nav[..., -1] / np.where(nav[..., 0] > 0, nav[..., 0], np.nan) - 1.0)


def annualised_return(nav: Floats, periods_per_year: float) -> Floats:
    """Return the geometric annual return: (1 + cumulative return) ** (periods_per_year / n) - 1.

    It is a fraction, and NaN if the path is empty or ends at or below zero.
    """
    nav = np.asarray(nav, dtype=np.float64)
    periods = nav.shape[-1] - 1
    if periods < 1:
        return np.full(nav.shape[:-1], np.nan)
    total = 1.0 + cumulative_return(nav)
    return np.asarray(
        np.power(np.where(total > 0, total, np.nan), periods_per_year / periods) - 1.0
    )


def volatility(returns: Floats, periods_per_year: float) -> Floats:
    """Return the annualised standard deviation: std(returns, ddof = 1) x sqrt(periods_per_year).

    It is a fraction, and NaN for fewer than two returns.
    """
    return np.asarray(spread(returns) * np.sqrt(periods_per_year))


def spread(returns: Floats) -> Floats:
    """Return the sample standard deviation (ddof = 1) per period.

    It is exactly 0 if the returns do not vary, and NaN for fewer than two returns.
    """
    returns = np.asarray(returns, dtype=np.float64)
    if returns.shape[-1] < 2:
        return np.full(returns.shape[:-1], np.nan)
    deviation = np.std(returns, axis=-1, ddof=1)
    largest = np.maximum(returns.max(axis=-1), -returns.min(axis=-1))
    return np.asarray(np.where(deviation <= _FLAT * largest, 0.0, deviation))


def drawdowns(nav: Floats) -> Floats:
    """Return value / highest value so far - 1 at every point: shape (..., n + 1), fractions <= 0.

    The initial value is the first peak, so a loss in the first session is a drawdown. All values
    after a NaN are NaN.
    """
    return np.asarray(_share_of_peak(nav) - 1.0)


def max_drawdown(nav: Floats) -> Floats:
    """Return the largest fall from a peak, a fraction <= 0 (-0.15 = 15 % lost), not annualised."""
    return np.asarray(_share_of_peak(nav).min(axis=-1) - 1.0)


def _share_of_peak(nav: Floats) -> Floats:
    """Return value / highest value so far, or NaN until a value is positive."""
    nav = np.asarray(nav, dtype=np.float64)
    peak = np.maximum.accumulate(nav, axis=-1)
    if not (nav[..., :1] > 0).all():
        peak[~(peak > 0)] = np.nan
    # In place: for a thousand resamples, allocating memory costs more than dividing.
    return np.divide(nav, peak, out=peak)


def sharpe(returns: Floats, periods_per_year: float, risk_free: float = 0.0) -> Floats:
    """Return the annualised Sharpe ratio.

    It is mean(returns - risk_free) / std(returns - risk_free, ddof = 1) x sqrt(periods_per_year).
    """
    excess = np.asarray(returns, dtype=np.float64) - risk_free
    return np.asarray(ratio(mean(excess), spread(excess)) * np.sqrt(periods_per_year))


def downside_deviation(returns: Floats, threshold: float = 0.0) -> Floats:
    """Return sqrt(mean(min(returns - threshold, 0) ** 2)) per period, over *all* periods."""
    below = np.asarray(np.asarray(returns, dtype=np.float64) - threshold)
    np.minimum(below, 0.0, out=below)
    np.multiply(below, below, out=below)
    return np.asarray(np.sqrt(mean(below)))


def sortino(returns: Floats, periods_per_year: float, risk_free: float = 0.0) -> Floats:
    """Return mean(excess) / downside_deviation(returns, risk_free) x sqrt(periods_per_year).

    The excess is returns - risk_free. The denominator is the root mean square of the shortfalls
    over all periods, with periods without a shortfall as zero (Sortino and van der Meer's target
    semideviation). The ratio is NaN if no period has a shortfall.
    """
    excess = np.asarray(returns, dtype=np.float64) - risk_free
    return np.asarray(ratio(mean(excess), downside_deviation(excess)) * np.sqrt(periods_per_year))


def sortino_stockbench(returns: Floats) -> Floats:
    """Return StockBench's Sortino: mean(returns) / std(negative returns, ddof = 1) per period.

    It differs from :func:`sortino` in three ways. The denominator is the spread of the losing
    periods around their own mean, not their distance from zero. Winning periods are excluded from
    it. The ratio is *not annualised*. An agent that always loses the same amount has no value. NaN
    for fewer than two losing periods.
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
    return ratio(mean(returns), np.where(np.isnan(returns).any(axis=-1), np.nan, deviation))


def calmar(nav: Floats, periods_per_year: float) -> Floats:
    """Return annualised return / abs(max drawdown) of a path, or NaN if it never fell."""
    return ratio(annualised_return(nav, periods_per_year), -max_drawdown(nav))


def information_ratio(returns: Floats, index_returns: Floats, periods_per_year: float) -> Floats:
    """Return the annualised information ratio.

    It is mean(active) / std(active, ddof = 1) x sqrt(periods_per_year), with active = returns -
    index_returns.
    """
    return sharpe(np.asarray(returns, dtype=np.float64) - index_returns, periods_per_year)


def mean(values: Floats) -> Floats:
    """Return the mean along the last axis, or NaN if the axis is empty."""
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(values.mean(axis=-1))


def ratio(above: Floats, below: Floats) -> Floats:
    """Return above / below, or NaN if the denominator is not positive."""
    return np.asarray(above / np.where(below > 0, below, np.nan))


def turnover(traded: Floats, nav_before: Floats, periods_per_year: float) -> Floats:
    """Return the annual one-way turnover: mean(traded / 2 / nav_before) x periods_per_year.

    ``traded`` is the value of all fills of a session, buys plus sales, including forced ones.
    Dividends, splits and pay-outs of delisted names are not trades. 1.0 means that the whole
    account is traded once per year. The first purchases are included: buying the whole portfolio
    once is 0.5 within the window.
    """
    return np.asarray((np.asarray(traded) / 2.0 / nav_before).mean(axis=-1) * periods_per_year)


def cost_rate(costs: Floats, nav_before: Floats, periods_per_year: float) -> Floats:
    """Return the annual cost of fees, taxes, borrowing and interest.

    It is mean(costs / nav_before) x periods_per_year. Slippage is part of the fill price and is not
    included.
    """
    return np.asarray((np.asarray(costs) / nav_before).mean(axis=-1) * periods_per_year)


def concentration(values: Floats) -> Floats:
    """Return the Herfindahl-Hirschman index of one session: the sum of squared shares.

    ``values`` are position values, shape (..., symbols), with negative short positions. A share is
    abs(value) divided by the *invested* value, so cash has no effect: 1.0 = one name, 1 / k = k
    equal names. NaN without positions.
    """
    size = np.abs(np.asarray(values, dtype=np.float64))
    total = size.sum(axis=-1)
    share = size / np.where(total > 0, total, np.nan)[..., None]
    # An empty last axis sums to zero. Without positions the concentration is undefined.
    return np.asarray(np.where(total > 0, (share * share).sum(axis=-1), np.nan))


def mean_held(per_session: Floats) -> Floats:
    """Return the mean over the sessions with positions. Other sessions are NaN; NaN if all are."""
    per_session = np.asarray(per_session, dtype=np.float64)
    held = ~np.isnan(per_session)
    count = held.sum(axis=-1)
    total = np.where(held, per_session, 0.0).sum(axis=-1)
    return np.asarray(total / np.where(count > 0, count, np.nan))


def cash_ratio(cash: Floats, nav: Floats) -> Floats:
    """Return the mean of cash / nav at the end of each session.

    It is above 1 with short sales, and below 0 on margin.
    """
    return np.asarray((np.asarray(cash) / nav).mean(axis=-1))


_Counts = NDArray[Any]


def _rate(happened: _Counts) -> Floats:
    """Return the share of sessions with an event. The input is 0/1 or bool, shape (..., n)."""
    if np.shape(happened)[-1] == 0:
        return np.full(np.shape(happened)[:-1], np.nan)
    return np.asarray(np.asarray(happened, dtype=np.float64).mean(axis=-1))


def abstention_rate(abstained: _Counts) -> Floats:
    """Return the share of sessions with a usable answer but no order.

    A failure is not an abstention.
    """
    return _rate(abstained)


def failure_rate(failed: _Counts) -> Floats:
    """Return the share of sessions without a usable answer."""
    return _rate(failed)


def rejection_rate(rejected: _Counts, orders: _Counts) -> Floats:
    """Return rejected orders / orders placed.

    Both are counted in the session in which the order was placed, shape (..., n). A partly filled
    and partly rejected order is one rejection. So is an order that waited and was rejected in a
    later session. Therefore no session has more rejections than orders, and the rate of any
    resample is within 0..1. An order that requests the existing state (``no_change``) is not a
    rejection.
    """
    order_count = np.asarray(orders, dtype=np.float64).sum(axis=-1)
    rejection_count = np.asarray(rejected, dtype=np.float64).sum(axis=-1)
    return np.asarray(rejection_count / np.where(order_count > 0, order_count, np.nan))


def hit_rate(returns: Floats) -> Floats:
    """Return the share of sessions with a gain among the sessions that are not flat."""
    returns = np.asarray(returns, dtype=np.float64)
    moved = (returns != 0).sum(axis=-1)
    share = (returns > 0).sum(axis=-1) / np.where(moved > 0, moved, np.nan)
    return np.asarray(np.where(np.isnan(returns).any(axis=-1), np.nan, share))
