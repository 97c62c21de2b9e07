"""Fewer points for a picture, never fewer for a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LIMIT = 1200
"""More points than a wide screen has columns cannot be seen."""


def kept(n: int, paths: Sequence[Sequence[float]], limit: int = LIMIT) -> list[int]:
    """Return which of ``n`` points to draw: all when there are few, else evenly spaced ones.

    The highest and lowest point and the deepest drawdown of every path are always among them, as are both ends.
    """
    if n <= limit:
        return list(range(n))
    places = {int(place) for place in np.linspace(0, n - 1, limit)}
    for path in paths:
        values = np.asarray(path, dtype=np.float64)
        if values.shape[0] == n:
            fall = values / np.maximum.accumulate(values)
            places |= {int(values.argmax()), int(values.argmin()), int(fall.argmin())}
    return sorted(places)


def rounded(values: Sequence[float | None], digits: int = 5) -> list[float | None]:
    """Return values with ``digits`` decimals; what is missing or not finite becomes None."""
    return [None if value is None or not np.isfinite(value) else round(float(value), digits) for value in values]
