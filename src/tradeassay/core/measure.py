"""A number with its interval, or no number and the reason."""

from __future__ import annotations

import msgspec


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One score. ``value`` is None exactly when ``reason`` says why; never a default number.

    ``low``/``high`` bound the confidence interval at ``level``; None when none can be given (``note`` says why).
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int | None = None
    reason: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a measure has either a value or a reason for having none")


def not_scored(reason: str) -> Measure:
    """Return a measure without a value."""
    return Measure(value=None, reason=reason)
