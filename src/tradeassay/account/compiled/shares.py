"""Exposures as shares of equity in compiled code: one account per cost level, carried through a list of
decisions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tradeassay.core.compiled import Compiler
from tradeassay.core.view import Floats, Ints

_COMPILER = Compiler(Path(__file__).parent)
compiled, inner = _COMPILER.compiled, _COMPILER.inner


@inner
def worth(cash: float, held: Floats, closes: Floats, bar: int) -> float:
    """Return an account's value at a close, never below zero."""
    value = cash
    for k in range(held.size):
        if held[k] != 0.0:
            value += held[k] * closes[k, bar]
    return max(value, 0.0)


@inner
def draw(path: Floats, first: int, last: int, cash: float, held: Floats, closes: Floats) -> None:
    """Write the equity of bars over which quantities do not change."""
    for t in range(first, last):
        path[t] = worth(cash, held, closes, t)


@compiled
def carry(
    row: Ints, leg: Ints, fraction: Floats, closes: Floats, costs: Floats, path: Floats, quantity: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return final equity, fees and traded value by cost level; fills ``quantity`` and, if it has room, ``path``.

    Decisions of one bar are sized from the equity before any of their fees.
    """
    legs, bars = closes.shape
    levels = costs.size
    final, fees, traded = np.ones(levels), np.zeros(levels), np.zeros(levels)
    for level in range(levels):
        cash = 1.0
        held = np.zeros(legs)
        drawn = 0
        at = 0
        while at < row.size:
            bar = row[at]
            if path.shape[1] > 0:
                draw(path[level], drawn, bar, cash, held, closes)
                drawn = bar
            equity = worth(cash, held, closes, bar)
            if equity <= 0.0:  # ruined: everything is closed and nothing is opened again
                cash = 0.0
                held[:] = 0.0
            while at < row.size and row[at] == bar:
                k = leg[at]
                change = fraction[at] * equity / closes[k, bar] - held[k]
                value = abs(change) * closes[k, bar]
                cash -= change * closes[k, bar] + value * costs[level]
                held[k] += change
                fees[level] += value * costs[level]
                traded[level] += value
                quantity[level, at] = change
                at += 1
        if path.shape[1] > 0:
            draw(path[level], drawn, bars, cash, held, closes)
        final[level] = worth(cash, held, closes, bars - 1) if bars > 0 else cash
    return final, fees, traded
