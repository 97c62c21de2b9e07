"""The daily cross-sectional regression: one intercept and one return per factor and session."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.view import Bools, Floats, Ints
from tradeassay.metrics.attribution.cross_section import AttributionConfig, CrossSection, Exposures, exposures_of

FULL, MARKET, NONE = 2, 1, 0
"""How a day was fitted: intercept and factors, the intercept alone, not at all."""


@dataclass(frozen=True, slots=True)
class FactorModel:
    """What moved the names of T sessions. It does not know any portfolio.

    ``returns`` (T, N) has 0 where a name has none. ``exposures`` (T, K, N) are 0 outside ``covered`` (T, N).
    ``common`` (T,) is the intercept, ``premia`` (T, K) the return of one unit of each factor, ``residuals`` (T, N)
    what is left of every name: of one that is not covered, its return less the intercept. ``fitted`` (T,) is
    ``FULL``, ``MARKET`` or ``NONE``, ``explained`` (T,) the weighted R squared (NaN without a fit).
    """

    factors: tuple[str, ...]
    returns: Floats
    exposures: Floats
    covered: Bools
    common: Floats
    premia: Floats
    residuals: Floats
    explained: Floats
    fitted: NDArray[np.int8]

    @property
    def names(self) -> Ints:
        """How many names are covered on each day."""
        counted: Ints = self.covered.sum(axis=1)
        return counted


def fit(cross: CrossSection, config: AttributionConfig | None = None) -> FactorModel:
    """Standardise the exposures and regress every day (:func:`exposures_of`, then :func:`regress`)."""
    config = config or AttributionConfig()
    return regress(cross, exposures_of(cross, config), config)


def regress(cross: CrossSection, exposures: Exposures, config: AttributionConfig | None = None) -> FactorModel:
    """Fit every day by weighted least squares, weights being the square root of size, all days at once.

    Directions that a day's names do not span (a factor without spread, two that say the same) get no return: of
    all solutions it is the one with the smallest coefficients.
    """
    config = config or AttributionConfig()
    covered = exposures.covered
    names = covered.sum(axis=1)
    terms = 1 + exposures.used.sum(axis=1)
    full = (names >= config.names_per_term * terms) & (terms > 1)
    some = names >= config.least_names
    fitted = np.where(full & some, FULL, np.where(some, MARKET, NONE)).astype(np.int8)
    x = exposures.values
    if not (fitted == FULL).all():
        x = x * (fitted == FULL)[:, None, None]
    returns = np.where(np.isfinite(cross.returns), cross.returns, 0.0)
    weights = np.where(covered & some[:, None], np.sqrt(np.where(covered, cross.size, 0.0)), 0.0)
    whole = weights.sum(axis=1, keepdims=True)
    weights /= np.where(whole > 0, whole, 1.0)
    slopes = _solve(*_normal_equations(x, weights, returns), config.singular)
    common, premia = slopes[:, 0], slopes[:, 1:]
    residuals = returns - common[:, None] - np.matmul(premia[:, None, :], x)[:, 0]
    if not some.all():
        covered = covered & some[:, None]
    return FactorModel(
        factors=cross.factors,
        returns=returns,
        exposures=x,
        covered=covered,
        common=common,
        premia=premia,
        residuals=residuals,
        explained=_explained(returns, residuals, weights),
        fitted=fitted,
    )


def _normal_equations(x: Floats, weights: Floats, returns: Floats) -> tuple[Floats, Floats]:
    """Return the moments (T, 1 + K, 1 + K) and the right-hand sides (T, 1 + K); the weights of a day sum to 1."""
    days, factors = x.shape[:2]
    weighted = x * weights[:, None, :]
    moments = np.empty((days, factors + 1, factors + 1))
    moments[:, 1:, 1:] = np.matmul(weighted, x.transpose(0, 2, 1))
    moments[:, 0, 1:] = moments[:, 1:, 0] = weighted.sum(axis=2)
    moments[:, 0, 0] = weights.sum(axis=1)
    right = np.empty((days, factors + 1))
    right[:, 1:] = np.matmul(weighted, returns[:, :, None])[:, :, 0]
    right[:, 0] = (weights * returns).sum(axis=1)
    return moments, right


def _solve(moments: Floats, right: Floats, singular: float) -> Floats:
    """Return the solution of least size of every day."""
    values, vectors = np.linalg.eigh(moments)
    seen = values > singular * np.maximum(values[:, -1:], 0.0)
    inverse = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
    along = np.matmul(vectors.transpose(0, 2, 1), right[:, :, None])[:, :, 0] * inverse
    there = np.diagonal(moments, axis1=1, axis2=2) > 0
    solved: Floats = np.where(there, np.matmul(vectors, along[:, :, None])[:, :, 0], 0.0)
    return solved


def _explained(returns: Floats, residuals: Floats, weights: Floats) -> Floats:
    mean = (weights * returns).sum(axis=1, keepdims=True)
    spread = (weights * (returns - mean) ** 2).sum(axis=1)
    left = (weights * residuals**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Floats = np.where(spread > 0, 1.0 - left / spread, np.nan)
    return share
