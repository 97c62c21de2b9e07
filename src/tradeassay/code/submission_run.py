"""Run submissions in a sandbox: logs come back, and the host works out what they come to."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.code.bars import FIELDS, TaskBars
from tradeassay.code.engine.decisions import DecisionList
from tradeassay.code.leak.subject import RunFailure
from tradeassay.code.leak.trace import Columns, Trace
from tradeassay.code.semantics.functions import calendar_of
from tradeassay.code.semantics.model import Semantics
from tradeassay.code.streaming.wire import frame_format, pack_rows
from tradeassay.code.submission_account import Account, decisions_of, keep_account
from tradeassay.code.submission_log import AuditLog, BadLog, TradeLog, read_audit, read_trades
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats
from tradeassay.sandbox import ChildClaim, Executor, Feed, Job, JobResult, Limits, SandboxConfig, kind_of
from tradeassay.sandbox.codec import ClaimHead, CodecError, decode

HARNESS: Final = "tradeassay.code.systrade_child"
"""To be named in ``SandboxConfig(harnesses=...)`` of an executor that is to run submissions."""

LIMITS: Final = Limits(cpu_s=60, wall_s=120.0, memory_mb=2048)
CAPITAL: Final = 100_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRun:
    """What came of one run. With a ``failure`` there are no logs.

    ``line`` is the line of ``strategy.py`` that the submission's own traceback names, if it does.
    ``decisions`` are the host's reading of the trades as shares of equity, ``account`` what they come to.
    """

    cpu_s: float
    trades: TradeLog | None = None
    audit: AuditLog | None = None
    account: Account | None = None
    decisions: DecisionList | None = None
    failure: RunFailure | None = None
    line: int | None = None
    log: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether there are logs."""
        return self.failure is None


def submission_config(config: SandboxConfig | None = None) -> SandboxConfig:
    """Return a sandbox's configuration with the harness of submissions loaded in its zygote."""
    base = config or SandboxConfig()
    if HARNESS in base.harnesses:
        return base
    return msgspec.structs.replace(base, harnesses=(*base.harnesses, HARNESS))


