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
    blocks: list[tuple[int, NDArray[Number]]] = []
    block, size = values, 1
    while True:
        if window & size:
            blocks.append((size, block))
        if size * 2 > window:
            break
        double = np.empty_like(block)
        double[:size] = block[:size]
        np.add(block[size:], block[:-size], out=double[size:])
        block, size = double, size * 2
    # The largest block is ours to add to, unless it is the input itself.
    offset, result = blocks[-1]
    result = result.copy() if offset == 1 else result
    for size, block in reversed(blocks[:-1]):
        result[offset:] += block[:-offset]
        offset += size
    return result


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
