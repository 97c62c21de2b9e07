"""Numbers as a prompt shows them: short, and None where there is none."""

from __future__ import annotations

import math


def rounded(value: float, digits: int = 4) -> float | None:
    """Return ``value`` rounded to ``digits`` decimals, or None when it is not finite."""
    value = float(value)
    return round(value, digits) if math.isfinite(value) else None


def money(value: float) -> float:
    """Return an amount of money in cents."""
    return round(float(value), 2)
