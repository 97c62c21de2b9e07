"""What an attribution of one account's returns finds: frozen records that can be written as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Convention, Measure
from tradeassay.metrics.attribution import VifScreen

Numbers = tuple[float, ...]


class DailyAttribution(msgspec.Struct, frozen=True, kw_only=True):
    """Every session: ``total`` = ``common`` + the styles + ``selection`` + ``trading``. ``tilt`` is what the
    styles would have earned at their mean exposures. ``uncovered`` is part of ``selection``; ``trading_parts`` sum
    to ``trading``. ``covered_share`` is None on days without a holding. ``exposures``, ``invested`` and ``gross``
    are those at the start of the session. ``references`` are the returns of passive portfolios of the same
    market."""

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
        """What all styles earned together."""
        each = [*self.style.values()]
        return np.sum(each, axis=0) if each else np.zeros(len(self.sessions))


class BrinsonTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Allocation, selection and interaction by group, linked over the window. They and ``trading`` sum to
    ``portfolio`` - ``benchmark``, the two total returns. The benchmark holds the investable names by
    ``weighted_by``. ``reason`` says why there are no numbers."""

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
    """How the market was estimated: days with factors, with the intercept alone, with neither."""

    full_days: int
    market_days: int
    empty_days: int
    explained: float | None
    sized_by: str
    price: str
    screen: VifScreen


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """One account's return taken apart.

    ``linked`` are parts of the whole return by name: ``common``, ``style``, ``selection`` and ``trading`` sum to
    ``total``; ``style.<factor>`` sum to ``style``; ``uncovered`` is part of ``selection``; ``trading.<what>``
    sum to ``trading``. None with a ``reason`` where linking is undefined or the account has no result.
    ``intervals`` and ``per_year`` (mean daily part times the sessions of a year) are the same parts as measures.
    ``preferences`` is the mean exposure per factor on invested days. ``account_return`` is what the account
    itself returned: under ``paper`` the total leaves out trading and differs from it. ``year`` is how many
    sessions make one. ``by_name`` is what the names that added most brought to selection, summed over days.
    ``impact`` is what trading would have cost an account of one unit of money, by the square-root law, on every
    day but the last (:func:`~tradeassay.metrics.capacity.impact_rate`); ``impact_known`` how much of it is known.
    ``notes`` is what a reader must know, ``doubts`` what of the returns rests on a table's own word."""

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
