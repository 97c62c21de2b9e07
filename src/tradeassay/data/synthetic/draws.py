"""Randomness that never changes: raw bits of PCG64 (a stream numpy guarantees) and exact arithmetic.

numpy's own distributions may change between versions and use logarithms whose last bit depends on the CPU. Here
a normal variate is one of 65,536 quantiles, stored on a grid of 2**-20, picked by 16 random bits; everything
else is integers, comparisons and the four basic operations.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import NDArray

from tradeassay.core import reproducible_math as exact
from tradeassay.core.view import Bools, Floats, Ints

Shape = int | tuple[int, ...]
GRID = 1 << 20


class Draws:
    """A named stream of random numbers. Streams of different names are independent."""

    def __init__(self, seed: int, *path: str) -> None:
        words = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") for name in path]
        self._bits = PCG64(SeedSequence(seed, spawn_key=words))

    def _raw(self, count: int) -> NDArray[np.uint64]:
        raw: NDArray[np.uint64] = np.asarray(self._bits.random_raw(count), dtype=np.uint64)
        return raw

    def uniform(self, shape: Shape) -> Floats:
        """Return numbers in [0, 1) with 53 random bits."""
        count = int(np.prod(shape))
        whole = (self._raw(count) >> np.uint64(11)).astype(np.float64)
        return (whole * 2.0**-53).reshape(shape)

    def between(self, low: float, high: float, shape: Shape) -> Floats:
        """Return numbers in [low, high)."""
        return low + (high - low) * self.uniform(shape)

    def chance(self, probability: float, shape: Shape) -> Bools:
        """Return True with the given probability."""
        result: Bools = self.uniform(shape) < probability
        return result

    def below(self, bound: int, shape: Shape) -> Ints:
        """Return whole numbers from 0 to ``bound`` - 1 (``bound`` below 2**31)."""
        count = int(np.prod(shape))
        high = self._raw(count) >> np.uint64(32)
        return ((high * np.uint64(bound)) >> np.uint64(32)).astype(np.int64).reshape(shape)

    def integer(self, low: int, high: int) -> int:
        """Return one whole number from ``low`` to ``high``, both included."""
        return low + int(self.below(high - low + 1, 1)[0])

    def normal(self, shape: Shape) -> Floats:
        """Return standard normal variates (of 65,536 values, at most 4.33 in size)."""
        count = int(np.prod(shape))
        bits = self._raw(-(-count // 4)).astype("<u8").view("<u2")[:count]
        values: Floats = _normal_table()[bits].reshape(shape)
        return values

    def student(self, shape: Shape, df: int) -> Floats:
        """Return Student variates of ``df`` (at least 3) degrees of freedom, scaled to unit variance."""
        squares = self.normal(shape)
        squares *= squares
        for _ in range(df - 1):
            z = self.normal(shape)
            z *= z
            squares += z
        result: Floats = self.normal(shape) / np.sqrt(np.maximum(squares, 0.01) / (df - 2.0))
        return result

    def order(self, count: int) -> Ints:
        """Return the numbers below ``count`` in random order."""
        return np.argsort(self._raw(count), kind="stable").astype(np.int64)

    def rare(self, rate: float, cells: int) -> Ints:
        """Return which of ``cells`` cells have an event when each has one with probability ``rate``."""
        return np.flatnonzero(self.chance(rate, cells)).astype(np.int64)


@lru_cache(maxsize=1)
def _normal_table() -> Floats:
    upper = normal_quantile((np.arange(1 << 15) + 0.5) / (1 << 16) + 0.5)
    upper = np.rint(upper * GRID) / GRID
    table = np.concatenate([-upper[::-1], upper])
    table.flags.writeable = False
    return table


_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip


def normal_quantile(probability: Floats) -> Floats:
    """Return standard normal quantiles (Wichura's AS 241) for probabilities from 1e-11 to 1 - 1e-11."""
    q = probability - 0.5
    centre = 0.180625 - q * q
    tail = np.sqrt(-exact.log(np.minimum(probability, 1.0 - probability))) - 1.6
    inner = q * _ratio(_CENTRE, centre)
    outer = np.where(q < 0, -1.0, 1.0) * _ratio(_TAIL, tail)
    return np.where(np.abs(q) <= 0.425, inner, outer)


def _ratio(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: Floats) -> Floats:
    above, below = (np.full_like(x, p[0]) for p in polynomials)
    for a, b in zip(polynomials[0][1:], polynomials[1][1:], strict=True):
        above = above * x + a
        below = below * x + b
    return above / below
