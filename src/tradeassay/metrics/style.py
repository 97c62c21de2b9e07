"""How a portfolio was run: trading, concentration, idle cash, costs.

Inputs are one number per session, shape (..., n); ``nav_before`` is the account's value at the end of the
session before. All results are plain numbers, NaN when undefined.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Floats


def turnover(traded: Floats, nav_before: Floats, periods_per_year: float) -> Floats:
    """Return the yearly one-way turnover: mean(traded / 2 / nav_before) x periods_per_year.

    ``traded`` is the value of all fills of a session, buys plus sales, forced ones included; dividends,
    splits and pay-outs of delisted names are no trades. 1.0 means that the whole account was turned over
    once a year. Building the first portfolio counts: buying everything once is 0.5 within the window.
    """
    return np.asarray((np.asarray(traded) / 2.0 / nav_before).mean(axis=-1) * periods_per_year)


def cost_rate(costs: Floats, nav_before: Floats, periods_per_year: float) -> Floats:
    """Return the yearly drag of fees, taxes, borrowing and interest: mean(costs / nav_before) x periods_per_year.

    Slippage is inside the fill price and not counted here.
    """
    return np.asarray((np.asarray(costs) / nav_before).mean(axis=-1) * periods_per_year)


def concentration(values: Floats) -> Floats:
    """Return the Herfindahl-Hirschman index of one session: the sum of squared shares of abs(value).

    ``values`` are position values, shape (..., symbols), shorts negative. Shares are of what is
    *invested*, so cash does not dilute it: 1.0 = one name, 1 / k = k equal names. NaN when nothing is held.
    """
    size = np.abs(np.asarray(values, dtype=np.float64))
    total = size.sum(axis=-1)
    share = size / np.where(total > 0, total, np.nan)[..., None]
    # An empty last axis sums to zero; nothing held has no concentration.
    return np.asarray(np.where(total > 0, (share * share).sum(axis=-1), np.nan))


def mean_held(per_session: Floats) -> Floats:
    """Return the mean over the sessions that have a value (NaN: nothing was held); NaN if none has."""
    per_session = np.asarray(per_session, dtype=np.float64)
    held = ~np.isnan(per_session)
    count = held.sum(axis=-1)
    total = np.where(held, per_session, 0.0).sum(axis=-1)
    return np.asarray(total / np.where(count > 0, count, np.nan))


def cash_ratio(cash: Floats, nav: Floats) -> Floats:
    """Return the mean of cash / nav at the end of each session (above 1 with short sales, below 0 on margin)."""
    return np.asarray((np.asarray(cash) / nav).mean(axis=-1))
