"""What moves prices, all drawn before the first session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.core.view import Floats
from tradeassay.data.synthetic.config import SyntheticConfig
from tradeassay.data.synthetic.regimes import MarketPath
from tradeassay.data.synthetic.universe import Universe

DISTRESS = 40
"""A name that is to be delisted declines over this many sessions."""
_DISTRESS_DRIFT = -0.012


@dataclass(frozen=True, slots=True)
class Drivers:
    """Planted returns. Those of shape (2, ...) hold an overnight and an intraday part.

    ``styles`` has shape (2, rows, 9), ``sectors`` (2, rows, sectors), ``planted`` (what news causes: 2, rows,
    names), ``decline`` (rows, names) what names lose before they are delisted.
    """

    market: MarketPath
    styles: Floats
    sectors: Floats
    planted: Floats
    decline: Floats

    def known_returns(self, universe: Universe) -> Floats:
        """Return all that does not depend on the path of prices, shape (rows, 2, names)."""
        market = np.stack([self.market.overnight, self.market.intraday], axis=1)
        base = market[:, :, None] * universe.beta + self.sectors.transpose(1, 0, 2)[:, :, universe.sector]
        base += self.planted.transpose(1, 0, 2)
        base[:, 1] += universe.alpha + self.decline
        return base


def make_decline(config: SyntheticConfig, universe: Universe, burn: int) -> Floats:
    """Return what names lose per session in the weeks before they are delisted, shape (rows, names)."""
    decline = np.zeros((burn + config.sessions, universe.size))
    for column in np.flatnonzero(universe.last < config.sessions - 1).tolist():
        end = burn + int(universe.last[column]) + 1
        decline[end - DISTRESS : end, column] = _DISTRESS_DRIFT
    return decline
