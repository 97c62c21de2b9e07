"""A portfolio's return taken apart, day by day, with nothing left over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats
from tradeassay.metrics.attribution.regression import FactorModel

TOLERANCE = 1e-12
"""By how much the parts of a day, or of a window, may miss the total."""


@dataclass(frozen=True, slots=True)
class DailyParts:
    """``total`` = ``common`` + sum of ``style`` + ``selection`` + ``trading``, every day.

    All have shape (T,), ``style`` and ``exposures`` (T, K). ``uncovered`` is the part of ``selection`` earned by
    names outside the regression, ``covered_share`` (NaN when nothing is held) the share of what is held, both
    sides counted, that is inside it. ``exposures`` is the portfolio's exposure, ``invested`` its net and
    ``gross`` its gross weight at the start of the day.
    """

    factors: tuple[str, ...]
    total: Floats
    common: Floats
    style: Floats
    selection: Floats
    uncovered: Floats
    trading: Floats
    covered_share: Floats
    exposures: Floats
    invested: Floats
    gross: Floats

    def error(self) -> float:
        """Return the greatest distance of a day's sum of parts from its total; 0 without days."""
        parts = self.common + self.style.sum(axis=1) + self.selection + self.trading
        return float(np.max(np.abs(parts - self.total), initial=0.0))


def decompose(model: FactorModel, weights: Floats, total: Floats | None = None) -> DailyParts:
    """Take apart the return of a portfolio with ``weights`` (T, N) at the start of each day, shorts negative.

    ``total`` (T,) is what the account really returned; what it earned beyond its starting weights held from
    close to close is ``trading``: fees, fills inside the day, and whatever is no stock. None is the ``paper``
    convention: the total *is* that return, and trading is 0. Raises :class:`UserError` for other shapes and for
    weights that are no numbers.
    """
    if weights.shape != model.returns.shape or (total is not None and total.shape != weights.shape[:1]):
        raise UserError(
            f"weights of shape {weights.shape} for {model.returns.shape} returns",
            mend="give one weight per session and name, and one total per session",
        )
    if not np.isfinite(weights).all():
        raise UserError("a weight is no number", mend="write 0 for what is not held")
    inside = np.where(model.covered, weights, 0.0)
    outside = weights - inside
    invested = weights.sum(axis=1)
    gross = np.abs(weights).sum(axis=1)
    exposures = np.matmul(model.exposures, inside[:, :, None])[:, :, 0]
    uncovered = (outside * model.residuals).sum(axis=1)
    held = (weights * model.returns).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(gross > 0, np.abs(inside).sum(axis=1) / gross, np.nan)
    return DailyParts(
        factors=model.factors,
        total=held if total is None else total,
        common=invested * model.common,
        style=exposures * model.premia,
        selection=(inside * model.residuals).sum(axis=1) + uncovered,
        uncovered=uncovered,
        trading=np.zeros_like(held) if total is None else total - held,
        covered_share=share,
        exposures=exposures,
        invested=invested,
        gross=gross,
    )
