"""Dice for compiled code: SplitMix64 (Steele, Lea and Flood 2014), the same numbers on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tradeassay.assay.luck.compiled import inner

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)

State = NDArray[np.uint64]
"""One number: where the dice are."""


@inner
def throw(state: State, sides: int) -> int:
    """Return a number from 0 to ``sides`` - 1 and move on."""
    state[0] = state[0] + _STEP
    z = state[0]
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    z = z ^ (z >> _31)
    return int(float(z >> _11) * 2.0**-53 * sides)
