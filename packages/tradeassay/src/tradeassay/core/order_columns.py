"""Columns in which orders of a Backtrader strategy are recorded, and Backtrader's time format.

The sandboxed child process writes the columns and the host's broker reads them. This module
contains only their names. Backtrader counts time in days since the year 1 as a float. The
conversion here is exact to the bit.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ACTION_SUBMIT: Final = 0
ACTION_CANCEL: Final = 1

INTEGERS: Final = tuple(
    "action turn row ref asset side kind given parent oco transmit tradeid".split()
)
FLOATS: Final = ("size", "price", "pricelimit", "trailamount", "trailpercent", "valid")

GIVEN: Final = {"price": 1, "pricelimit": 2, "trailamount": 4, "trailpercent": 8, "valid": 16}
"""Bits of ``given``: the numbers that the order states. A strategy may state NaN."""

KINDS: Final = ("market", "close", "limit", "stop", "stop-limit", "trailing", "trailing-limit")
"""Kinds of orders, by Backtrader's number."""

_EPOCH_ORDINAL: Final = 719_163
_END_OF_DAY: Final = (23 / 24.0, 59 / 1440.0, 59 / 86_400.0, 999_990 / 86_400e6)
"""Default end of a session: 23:59:59.99999."""


def day_numbers(times: NDArray[Any]) -> NDArray[np.float64]:
    """Return times (M8[ns]) as Backtrader's day numbers.

    Hours, minutes and seconds are each divided before they are summed, and the sum is rounded once.
    Any other order of operations may differ from Backtrader in the last bit.
    """
    days = times.astype("M8[D]")
    whole = days.astype(np.int64) + _EPOCH_ORDINAL
    micro = (times - days).astype("m8[us]").astype(np.int64)
    if not micro.any():
        return whole.astype(np.float64)
    inside, place = np.unique(micro, return_inverse=True)
    parts = []
    for value in inside.tolist():
        seconds, rest = divmod(value, 1_000_000)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        parts.append((hour / 24.0, minute / 1440.0, second / 86_400.0, rest / 86_400e6))
    sums = [
        math.fsum((base, *parts[k])) for base, k in zip(whole.tolist(), place.tolist(), strict=True)
    ]
    return np.array(sums)


def end_of_day(number: float) -> float:
    return math.fsum((float(int(number)), *_END_OF_DAY))
