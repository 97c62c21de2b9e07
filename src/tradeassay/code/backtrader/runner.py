"""Run a strategy in a sandbox and work out on the host what it would have made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from tradeassay.account.backtrader import BadOrders, BrokerReplay, BrokerTerms, OrderLog, read_orders
from tradeassay.account.backtrader import replay as replay_orders
from tradeassay.code.backtrader.backtest import Backtest, Trick
from tradeassay.code.backtrader.tricks import account_mismatch, scrub, tricks_in, tricks_of_orders
from tradeassay.code.bars import TaskBars
from tradeassay.code.harness.wire import ACCOUNT, HARNESS, HARNESS_MODULES, NOTES
from tradeassay.code.task import CodeTask
from tradeassay.sandbox import BadResult, Failure, Job, JobExecutor, JobLimits, JobResult, SandboxConfig
from tradeassay.sandbox.failures import plain_line
from tradeassay.sandbox.strategy import Scalar

LIMITS: Final = JobLimits(result_mb=48, rows=300_000, columns=32)
"""What one run may use by default."""

_MOST_NOTES: Final = 64
_ACCOUNT_FIGURES: Final = 4

Trust = Literal["untrusted", "reference"]


class JobOptions(TypedDict, total=False):
    """What may be said about a run beside its source, bars and terms: see :class:`BacktestJob`."""

    limits: JobLimits | None
    seed: int
    trust: Trust
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestJob:
    """One run to do: a strategy's source, the bars and the terms.

    ``steps`` bounds how often orders are matched with bars when it is carried out.
    """

    source: str
    bars: TaskBars
    terms: BrokerTerms
    limits: JobLimits | None = None
    seed: int = 0
    trust: Trust = "untrusted"
    steps: int = 5_000_000


def sandbox_config(config: SandboxConfig | None = None) -> SandboxConfig:
    import msgspec

    base = config or SandboxConfig()
    missing = tuple(name for name in HARNESS_MODULES if name not in base.harnesses)
    return msgspec.structs.replace(base, harnesses=(*base.harnesses, *missing)) if missing else base


def run_backtrader(
    executor: JobExecutor,
    source: str,
    bars: TaskBars,
    terms: BrokerTerms,
    **options: Unpack[JobOptions],
) -> Backtest:
    """A bad strategy is a result with a ``failure``; only a broken executor raises."""
    job = BacktestJob(source=source, bars=bars, terms=terms, **options)
    return read_result(job, executor.run(sandbox_job(job)))


def many(executor: JobExecutor, jobs: Iterable[BacktestJob]) -> Iterator[Backtest]:
    return in_order(executor, jobs, sandbox_job, read_result)


def in_order(
    executor: JobExecutor,
    jobs: Iterable[BacktestJob],
    send: Callable[[BacktestJob], Job],
    read: Callable[[BacktestJob, JobResult], Backtest],
) -> Iterator[Backtest]:
    """Send jobs of either framework as they are asked for, and read each result beside the job it came from."""
    kept: list[BacktestJob] = []

    def sent() -> Iterator[Job]:
        for job in jobs:
            kept.append(job)
            yield send(job)

    for number, result in enumerate(executor.map(sent())):
        yield read(kept[number], result)
        kept[number] = replace(kept[number], source="")  # its rows are shared, but its text need not pile up


def terms_of(task: CodeTask) -> BrokerTerms:
    return BrokerTerms(cash=task.cash, commission=task.commission, sizing=task.sizing)


def params_of(terms: BrokerTerms, bars: TaskBars) -> dict[str, Scalar]:
    return {
        "cash": float(terms.cash),
        "commission": float(terms.commission),
        "sizing": terms.sizing.kind,
        "size": float(terms.sizing.value),
        "timeframe": bars.timeframe,
    }


def sandbox_job(job: BacktestJob) -> Job:
    return Job(
        source=job.source,
        columns=job.bars.columns(),
        params=params_of(job.terms, job.bars),
        limits=job.limits or LIMITS,
        seed=job.seed,
        harness=HARNESS,
        trust=job.trust,
    )


def read_result(job: BacktestJob, result: JobResult) -> Backtest:
    """Return a run's outcome: the child's decisions checked, carried out and compared with its own account."""
    if result.columns is None:
        failure, tricks = scrub(result.failure)
        found = [*tricks_in(job.source, ()), *tricks]
        return failed_run(result, failure, found)
    try:
        return _replayed(job, result, result.columns)
    except UNREADABLE as error:
        return failed_run(result, bad_result(error), tricks_in(job.source, ()))


UNREADABLE: Final = (ValueError, ArithmeticError, LookupError, TypeError, RecursionError)
"""What reading a child's columns may end with. Whichever it is, the program sent them: it has failed, and is
counted as failed, never left out.
"""


def bad_result(error: Exception) -> BadResult:
    """Return what a reading that failed says about the program: its own words where it was refused by a rule."""
    if isinstance(error, BadOrders):
        return BadResult(reason=str(error))
    return BadResult(reason=f"what it sent cannot be carried out ({type(error).__name__})")


def _replayed(job: BacktestJob, result: JobResult, columns: Mapping[str, NDArray[Any]]) -> Backtest:
    orders = read_orders(columns, job.bars.rows, len(job.bars.assets))
    turns = int(read_account(columns)[3])
    if not (len(orders) == 0 or orders.turn[-1] <= turns) or not 0 <= turns <= job.bars.rows:
        raise BadOrders("orders after the end of the run")
    return carried_out(job, result, orders, turns)


def carried_out(job: BacktestJob, result: JobResult, orders: OrderLog, turns: int) -> Backtest:
    """Carry out checked orders and compare the outcome with what the child says of itself; raises BadOrders."""
    assert result.columns is not None
    account, notes = read_account(result.columns), _notes(result.columns)
    done = replay_orders(orders, job.bars, job.terms, turns, steps=job.steps)
    tricks = [
        *tricks_in(job.source, notes),
        *tricks_of_orders(orders),
        *account_mismatch(float(account[0]), float(account[1]), done),
    ]
    return replayed_run(result, orders, done, tricks, ended=turns if turns < job.bars.rows else None)


def read_account(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    account = columns.get(ACCOUNT)
    if account is None or account.dtype != np.float64 or account.shape != (_ACCOUNT_FIGURES,):
        raise BadOrders("the account's figures are missing")
    if not np.isfinite(account[3]) or account[3] != np.floor(account[3]):
        raise BadOrders("the number of turns is no number")
    return account


def _notes(columns: Mapping[str, NDArray[Any]]) -> list[str]:
    notes = columns.get(NOTES)
    if notes is None or notes.dtype != object:
        return []
    return [plain_line(str(note), 200) for note in notes[:_MOST_NOTES].tolist() if note]


def replayed_run(
    result: JobResult, orders: OrderLog, done: BrokerReplay, tricks: Sequence[Trick], *, ended: int | None = None
) -> Backtest:
    return Backtest(
        orders=orders,
        fills=done.fills,
        trades=done.trades,
        statuses=done.statuses,
        equity=done.equity,
        final_value=done.value,
        ended=ended,
        tricks=tuple(tricks),
        usage=result.usage,
        retried=result.retried,
        attempts=result.attempts,
        log=result.log,
    )


def failed_run(result: JobResult, failure: Failure | None, tricks: Sequence[Trick]) -> Backtest:
    return Backtest(
        failure=failure,
        tricks=tuple(tricks),
        usage=result.usage,
        attempts=result.attempts,
        retried=result.retried,
        log=result.log,
    )
