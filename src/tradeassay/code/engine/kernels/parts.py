"""Small parts of the compiled strategies: comparisons with ties, windows, and writing a decision down."""

from __future__ import annotations

from math import sqrt

from tradeassay.code.engine.kernels import inner
from tradeassay.core.view import Floats, Ints

RELATIVE = 1e-9
ABSOLUTE = 1e-10
SPREAD = 1e-12


@inner
def gt(a: float, b: float) -> bool:
    """Return whether ``a`` is greater by more than a tie, as the rule language has it. NaN is never greater."""
    return a - b > RELATIVE * max(abs(a), abs(b)) + ABSOLUTE


@inner
def le(a: float, b: float) -> bool:
    """Return whether ``a`` is smaller, or equal within a tie."""
    return a - b <= RELATIVE * max(abs(a), abs(b)) + ABSOLUTE


@inner
def emit(rows: Ints, legs: Ints, fractions: Floats, signals: Ints, count: int, row: int, leg: int,
         fraction: float, signal: int) -> int:  # fmt: skip
    """Write one decision and return how many there are now."""
    rows[count] = row
    legs[count] = leg
    fractions[count] = fraction
    signals[count] = signal
    return count + 1


@inner
def mean_of(x: Floats, first: int, last: int) -> float:
    """Return the mean of rows ``first`` to ``last``, both included."""
    total = 0.0
    for t in range(first, last + 1):
        total += x[t]
    return total / (last - first + 1)


@inner
def spread_of(x: Floats, first: int, last: int, mean: float, ddof: int) -> float:
    """Return the standard deviation of rows ``first`` to ``last``; exactly 0 where they do not vary."""
    total, largest = 0.0, 0.0
    for t in range(first, last + 1):
        total += (x[t] - mean) * (x[t] - mean)
        largest = max(largest, abs(x[t]))
    found = sqrt(total / (last - first + 1 - ddof))
    return 0.0 if found <= SPREAD * largest else found


@inner
def top_of(x: Floats, first: int, last: int) -> float:
    """Return the largest of rows ``first`` to ``last``."""
    found: float = x[first]
    for t in range(first + 1, last + 1):
        found = max(found, x[t])
    return found


@inner
def bottom_of(x: Floats, first: int, last: int) -> float:
    """Return the smallest of rows ``first`` to ``last``."""
    found: float = x[first]
    for t in range(first + 1, last + 1):
        found = min(found, x[t])
    return found
