"""Shortest record for which annual numbers are reported.

Twenty days with a gain of 5 % are "+88 % a year", which says nothing about the other eleven months.
So no page or command reports annualised numbers for a record under a quarter. Such a number is not
scored, and its reason is given. Results that are tested anyway, such as the difference from a
baseline, are reported for the record's own length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.cosine import trading_days
from tradeassay.metrics.intervals import significant

QUARTER = 60
"""Trading days of a quarter, minus holidays."""
TOO_SHORT = "record too short"
"""Reason for a missing annual number."""
YEARLY = frozenset(
    "annualised_return volatility sharpe sortino calmar information_ratio turnover "
    "cost_rate".split()
)
"""Measures that are annualised."""


class Horizon(msgspec.Struct, frozen=True):
    """Length of a record in ``rows``, with ``year`` rows per year."""

    rows: int
    year: int = 252

    @property
    def is_short(self) -> bool:
        """Return whether the record is under a quarter. Annual numbers are then not reported."""
        return trading_days(self.rows, self.year) < QUARTER

    @property
    def words(self) -> str:
        """Return the time unit of growth: ``per year``, or ``over 20 sessions``."""
        return f"over {self.rows} sessions" if self.is_short else "per year"

    def scored(self, measures: Mapping[str, Measure]) -> dict[str, Measure]:
        """Return measures by id. For a short record, the annualised ones are not scored."""
        if not self.is_short:
            return dict(measures)
        scored = {}
        for name, one in measures.items():
            # A failed measure keeps its own reason for having no value.
            hidden = name in YEARLY and one.value is not None
            scored[name] = not_scored(TOO_SHORT) if hidden else one
        return scored

    def grown(self, yearly: Measure) -> Measure:
        """Return annual growth with its interval.

        For a short record, return the growth over the record.
        """
        if not self.is_short or yearly.value is None:
            return yearly
        share = self.rows / self.year
        ends = {}
        for name in ("value", "low", "high"):
            end = getattr(yearly, name)
            known = end is not None and end > -1.0
            ends[name] = significant(math.expm1(math.log1p(end) * share)) if known else end
        return msgspec.structs.replace(yearly, **ends)
