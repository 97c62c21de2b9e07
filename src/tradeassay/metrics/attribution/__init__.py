"""Attribution: a portfolio's return as common + style + selection + trading, exactly, every day and in total.

:func:`fit` estimates what moved the names of a market (:class:`CrossSection` in, :class:`StyleModel` out);
:func:`decompose` takes a portfolio apart with it, :func:`total_parts` links the days. Pure functions over arrays.
"""

from tradeassay.metrics.attribution.brinson import CASH, GroupParts, brinson
from tradeassay.metrics.attribution.cross_section import (
    FULL,
    MARKET,
    NONE,
    AttributionConfig,
    CrossSection,
    Exposures,
    StyleModel,
    VifScreen,
    exposures_of,
    fit,
    known_before,
    regress,
    vif_screen,
)
from tradeassay.metrics.attribution.decompose import TOLERANCE, DailyParts, ReturnsFit, decompose, fit_returns
from tradeassay.metrics.attribution.preferences import SignAgreement, preferences, sign_agreement
from tradeassay.metrics.attribution.totals import (
    MAIN,
    RUINED,
    Totals,
    compounded,
    link,
    link_difference,
    rows_of,
    total_parts,
)

__all__ = [
    "CASH",
    "FULL",
    "MAIN",
    "MARKET",
    "NONE",
    "RUINED",
    "TOLERANCE",
    "AttributionConfig",
    "CrossSection",
    "DailyParts",
    "Exposures",
    "GroupParts",
    "ReturnsFit",
    "SignAgreement",
    "StyleModel",
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
