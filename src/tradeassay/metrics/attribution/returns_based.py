"""Attribution of an account of which only the returns are known: a regression over time on factor returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats
from tradeassay.metrics.attribution.decompose import DailyParts
from tradeassay.metrics.attribution.regression import FactorModel

DAYS_PER_TERM = 5
"""Sessions needed per coefficient."""


@dataclass(frozen=True, slots=True)
class ReturnsFit:
    """``market`` and ``betas`` (K,) are the exposures that explain the returns best, ``explained`` R squared."""

    market: float
    betas: Floats
    explained: float
    daily: DailyParts


def fit_returns(model: FactorModel, total: Floats) -> ReturnsFit:
    """Explain the returns (T,) by the model's intercept and premia, exposures taken as constant.

    Selection is what is left, the mean included: ``alpha`` is in it. There is no trading part, because what was
    held is not known. Days on which the model has no factor carry on with a premium of 0. Raises
    :class:`UserError` for another length, or for too few sessions.
    """
    terms = 2 + len(model.factors)
    if total.shape != model.common.shape:
        raise UserError(f"{total.size} returns for {model.common.size} sessions", mend="give one per session")
    if total.size < DAYS_PER_TERM * terms:
        raise UserError(
            f"{total.size} sessions are too few to explain returns by {terms - 1} exposures",
            mend=f"give at least {DAYS_PER_TERM * terms}, or the weights",
        )
    design = np.column_stack([np.ones(total.size), model.common, model.premia])
    solved = np.linalg.lstsq(design, total, rcond=1e-10)[0]
    market, betas = float(solved[1]), np.array(solved[2:], dtype=np.float64)
    common, style = market * model.common, betas * model.premia
    rest = total - common - style.sum(axis=1)
    gap = total - total.mean()
    error = rest - rest.mean()
    spread = float((gap * gap).sum())
    zeros = np.zeros(total.size)
    daily = DailyParts(
        factors=model.factors,
        total=total,
        common=common,
        style=style,
        selection=rest,
        uncovered=zeros,
        trading=zeros,
        covered_share=np.full(total.size, np.nan),
        exposures=np.broadcast_to(betas, style.shape).copy(),
        invested=np.full(total.size, market),
        gross=np.full(total.size, abs(market)),
    )
    explained = 1.0 - float((error * error).sum()) / spread if spread > 0 else float("nan")
    return ReturnsFit(market=market, betas=betas, explained=explained, daily=daily)
