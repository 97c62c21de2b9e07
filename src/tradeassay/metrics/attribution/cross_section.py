"""What a regression of one day's returns needs: who is in it, with which exposures and which weight."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Bools, Floats
from tradeassay.factors import FACTOR_NAMES, standardise


class AttributionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the method; all of them are ours.

    A factor is used on a day when at least ``present`` of the investable names have it. A day's regression needs
    ``names_per_term`` names for every coefficient (the intercept is one); with fewer it is left at the intercept,
    and below ``least_names`` there is none. ``singular`` is the share of the greatest eigenvalue below which a
    direction counts as not seen. ``vif_limit`` is where a factor counts as told by the others, ``vif_sessions``
    how many sessions before the evaluation are screened.
    """

    present: float = 0.5
    names_per_term: float = 2.0
    least_names: int = 3
    singular: float = 1e-10
    vif_limit: float = 10.0
    vif_sessions: int = 252

    def __post_init__(self) -> None:
        """Raise :class:`UserError` for numbers that mean nothing."""
        if not 0.0 < self.present <= 1.0:
            raise UserError(f"present {self.present} is no share of the names", mend="give 0 < present <= 1")
        if self.names_per_term < 1.0 or self.least_names < 1:
            raise UserError("a regression needs at least one name per coefficient", mend="raise names_per_term")
        if not self.vif_limit > 1.0 or self.vif_sessions < 1:
            raise UserError("a VIF is at least 1, and needs a session", mend="raise vif_limit or vif_sessions")


@dataclass(frozen=True, slots=True)
class CrossSection:
    """T sessions of N names and K factors.

    ``returns`` (T, N) are those of the session, NaN where there is none. ``values`` (T, K, N) are raw factor
    values known *strictly before* the session (:func:`known_before` shifts those of the close). ``size`` (T, N)
    is what the regression's weight is the square root of, known before too. ``investable`` (T, N) says who may
    be in it. Raises :class:`UserError` for shapes that do not fit.
    """

    returns: Floats
    values: Floats
    size: Floats
    investable: Bools
    factors: tuple[str, ...] = FACTOR_NAMES

    def __post_init__(self) -> None:
        days, names = self.returns.shape
        wanted = {"values": (days, len(self.factors), names), "size": (days, names), "investable": (days, names)}
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise UserError(
                    f"'{name}' has shape {getattr(self, name).shape}, {shape} is needed",
                    mend="give (sessions, factors, names) and (sessions, names)",
                )


@dataclass(frozen=True, slots=True)
class Exposures:
    """Standardised exposures (T, K, N), 0 outside ``covered`` (T, N), and which factors a day uses (T, K)."""

    values: Floats
    covered: Bools
    used: Bools


def known_before(values: Floats, lag: int = 1) -> Floats:
    """Return values of a session's close, time on the first axis, ``lag`` sessions later; NaN before the first."""
    moved = np.full_like(values, np.nan)
    if 0 < lag < values.shape[0]:
        moved[lag:] = values[:-lag]
    return moved


def exposures_of(cross: CrossSection, config: AttributionConfig | None = None) -> Exposures:
    """Winsorise at 1 and 99 % and z-score over the investable names, and say who is covered.

    A name is covered when it is investable and has a return, a positive size and every factor the day uses.
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
            investable & full & np.isfinite(cross.returns) & (cross.size > 0) & np.isfinite(cross.size)
        )
    np.copyto(values, 0.0, where=~(covered[:, None, :] & used[:, :, None]))
    return Exposures(values, covered, used)
