"""Backtrader programs that are fed: a bar leaves the host only after the orders on the bar before have come out.

No decision can depend on a later bar, whatever the program does, so the score is taken from this run. (Streaming
strategies are fed by :mod:`tradeassay.code.streaming`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.account.backtrader import BadOrders, OrderLog, read_orders
from tradeassay.code import backtrader
from tradeassay.code.bars import TaskBars
from tradeassay.code.harness.wire import ACCOUNT, ACTION, FED, PRICES
from tradeassay.core.order_columns import FLOATS, INTEGERS, day_numbers
from tradeassay.sandbox import FrameFeed, Job, JobExecutor, JobResult

SCORED_FED: Final = (
    "its orders were taken bar by bar, before the next bar left the host: none can depend on a later one"
)
POINTERS: Final = frozenset({"future-index", "preloaded-array", "cheat-timer"})
"""Tricks that point to later bars; whether they were used is for a comparison to prove."""
_SLOWER: Final = 3
"""How much more time a fed run may take: every indicator is worked out bar by bar."""
_RECORD: Final = np.dtype([*((name, "<i8") for name in INTEGERS), *((name, "<f8") for name in FLOATS)])


def fed_job(job: backtrader.BacktestJob) -> Job:
    limits, bars = job.limits or backtrader.LIMITS, job.bars
    slower = msgspec.structs.replace(limits, cpu_s=limits.cpu_s * _SLOWER, wall_s=limits.wall_s * _SLOWER)
    values = [day_numbers(bars.times), *(feed[name] for feed in bars.feeds.values() for name in PRICES)]
    table = np.ascontiguousarray(np.column_stack(values), dtype="<f8")
    return Job(
        source=job.source,
        harness=FED,
        params={**backtrader.params_of(job.terms, bars), "assets": ",".join(bars.assets)},
        feed=FrameFeed(frames=table.tobytes(), size=table.itemsize * table.shape[1]),
        limits=slower,
        seed=job.seed,
    )


def read_answers(result: JobResult, bars: TaskBars) -> OrderLog:
    """The orders of a fed run; what came in answer to a bar must have been decided on it, else BadOrders"""
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


def fed_backtests(executor: JobExecutor, jobs: Iterable[backtrader.BacktestJob]) -> Iterator[backtrader.Backtest]:
    return backtrader.in_order(executor, jobs, fed_job, read_fed)


def fed_together(executor: JobExecutor, jobs: Sequence[backtrader.BacktestJob]) -> list[backtrader.Backtest]:
    """Run one program on several tables by one child. Where it fails or ends early, return the first run."""
    sent = [fed_job(job) for job in jobs]
    tables = [job.feed for job in sent if job.feed is not None]
    end = np.full(tables[0].size // 8, np.nan).tobytes()
    feed = FrameFeed(frames=end.join(table.frames for table in tables), size=tables[0].size)
    result = executor.run(replace(sent[0], feed=feed))
    if result.failure is not None and len(result.answers) < jobs[0].bars.rows:
        return [read_fed(jobs[0], result)]
    account = None if result.columns is None else result.columns.get(ACCOUNT)
    if result.columns is None or account is None or account.shape != (backtrader.ACCOUNT_FIGURES * len(jobs),):
        return list(fed_backtests(executor, jobs[:1]))
    part = msgspec.structs.replace(result.usage, cpu_s=result.usage.cpu_s / len(jobs))
    made, start = [], 0
    for job, figures in zip(jobs, np.split(account, len(jobs)), strict=True):
        answers = result.answers[start : start + job.bars.rows]
        start += job.bars.rows + 1
        one = replace(result, answers=answers, columns={**result.columns, ACCOUNT: figures}, usage=part)
        made.append(read_fed(job, one))
    return made


def read_fed(job: backtrader.BacktestJob, result: JobResult) -> backtrader.Backtest:
    if result.columns is None:
        failure, tricks = backtrader.scrub(result.failure)
        return backtrader.failed_run(result, failure, [*backtrader.tricks_in(job.source, ()), *tricks])
    try:
        orders = read_answers(result, job.bars)
        bar = orders.turn - 1
        if (bar < 0).any() or (orders.row != bar).any():
            raise BadOrders("an order that was given before its bar was over")
        return backtrader.carried_out(job, result, orders, len(result.answers))
    except backtrader.UNREADABLE as error:
        return backtrader.failed_run(result, backtrader.bad_result(error), backtrader.tricks_in(job.source, ()))
