"""The daily cross-sectional regression: one intercept and one return per factor and session.

:class:`CrossSection` and :func:`exposures_of` select the names, exposures and weights. :func:`fit`
runs the regression. :func:`vif_screen` tests whether the factors are collinear.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Bools, Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.factors import FACTOR_NAMES, standardise
from tradeassay.metrics.intervals import significant


class AttributionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the method. All values are our choice.

    A factor is used on a day if at least the share ``present`` of the investable names has it. A
    day's regression needs ``names_per_term`` names for every coefficient, including the intercept.
    With fewer names only the intercept is fitted. Below ``least_names`` there is no fit. An
    eigenvalue below the share ``singular`` of the largest one is treated as zero. A factor with a
    VIF above ``vif_limit`` is explained by the other factors. ``vif_sessions`` is the number of
    sessions before the evaluation that are screened. ``beside`` adds beta, size and sectors to the
    nine factors if there are ``names_beside`` names for every coefficient.
    """

    present: float = 0.5
    names_per_term: float = 2.0
    least_names: int = 3
    singular: float = 1e-10
    vif_limit: float = 10.0
    vif_sessions: int = 252
    beside: bool = True
    names_beside: float = 3.0

    def __post_init__(self) -> None:
        """Raise :class:`UserError` for values out of range."""
        if not 0.0 < self.present <= 1.0:
            raise UserError(
                f"present {self.present} is not a share of the names", hint="give 0 < present <= 1"
            )
        if self.names_per_term < 1.0 or self.least_names < 1:
            raise UserError(
                "a regression needs at least one name per coefficient", hint="raise names_per_term"
            )
        if not self.vif_limit > 1.0 or self.vif_sessions < 1:
            raise UserError(
                "a VIF is at least 1, and needs a session", hint="raise vif_limit or vif_sessions"
            )


class CrossSection(msgspec.Struct, frozen=True):
    """T sessions of N names and K factors.

    ``returns`` (T, N) are the returns of the session, NaN if missing. ``values`` (T, K, N) are raw
    factor values known *strictly before* the session (:func:`known_before` shifts values of the
    close). ``size`` (T, N) is known before the session too. Its square root is the regression
    weight. ``investable`` (T, N) marks the names that may enter the regression. Raises
    :class:`UserError` for inconsistent shapes.
    """

    returns: Floats
    values: Floats
    size: Floats
    investable: Bools
    factors: tuple[str, ...] = FACTOR_NAMES

    def __post_init__(self) -> None:
        days, names = self.returns.shape
        wanted = {
            "values": (days, len(self.factors), names),
            "size": (days, names),
            "investable": (days, names),
        }
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                hint = "give (sessions, factors, names) and (sessions, names)"
                raise UserError(
                    f"'{name}' has shape {getattr(self, name).shape}, expected {shape}", hint=hint
                )


class Exposures(msgspec.Struct, frozen=True):
    """Standardised exposures (T, K, N) and the factors that each day uses (T, K).

    Exposures are 0 outside ``covered`` (T, N).
    """

    values: Floats
    covered: Bools
    used: Bools


def known_before(values: Floats, lag: int = 1) -> Floats:
    """Return values of a session's close ``lag`` sessions later, with NaN before the first.

    Time is the first axis.
    """
    moved = np.full_like(values, np.nan)
    if 0 < lag < values.shape[0]:
        moved[lag:] = values[:-lag]
    return moved


def exposures_of(cross: CrossSection, config: AttributionConfig | None = None) -> Exposures:
    """Winsorise at 1 and 99 %, z-score over the investable names, and mark the covered names.

    A name is covered if it is investable and has a return, a positive size and every factor that
    the day uses.
    """
    config = config or AttributionConfig()
    investable = cross.investable
    raw = np.where(investable[:, None, :], cross.values, np.nan)
    present = np.isfinite(raw)
    there = present.sum(axis=-1)
    used: Bools = there >= np.maximum(config.present * investable.sum(axis=-1), 1.0)[:, None]
    values = standardise(np.where(present, raw, np.nan))
    full = (present | ~used[:, :, None]).all(axis=1)
    with np.errstate(invalid="ignore"):
        covered: Bools = (
            investable
            & full
            & np.isfinite(cross.returns)
            & (cross.size > 0)
            & np.isfinite(cross.size)
        )
    np.copyto(values, 0.0, where=~(covered[:, None, :] & used[:, :, None]))
    return Exposures(values, covered, used)


FULL, MARKET, NONE = 2, 1, 0
"""Kinds of fits of a day: intercept and factors, the intercept alone, or no fit."""


