"""Sums of money, weights and scores that have the same last bit on every Python.

The builtin ``sum`` adds floats with compensation since Python 3.12 and without before, so that an honest run made
on one version would be contradicted on the other. A test keeps it away from floats; counts may use it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce


def plain_sum(values: Iterable[float]) -> float:
    """Return the sum from left to right, rounded after every term; 0 for no values."""
    return reduce(operator.add, values, 0)
