"""What a decision list is worth at several cost levels, in one pass and without asking the strategy again.

Sizes are shares of net equity, so a dearer level holds less from the first fee on: each level carries its own
account. Between two decisions quantities stand still, so only the bars with decisions are visited; equity in
between is read off the closes when a curve is asked for. Compiled with numba, imported on use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradeassay.code.engine.decisions import DecisionList
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

COSTS_BP = (0.1, 1.0, 5.0, 10.0, 20.0)
"""The cost levels of the benchmark: basis points of traded value, per side."""


@dataclass(frozen=True, slots=True)
class Priced:
    """One row per cost level: final equity (start 1), fees and traded value as shares of the start, the curve.

    ``quantity`` is what each decision traded at each level, shape (levels, decisions). ``curve`` has shape
    (levels, bars), equity at every close, or is None where it was not asked for.
    """

    costs_bp: tuple[float, ...]
    final: Floats
    fees: Floats
    traded: Floats
    quantity: Floats
    curve: Floats | None


def price_decisions(
    decisions: DecisionList, closes: Floats, costs_bp: Sequence[float] = COSTS_BP, *, curve: bool = False
) -> Priced:
    """Price decisions on closes of shape (legs, bars), starting with 1 and nothing held.

    An account that falls to nothing stays there. Raises :class:`UserError` for a decision outside the bars or an
    unknown leg.
    """
    closes = np.ascontiguousarray(closes, dtype=np.float64)
    costs = np.asarray(costs_bp, dtype=np.float64) / 10_000.0
    if closes.ndim != 2:
        raise UserError("closes have the shape (legs, bars)")
    if len(decisions):
        if int(decisions.row[-1]) >= closes.shape[1] or int(decisions.row[0]) < 0:
            raise UserError("a decision lies outside the bars")
        if int(decisions.leg.max()) >= closes.shape[0] or int(decisions.leg.min()) < 0:
            raise UserError("a decision names a leg that is not there")
    shape = (costs.size, closes.shape[1] if curve else 0)
    path = np.empty(shape)
    quantity = np.empty((costs.size, len(decisions)))
    from tradeassay.code.engine.kernels.account import carry

    final, fees, traded = carry(decisions.row, decisions.leg, decisions.fraction, closes, costs, path, quantity)
    return Priced(tuple(costs_bp), final, fees, traded, quantity, path if curve else None)
