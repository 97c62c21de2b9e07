"""A short try before a long run: does the time grow faster than the number of bars?"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from tradeassay.code.leak.feeds import Feeds
from tradeassay.code.leak.subject import RunFailure, Subject
from tradeassay.code.leak.trace import Columns, Trace

SHORT: Final = 5_000
LONG: Final = 20_000
_LINEAR: Final = 1.0
_STEEP: Final = 1.5
_NOISE: Final = 1.15
_MEASURABLE_S: Final = 0.2

Outcomes = tuple[Trace | RunFailure, ...]


class SpeedProbe(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds for 5,000 and 20,000 bars, and what they say about ``bars``.

    ``exponent`` 1 is linear, 2 quadratic.
    """

    short_s: float
    long_s: float
    bars: int
    exponent: float
    expected_s: float

    @property
    def quadratic(self) -> bool:
        """Whether time grows clearly faster than the bars."""
        return self.exponent >= _STEEP

    @property
    def text(self) -> str:
        """One line for a report."""
        growth = (
            f"time grows with the power {self.exponent:.1f} of the bars" if self.quadratic else "time grows evenly"
        )
        advice = (
            "; a loop that walks or copies the whole table on every bar is the usual cause"
            if self.quadratic
            else ""
        )
        return (
            f"{SHORT:,} bars take {self.short_s:.2f} s and {LONG:,} bars {self.long_s:.2f} s: {growth}, "
            f"{self.bars:,} bars would take about {_span(self.expected_s)}{advice}"
        )


def probe_speed(subject: Subject, columns: Columns) -> tuple[SpeedProbe | None, Outcomes]:
    """Run the first 5,000 rows and, if that went well, the first 20,000; extrapolate to all rows.

    The probe is None when a run failed or gave no times. The outcomes come with it: they are runs on prefixes.
    """
    feeds = Feeds.of(columns)
    outcomes: list[Trace | RunFailure] = []
    for rows in (SHORT, LONG):
        outcomes.append(subject.run(feeds.head(min(rows, len(feeds)))))
        if isinstance(outcomes[-1], RunFailure):
            return None, tuple(outcomes)
    times = [outcome.cpu_s for outcome in outcomes if isinstance(outcome, Trace)]
    if times[0] is None or times[1] is None:
        return None, tuple(outcomes)
    short_s, long_s = max(times[0], 1e-6), max(times[1], 1e-6)
    exponent = math.log(long_s / short_s) / math.log(LONG / SHORT) if long_s >= _MEASURABLE_S else _LINEAR
    growth = exponent if exponent > _NOISE else _LINEAR
    expected = long_s * (len(feeds) / LONG) ** growth
    probe = SpeedProbe(short_s=short_s, long_s=long_s, bars=len(feeds), exponent=exponent, expected_s=expected)
    return probe, tuple(outcomes)


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
