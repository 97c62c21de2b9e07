"""Reading the past out of an observation, for rules: nothing here can see beyond the view's clock."""

from __future__ import annotations

import numpy as np

from tradeassay.core.agent import Observation
from tradeassay.core.view import Bools, Floats, Ints

PATIENCE = 5
"""A name without a bar on the day asked for is read up to this many sessions earlier."""


def known_prices(observation: Observation) -> Floats:
    """Return the latest price of every column of the view; NaN where the last session had none."""
    view = observation.view
    opens = view.opens()
    if opens is not None:
        last = view.sessions(1)
        if len(last) == 0 or str(last[-1]) != observation.session:
            return opens
    closes = view.bars("close", 1)
    return closes[-1] if len(closes) else np.full(len(view.symbols), np.nan)


def as_of(bars: Floats, row: int, columns: Ints) -> Floats:
    """Return one row of some columns; a missing value is taken from up to :data:`PATIENCE` rows before it."""
    window = bars[max(row - PATIENCE, 0) : row + 1, columns]
    found: Floats = window[-1].copy()
    for earlier in window[-2::-1]:
        missing = np.isnan(found)
        if not missing.any():
            break
        found[missing] = earlier[missing]
    return found


def buyable(observation: Observation) -> Bools:
    """Return which names of the universe can be traded and have a price, in the order of the universe."""
    view, columns = observation.view, observation.columns
    opens = view.opens()
    prices = view.bars("close", 1, adjust="none") if opens is None else opens[None, :]
    if len(prices) == 0:
        return np.zeros(len(columns), dtype=np.bool_)
    mask: Bools = (view.tradable() & (prices[-1] > 0.0))[columns]
    return mask


def returns(observation: Observation, sessions: int) -> Floats | None:
    """Return the last daily returns of the universe, shape (sessions, names); None when history is shorter.

    Dividends are included. NaN where a name has no bar on the day or the day before.
    """
    closes = observation.view.bars("close", sessions + 1, adjust="total")
    if len(closes) <= sessions:
        return None
    closes = closes[:, observation.columns]
    changes: Floats = closes[1:] / closes[:-1] - 1.0
    return changes
