"""Split a portfolio's return day by day into parts without a remainder.

:func:`decompose` needs the weights. :func:`fit_returns` needs only the returns of an account. It
uses a regression over time on factor returns.
"""

from __future__ import annotations

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Floats
from tradeassay.core.errors import UserError
from tradeassay.metrics.attribution.cross_section import StyleModel

TOLERANCE = 1e-12
"""Largest allowed difference between the total of a day or window and the sum of its parts."""


class DailyParts(msgspec.Struct, frozen=True):
    """Parts of the daily return: ``common`` + sum of ``style`` + ``selection`` + ``trading``.

    They sum to ``total`` every day. All have shape (T,), ``style`` and ``exposures`` (T, K).
    ``tilt`` is the return of the mean exposures. The rest of ``style`` is timing. ``uncovered`` is
    the part of ``selection`` earned by names outside the regression. ``covered_share`` is the share
    of the gross holdings inside the regression or in a fund, which belongs to the market. It is NaN
    without holdings. ``exposures`` is the portfolio's exposure, ``invested`` its net weight and
    ``gross`` its gross weight at the start of the day. ``funds`` is the gross weight of funds, None
    without funds. The factor exposures of funds are not known.
    """

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
        """Return the largest difference between a day's total and its sum of parts.

        Without days it is 0.
        """
        parts = self.common + self.style.sum(axis=1) + self.selection + self.trading
        return float(np.max(np.abs(parts - self.total), initial=0.0))


def decompose(
    model: StyleModel, weights: Floats, total: Floats | None = None, *, baskets: Bools | None = None
) -> DailyParts:
    """Split the return of a portfolio with ``weights`` (T, N) at the start of each day.

    Short positions have negative weights. ``total`` (T,) is the actual return of the account. Its
    difference from the return of the starting weights, held from close to close, is ``trading``:
    fees, fills during the day, and assets other than stocks. None selects the ``paper`` convention:
    the total *is* the return of the starting weights, and trading is 0. ``baskets`` (N,) marks the
    columns that are funds. Their return belongs to the market, not to selection. Raises
    :class:`UserError` for inconsistent shapes and for weights that are not numbers.
    """
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
"""Smallest number of sessions per coefficient."""


class ReturnsFit(msgspec.Struct, frozen=True):
    """Exposures ``market`` and ``betas`` (K,) that best explain the returns, and R squared."""

    market: float
    betas: Floats
    explained: float
    daily: DailyParts


def fit_returns(model: StyleModel, total: Floats, *, lags: int = 0) -> ReturnsFit:
    """Explain the returns (T,) by the model's intercept and premia with constant exposures.

    ``lags`` adds the market returns of this many earlier sessions, for prices that lag (Dimson
    1979). Selection is the unexplained return including its mean, and so contains ``alpha``. There
    is no trading part because the holdings are not known. On days for which the model has no
    factor, the premium is 0. Raises :class:`UserError` for a different length or for too few
    sessions.
    """
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
