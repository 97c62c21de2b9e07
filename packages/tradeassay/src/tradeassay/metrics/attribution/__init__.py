"""Attribution: split a portfolio's return exactly into common + style + selection + trading.

The split is exact for every day and for the whole window. :func:`fit` estimates the returns of
common factors (:class:`CrossSection` in, :class:`StyleModel` out). :func:`decompose` splits a
portfolio's return with this model. :func:`total_parts` links the days. All are pure functions over
arrays.
"""

from tradeassay.metrics.attribution.cross_section import (
    FULL as FULL,
    MARKET as MARKET,
    NONE as NONE,
    AttributionConfig as AttributionConfig,
    CrossSection as CrossSection,
    Exposures as Exposures,
    StyleModel as StyleModel,
    VifScreen as VifScreen,
    exposures_of as exposures_of,
    fit as fit,
    known_before as known_before,
    regress as regress,
    vif_screen as vif_screen,
)
from tradeassay.metrics.attribution.decompose import (
    TOLERANCE as TOLERANCE,
    DailyParts as DailyParts,
    ReturnsFit as ReturnsFit,
    decompose as decompose,
    fit_returns as fit_returns,
)
from tradeassay.metrics.attribution.preferences import (
    SignAgreement as SignAgreement,
    preferences as preferences,
    sign_agreement as sign_agreement,
)
from tradeassay.metrics.attribution.totals import (
    CASH as CASH,
    MAIN as MAIN,
    RUINED as RUINED,
    GroupParts as GroupParts,
    Totals as Totals,
    brinson as brinson,
    compounded as compounded,
    link as link,
    link_difference as link_difference,
    rows_of as rows_of,
    total_parts as total_parts,
)
