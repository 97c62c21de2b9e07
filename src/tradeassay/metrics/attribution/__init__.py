"""Attribution: a portfolio's return as common + style + selection + trading, exactly, every day and in total.

:func:`fit` estimates what moved the names of a market (:class:`CrossSection` in, :class:`StyleModel` out);
:func:`decompose` takes a portfolio apart with it, :func:`total_parts` links the days. Pure functions over arrays.
"""

from tradeassay.metrics.attribution.brinson import CASH as CASH
from tradeassay.metrics.attribution.brinson import GroupParts as GroupParts
from tradeassay.metrics.attribution.brinson import brinson as brinson
from tradeassay.metrics.attribution.cross_section import FULL as FULL
from tradeassay.metrics.attribution.cross_section import MARKET as MARKET
from tradeassay.metrics.attribution.cross_section import NONE as NONE
from tradeassay.metrics.attribution.cross_section import AttributionConfig as AttributionConfig
from tradeassay.metrics.attribution.cross_section import CrossSection as CrossSection
from tradeassay.metrics.attribution.cross_section import Exposures as Exposures
from tradeassay.metrics.attribution.cross_section import StyleModel as StyleModel
from tradeassay.metrics.attribution.cross_section import VifScreen as VifScreen
from tradeassay.metrics.attribution.cross_section import exposures_of as exposures_of
from tradeassay.metrics.attribution.cross_section import fit as fit
from tradeassay.metrics.attribution.cross_section import known_before as known_before
from tradeassay.metrics.attribution.cross_section import regress as regress
from tradeassay.metrics.attribution.cross_section import vif_screen as vif_screen
from tradeassay.metrics.attribution.decompose import TOLERANCE as TOLERANCE
from tradeassay.metrics.attribution.decompose import DailyParts as DailyParts
from tradeassay.metrics.attribution.decompose import ReturnsFit as ReturnsFit
from tradeassay.metrics.attribution.decompose import decompose as decompose
from tradeassay.metrics.attribution.decompose import fit_returns as fit_returns
from tradeassay.metrics.attribution.preferences import SignAgreement as SignAgreement
from tradeassay.metrics.attribution.preferences import preferences as preferences
from tradeassay.metrics.attribution.preferences import sign_agreement as sign_agreement
from tradeassay.metrics.attribution.totals import MAIN as MAIN
from tradeassay.metrics.attribution.totals import RUINED as RUINED
from tradeassay.metrics.attribution.totals import Totals as Totals
from tradeassay.metrics.attribution.totals import compounded as compounded
from tradeassay.metrics.attribution.totals import link as link
from tradeassay.metrics.attribution.totals import link_difference as link_difference
from tradeassay.metrics.attribution.totals import rows_of as rows_of
from tradeassay.metrics.attribution.totals import total_parts as total_parts
