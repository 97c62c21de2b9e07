"""Linking: how daily parts become parts of the whole return (Carino 1999).

Daily returns compound, so that sums of daily parts do not add up to the total. A day's part is therefore scaled by
(log(1 + r) / r) / (log(1 + R) / R), which makes the sum over days and parts exact.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Floats

RUINED = "a session returned -100 % or less, where linking is not defined"


def slope(returns: Floats) -> Floats:
    """Return log(1 + r) / r, which is 1 at 0; NaN where r <= -1."""
    safe = np.where((returns == 0.0) | ~(returns > -1.0), 1.0, returns)
    ratio = np.where(returns == 0.0, 1.0, np.log1p(safe) / safe)
    result: Floats = np.where(returns > -1.0, ratio, np.nan)
    return result


def compounded(returns: Floats) -> Floats:
    """Return the total return along the last axis; NaN where a return is -1 or less."""
    logs = np.log1p(np.where(returns > -1.0, returns, np.nan))
    result: Floats = np.expm1(logs.sum(axis=-1))
    return result


def link(parts: Floats, returns: Floats) -> Floats | None:
    """Return what daily ``parts`` (..., T) give over the window, None where a return of ``returns`` (T,) is <= -1.

    If the parts of each day sum to its return, the linked parts sum to the total return, to rounding.
    """
    if not (returns > -1.0).all():
        return None
    whole = slope(compounded(returns))
    linked: Floats = (parts * slope(returns)).sum(axis=-1) / whole
    return linked


def link_difference(parts: Floats, returns: Floats, benchmark: Floats) -> Floats | None:
    """Return what daily parts of the difference ``returns`` - ``benchmark`` (T,) give over the window.

    They sum to the difference of the two total returns. None where either return is <= -1.
    """
    if not ((returns > -1.0).all() and (benchmark > -1.0).all()):
        return None
    daily = _gap_slope(returns, benchmark)
    whole = _gap_slope(compounded(returns), compounded(benchmark))
    linked: Floats = (parts * daily).sum(axis=-1) / whole
    return linked


def _gap_slope(one: Floats, other: Floats) -> Floats:
    """Return (log(1 + a) - log(1 + b)) / (a - b), which is 1 / (1 + a) where they are equal."""
    gap = (one - other) / (1.0 + other)
    result: Floats = slope(gap) / (1.0 + other)
    return result
