"""Small parts of compiled semantics: comparisons with ties, windows, NaN that persists. Imports numba."""

from math import sqrt
from pathlib import Path

import numpy as np

from tradeassay.core.compiled import Compiler
from tradeassay.core.view import Floats

COMPILER = Compiler(Path(__file__).parent)
compiled, inner = COMPILER.compiled, COMPILER.inner

RELATIVE = 1e-9
ABSOLUTE = 1e-10
TIE = 1e-12
NAN = np.nan


@inner
def more(a: float, b: float) -> bool:
    """Return whether ``a`` is greater by more than a tie. NaN is never greater."""
    return a - b > RELATIVE * max(abs(a), abs(b)) + ABSOLUTE


@inner
def not_more(a: float, b: float) -> bool:
    """Return whether ``a`` is smaller, or equal within a tie; False for NaN."""
    return a - b <= RELATIVE * max(abs(a), abs(b)) + ABSOLUTE


@inner
def same(a: float, b: float) -> bool:
    """Return whether two numbers are equal within a tie; False for NaN."""
    return abs(a - b) <= RELATIVE * max(abs(a), abs(b)) + ABSOLUTE


@inner
def differ(a: float, b: float) -> bool:
    """Return whether two numbers differ by more than a tie; False for NaN."""
    return abs(a - b) > RELATIVE * max(abs(a), abs(b)) + ABSOLUTE


@inner
def least(a: float, b: float) -> float:
    return a if a < b or a != a else b


@inner
def most(a: float, b: float) -> float:
    return a if a > b or a != a else b


@inner
def at(x: Floats, t: int) -> float:
    return x[t] if t >= 0 else NAN


@inner
def total_of(x: Floats, t: int, n: int) -> float:
    if t < n - 1:
        return NAN
    total = 0.0
    for s in range(t - n + 1, t + 1):
        total += x[s]
    return total


@inner
def mean_of(x: Floats, t: int, n: int) -> float:
    return total_of(x, t, n) / n


@inner
def spread_of(x: Floats, t: int, n: int, mean: float, ddof: int) -> float:
    if t < n - 1:
        return NAN
    total, largest = 0.0, 0.0
    for s in range(t - n + 1, t + 1):
        total += (x[s] - mean) * (x[s] - mean)
        largest = max(largest, abs(x[s]))
    found = sqrt(total / (n - ddof))
    return 0.0 if found <= TIE * largest else found


@inner
def highest_of(x: Floats, t: int, n: int) -> float:
    if t < n - 1:
        return NAN
    found: float = x[t - n + 1]
    for s in range(t - n + 2, t + 1):
        found = most(found, x[s])
    return found


@inner
def lowest_of(x: Floats, t: int, n: int) -> float:
    if t < n - 1:
        return NAN
    found: float = x[t - n + 1]
    for s in range(t - n + 2, t + 1):
        found = least(found, x[s])
    return found
