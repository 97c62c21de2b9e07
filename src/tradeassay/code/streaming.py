"""Strategies that are fed bar by bar, and so cannot look ahead.

``class Strategy`` with ``on_bar(self, bar, desk)``. :func:`stream` runs trusted code in this process,
:func:`stream_in_sandbox` feeds untrusted code from outside and certifies the result.
"""

import struct
import time
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np

from tradeassay.code.harness.desk import (
    BarDecision,
    BarDesk,
    Layout,
    WireError,
    frame_format,
    pack_rows,
    read_decisions,
)
from tradeassay.code.lookahead.trace import Columns, RunFailure, Trace
from tradeassay.core.errors import UserError
from tradeassay.sandbox import FrameFeed, Job, JobExecutor, JobLimits, JobResult, kind_of

HARNESS: Final = "tradeassay.code.harness.desk"
"""To be named in ``SandboxConfig(harnesses=...)`` of an executor that will run streaming strategies."""

_CHUNK: Final = 1 << 16


class StreamingStrategy(Protocol):
    """What a strategy looks like: one method, called on the close of every bar."""

    def on_bar(self, bar: Any, desk: BarDesk) -> None:
        """Look at ``bar`` (or at the bars by feed) and tell the ``desk`` what is wanted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """The outcome of a streamed run: decisions for the host to execute, and the same as a trace. ``certified`` is
    True only when every bar was handed over after the decisions of the one before had come out of a sandbox: then
    no decision can depend on a later bar. ``failure`` says why a run did not reach the last bar; the decisions
    until then stand. ``result`` is the sandbox's own account.
    """

    decisions: tuple[BarDecision, ...]
    bars: int
    certified: bool
    cpu_s: float
    failure: RunFailure | None = None
    result: JobResult | None = None

    @property
    def trace(self) -> Trace:
        rows, feeds, kinds, *numbers = zip(*self.decisions, strict=True) if self.decisions else ((),) * 5
        fields = {"feed": np.asarray(feeds, dtype=object), "kind": np.asarray(kinds, dtype=object)}
        fields |= {
            name: np.asarray(values, dtype=np.float64)
            for name, values in zip(("quantity", "price"), numbers, strict=True)
        }
        return Trace(rows=np.asarray(rows, dtype=np.int64), fields=fields, cpu_s=self.cpu_s)


def stream(strategy: StreamingStrategy, columns: Columns) -> Streamed:
    """Feed a trusted strategy in this process. It could reach around the feed, so it is not certified."""
    layout, bars = _layout(columns)
    desk = BarDesk(layout.feeds[0])
    on_bar, new, number = strategy.on_bar, tuple.__new__, 0
    made = layout.only if layout.single else None
    arrays = [np.asarray(values) for values in columns.values()]
    plain = [array.astype("M8[ns]").astype(np.int64) if array.dtype.kind == "M" else array for array in arrays]
    before = time.process_time()
    for start in range(0, bars, _CHUNK):
        # Arrays become Python values piece by piece: all at once would take thirty times the memory.
        for values in zip(*(array[start : start + _CHUNK].tolist() for array in plain), strict=True):
            desk.row = number
            on_bar(layout.bar(values) if made is None else new(made, values), desk)
            number += 1
    used = time.process_time() - before
    return Streamed(decisions=tuple(desk.decisions), bars=bars, certified=False, cpu_s=used)


def stream_in_sandbox(
    executor: JobExecutor, source: str, columns: Columns, *, limits: JobLimits | None = None, seed: int = 0
) -> Streamed:
    """Feed untrusted source from outside its sandbox, which needs :data:`HARNESS`: this is certified."""
    layout, bars = _layout(columns)
    try:
        form = frame_format(columns)
    except TypeError as error:
        raise UserError(str(error), hint="leave the column out") from error
    job = Job(
        source=source,
        harness=f"{HARNESS}:serve",
        params={"columns": "\n".join(layout.names), "format": form},
        feed=FrameFeed(frames=pack_rows(columns), size=struct.calcsize(form)),
        limits=limits or JobLimits(wall_s=60.0 + bars / 2_000, cpu_s=30 + bars // 5_000),
        seed=seed,
    )
    result = executor.run(job)
    decisions: list[BarDecision] = []
    failure, told = None, len(result.answers)
    if result.failure is not None:
        failure = RunFailure(kind=kind_of(result.failure), text=result.failure.text)
    try:
        for row, payload in enumerate(result.answers):
            decisions += read_decisions(payload, row, layout.feeds)
    except WireError as error:
        failure = failure or RunFailure(kind="bad_decisions", text=str(error))
    if failure is None and told < bars:
        failure = RunFailure(kind="bad_decisions", text=f"only {told} of {bars} bars were answered")
    used = result.usage.cpu_s
    made = Streamed(decisions=tuple(decisions), bars=told, certified=True, cpu_s=used, failure=failure)
    return replace(made, result=result)


def _layout(columns: Columns) -> tuple[Layout, int]:
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1:
        hint = "bring all feeds on one clock first"
        raise UserError(f"bars need columns of one length, these have {sorted(lengths) or 'none'}", hint=hint)
    return Layout(tuple(columns)), lengths.pop()
