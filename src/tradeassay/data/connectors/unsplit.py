"""From split-adjusted series back to the prices that were traded.

Some vendors divide every price before a split by its ratio (and multiply volume), using all splits known when
you ask. Seen from an old day that is tomorrow's news. Given *every* split up to the moment of retrieval, the
adjustment can be undone exactly, but for the vendor's rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tradeassay.core.view import Days, Floats

TELLABLE = 1.3
"""Splits closer to 1:1 than this ratio cannot be told from an ordinary overnight move."""


class Split(NamedTuple):
    """``ratio`` new shares per old share from the open of ``day`` on."""

    day: np.datetime64
    ratio: float


def factor_after(days: Days, splits: Sequence[Split]) -> Floats:
    """Return, for each day, the product of the ratios of all splits on *later* days.

    A vendor's adjusted price times this is the price as traded; its adjusted volume divided by it the volume.
    """
    factor = np.ones(days.size)
    for split in splits:
        factor[days < split.day] *= split.ratio
    return factor


def factor_from(days: Days, splits: Sequence[Split]) -> Floats:
    """Return, for each day, the product of the ratios of all splits on that day or later.

    For dividends: ours are per share held before a split of the same day, the vendor's per share of that day.
    """
    factor = np.ones(days.size)
    for split in splits:
        factor[days <= split.day] *= split.ratio
    return factor


def not_applied(days: Days, opens: Floats, closes: Floats, splits: Sequence[Split]) -> list[Split]:
    """Return the splits that the vendor lists but has visibly not worked into its prices.

    An adjusted series runs on smoothly over a split; one that was forgotten jumps by its ratio. Splits within
    :data:`TELLABLE` of 1:1 and splits without a bar on both sides are taken on trust.
    """
    forgotten: list[Split] = []
    for split in splits:
        after = int(np.searchsorted(days, split.day))
        if not 0 < after < days.size or max(split.ratio, 1.0 / split.ratio) < TELLABLE:
            continue
        jump = float(np.log(closes[after - 1] / opens[after]))
        if abs(jump - np.log(split.ratio)) < abs(jump):
            forgotten.append(split)
    return forgotten
