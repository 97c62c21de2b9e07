"""Which factors there are, how far back each looks, and when a value is missing."""

from __future__ import annotations

import math

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean

PRESENT = 0.8
"""The share of a window that must be present; below it the value is missing (NaN)."""


class FactorDef(msgspec.Struct, frozen=True, kw_only=True):
    """One factor.

    ``window`` counts the values that enter it, ``rows`` the bars that are needed to form them: a value
    depends on the last ``rows`` bars and on nothing else.
    """

    name: str
    window: int
    rows: int
    doc: str

    @property
    def enough(self) -> int:
        """The least number of present values."""
        return math.ceil(round(PRESENT * self.window, 9))


FACTORS: tuple[FactorDef, ...] = (
    FactorDef(name="MOM_12_1", window=252, rows=252, doc="close[-21] / close[-252] - 1"),
    FactorDef(name="RV_60", window=60, rows=61, doc="standard deviation of daily returns, 60 days, x sqrt(252)"),
    FactorDef(name="ILLIQ", window=20, rows=21, doc="log of the mean of |return| / traded amount, 20 days"),
    FactorDef(name="REV_ON", window=20, rows=21, doc="mean of open / previous close - 1, 20 days"),
    FactorDef(name="MOM_ID", window=20, rows=20, doc="mean of close / open - 1, 20 days"),
    FactorDef(name="SKEW", window=60, rows=61, doc="minus the skewness of daily returns, 60 days"),
    FactorDef(name="CORR_PV", window=20, rows=21, doc="correlation of return and log volume change, 20 days"),
    FactorDef(name="HIGH_52W", window=252, rows=252, doc="close / highest high of 252 days"),
    FactorDef(name="CV_VOL", window=20, rows=20, doc="standard deviation / mean of traded amount, 20 days"),
)
FACTOR_NAMES: tuple[str, ...] = tuple(factor.name for factor in FACTORS)

_BY_NAME = {factor.name: factor for factor in FACTORS}


def definition(name: str) -> FactorDef:
    """Return the factor called ``name``; raises :class:`UserError` with near names when there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        hint = did_you_mean(name.upper(), FACTOR_NAMES, f"known: {', '.join(FACTOR_NAMES)}")
        raise UserError(f"no factor '{name}'", mend=hint) from None
