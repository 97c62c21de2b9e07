"""A venue's rules as numbers, and which venues random portfolios can be traded at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tradeassay.account import Venue


class Rules(NamedTuple):
    """What a trade costs and what an account may hold. Rates are fractions per trade or per session.

    ``max_weight`` and ``max_positions`` are infinite where there is no limit; the margin fields are unused in a
    cash account.
    """

    buy_bps: float
    sell_bps: float
    tax_bps: float
    minimum: float
    minimum_covers_tax: bool
    per_unit: float
    slip_bps: float
    min_value: float
    max_weight: float
    max_positions: float
    margin: bool
    initial: float
    maintenance_long: float
    maintenance_short: float
    borrow: float
    interest: float


def rules_of(venue: Venue) -> Rules:
    """Return a venue's rules as numbers."""
    fees, margin, own = venue.fees, venue.margin, venue.concentration
    return Rules(
        buy_bps=float(fees.buy_bps),
        sell_bps=float(fees.sell_bps),
        tax_bps=float(fees.sell_tax_bps),
        minimum=float(fees.minimum),
        minimum_covers_tax=bool(fees.minimum_covers_tax),
        per_unit=float(fees.per_unit),
        slip_bps=float(venue.slippage.bps),
        min_value=float(venue.lots.min_value),
        max_weight=np.inf if own.max_weight is None else float(own.max_weight),
        max_positions=np.inf if own.max_positions is None else float(own.max_positions),
        margin=margin is not None,
        initial=0.0 if margin is None else float(margin.initial),
        maintenance_long=0.0 if margin is None else float(margin.maintenance_long),
        maintenance_short=0.0 if margin is None else float(margin.maintenance_short),
        borrow=venue.shorting.borrow_per_year / venue.periods_per_year,
        interest=0.0 if margin is None else margin.interest_per_year / venue.periods_per_year,
    )
