"""Attribution: a portfolio's return as common + style + selection + trading, exactly, every day and in total.

:func:`fit` estimates what moved the names of a market (:class:`CrossSection` in, :class:`FactorModel` out);
:func:`decompose` takes a portfolio apart with it, :func:`total_parts` links the days. Pure functions over arrays.
"""

from tradeassay.metrics.attribution.brinson import CASH, GroupParts, brinson
from tradeassay.metrics.attribution.cross_section import (
    AttributionConfig,
    CrossSection,
    Exposures,
    exposures_of,
    known_before,
)
from tradeassay.metrics.attribution.decompose import TOLERANCE, DailyParts, decompose
from tradeassay.metrics.attribution.linking import RUINED, compounded, link, link_difference
from tradeassay.metrics.attribution.preferences import Agreement, preferences, sign_agreement
from tradeassay.metrics.attribution.regression import FULL, MARKET, NONE, FactorModel, fit, regress
from tradeassay.metrics.attribution.returns_based import ReturnsFit, fit_returns
from tradeassay.metrics.attribution.totals import MAIN, Totals, rows_of, total_parts
from tradeassay.metrics.attribution.vif import VifScreen, vif_screen

__all__ = [
    "CASH",
    "FULL",
    "MAIN",
    "MARKET",
    "NONE",
    "RUINED",
    "TOLERANCE",
    "Agreement",
    "AttributionConfig",
    "CrossSection",
    "DailyParts",
    "Exposures",
    "FactorModel",
    "GroupParts",
    "ReturnsFit",
    "Totals",
    "VifScreen",
    "brinson",
    "compounded",
    "decompose",
    "exposures_of",
    "fit",
    "fit_returns",
    "known_before",
    "link",
    "link_difference",
    "preferences",
    "regress",
    "rows_of",
    "sign_agreement",
    "total_parts",
    "vif_screen",
]
