"""Sliding sums and maxima by doubling.

A window of 60 is the sum of blocks of 32, 16, 8 and 4 values, and a block of 2k is two blocks of k. So a sum
costs a handful of array additions, has no cancellation (unlike differences of cumulative sums), depends on the
values inside its window only, and is the same to the last bit whether computed for one row or for many.
Time is the first axis; what lies before the first value counts as zero (sums) or minus infinity (maxima).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.view import Floats

Number = TypeVar("Number", np.float64, np.uint8)


def rolling_sum(values: NDArray[Number], window: int) -> NDArray[Number]:
    """Return the sum of the last ``window`` values at every position."""
    return rolling_sums(values, window)[0]


def rolling_sums(values: NDArray[Number], *windows: int) -> list[NDArray[Number]]:
    """Return :func:`rolling_sum` for several windows, which share their blocks."""
    widest = max(windows)
    blocks = [values]
    size = 1
    while size * 2 <= widest:
        block = blocks[-1]
        double = np.empty_like(block)
        double[:size] = block[:size]
        np.add(block[size:], block[:-size], out=double[size:])
        blocks.append(double)
        size *= 2
    return [_added(blocks, window) for window in windows]


def _added(blocks: list[NDArray[Number]], window: int) -> NDArray[Number]:
    """Return the sum over a window: its blocks, the largest and latest first."""
    level = window.bit_length() - 1
    offset = 1 << level
    largest, result = blocks[level], None
    for lower in reversed(range(level)):
        if window & (1 << lower):
            if result is None:
                result = np.empty_like(largest)
                result[:offset] = largest[:offset]
                np.add(largest[offset:], blocks[lower][:-offset], out=result[offset:])
            else:
                result[offset:] += blocks[lower][:-offset]
            offset += 1 << lower
    return largest.copy() if result is None else result


def rolling_max(values: Floats, window: int) -> Floats:
    """Return the greatest of the last ``window`` values at every position."""
    block, size = values, 1
    while size * 2 <= window:
        block, size = _higher(block, size), size * 2
    return _higher(block, window - size) if window > size else block.copy()


def _higher(values: Floats, back: int) -> Floats:
    """Return the greater of each value and the one ``back`` rows before it."""
    result = np.empty_like(values)
    result[:back] = values[:back]
    np.maximum(values[back:], values[:-back], out=result[back:])
    return result