def market_columns(bars: TaskBars, legs: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return bars as a submission gets them: the assets under the names of the legs, in order.

    ``session_last`` marks the last bar of every day; it comes from the timetable, so that code need not look at
    the next bar to know it. Raises :class:`UserError` when there are fewer assets than legs.
    """
    if len(bars.assets) < len(legs):
        raise UserError(
            f"the strategy has {len(legs)} legs, the bars have {len(bars.assets)} assets",
            mend=f"give bars of at least {len(legs)} assets",
        )
    last = calendar_of(bars.times).last.astype(np.float64)
    made: dict[str, NDArray[Any]] = {}
    for leg, feed in zip(legs, bars.feeds.values(), strict=False):
        made |= {f"{leg}/{name}": feed[name] for name in FIELDS}
        made[f"{leg}/session_last"] = last
    return made


@dataclass(slots=True)
class Spent:
    """What a submission's runs have used so far: children, and their processor seconds."""

    runs: int = 0
    cpu_s: float = 0.0

    def add(self, result: JobResult) -> JobResult:
        """Book one job and return it."""
        self.runs += 1
        self.cpu_s += result.usage.cpu_s
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRunner:
    """Runs one source on any columns of the form of :func:`market_columns`, a fresh child each time.

    ``trust`` is ``reference`` only for sources that the project itself ships, which may run inside the process.
    """

    executor: Executor
    source: str
    semantics: Semantics
    limits: Limits = LIMITS
    capital: float = CAPITAL
    trust: Literal["untrusted", "reference"] = "untrusted"
    spent: Spent = field(default_factory=Spent)

    def logs(self, wanted: Iterable[tuple[Columns, int]]) -> Iterator[SubmissionRun]:
        """Run on tables with seeds, as parallel as the executor can; results come in their order."""
        kept: list[Columns] = []

        def jobs() -> Iterator[Job]:
            for columns, seed in wanted:
                kept.append(columns)
                yield self._job(columns, seed)

        for number, result in enumerate(self.executor.map(jobs())):
            yield self._read(kept[number], self.spent.add(result))

    def run(self, columns: Columns) -> Trace | RunFailure:
        """Run once, for the look-ahead check."""
        return self.run_many([columns])[0]

    def run_many(self, batch: Sequence[Columns]) -> list[Trace | RunFailure]:
        """Run on each of several tables, for the look-ahead check."""
        jobs = (self._job(columns, 0) for columns in batch)
        return [
            self._trace(columns, self.spent.add(result))
            for columns, result in zip(batch, self.executor.map(jobs), strict=True)
        ]

    def replays(self, batch: Sequence[Columns]) -> list[tuple[tuple[Trace | RunFailure, ...], RunFailure | None]]:
        """Run bar by bar on each of several short tables: the trace of every prefix, from a child that never held
        a later bar. The second part says why a replay ended early.

        Trusted sources are run on each prefix by itself: an executor without children cannot feed them.
        """
        if self.trust == "reference":
            return [(tuple(self.run_many(_heads(columns))), None) for columns in batch]
        jobs = (self._replay_job(columns) for columns in batch)
        results = self.executor.map(jobs)
        return [
            self._prefixes(columns, self.spent.add(result)) for columns, result in zip(batch, results, strict=True)
        ]

    def _job(self, columns: Columns, seed: int) -> Job:
        return Job(
            source=self.source,
            columns=columns,
            params={"capital": self.capital},
            harness=f"{HARNESS}:run",
            limits=self.limits,
            seed=seed,
            trust=self.trust,
        )

    def _replay_job(self, columns: Columns) -> Job:
        form = frame_format(columns)
        bars = len(next(iter(columns.values())))
        return Job(
            source=self.source,
            params={"capital": self.capital, "columns": "\n".join(columns), "format": form, "bars": bars},
            harness=f"{HARNESS}:replay",
            feed=Feed(frames=pack_rows(columns), size=struct.calcsize(form)),
            limits=self.limits,
        )

    def _read(self, columns: Columns, result: JobResult) -> SubmissionRun:
        cpu_s = result.usage.cpu_s
        if result.columns is None:
            return SubmissionRun(cpu_s=cpu_s, failure=_failure(result), line=_line(result), log=result.log)
        legs = self.semantics.inputs.legs
        times = columns[f"{legs[0]}/time"]
        try:
            trades = read_trades(result.columns, times, legs)
            audit = read_audit(result.columns, times, legs)
        except BadLog as error:
            return SubmissionRun(cpu_s=cpu_s, failure=RunFailure(kind="bad_log", text=str(error)), log=result.log)
        closes = closes_of(columns, legs)
        account = keep_account(trades, closes, self.capital)
        named = [rule.signal for rule in self.semantics.rules]
        decisions = decisions_of(trades, account, closes, named)
        return SubmissionRun(
            cpu_s=cpu_s, trades=trades, audit=audit, account=account, decisions=decisions, log=result.log
        )

    def _trace(self, columns: Columns, result: JobResult) -> Trace | RunFailure:
        if result.columns is None:
            return _failure(result)
        return self._trades(columns, result.columns, result.usage.cpu_s)

    def _trades(self, columns: Columns, found: Mapping[str, Any], cpu_s: float | None) -> Trace | RunFailure:
        legs = self.semantics.inputs.legs
        try:
            return read_trades(found, columns[f"{legs[0]}/time"], legs).trace(cpu_s)
        except BadLog as error:
            return RunFailure(kind="bad_log", text=str(error))

    def _prefixes(
        self, columns: Columns, result: JobResult
    ) -> tuple[tuple[Trace | RunFailure, ...], RunFailure | None]:
        found: list[Trace | RunFailure] = []
        for payload in result.answers:
            try:
                message = decode(payload, self.limits.caps())
            except CodecError as error:
                found.append(RunFailure(kind="bad_log", text=str(error)))
                continue
            if isinstance(message, ClaimHead):
                found.append(RunFailure(kind=message.kind, text=f"{message.error}: {message.message}"[:400]))
            else:
                found.append(self._trades(columns, message, None))
        return tuple(found), None if result.failure is None else _failure(result)


def closes_of(columns: Columns, legs: Sequence[str]) -> Floats:
    """Return the closes of the legs, of shape (legs, bars)."""
    return np.stack([np.asarray(columns[f"{leg}/close"], dtype=np.float64) for leg in legs])


def _heads(columns: Columns) -> list[Columns]:
    bars = len(next(iter(columns.values())))
    return [{name: values[:rows] for name, values in columns.items()} for rows in range(1, bars + 1)]


def _failure(result: JobResult) -> RunFailure:
    assert result.failure is not None
    return RunFailure(kind=kind_of(result.failure), text=result.failure.text)


def _line(result: JobResult) -> int | None:
    if not isinstance(result.failure, ChildClaim):
        return None
    found = None
    for part in result.failure.trace.split('File "strategy.py", line ')[1:]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        found = int(digits) if digits else found
    return found
