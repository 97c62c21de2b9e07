"""Planted style and sector returns, each with an overnight and an intraday part."""

from __future__ import annotations

import math

import numpy as np

from tradeassay.core.view import Floats
from tradeassay.data.synthetic.config import SyntheticConfig
from tradeassay.data.synthetic.draws import Draws
from tradeassay.data.synthetic.names import sectors

_DF = 6


def make_styles(config: SyntheticConfig, rows: int) -> Floats:
    """Return style returns per unit of exposure, shape (2, rows, 9): overnight, then intraday."""
    draws = Draws(config.seed, "styles")
    year = float(config.year)
    premia = np.array(config.styles.premia) / year
    scale = np.array(config.styles.volatility) / math.sqrt(year)
    return _split(draws, config, (rows, premia.size), scale, premia)


def make_sectors(config: SyntheticConfig, rows: int) -> Floats:
    """Return sector returns, shape (2, rows, sectors): overnight, then intraday."""
    draws = Draws(config.seed, "sectors")
    count = len(sectors(config.preset))
    scale = np.full(count, config.market.sector_volatility / math.sqrt(config.year))
    return _split(draws, config, (rows, count), scale, np.zeros(count))


def _split(draws: Draws, config: SyntheticConfig, shape: tuple[int, int], scale: Floats, mean: Floats) -> Floats:
    share = config.trading.overnight
    overnight = draws.student(shape, _DF) * (scale * math.sqrt(share))
    intraday = draws.student(shape, _DF) * (scale * math.sqrt(1.0 - share)) + mean
    return np.stack([overnight, intraday])
