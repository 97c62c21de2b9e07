"""Something that does not hold."""

from __future__ import annotations

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """``check`` names the rule, ``what`` says in one line what breaks it."""

    check: str
    what: str


def near(one: float, other: float, scale: float | None = None) -> bool:
    """Return whether two sums of money agree to a billionth of ``scale`` (default: their size)."""
    size = max(abs(one), abs(other)) if scale is None else abs(scale)
    return abs(one - other) <= 1e-9 * size or one == other
