"""The code under test as the leak check sees it (rows in, decisions out), and how fast it is on long series."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, runtime_checkable

import msgspec
import numpy as np

from tradeassay.code.leak.futures import Feeds, Rows
from tradeassay.code.leak.trace import Columns, Trace
from tradeassay.sandbox import Job, JobExecutor, kind_of


class RunFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A run that gave no decisions. ``kind`` is a short name for counting, ``text`` one line for a reader."""

    kind: str
    text: str


Enough = Callable[[int, "Trace | RunFailure"], bool]
"""Whether nothing after an outcome, of a row, is wanted any more."""


class LeakSubject(Protocol):
    """Runs the code on given rows, each time from scratch: no run may know of another.

    Columns are arrays by name; ``A/close`` is column ``close`` of feed ``A``, a plain ``close`` belongs to the
    only feed. Rows of the returned trace are counted on the first feed.
    """

    def run(self, columns: Columns) -> Trace | RunFailure:
        """Run the code once."""
        ...

    def run_many(self, batch: Sequence[Columns]) -> Sequence[Trace | RunFailure]:
        """Run the code on each of several tables, in parallel where that is possible; results in their order."""
        ...


@runtime_checkable
class Stepper(Protocol):
    """A subject that can be run at every bar of a short series."""

    def next_bars(
        self, columns: Columns, false: Columns, enough: Enough, rows: Rows | None = None
    ) -> Iterable[Trace | RunFailure]:
        """Run on the first row, the first two, and so on up to the last but one, each with the false bar of its
        row behind it; ``false`` has the same columns and rows. With ``rows`` only up to each of those. What
        follows an outcome that is ``enough`` may be left out: runs cost with the square of their number.
        """
        ...


class FunctionSubject:
    """A Python function of columns, run in this process. Trusted code only: a global could carry the future."""

    def __init__(self, function: Callable[[Columns], Trace]) -> None:
        self._function = function

    def run(self, columns: Columns) -> Trace | RunFailure:
        """Run it once; whatever it raises is a failure."""
        before = time.process_time()
        try:
            trace = self._function(columns)
        except Exception as error:
            return RunFailure(kind="exception", text=f"{type(error).__name__}: {error}")
        return replace(trace, cpu_s=time.process_time() - before)

    def run_many(self, batch: Sequence[Columns]) -> list[Trace | RunFailure]:
        """Run one after the other."""
        return [self.run(columns) for columns in batch]

    def next_bars(
        self, columns: Columns, false: Columns, enough: Enough, rows: Rows | None = None
    ) -> Iterator[Trace | RunFailure]:
        """Run at every bar, one after the other."""
        bars = len(next(iter(columns.values())))
        for row in range(bars - 1) if rows is None else rows.tolist():
            yield self.run(
                {name: np.append(values[: row + 1], false[name][row]) for name, values in columns.items()}
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubject:
    """Code that runs as jobs of an executor, a fresh child each.

    ``job`` carries everything but the columns. ``read`` turns the columns that come back into a trace; the
    default takes them as decisions by row. What ``read`` raises as ValueError or TradeassayError is a failure of
    the run.
    """

    executor: JobExecutor
    job: Job
    read: Callable[[Mapping[str, Any]], Trace] = Trace.of_rows

    def run(self, columns: Columns) -> Trace | RunFailure:
        """Run one job."""
        return self.run_many([columns])[0]

    def run_many(self, batch: Sequence[Columns]) -> list[Trace | RunFailure]:
        """Run a job for each table."""
        return [self._outcome(result) for result in self.executor.map(self._jobs(batch))]

    def _jobs(self, batch: Sequence[Columns]) -> list[Job]:
        return [replace(self.job, columns=columns) for columns in batch]

    def _outcome(self, result: Any) -> Trace | RunFailure:
        from tradeassay.core.errors import TradeassayError

        if result.failure is not None:
            return RunFailure(kind=kind_of(result.failure), text=result.failure.text)
        try:
            trace = self.read(result.columns)
        except (TradeassayError, ValueError, KeyError) as error:
            return RunFailure(kind="bad_decisions", text=str(error))
        return replace(trace, cpu_s=result.usage.cpu_s)


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


def probe_speed(subject: LeakSubject, columns: Columns) -> tuple[SpeedProbe | None, Outcomes]:
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
