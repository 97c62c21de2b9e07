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
    """The attribution of every session.

    ``total`` = ``common`` + styles + ``selection`` + ``trading``. ``tilt`` is the return of the
    styles at their mean exposures. ``uncovered`` is part of ``selection``. ``trading_parts`` sum to
    ``trading``. ``covered_share`` is None on days without holdings. ``exposures``, ``invested`` and
    ``gross`` are values at the start of the session. ``references`` are the returns of passive
    portfolios of the same market.
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
        each = [*self.style.values()]
        return np.sum(each, axis=0) if each else np.zeros(len(self.sessions))


class BrinsonTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Allocation, selection and interaction by group, linked over the window.

    Together with ``trading`` they sum to ``portfolio`` - ``benchmark``, the two total returns.
    The benchmark contains the investable names, weighted by ``weighted_by``. ``reason`` says why
    there are no numbers.
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
    """Number of days with factors, with the intercept alone, and without a fit."""

    full_days: int
    market_days: int
    empty_days: int
    explained: float | None
    sized_by: str
    price: str
    screen: VifScreen


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The attribution of one account's return.

    ``linked`` are parts of the whole return by name. ``common``, ``style``, ``selection`` and
    ``trading`` sum to ``total``. ``style.<factor>`` sum to ``style``, and ``trading.<what>`` sum to
    ``trading``. ``uncovered`` is part of ``selection``. If linking is undefined or the account has
    no result, ``linked`` is None with a ``reason``.

    ``intervals`` and ``per_year`` (mean daily part times the sessions of a year) are the same parts
    as measures. ``preferences`` is the mean exposure per factor on invested days.
    ``account_return`` is the account's actual return. Under ``paper`` the total excludes trading
    and differs from it. ``year`` is the number of sessions per year. ``by_name`` is the
    contribution to selection of the names that added most, summed over days.

    ``impact`` is the trading cost of an account of one unit of money, by the square-root law, on
    every day but the last (:func:`~tradeassay.metrics.capacity.impact_rate`). ``impact_known`` is
    the share of it that is known. ``notes`` are remarks for readers. ``doubts`` are unverified
    facts behind the returns.
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
