"""Records of one account's attribution, which can be written as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Convention, Measure
from tradeassay.metrics.attribution import VifScreen

Numbers = tuple[float, ...]


class DailyAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """The attribution of an account's return in each session.

    ``total`` = ``common`` + styles + ``selection`` + ``trading``. ``tilt`` is the return from the
    mean exposures to styles. ``uncovered`` is the part of ``selection`` from names without factors.
    ``trading_parts`` sum to ``trading``. ``covered_share`` is the share of the holdings with
    factors, None on days without holdings. ``exposures``, ``invested`` (net share invested) and
    ``gross`` are values at the start of the session. ``references`` are the returns of passive
    portfolios of the same market, by name.
    """

    sessions: tuple[str, ...]
    total: Numbers
    common: Numbers
    style: dict[str, Numbers]
    tilt: Numbers
    selection: Numbers
    uncovered: Numbers
    trading: Numbers
    trading_parts: dict[str, Numbers]
    covered_share: tuple[float | None, ...]
    exposures: dict[str, Numbers]
    invested: Numbers
    gross: Numbers
    references: dict[str, Numbers] = {}

    @property
    def styles(self) -> Floats:
        """Return the sum of the returns from all styles."""
        if not self.style:
            return np.zeros(len(self.sessions))
        styles: Floats = np.sum([*self.style.values()], axis=0)
        return styles


class BrinsonTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Allocation, selection and interaction by group, linked over the window.

    Together with ``trading`` they sum to ``portfolio`` - ``benchmark``, the two total returns. The
    benchmark contains the investable names, weighted by ``weighted_by``. ``reason`` says why there
    are no numbers.
    """

    by: Literal["sector", "board"]
    weighted_by: str
    groups: tuple[str, ...] = ()
    allocation: dict[str, float] = {}
    selection: dict[str, float] = {}
    interaction: dict[str, float] = {}
    trading: float | None = None
    portfolio: float | None = None
    benchmark: float | None = None
    daily_error: float = 0.0
    reason: str | None = None


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Coverage and quality of the daily cross-sectional regressions.

    ``full_days`` have factors, ``market_days`` only an intercept, and ``empty_days`` no regression.
    ``explained`` is the R squared.
    """

    full_days: int
    market_days: int
    empty_days: int
    explained: float | None
    sized_by: str
    price: str
    screen: VifScreen


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The attribution of one account's return.

    ``linked`` are the parts of the whole return by name. ``common``, ``style``, ``selection`` and
    ``trading`` sum to ``total``. The parts ``style.<factor>`` sum to ``style``, and
    ``trading.<part>`` sum to ``trading``. ``uncovered`` is part of ``selection``. If linking is
    undefined or the account has no result, ``linked`` is None and ``reason`` says why.

    ``intervals`` are the linked parts with intervals. ``per_year`` are the mean daily parts times
    the number of sessions per year. ``preferences`` is the mean exposure per factor on invested
    days. ``account_return`` is the account's actual return. Under the ``paper`` convention
    ``total`` excludes trading and differs from ``account_return``. ``year`` is the number of
    sessions per year. ``by_name`` is the contribution to selection, summed over days, of the names
    that added most.

    ``impact`` is the trading cost of an account of one unit of money, by the square-root law, on
    every day but the last (:func:`~tradeassay.metrics.capacity.impact_rate`). ``impact_known`` is
    the share of trades with a known impact. ``notes`` are remarks for readers. ``doubts`` are
    unverified facts behind the returns.
    """

    source: str
    dataset: str
    convention: Convention
    universe: str
    method: Literal["holdings", "returns"] = "holdings"
    year: int = 252
    factors: tuple[str, ...]
    first: str | None
    last: str | None
    total: float | None
    account_return: float | None
    linked: dict[str, float] | None
    reason: str | None
    intervals: dict[str, Measure]
    per_year: dict[str, Measure]
    preferences: dict[str, Measure]
    covered_share: float | None
    fit: Fit
    brinson: tuple[BrinsonTotals, ...]
    daily: DailyAttribution
    by_name: dict[str, float] = {}
    impact: Numbers = ()
    impact_known: float | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
