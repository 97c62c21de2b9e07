"""Cost of trading for a larger account, by the square-root law of market impact.

A trade of the share x of a day's usual amount moves the price by about Y daily standard deviations
times the root of x. Y is near 1 in stocks, futures and coins (Tóth et al. 2011, Physical Review X
1, 021006; Bouchaud et al. 2018, Trades, Quotes and Prices, ch. 12). The average price paid over the
trade contains two thirds of the final move.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core.arrays import Floats

_IMPACT = 1.0
"""Y: price move, in daily standard deviations, of a trade as large as a usual day's amount."""
_PAID = 2.0 / 3.0
"""Average share of the final move that a trade pays: the integral of the square root."""


def impact_rate(
    weights: Floats, returns: Floats, total: Floats, traded: Floats
) -> tuple[Floats, float]:
    """Return the impact cost of each session but the last, and the known share of trades.

    The cost is a share of an account of one unit of money. An account of size A pays sqrt(A) times
    as much. A trade is known if its asset has a usual amount. ``weights`` (T, N) are held into each
    session. ``returns`` (T, N) are the returns of the names, ``total`` (T,) the returns of the
    account, ``traded`` (T, N) the usual traded amounts in money. A name without an amount is
    charged the average cost of the remaining names.
    """
    drifted = weights[:-1] * (1.0 + returns[:-1]) / (1.0 + total[:-1, None])
    change = np.abs(weights[1:] - drifted)
    change[change < 1e-12] = 0.0  # differences from rounding are not trades
    amount = np.where(np.isfinite(traded[:-1]) & (traded[:-1] > 0.0), traded[:-1], np.nan)
    moves = returns.std(axis=0, ddof=1) if len(returns) > 1 else np.zeros(returns.shape[1])
    with np.errstate(invalid="ignore"):
        paid = _PAID * _IMPACT * moves * change**1.5 / np.sqrt(amount)
    whole = float(change.sum())
    known = float(change[np.isfinite(amount)].sum()) / whole if whole > 0.0 else 1.0
    rate: Floats = np.nansum(paid, axis=1)
    return (rate / known if known > 0.0 else rate), known
