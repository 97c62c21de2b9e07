"""How long a record must be before numbers of a year are shown.

Twenty days that made 5 % are "+88 % a year", which says nothing about the other eleven months. So nothing that is
scaled to a year is given for a record under a quarter, on any surface: it is not scored, and says why. What is
tested all the same, such as the difference from a baseline, is given for the record as it is."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.cosine import trading_days
from tradeassay.metrics.intervals import significant

QUARTER = 60
"""Trading days of a quarter, less its holidays."""
TOO_SHORT = "record too short"
"""Why there is no number of a year."""
YEARLY = frozenset(
    "annualised_return volatility sharpe sortino calmar information_ratio turnover cost_rate".split()
)
"""Measures that are scaled to a year."""


class Horizon(msgspec.Struct, frozen=True):
    """What a record covers: ``rows``, of which ``year`` make one."""

    rows: int
    year: int = 252

    @property
    def is_short(self) -> bool:
        """Whether the record is under a quarter, so that numbers of a year are not shown."""
        return trading_days(self.rows, self.year) < QUARTER

    @property
    def words(self) -> str:
        """What growth is given for: ``per year``, or ``over 20 sessions``."""
        return f"over {self.rows} sessions" if self.is_short else "per year"

    def scored(self, measures: Mapping[str, Measure]) -> dict[str, Measure]:
        """Return measures by id; of a short record those of a year are not scored."""
        if not self.is_short:
            return dict(measures)
        scored = {}
        for name, one in measures.items():
            # A failure stays a failure: it has its own reason for having no number.
            hidden = name in YEARLY and one.value is not None
            scored[name] = not_scored(TOO_SHORT) if hidden else one
        return scored

    def grown(self, yearly: Measure) -> Measure:
        """Return yearly growth with its interval; of a short record that over the record itself."""
        if not self.is_short or yearly.value is None:
            return yearly
        share = self.rows / self.year
        ends = {}
        for name in ("value", "low", "high"):
            end = getattr(yearly, name)
            known = end is not None and end > -1.0
            ends[name] = significant(math.expm1(math.log1p(end) * share)) if known else end
        return msgspec.structs.replace(yearly, **ends)
