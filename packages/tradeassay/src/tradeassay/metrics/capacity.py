"""Cost of trading for a larger account, by the square-root law of market impact.

A trade of the share x of a day's usual amount moves the price by about Y daily standard deviations times the root
of x, with Y near 1, in stocks, futures and coins alike (Tóth et al. 2011, Physical Review X 1, 021006; Bouchaud et
al. 2018, Trades, Quotes and Prices, ch. 12). It is paid in the mean over the trade: two thirds of the last move.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core.arrays import Floats

_IMPACT = 1.0
"""Y: standard deviations of a day that a trade as large as a usual day's amount moves the price by."""
_PAID = 2.0 / 3.0
"""The share of the last move that is paid in the mean: the integral of a root."""


def impact_rate(
    weights: Floats, returns: Floats, total: Floats, traded: Floats
) -> tuple[Floats, float]:
    """Return what impact costs in each session but the last, as a share of an account of one unit of money, and
    the share of what was traded whose usual amount is known. An account of size A pays the root of A times as
    much. ``weights`` (T, N) are held into each session, ``returns`` (T, N) the names', ``total`` (T,) the
    account's, ``traded`` (T, N) the usual amounts of money. Names without an amount pay what the others do."""
    drifted = weights[:-1] * (1.0 + returns[:-1]) / (1.0 + total[:-1, None])
    change = np.abs(weights[1:] - drifted)
    change[change < 1e-12] = 0.0  # rounding is no trade
    amount = np.where(np.isfinite(traded[:-1]) & (traded[:-1] > 0.0), traded[:-1], np.nan)
    moves = returns.std(axis=0, ddof=1) if len(returns) > 1 else np.zeros(returns.shape[1])
    with np.errstate(invalid="ignore"):
        paid = _PAID * _IMPACT * moves * change**1.5 / np.sqrt(amount)
    whole = float(change.sum())
    known = float(change[np.isfinite(amount)].sum()) / whole if whole > 0.0 else 1.0
    rate: Floats = np.nansum(paid, axis=1)
    return (rate / known if known > 0.0 else rate), known
