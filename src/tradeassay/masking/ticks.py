"""Prices on a grid of their own: what a rebased mask shows, so that the true price step cannot be found in it.

Scaled prices alone hide nothing: true prices are multiples of a cent, and a search over scales finds the one
under which all shown prices are. Here a price is scaled, blurred by noise that is wider than the true step of all
but the cheapest stocks, and rounded to cents of the shown price. The noise is drawn from the episode's secret by
name, day and field: asked twice, the same price is shown. Return *shapes* stay (blurred a little): no rebasing
can hide them.
"""

from __future__ import annotations

import hashlib

import numpy as np

TICK = 0.01
"""The price step that is shown."""
BLUR = 0.003
"""Half the width of the noise, as a share of the price: more than one true step of any stock above 3.33."""
FIGURES = 3
"""Significant digits of volumes and amounts."""


class Ticks:
    """The shown grid of one episode."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def price(self, symbol: str, day: str, field: str, scaled: float) -> float:
        """Return a scaled price as it is shown."""
        blurred = scaled * (1.0 + BLUR * self._noise(symbol, day, field))
        return max(TICK, round(round(blurred / TICK) * TICK, 2))

    def size(self, symbol: str, day: str, field: str, scaled: float) -> float:
        """Return a scaled volume or amount as it is shown."""
        blurred = scaled * (1.0 + BLUR * self._noise(symbol, day, field))
        return float(np.format_float_positional(blurred, FIGURES, fractional=False, unique=False))

    def _noise(self, symbol: str, day: str, field: str) -> float:
        """Return a number between -1 and 1, the same whenever it is asked for."""
        text = f"{symbol}\x1f{day}\x1f{field}".encode()
        digest = hashlib.blake2b(text, key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2.0**63 - 1.0