@dataclass(frozen=True, slots=True)
class StyleModel:
    """Factor returns and residuals of T sessions, independent of any portfolio.

    ``returns`` (T, N) has 0 for a missing return. ``exposures`` (T, K, N) are 0 outside ``covered``
    (T, N). ``common`` (T,) is the intercept. ``premia`` (T, K) is the return of one unit of each
    factor. ``residuals`` (T, N) is the unexplained return of each name. For a name that is not
    covered it is its return minus the intercept. ``fitted`` (T,) is ``FULL``, ``MARKET`` or
    ``NONE``. ``explained`` (T,) is the weighted R squared, NaN without a fit.
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


def fit(cross: CrossSection, config: AttributionConfig | None = None) -> StyleModel:
    """Standardise the exposures and regress every day.

    See :func:`exposures_of` and :func:`regress`.
    """
    config = config or AttributionConfig()
    return regress(cross, exposures_of(cross, config), config)


def regress(
    cross: CrossSection, exposures: Exposures, config: AttributionConfig | None = None
) -> StyleModel:
    """Fit every day by weighted least squares, all days at once.

    The weights are the square root of size. A direction that a day's names do not span, such as a
    factor without spread or two collinear factors, gets no return: the solution has the smallest
    coefficients.
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
    # The normal equations: moments (T, 1 + K, 1 + K) and right-hand sides (T, 1 + K). A day's
    # weights sum to 1.
    weighted, (days, factors) = x * weights[:, None, :], x.shape[:2]
    moments, right = np.empty((days, factors + 1, factors + 1)), np.empty((days, factors + 1))
    moments[:, 1:, 1:] = np.matmul(weighted, x.transpose(0, 2, 1))
    moments[:, 0, 1:] = weighted.sum(axis=2)
    moments[:, 1:, 0] = moments[:, 0, 1:]
    moments[:, 0, 0] = weights.sum(axis=1)
    right[:, 1:] = np.matmul(weighted, returns[:, :, None])[:, :, 0]
    right[:, 0] = (weights * returns).sum(axis=1)
    # The minimum-norm solution of every day.
    values, vectors = np.linalg.eigh(moments)
    seen = values > config.singular * np.maximum(values[:, -1:], 0.0)
    inverse = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
    along = np.matmul(vectors.transpose(0, 2, 1), right[:, :, None])[:, :, 0] * inverse
    there = np.diagonal(moments, axis1=1, axis2=2) > 0
    slopes = np.where(there, np.matmul(vectors, along[:, :, None])[:, :, 0], 0.0)
    common, premia = slopes[:, 0], slopes[:, 1:]
    residuals = returns - common[:, None] - np.matmul(premia[:, None, :], x)[:, 0]
    if not some.all():
        covered = covered & some[:, None]
    mean = (weights * returns).sum(axis=1, keepdims=True)
    spread = (weights * (returns - mean) ** 2).sum(axis=1)
    left = (weights * residuals**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        explained: Floats = np.where(spread > 0, 1.0 - left / spread, np.nan)
    return StyleModel(
        factors=cross.factors,
        returns=returns,
        exposures=x,
        covered=covered,
        common=common,
        premia=premia,
        residuals=residuals,
        explained=explained,
        fitted=fitted,
    )


class VifScreen(msgspec.Struct, frozen=True, kw_only=True):
    """Variance inflation factors: mean over ``sessions`` days of 1 / (1 - R squared).

    R squared is from a regression of one factor on the other factors. ``kept`` are the factors that
    remain when the factor with the highest VIF is dropped until none is above ``limit``. If all
    factors remain, the screen confirms the full set for this window.
    """

    vif: dict[str, Measure]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    limit: float
    sessions: int


def vif_screen(
    exposures: Exposures, factors: tuple[str, ...], config: AttributionConfig | None = None
) -> VifScreen:
    """Screen the factors on a window before the evaluation.

    Only days that use every factor and have ``names_per_term`` names per coefficient are used.
    Without such a day no factor has a VIF, and none is dropped.
    """
    config = config or AttributionConfig()
    names = exposures.covered.sum(axis=1)
    good = exposures.used.all(axis=1) & (names >= config.names_per_term * (len(factors) + 1))
    days = int(good.sum())
    if not days:
        reason = "no session before the window has every factor for enough names"
        vifs = dict.fromkeys(factors, not_scored(reason))
        return VifScreen(vif=vifs, kept=factors, dropped=(), limit=config.vif_limit, sessions=0)
    correlation = _correlations(exposures.values[good], exposures.covered[good])
    first = _mean_vif(correlation)
    spread = _vifs(correlation)
    measures = {
        name: Measure(
            value=significant(float(first[k])),
            low=significant(float(np.quantile(spread[:, k], 0.025))),
            high=significant(float(np.quantile(spread[:, k], 0.975))),
            n=days,
            note="interval: the middle 95 % of the sessions",
        )
        for k, name in enumerate(factors)
    }
    left = list(range(len(factors)))
    dropped: list[str] = []
    while len(left) > 1:
        values = _mean_vif(correlation[:, left][:, :, left])
        worst = int(np.argmax(values))
        if values[worst] <= config.vif_limit:
            break
        dropped.append(factors[left.pop(worst)])
    kept = tuple(factors[k] for k in left)
    return VifScreen(
        vif=measures, kept=kept, dropped=tuple(dropped), limit=config.vif_limit, sessions=days
    )


def _correlations(values: Floats, covered: Floats) -> Floats:
    inside = covered[:, None, :].astype(np.float64)
    n = inside.sum(axis=2, keepdims=True)
    gap = (values - (values * inside).sum(axis=2, keepdims=True) / n) * inside
    scale = np.sqrt((gap * gap).sum(axis=2, keepdims=True))
    unit = gap / np.where(scale > 0, scale, 1.0)
    correlation: Floats = np.matmul(unit, unit.transpose(0, 2, 1))
    return correlation


def _vifs(correlation: Floats) -> Floats:
    """Return the diagonals of the inverses.

    A factor that the remaining factors explain has a huge value.
    """
    values, vectors = np.linalg.eigh(correlation)
    inverse = 1.0 / np.maximum(values, 1e-12)
    result: Floats = np.einsum("tik,tk->ti", vectors * vectors, inverse)
    return result


def _mean_vif(correlation: Floats) -> Floats:
    mean: Floats = _vifs(correlation).mean(axis=0)
    return mean
