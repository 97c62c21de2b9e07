"""Run ``signals`` in a sandbox and work out on the host what its targets would have made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tradeassay.code.backtrader import Backtest, BrokerTerms, Trick, replay
from tradeassay.code.backtrader.orders import BadOrders
from tradeassay.code.backtrader.runner import BacktestJob, Trust, in_order
from tradeassay.code.backtrader.tricks import scrub, tricks_in
from tradeassay.code.bars import FIELDS, TaskBars
from tradeassay.code.frames.desk import orders_for
from tradeassay.code.frames.targets import BadTargets, read_targets
from tradeassay.sandbox import BadResult, Executor, Failure, Job, JobResult, Limits

ENTRY: Final = "signals"
LIMITS: Final = Limits(result_mb=48, rows=1_000_000, columns=64)
"""What one run may use unless it is said otherwise."""

_NOT_HERE: Final = frozenset({"preloaded-array"})
"""A frame holds whole columns by design: taking hold of one is no trick. The look-ahead check is the judge."""

FrameJob = BacktestJob
"""One run to be done: a program's source, the bars and the terms. The same facts as for Backtrader."""


def run_frame(
    executor: Executor,
    source: str,
    bars: TaskBars,
    terms: BrokerTerms,
    *,
    limits: Limits | None = None,
    seed: int = 0,
    trust: Trust = "untrusted",
) -> Backtest:
    """Run one program. A bad program, or targets that are none, is a result with a ``failure``; only a broken
    executor raises.
    """
    job = FrameJob(source=source, bars=bars, terms=terms, limits=limits, seed=seed, trust=trust)
    return read_result(job, executor.run(sandbox_job(job)))


def many_frames(executor: Executor, jobs: Iterable[FrameJob]) -> Iterator[Backtest]:
    """Run many programs, as parallel as the executor can; results come in the order of the jobs."""
    return in_order(executor, jobs, sandbox_job, read_result)


def sandbox_job(job: FrameJob) -> Job:
    """Return the sandbox's job for a run: one asset is a frame, several are a dict of frames."""
    single = len(job.bars.assets) == 1
    feed = next(iter(job.bars.feeds.values()))
    return Job(
        source=job.source,
        entry=ENTRY,
        columns={name: feed[name] for name in FIELDS} if single else job.bars.columns(),
        pass_as="frame" if single else "frames",
        limits=job.limits or LIMITS,
        seed=job.seed,
        trust=job.trust,
    )


def read_result(job: FrameJob, result: JobResult) -> Backtest:
    """Return what came of a run: the targets checked, turned into orders and carried out."""
    tricks = [trick for trick in tricks_in(job.source, (), result.log) if trick.name not in _NOT_HERE]
    if result.columns is None:
        failure, found = scrub(result.failure)
        return _failed(result, failure, [*tricks, *found])
    try:
        targets = read_targets(result.columns, job.bars.rows, job.bars.assets)
        orders = orders_for(targets, job.bars, job.terms)
        done = replay(orders, job.bars, job.terms)
    except (BadTargets, BadOrders) as error:
        return _failed(result, BadResult(reason=str(error)), tricks)
    return Backtest(
        orders=orders,
        fills=done.fills,
        trades=done.trades,
        statuses=done.statuses,
        equity=done.equity,
        final_value=done.value,
        tricks=tuple(tricks),
        usage=result.usage,
        attempts=result.attempts,
        log=result.log,
    )


def _failed(result: JobResult, failure: Failure | None, tricks: list[Trick]) -> Backtest:
    return Backtest(
        failure=failure, tricks=tuple(tricks), usage=result.usage, attempts=result.attempts, log=result.log
    )
