"""Definitions of the factors: inputs, lookback, and the rule for missing values."""

from __future__ import annotations

import math

import msgspec

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.registry import did_you_mean

SKIPPED = 21
"""MOM_12_1 excludes the last month: its later price is ``close[-21]``."""
PRESENT = 0.8
"""Smallest share of a window that must be present. Otherwise the value is missing (NaN)."""


class FactorDef(msgspec.Struct, frozen=True, kw_only=True):
    """One factor.

    ``window`` is the number of values in it. ``rows`` is the number of bars needed to compute them.
    A value depends only on the last ``rows`` bars.
    """

    name: str
    window: int
    rows: int
    doc: str

    @property
    def enough(self) -> int:
        return math.ceil(round(PRESENT * self.window, 9))


FACTORS: tuple[FactorDef, ...] = (
    FactorDef(name="MOM_12_1", window=252, rows=252, doc="close[-21] / close[-252] - 1"),
    FactorDef(
        name="RV_60",
        window=60,
        rows=61,
        doc="standard deviation of daily returns, 60 days, x sqrt(252)",
    ),
    FactorDef(
        name="ILLIQ", window=20, rows=21, doc="log of the mean of |return| / traded amount, 20 days"
    ),
    FactorDef(name="REV_ON", window=20, rows=21, doc="mean of open / previous close - 1, 20 days"),
    FactorDef(name="MOM_ID", window=20, rows=20, doc="mean of close / open - 1, 20 days"),
    FactorDef(name="SKEW", window=60, rows=61, doc="minus the skewness of daily returns, 60 days"),
    FactorDef(
        name="CORR_PV",
        window=20,
        rows=21,
        doc="correlation of return and log volume change, 20 days",
    ),
    FactorDef(name="HIGH_52W", window=252, rows=252, doc="close / highest high of 252 days"),
    FactorDef(
        name="CV_VOL", window=20, rows=20, doc="standard deviation / mean of traded amount, 20 days"
    ),
)
FACTOR_NAMES: tuple[str, ...] = tuple(factor.name for factor in FACTORS)

_BY_NAME = {factor.name: factor for factor in FACTORS}


def definition(name: str) -> FactorDef:
    """Return the factor called ``name``.

    Raises :class:`UserError` with similar names if there is none.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        hint = did_you_mean(name.upper(), FACTOR_NAMES, f"known: {', '.join(FACTOR_NAMES)}")
        raise UserError(f"no factor '{name}'", hint=hint) from None


_TITLES = {
    "MOM_12_1": "twelve-month momentum",
    "RV_60": "volatility",
    "ILLIQ": "illiquidity",
    "REV_ON": "overnight drift",
    "MOM_ID": "intraday drift",
    "SKEW": "negative skew",
    "CORR_PV": "price moving with volume",
    "HIGH_52W": "nearness to the year's high",
    "CV_VOL": "uneven trading volume",
    "BETA": "market beta",
    "SIZE": "company size",
}


def factor_words(name: str) -> str:
    """Return the plain name of a factor of an attribution, including beta, size and sectors."""
    return _TITLES.get(name) or name.removeprefix("SECTOR ")


class FactorBars(msgspec.Struct, frozen=True):
    """Daily bars of shape (sessions, names), oldest first. NaN means missing.

    Prices and volumes must be split-adjusted as of the last row. Otherwise a split looks like a
    crash. Raises :class:`DataError` if the shapes differ.
    """

    open: Floats
    high: Floats
    close: Floats
    volume: Floats
    amount: Floats

    def __post_init__(self) -> None:
        shapes = {
            array.shape for array in (self.open, self.high, self.close, self.volume, self.amount)
        }
        if len(shapes) != 1 or self.close.ndim != 2:
            words = (
                f"factor bars need five arrays of one shape (sessions, names), got {sorted(shapes)}"
            )
            raise DataError(words, hint="take them from one view with the same lookback")
