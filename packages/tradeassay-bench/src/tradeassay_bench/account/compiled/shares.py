"""Price exposures filled at the close of their bar, at several cost levels in one compiled pass.

The policy: no slippage, no lots, short sales add cash, and the fee is in basis points of the traded
value. Exposures are fractions of net equity, so higher costs lead to smaller positions after the
first fee. Each cost level therefore has its own account. Quantities do not change between two
decisions, so only bars with decisions are visited. An equity curve between decisions is computed
from the closes on request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay_bench.account.shares import COSTS_BP, DecisionList
from tradeassay_bench.core.compiled import Compiler

_COMPILER = Compiler(Path(__file__).parent)
compiled, inner = _COMPILER.compiled, _COMPILER.inner


@dataclass(frozen=True, slots=True)
class Priced:
    """The result of pricing decisions, by cost level.

    Equity starts at 1. Fees and traded value are fractions of the initial equity. ``quantity`` is
    the quantity traded by each decision at each level, shape (levels, decisions). ``curve`` is the
    equity at every close, shape (levels, bars), or None if no curve was requested.
    """

    final: Floats
    fees: Floats
    traded: Floats
    quantity: Floats
    curve: Floats | None


def price_decisions(
    decisions: DecisionList,
    closes: Floats,
    costs_bp: Sequence[float] = COSTS_BP,
    *,
    curve: bool = False,
) -> Priced:
    """Return the result of trading decisions on closes of shape (legs, bars), by cost level.

    The account starts with equity 1 and no positions. An account that falls to zero stays at zero.
    Raises :class:`UserError` for a decision outside the bars or an unknown leg.
    """
    closes = np.ascontiguousarray(closes, dtype=np.float64)
    costs = np.asarray(costs_bp, dtype=np.float64) / 10_000.0
    if closes.ndim != 2:
        raise UserError("closes must have the shape (legs, bars)")
    if len(decisions):
        if int(decisions.row[-1]) >= closes.shape[1] or int(decisions.row[0]) < 0:
            raise UserError("a decision is outside the bars")
        if int(decisions.leg.max()) >= closes.shape[0] or int(decisions.leg.min()) < 0:
            raise UserError("a decision names an unknown leg")
    shape = (costs.size, closes.shape[1] if curve else 0)
    path = np.empty(shape)
    quantity = np.empty((costs.size, len(decisions)))
    final, fees, traded = carry(
        decisions.row, decisions.leg, decisions.fraction, closes, costs, path, quantity
    )
    return Priced(final, fees, traded, quantity, path if curve else None)


@inner
def worth(cash: float, held: Floats, closes: Floats, bar: int) -> float:
    """Return the equity at the close of a bar, at least 0."""
    value = cash
    for k in range(held.size):
        if held[k] != 0.0:
            value += held[k] * closes[k, bar]
    return max(value, 0.0)


@inner
def draw(path: Floats, first: int, last: int, cash: float, held: Floats, closes: Floats) -> None:
    """Write the equity at the closes of bars ``first`` to ``last`` - 1 to ``path``."""
    for t in range(first, last):
        path[t] = worth(cash, held, closes, t)


@compiled
def carry(
    row: Ints,
    leg: Ints,
    fraction: Floats,
    closes: Floats,
    costs: Floats,
    path: Floats,
    quantity: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Return final equity, fees and traded value by cost level.

    Fills ``quantity`` and, unless it is empty, ``path``. Decisions of one bar are sized from the
    equity before any of their fees.
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
            # A ruined account closes all positions and opens none again.
            if equity <= 0.0:
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
