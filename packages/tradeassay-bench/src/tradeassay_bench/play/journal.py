"""Write an episode's journal: one line per decision, appended and synced to disk.

This module also replays journals into value paths, holdings and trades.

If a process is killed while it writes, the file has complete lines and at most one incomplete line
at the end, which is removed. A damaged line before complete lines has a different cause, such as a
broken disk or an edit, and is an error.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, Self, TypeVar

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.files import sync_path
from tradeassay.core.secrets import without_secrets
from tradeassay.metrics.measures import concentration
from tradeassay.metrics.score import EpisodeSeries
from tradeassay_bench.account import Ledger
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import (
    ENCODER,
    STEP_DECODER,
    TURN_DECODER,
    BorrowCharged,
    Filled,
    InterestCharged,
    JournalRecord,
    Rejected,
    StepRecord,
    Trimmed,
    TurnRecord,
)
from tradeassay_bench.core.files import append_durably, take_lock

EVERY_LINE, BATCHED = 1, 512
"""Number of lines in memory at which they are written and synced.

``EVERY_LINE`` is for agents whose answers cost money or time. All other agents repeat lost lines
exactly, so their lines are written in batches.
"""

R = TypeVar("R", bound=JournalRecord)


encode_line: Callable[[JournalRecord], bytes] = ENCODER.encode


class JournalLine(NamedTuple, Generic[R]):
    """A record and its exact bytes, without the line end."""

    record: R
    raw: bytes


def read_lines(path: Path) -> tuple[tuple[JournalLine[StepRecord], ...], int]:
    """Return the complete lines of a trading episode's journal and their size in bytes.

    The rules are those of :func:`lines_of`.
    """
    return lines_of(path, STEP_DECODER)


def lines_of(
    path: Path, decoder: msgspec.json.Decoder[R]
) -> tuple[tuple[JournalLine[R], ...], int]:
    """Return the complete lines of a journal and their size in bytes.

    An incomplete last line is omitted. Raises :class:`RunError` with the line number if an earlier
    line is damaged.
    """
    if not path.exists():
        return (), 0
    content = path.read_bytes()
    lines: list[JournalLine[R]] = []
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        raw = content[start:end]
        try:
            lines.append(JournalLine(decoder.decode(raw), raw))
        except UNDECODABLE as error:
            if content.find(b"\n", end + 1) >= 0:
                hint = "delete the episode's folder and resume: the episode runs again"
                raise RunError(
                    f"{path}, line {len(lines) + 1} is damaged: {error}", hint=hint
                ) from error
            break
        start = end + 1
    return tuple(lines), start


def read_records(path: Path) -> Iterator[StepRecord]:
    """Yield the steps of a journal.

    Raises :class:`RunError` if the journal is missing, incomplete or damaged.
    """
    if not path.exists():
        raise RunError(f"the journal {path} is missing", hint="resume the run")
    lines, length = read_lines(path)
    if length != path.stat().st_size:
        # The journal of an ended episode was complete. If it was damaged later, only a new episode
        # can repair it.
        if path.with_name("outcome.json").exists():
            hint = f"delete {path.parent} and resume"
        else:
            hint = "resume the run: the line is removed and its session runs again"
        raise RunError(f"{path} ends in an incomplete line", hint=hint)
    for line in lines:
        yield line.record


class JournalOf(Generic[R]):
    """Append to an episode's ``events.jsonl``.

    ``lines`` contains the lines that the file had on opening. An incomplete last line is removed.

    Use it as a context manager. Leaving it writes the lines in memory, also after an error, so that
    no decision is lost. Entering it raises :class:`RunError` for a damaged line, and if another
    process is still writing the file after ``patience`` seconds. (A worker whose parent was killed
    needs a moment to notice.)
    """

    def __init__(
        self, path: Path, decoder: msgspec.json.Decoder[R], *, patience: float = 15.0
    ) -> None:
        self.lines: tuple[JournalLine[R], ...] = ()
        self.batch, self._path, self._decoder, self._patience = EVERY_LINE, path, decoder, patience
        self._waiting: list[bytes] = []
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            take_lock(self._descriptor, str(self._path), patience=self._patience)
            self.lines, length = lines_of(self._path, self._decoder)
            if length != os.fstat(self._descriptor).st_size:
                os.ftruncate(self._descriptor, length)
            os.lseek(self._descriptor, length, os.SEEK_SET)
            if not self.lines:
                # A new file is durable only if its name is, and so is a new folder.
                sync_path(self._path.parent)
                sync_path(self._path.parent.parent)
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def append(self, raw: bytes) -> None:
        """Append one line. Without batching, the line is on disk when this method returns."""
        self._waiting.append(without_secrets(raw))
        if len(self._waiting) >= self.batch:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        lines = b"\n".join(self._waiting) + b"\n"
        self._waiting.clear()
        append_durably(self._descriptor, lines, self._path)

    def __exit__(self, *exc: object) -> None:
        try:
            self.flush()
        finally:
            os.close(self._descriptor)


class MemoryJournal(Generic[R]):
    """A journal in memory, for an episode that is replayed only for comparison."""

    def __init__(self) -> None:
        self.lines: tuple[JournalLine[R], ...] = ()
        self.batch = EVERY_LINE
        self.content = bytearray()

    def append(self, raw: bytes) -> None:
        self.content += without_secrets(raw) + b"\n"


LinesOf = JournalOf[R] | MemoryJournal[R]
"""The journal of an episode, in a file or in memory."""


class Journal(JournalOf[StepRecord]):
    """The journal of a trading episode."""

    def __init__(self, path: Path, *, patience: float = 15.0) -> None:
        super().__init__(path, STEP_DECODER, patience=patience)


class TurnJournal(JournalOf[TurnRecord]):
    """The journal of a programming episode."""

    def __init__(self, path: Path, *, patience: float = 15.0) -> None:
        super().__init__(path, TURN_DECODER, patience=patience)


def series_from_records(
    records: Iterable[StepRecord],
    *,
    periods_per_year: int = 252,
    index: Floats | None = None,
    index_note: str | None = None,
    failure: str | None = None,
) -> EpisodeSeries:
    """Replay a journal and return its series.

    ``index`` contains one level per session, preceded by the level of the session before the first.
    ``index_note`` is a warning for readers of a comparison with the index. ``failure`` is the
    reason why the run as a whole failed. An episode without any record, or without any usable
    decision, always counts as failed, because its flat value path is not a return of zero.

    An order counts as refused at most once, in the session that placed it (its id begins with that
    step), whether all or part of it was refused, and even if it was refused in a later session.
    Raises :class:`~tradeassay_bench.core.errors.LedgerError` if the journal violates an accounting
    identity.
    """
    initial = float("nan")
    sessions: list[str] = []
    rows: list[tuple[float, ...]] = []
    hhi: list[float] = []
    refused: list[set[str]] = []
    # The session in which an order's refusals count. A resting order may be refused later.
    placed: dict[str, set[str]] = {}
    reasons: set[tuple[str, str]] = set()
    failures: Counter[str] = Counter()
    for ledger, record in Ledger.steps(records):
        events, decision = record.opening + record.events, record.decision
        failed = decision.status == "failed"
        orders = () if failed else decision.orders
        refused_today: set[str] = set()
        refused.append(refused_today)
        for number in range(len(orders)):
            placed[f"{record.step}.{number}"] = refused_today
        traded, costs = [], 0.0
        for event in events:
            if isinstance(event, Filled):
                traded.append(abs(event.quantity * event.price * event.multiplier))
                costs += event.fee + event.tax
            elif isinstance(event, BorrowCharged | InterestCharged):
                costs -= event.cash
            elif isinstance(event, Rejected | Trimmed) and event.reason != "no_change":
                refused_then = placed.get(event.order_id)
                # An order without an agent's decision is not the agent's. Verification reports it.
                if refused_then is not None:
                    refused_then.add(event.order_id)
                    reasons.add((event.order_id, event.reason))
        initial = ledger.deposit.cash
        sessions.append(record.session)
        idle = not failed and not orders
        rows.append(
            (ledger.nav(), ledger.cash, float(np.sum(traded)), costs, len(orders), idle, failed)
        )
        values = np.array(
            [held.quantity * held.mark * held.multiplier for held in ledger.holdings.values()]
        )
        hhi.append(float(concentration(values)))
        failures.update(failure.kind for failure in decision.failures)
    if not failure and not rows:
        failure = "nothing was recorded"
    elif not failure and all(row[6] for row in rows):
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(failures.items()))
        failure = f"no usable answer in any of {len(rows)} sessions"
        if kinds:
            failure += f" ({kinds})"
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 7)
    return EpisodeSeries(
        sessions=tuple(sessions),
        nav=np.array([initial, *table[:, 0]]),
        cash=table[:, 1].copy(),
        traded=table[:, 2].copy(),
        costs=table[:, 3].copy(),
        hhi=np.array(hhi),
        orders=table[:, 4].astype(np.int64),
        rejected=np.array([len(orders) for orders in refused], dtype=np.int64),
        abstained=table[:, 5] > 0,
        failed=table[:, 6] > 0,
        periods_per_year=periods_per_year,
        index=None if index is None else np.asarray(index, dtype=np.float64),
        index_note=index_note,
        rejections=dict(sorted(Counter(reason for _, reason in reasons).items())),
        failures=dict(sorted(failures.items())),
        failure=failure or None,
    )


@dataclass(frozen=True, slots=True)
class Holdings:
    """The holdings at the end of each session, as fractions of the account's value.

    ``weights`` has shape (sessions, symbols). The order of ``symbols`` is that of their first
    holding. Short positions have negative weights.
    """

    sessions: tuple[str, ...]
    symbols: tuple[str, ...]
    weights: Floats


def holdings_from_records(records: Iterable[StepRecord]) -> Holdings:
    """Replay a journal and return the weights at the end of each session.

    All weights are 0 in a session that ends with an account value of zero.
    """
    sessions: list[str] = []
    held: list[dict[str, float]] = []
    columns: dict[str, int] = {}
    for ledger, record in Ledger.steps(records):
        state = ledger.state()
        sessions.append(record.session)
        nav = state.nav or float("inf")
        held.append({symbol: position.value / nav for symbol, position in state.positions.items()})
        for symbol in state.positions:
            columns.setdefault(symbol, len(columns))
    weights = np.zeros((len(sessions), len(columns)))
    for row, shares in enumerate(held):
        for symbol, share in shares.items():
            weights[row, columns[symbol]] = share
    return Holdings(tuple(sessions), tuple(columns), weights)
