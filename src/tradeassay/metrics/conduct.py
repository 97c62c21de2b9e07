"""How an agent behaved: did it answer, did it act, was it refused, how often was it right.

All are shares between 0 and 1, not annualised, NaN when there is nothing to divide by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.view import Floats

Counts = NDArray[Any]


def rate(happened: Counts) -> Floats:
    """Return the share of sessions in which something happened; input is 0/1 or bool, shape (..., n)."""
    if np.shape(happened)[-1] == 0:
        return np.full(np.shape(happened)[:-1], np.nan)
    return np.asarray(np.asarray(happened, dtype=np.float64).mean(axis=-1))


def abstention_rate(abstained: Counts) -> Floats:
    """Return the share of sessions with a usable answer that held no order. A failure is no abstention."""
    return rate(abstained)


def failure_rate(failed: Counts) -> Floats:
    """Return the share of sessions in which no usable answer came."""
    return rate(failed)


def rejection_rate(rejected: Counts, orders: Counts) -> Floats:
    """Return refused orders / orders given, both counted in the session that placed them, shape (..., n).

    An order partly filled and partly refused counts as refused once, and so does one that waited and was refused
    in a later session: no session then has more refusals than orders, and the rate of any resample stays within
    0..1. An order that asked for what already was (``no_change``) is not counted as refused.
    """
    given = np.asarray(orders, dtype=np.float64).sum(axis=-1)
    refused = np.asarray(rejected, dtype=np.float64).sum(axis=-1)
    return np.asarray(refused / np.where(given > 0, given, np.nan))


def hit_rate(returns: Floats) -> Floats:
    """Return the share of sessions with a gain among those with a gain or a loss (flat sessions do not count)."""
    returns = np.asarray(returns, dtype=np.float64)
    moved = (returns != 0).sum(axis=-1)
    share = (returns > 0).sum(axis=-1) / np.where(moved > 0, moved, np.nan)
    return np.asarray(np.where(np.isnan(returns).any(axis=-1), np.nan, share))
