"""Falls from a peak, measured on the equity curve including its initial value."""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Floats


def drawdowns(nav: Floats) -> Floats:
    """Return value / highest value so far - 1 at every point: shape (..., n + 1), fractions <= 0.

    The initial value counts as the first peak, so a loss in the first session is a drawdown.
    A NaN makes everything after it NaN.
    """
    nav = np.asarray(nav, dtype=np.float64)
    peak = np.maximum.accumulate(nav, axis=-1)
    return np.asarray(nav / np.where(peak > 0, peak, np.nan) - 1.0)


def max_drawdown(nav: Floats) -> Floats:
    """Return the deepest fall from a peak, a fraction <= 0 (-0.15 = 15 % lost), not annualised."""
    return np.asarray(drawdowns(nav).min(axis=-1))
