"""A small policy that can learn from reward: for each asset, in or out, by one weight per observed column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.view import Floats

SELL, BUY = 0, 2


@dataclass(frozen=True, slots=True)
class LinearPolicy:
    """Buys an asset with the probability ``sigmoid(weights . observed + bias)``, else sells it."""

    weights: Floats
    bias: float = 0.0

    @classmethod
    def blank(cls, columns: int) -> LinearPolicy:
        """Return the policy that tosses a coin."""
        return cls(np.zeros(columns))

    def chance(self, observed: NDArray[np.float32]) -> Floats:
        """Return the probability of buying each asset, shape (assets,)."""
        score = observed.astype(np.float64) @ self.weights + self.bias
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -30.0, 30.0))))

    def act(self, observed: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw an action for each asset: 0 sells, 2 buys."""
        chosen = rng.random(observed.shape[0]) < self.chance(observed)
        return np.where(chosen, BUY, SELL).astype(np.int64)
