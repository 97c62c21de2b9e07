"""A strategy run on bars that leave the host one at a time, so what it decides cannot depend on later ones.

The scored run has all bars in its process. When a fed run of the same program gives the same orders, those orders
are free of look-ahead, whatever the program tried; when it does not, the first bar on which the two differ is
where to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.account.backtrader import EMPTY, BadOrders, BrokerTerms, OrderLog, read_orders
from tradeassay.code.backtrader.backtest import Backtest
from tradeassay.code.backtrader.runner import (
    LIMITS,
    UNREADABLE,
    BacktestJob,
    bad_result,
    carried_out,
    failed_run,
    in_order,
    params_of,
)
from tradeassay.code.backtrader.tricks import scrub, tricks_in
from tradeassay.code.bars import TaskBars
from tradeassay.code.harness.wire import ACTION, FED, PRICES
from tradeassay.core.order_columns import FLOATS, INTEGERS, day_numbers
from tradeassay.sandbox import FrameFeed, Job, JobExecutor, JobLimits, JobResult, JobUsage

if TYPE_CHECKING:
    from tradeassay.code.leak import Trace

_SLOWER: Final = 3
"""How much more time a fed run may take: every indicator is worked out bar by bar."""
_RECORD: Final = np.dtype([*((name, "<i8") for name in INTEGERS), *((name, "<f8") for name in FLOATS)])


@dataclass(frozen=True, slots=True, kw_only=True)
class FedRun:
    """The outcome of a fed run. ``trace`` holds the decisions on the first ``answered`` bars.

    ``failure`` says why it did not go on; empty when it ran to its own end.
    """

    trace: Trace
    answered: int
    failure: str
    usage: JobUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class FedVerdict:
    """A scored run beside its fed one. ``proven``: the same decisions on every bar, so none looks ahead.

    Otherwise ``suspect`` is the first bar on which they part (None when unknown) and ``reason`` how.
    """

    proven: bool
    suspect: int | None
    reason: str


def run_fed(
    executor: JobExecutor,
    source: str,
    bars: TaskBars,
    terms: BrokerTerms,
    *,
    limits: JobLimits | None = None,
    seed: int = 0,
) -> FedRun:
    """Run a strategy bar by bar. A program that breaks is a result with a ``failure``.

    Raises SandboxError when the executor cannot feed a child.
    """
    result = executor.run(fed_job(source, bars, terms, limits=limits, seed=seed))
    failure = "" if result.failure is None else result.failure.text
    answered = len(result.answers)
    log = EMPTY
    try:
        log = read_answers(result, bars)
    except BadOrders as error:
        failure, answered = str(error), 0
    ended = answered if not failure and answered < bars.rows else None
    made = Backtest(orders=log, usage=result.usage, ended=ended)
    return FedRun(trace=made.trace(), answered=answered, failure=failure, usage=result.usage)


def fed_job(
    source: str, bars: TaskBars, terms: BrokerTerms, *, limits: JobLimits | None = None, seed: int = 0
) -> Job:
    """Return the sandbox's job: no rows in the child, all of them in the feed."""
    limits = limits or LIMITS
    slower = msgspec.structs.replace(limits, cpu_s=limits.cpu_s * _SLOWER, wall_s=limits.wall_s * _SLOWER)
    values = [day_numbers(bars.times), *(feed[name] for feed in bars.feeds.values() for name in PRICES)]
    table = np.ascontiguousarray(np.column_stack(values), dtype="<f8")
    return Job(
        source=source,
        harness=FED,
        params={**params_of(terms, bars), "assets": ",".join(bars.assets)},
        feed=FrameFeed(frames=table.tobytes(), size=table.itemsize * table.shape[1]),
        limits=slower,
        seed=seed,
    )


def read_answers(result: JobResult, bars: TaskBars) -> OrderLog:
    """Return the orders of a fed run. What came in answer to a bar must have been decided on it.

    Raises :class:`BadOrders`.
    """
    if any(len(payload) % ACTION.size for payload in result.answers):
        raise BadOrders("an answer that is no whole number of orders")
    counts = np.array([len(payload) // ACTION.size for payload in result.answers], dtype=np.int64)
    table = np.frombuffer(b"".join(result.answers), dtype=_RECORD)
    bar = np.repeat(np.arange(len(counts)), counts)
    columns: dict[str, NDArray[Any]] = {name: np.ascontiguousarray(table[name]) for name in (*INTEGERS, *FLOATS)}
    on_time = (columns["turn"] == bar + 1) | ((bar == 0) & (columns["turn"] == 0))
    if not on_time.all():
        raise BadOrders("an order for a bar that was over, or not yet there")
    return read_orders(columns, bars.rows, len(bars.assets))


def fed_backtests(executor: JobExecutor, jobs: Iterable[BacktestJob]) -> Iterator[Backtest]:
    """Run strategies on bars that are fed one at a time, and carry out what they decided: the scored run of
    version 2. No decision can depend on a later bar, whatever the program does.
    """

    def send(job: BacktestJob) -> Job:
        return fed_job(job.source, job.bars, job.terms, limits=job.limits, seed=job.seed)

    return in_order(executor, jobs, send, read_fed)


def read_fed(job: BacktestJob, result: JobResult) -> Backtest:
    """Return the outcome of a fed run. What came in answer to a bar is taken as decided on its close."""
    if result.columns is None:
        failure, tricks = scrub(result.failure)
        return failed_run(result, failure, [*tricks_in(job.source, ()), *tricks])
    try:
        orders = read_answers(result, job.bars)
        bar = orders.turn - 1
        if (bar < 0).any() or (orders.row != bar).any():
            raise BadOrders("an order that was given before its bar was over")
        return carried_out(job, result, orders, len(result.answers))
    except UNREADABLE as error:
        return failed_run(result, bad_result(error), tricks_in(job.source, ()))


def compare_fed(scored: Backtest, fed: FedRun, rows: int, rtol: float) -> FedVerdict:
    """Return what a fed run says about the scored one, over ``rows`` bars; raises UserError if that one failed."""
    from tradeassay.code.leak.trace import first_difference

    found = first_difference(scored.trace(), fed.trace, fed.answered, rtol)
    if found is not None:
        row, here, there = found
        return FedVerdict(
            proven=False, suspect=row, reason=f"on bar {row} it decides {here}; fed bar by bar, {there}"
        )
    if fed.failure:
        suspect = fed.answered if 0 < fed.answered < rows else None
        return FedVerdict(proven=False, suspect=suspect, reason=f"fed bar by bar it breaks: {fed.failure}")
    if fed.answered != (rows if scored.ended is None else scored.ended):
        return FedVerdict(proven=False, suspect=None, reason="fed bar by bar it ends on another bar")
    return FedVerdict(proven=True, suspect=None, reason="")
