"""The code under test, as the leak check sees it: rows in, decisions out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from tradeassay.code.leak.trace import Columns, Trace
from tradeassay.sandbox import Executor, Job, kind_of


class RunFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A run that gave no decisions. ``kind`` is a short name for counting, ``text`` one line for a reader."""

    kind: str
    text: str


class Subject(Protocol):
    """Runs the code on given rows, each time from nothing: no run may know of another.

    Columns are arrays by name; ``A/close`` is column ``close`` of feed ``A``, a plain ``close`` belongs to the
    only feed. Rows of the returned trace are counted on the first feed.
    """

    def run(self, columns: Columns) -> Trace | RunFailure:
        """Run the code once."""
        ...

    def run_many(self, batch: Sequence[Columns]) -> Sequence[Trace | RunFailure]:
        """Run the code on each of several tables, in parallel where that is possible; results in their order."""
        ...


class FunctionSubject:
    """A Python function of columns, run in this process. For trusted code: the function could keep the future in
    a global.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubject:
    """Code that runs as jobs of an executor, a fresh child each.

    ``job`` carries everything but the columns. ``read`` turns the columns that come back into a trace; the
    default takes them as decisions by row. What ``read`` raises as ValueError or TradeassayError is a failure of
    the run.
    """

    executor: Executor
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
