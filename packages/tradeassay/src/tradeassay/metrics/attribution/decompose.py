"""A portfolio's return taken apart, day by day, with nothing left over.

:func:`decompose` needs the weights. :func:`fit_returns` takes apart an account of which only the returns are
known, by a regression over time on factor returns.
"""

from __future__ import annotations

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Floats
from tradeassay.core.errors import UserError
from tradeassay.metrics.attribution.cross_section import StyleModel

TOLERANCE = 1e-12
"""By how much the parts of a day, or of a window, may miss the total."""


class DailyParts(msgspec.Struct, frozen=True):
    """``total`` = ``common`` + sum of ``style`` + ``selection`` + ``trading``, every day. All have shape (T,),
    ``style`` and ``exposures`` (T, K). ``tilt`` is what the mean exposures alone would have earned: the rest of
    ``style`` is timing. ``uncovered`` is the part of ``selection`` earned by names outside the regression,
    ``covered_share`` (NaN when nothing is held) the share of what is held, both sides counted, that is inside it
    or in a fund, which is the market. ``exposures`` is the portfolio's exposure, ``invested`` its net and
    ``gross`` its gross weight at the start of the day; ``funds`` is the gross weight of funds, None without any:
    no factor says what they lean to."""

    factors: tuple[str, ...]
    total: Floats
    common: Floats
    style: Floats
    tilt: Floats
    selection: Floats
    uncovered: Floats
    trading: Floats
    covered_share: Floats
    exposures: Floats
    invested: Floats
    gross: Floats
    funds: Floats | None = None

    def error(self) -> float:
        """Return the greatest distance of a day's sum of parts from its total; 0 without days."""
        parts = self.common + self.style.sum(axis=1) + self.selection + self.trading
        return float(np.max(np.abs(parts - self.total), initial=0.0))


def decompose(
    model: StyleModel, weights: Floats, total: Floats | None = None, *, baskets: Bools | None = None
) -> DailyParts:
    """Take apart the return of a portfolio with ``weights`` (T, N) at the start of each day, shorts negative.
    ``total`` (T,) is what the account really returned; what it earned beyond its starting weights held from close
    to close is ``trading``: fees, fills inside the day, and whatever is not a stock. None is the ``paper``
    convention: the total *is* that return, and trading is 0. ``baskets`` (N,) are the columns that are funds: what
    they returned is the market's, nobody selected it. Raises :class:`UserError` for other shapes and for weights
    that are not numbers."""
    if weights.shape != model.returns.shape or (
        total is not None and total.shape != weights.shape[:1]
    ):
        hint = "give one weight per session and name, and one total per session"
        raise UserError(
            f"weights of shape {weights.shape} for {model.returns.shape} returns", hint=hint
        )
    if not np.isfinite(weights).all():
        raise UserError("a weight is not a number", hint="write 0 for what is not held")
    inside = np.where(model.covered, weights, 0.0)
    outside = weights - inside
    funds = np.zeros_like(weights)
    if baskets is not None and baskets.any():
        funds[:, baskets], outside[:, baskets] = outside[:, baskets], 0.0
    invested = weights.sum(axis=1)
    gross = np.abs(weights).sum(axis=1)
    exposures = np.matmul(model.exposures, inside[:, :, None])[:, :, 0]
    uncovered = (outside * model.residuals).sum(axis=1)
    held = (weights * model.returns).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(gross > 0, (np.abs(inside) + np.abs(funds)).sum(axis=1) / gross, np.nan)
    return DailyParts(
        factors=model.factors,
        total=held if total is None else total,
        common=invested * model.common + (funds * model.residuals).sum(axis=1),
        style=exposures * model.premia,
        tilt=model.premia @ exposures.mean(axis=0) if exposures.size else np.zeros(held.size),
        selection=(inside * model.residuals).sum(axis=1) + uncovered,
        uncovered=uncovered,
        trading=np.zeros_like(held) if total is None else total - held,
        covered_share=share,
        exposures=exposures,
        invested=invested,
        gross=gross,
        funds=np.abs(funds).sum(axis=1),
    )


_DAYS_PER_TERM = 5
"""Sessions needed per coefficient."""


class ReturnsFit(msgspec.Struct, frozen=True):
    """``market`` and ``betas`` (K,) are the exposures that explain the returns best, ``explained`` R squared."""

    market: float
    betas: Floats
    explained: float
    daily: DailyParts


def fit_returns(model: StyleModel, total: Floats, *, lags: int = 0) -> ReturnsFit:
    """Explain the returns (T,) by the model's intercept and premia, exposures taken as constant. ``lags`` sessions
    of the market before count too, for prices that are late (Dimson 1979). Selection is what is left, the mean
    included: ``alpha`` is in it. There is no trading part, because what was held is not known. Days on which the
    model has no factor carry on with a premium of 0. Raises :class:`UserError` for another length, or for too few
    sessions."""
    terms = 2 + len(model.factors) + lags
    if total.shape != model.common.shape:
        raise UserError(
            f"{total.size} returns for {model.common.size} sessions", hint="give one per session"
        )
    if total.size < _DAYS_PER_TERM * terms:
        raise UserError(
            f"{total.size} sessions are too few to explain returns by {terms - 1} exposures",
            hint=f"give at least {_DAYS_PER_TERM * terms}, or the weights",
        )
    late = np.full((total.size, lags + 1), model.common.mean())
    for lag in range(lags + 1):
        late[lag:, lag] = model.common[: total.size - lag]
    design = np.column_stack([np.ones(total.size), late, model.premia])
    solved = np.linalg.lstsq(design, total, rcond=1e-10)[0]
    market, betas = (
        float(solved[1 : 2 + lags].sum()),
        np.array(solved[2 + lags :], dtype=np.float64),
    )
    common, style = late @ solved[1 : 2 + lags], betas * model.premia
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
        tilt=style.sum(axis=1),
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
