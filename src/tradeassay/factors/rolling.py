"""Sliding sums and maxima by doubling.

A window of 60 is the sum of blocks of 32, 16, 8 and 4 values, and a block of 2k is two blocks of k. So a sum
costs a handful of array additions, has no cancellation (unlike differences of cumulative sums), depends on the
values inside its window only, and is the same to the last bit whether computed for one row or for many.
Time is the last axis; what lies before the first value counts as zero (sums) or minus infinity (maxima).
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
        double = block.copy()
        double[..., size:] += block[..., :-size]
        block, size = double, size * 2
    offset, result = blocks[-1][0], blocks[-1][1].copy()
    for size, block in reversed(blocks[:-1]):
        result[..., offset:] += block[..., :-offset]
        offset += size
    return result


def rolling_max(values: Floats, window: int) -> Floats:
    """Return the greatest of the last ``window`` values at every position."""
    block, size = values, 1
    while size * 2 <= window:
        double = block.copy()
        np.maximum(double[..., size:], block[..., :-size], out=double[..., size:])
        block, size = double, size * 2
    rest = window - size
    if rest == 0:
        return block.copy()
    result = block.copy()
    np.maximum(result[..., rest:], block[..., :-rest], out=result[..., rest:])
    return result
