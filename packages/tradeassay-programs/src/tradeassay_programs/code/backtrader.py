"""Run Backtrader strategies in the sandbox, and execute their orders with a broker on the host.

A program cannot change its own numbers: printed text is not read, the host computes the account,
and the environment is empty. Tricks are recorded nevertheless, because a program that tries one is
not a strategy.
"""

import ast
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import tee
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.errors import UserError
from tradeassay.core.order_columns import (
    ACTION_CANCEL,
    FLOATS,
    GIVEN,
    INTEGERS,
    KINDS,
    day_numbers,
)
from tradeassay.core.printable import printable
from tradeassay_bench.account.backtrader import (
    EMPTY,
    BadOrders,
    BrokerReplay,
    BrokerTerms,
    Fill,
    OrderLog,
    RoundTrip,
    Status,
    read_orders,
    replay as replay_orders,
)
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.harness.wire import (
    ACCOUNT,
    ACTION,
    FED,
    FUTURE,
    HARNESS,
    HARNESS_MODULES,
    NOTES,
    PATCHED,
    PRICES,
)
from tradeassay_programs.code.lookahead.trace import Trace
from tradeassay_programs.code.program_source import parses
from tradeassay_programs.code.task import CodeTask
from tradeassay_programs.sandbox import (
    BadResult,
    ChildClaim,
    Failure,
    FrameFeed,
    Job,
    JobExecutor,
    JobLimits,
    JobResult,
    JobUsage,
    RefusedCall,
    SandboxConfig,
)
from tradeassay_programs.sandbox.sandbox_config import ENVIRONMENT
from tradeassay_programs.sandbox.strategy import Scalar

_DECIDED: Final = tuple(
    "action asset side size kind price pricelimit trailamount trailpercent valid given transmit "
    "tradeid".split()
)
_ENDS: Final = 2
"""The code of the action that ends the run, in a trace."""


class Trick(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An action of the code that honest code does not take.

    A single ``grave`` trick gives a score of zero. Other tricks are hints only, because the host's
    account counts and the look-ahead check tests whether later bars were *used*.
    """

    name: str
    detail: str = ""
    grave: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backtest:
    """The result of one run. With a ``failure`` there are no orders and no account.

    - ``orders`` are the strategy's orders. ``fills``, ``trades``, ``statuses`` (one per order) and
      ``equity`` (the value of the account after each bar) are computed by the host.
    - ``targets`` are the targets of a program on frames, with shape (rows, assets).
    - ``ended`` is the bar count at which the strategy ended the run, or None if it saw the last
      bar.
    - ``retried`` is the reason if a first child process was abandoned, or an empty string.
    - ``log`` is the program's printed output, for display only.
    """

    failure: Failure | None = None
    orders: OrderLog = EMPTY
    fills: tuple[Fill, ...] = ()
    trades: tuple[RoundTrip, ...] = ()
    statuses: tuple[Status, ...] = ()
    equity: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    final_value: float | None = None
    targets: NDArray[np.float64] | None = None
    ended: int | None = None
    tricks: tuple[Trick, ...] = ()
    usage: JobUsage
    attempts: tuple[RefusedCall, ...] = ()
    retried: str = ""
    log: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether the run finished."""
        return self.failure is None

    @property
    def grave(self) -> tuple[Trick, ...]:
        """The tricks that give a score of zero."""
        return tuple(trick for trick in self.tricks if trick.grave)

    def trace(self) -> Trace:
        """Return the decisions of the run for the look-ahead check.

        Raises UserError if the run failed.
        """
        if self.failure is not None:
            raise UserError(f"a run that failed has no decisions: {self.failure.text}")
        log = self.orders
        # The number of an order depends on all orders of the run, so orders refer to others by
        # their distance.
        place = {int(ref): k for k, ref in enumerate(log.ref.tolist()) if log.action[k] == 0}
        fields = {name: getattr(log, name) for name in _DECIDED}
        for name in ("parent", "oco"):
            refs = getattr(log, name).tolist()
            distances = [k - place[ref] if ref else 0 for k, ref in enumerate(refs)]
            fields[name] = np.array(distances, dtype=np.int64)
        of = [k - place[ref] for k, ref in enumerate(log.ref.tolist())]
        fields["of"] = np.array(of, dtype=np.int64)
        # Everything that the replay relies on is a decision. A missing field could carry the
        # future.
        fields["moment"] = 2 * (log.turn - log.decided) + (log.row - log.turn)
        rows = log.decided
        if self.ended is not None:
            rows = np.append(rows, max(self.ended - 1, 0))
            fields = {
                name: np.append(values, values.dtype.type(0)) for name, values in fields.items()
            }
            fields["action"][-1] = _ENDS
        return Trace(rows=rows, fields=fields, cpu_s=self.usage.cpu_s, say=action_words)


def action_words(action: Mapping[str, Any]) -> str:
    """Return a phrase for one action of a trace, such as ``to buy 10 (limit, price 98.5)``."""
    if action["action"] == _ENDS:
        return "to end the run"
    if action["action"] == ACTION_CANCEL:
        return "to cancel an order"
    feed = f" of data{action['asset']}" if action["asset"] else ""
    prices = [f"{name} {action[name]:.10g}" for name, bit in GIVEN.items() if action["given"] & bit]
    terms = ", ".join([KINDS[int(action["kind"])], *prices])
    side = "buy" if action["side"] > 0 else "sell"
    return f"to {side} {action['size']:.10g}{feed} ({terms})"


_CENT: Final = 0.01
_LONGEST: Final = 300
_SECRET_NAME: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|DSN|PRIVATE", re.IGNORECASE
)
_SECRET_TEXT: Final = re.compile(
    r"\b(?:sk|pk|ghp|gho|xox[abp]|hf)[-_][A-Za-z0-9_-]{16,}\b|\bAKIA[0-9A-Z]{16}\b|"
    r"\b[A-Z0-9_]*(?:API_KEY|SECRET|TOKEN|PASSWORD)[A-Z0-9_]*+\b['\"]?\s*[:=]\s*['\"]?"
    r"(?=[^\s'\",}]{0,99}\d)(?=[^\s'\",}]{0,99}[A-Za-z])[^\s'\",}]{6,}"
)
_ENVIRONMENT_DUMP: Final = re.compile(
    r"environ\(|" + "|".join(f"{name}['\"]?\\s*[:=]" for name in ENVIRONMENT)
)
_SHORTEST_SECRET: Final = 8
_WHOLE_ARRAYS: Final = frozenset({"array", "getzero", "getzeroval", "plotrange", "dataname"})


def tricks_in(source: str, notes: Collection[str]) -> list[Trick]:
    """Return the tricks that the child's notes report or the source shows."""
    tricks = []
    marks = (
        (PATCHED, "changed", "patched-framework"),
        (FUTURE, "read later bars by", "future-index"),
    )
    for mark, verb, name in marks:
        details = [note.removeprefix(mark) for note in notes if note.startswith(mark)]
        if details:
            text = f"{verb} {', '.join(details)}"[:_LONGEST]
            tricks.append(Trick(name=name, detail=text, grave=mark == PATCHED))
    lines = _whole_arrays(source)
    if lines:
        text = f"takes hold of whole lines in line {', '.join(map(str, lines[:10]))}"
        tricks.append(Trick(name="preloaded-array", detail=text, grave=False))
    return tricks


def scrub(
    failure: Failure | None, environment: Mapping[str, str] | None = None
) -> tuple[Failure | None, list[Trick]]:
    """Return a child's error without likely secrets, and a grave trick if any was removed.

    ``environment`` defaults to the host's environment variables. A real secret in an error means
    that the isolation has a hole.
    """
    if not isinstance(failure, ChildClaim):
        return failure, []
    host = os.environ if environment is None else environment
    secrets = [
        value
        for name, value in host.items()
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name)
    ]
    removed: dict[str, None] = {}
    cleaned = {}
    for field_name in ("error", "message", "trace"):
        text = str(getattr(failure, field_name))
        for value in secrets:
            if value in text:
                removed["a value of the host's environment"] = None
                text = text.replace(value, "[removed]")
        if _ENVIRONMENT_DUMP.search(text):
            removed["an environment"] = None
            text = "[removed: an environment]"
        text, count = _SECRET_TEXT.subn("[removed]", text)
        if count:
            removed["what looks like a key or password"] = None
        cleaned[field_name] = text
    if not removed:
        return failure, []
    detail = f"its error text carries {', '.join(removed)}; removed"
    trick = Trick(name="secrets-in-error", detail=detail, grave=True)
    return msgspec.structs.replace(failure, **cleaned), [trick]


# A program runs on every market, so its source is read several times.
@lru_cache(maxsize=64)
def _whole_arrays(source: str) -> list[int]:
    """Return the numbers of the source lines that access a whole Backtrader line.

    Methods that compute an indicator in one step may do so and are skipped.
    """
    tree, found = parses(source), set()
    waiting: list[ast.AST] = [] if tree is None else [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef) and node.name in ("once", "oncestart", "preonce"):
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Attribute) and node.attr in _WHOLE_ARRAYS:
            owner = node.value
            if not (isinstance(owner, ast.Name) and owner.id in ("np", "numpy", "pd")):
                found.add(node.lineno)
    return sorted(found)


LIMITS: Final = JobLimits(result_mb=48, rows=300_000, columns=32)

_MOST_NOTES: Final = 64
ACCOUNT_FIGURES: Final = 4

MOST_STEPS: Final = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestJob:
    """The description of one run.

    ``steps`` is the maximum number of times that orders are matched with bars in the replay.
    """

    source: str
    bars: TaskBars
    terms: BrokerTerms
    limits: JobLimits | None = None
    seed: int = 0
    trust: Literal["untrusted", "reference"] = "untrusted"
    steps: int = MOST_STEPS

    @property
    def params(self) -> dict[str, Scalar]:
        """The account terms and the timeframe, as parameters for the harness in the child."""
        terms = self.terms
        return {
            "cash": float(terms.cash),
            "commission": float(terms.commission),
            "sizing": terms.sizing.kind,
            "size": float(terms.sizing.value),
            "timeframe": self.bars.timeframe,
        }


def sandbox_config(
    config: SandboxConfig | None = None, harnesses: Collection[str] = HARNESS_MODULES
) -> SandboxConfig:
    """Return a sandbox configuration that includes the given harness modules."""
    base = config or SandboxConfig()
    missing = tuple(name for name in harnesses if name not in base.harnesses)
    return msgspec.structs.replace(base, harnesses=(*base.harnesses, *missing)) if missing else base


def in_order(
    executor: JobExecutor,
    jobs: Iterable[BacktestJob],
    send: Callable[[BacktestJob], Job],
    read: Callable[[BacktestJob, JobResult], Backtest],
) -> Iterator[Backtest]:
    """Send jobs lazily, and yield a backtest per job in order.

    A run that fails is a backtest with a failure.
    """
    sent, kept = tee(jobs)
    for result, job in zip(executor.map(map(send, sent)), kept, strict=False):
        yield read(job, result)


def terms_of(task: CodeTask) -> BrokerTerms:
    """Return the cash, commission and sizing of a task's account."""
    return BrokerTerms(cash=task.cash, commission=task.commission, sizing=task.sizing)


def sandbox_job(job: BacktestJob) -> Job:
    """Return the sandbox job of a run that gets all bars at once."""
    return Job(
        source=job.source,
        columns=job.bars.columns(),
        params=job.params,
        limits=job.limits or LIMITS,
        seed=job.seed,
        harness=HARNESS,
        trust=job.trust,
    )


def read_result(job: BacktestJob, result: JobResult) -> Backtest:
    """Return the backtest of a run that got all bars at once.

    The child's orders are checked and replayed, and the replayed account is compared with the
    child's account.
    """

    def carry_out(columns: Mapping[str, NDArray[Any]]) -> Backtest:
        orders = read_orders(columns, job.bars.rows, len(job.bars.assets))
        turns = int(read_account(columns)[3])
        if not (len(orders) == 0 or orders.turn[-1] <= turns) or not 0 <= turns <= job.bars.rows:
            raise BadOrders("orders after the end of the run")
        return replay_run(job, result, orders, turns)

    return read_with(result, tricks_in(job.source, ()), carry_out)


def read_with(
    result: JobResult,
    tricks: Sequence[Trick],
    carry_out: Callable[[Mapping[str, NDArray[Any]]], Backtest],
) -> Backtest:
    """Return the backtest that ``carry_out`` makes from a child's columns, or a failed backtest.

    The program sent the columns, so any error in reading them is the program's failure. Secrets are
    removed from error texts.
    """
    if result.columns is None:
        failure, found = scrub(result.failure)
        return run_without_account(result, failure, [*tricks, *found])
    try:
        return carry_out(result.columns)
    except BadOrders as error:
        reason = str(error)
    except (ValueError, ArithmeticError, LookupError, TypeError, RecursionError) as error:
        reason = f"what it sent cannot be carried out ({type(error).__name__})"
    return run_without_account(result, BadResult(reason=reason), tricks)


def replay_run(job: BacktestJob, result: JobResult, orders: OrderLog, turns: int) -> Backtest:
    """Return the backtest of checked orders, replayed for ``turns`` bars.

    A difference between the replayed account and the child's account is reported as a trick. Raises
    BadOrders if the orders or the child's figures are not valid.
    """
    assert result.columns is not None
    account, column = read_account(result.columns), result.columns.get(NOTES)
    raw_notes = [] if column is None or column.dtype != object else column[:_MOST_NOTES].tolist()
    notes = [printable(str(note)[:200]) for note in raw_notes if note]
    replayed = replay_orders(orders, job.bars, job.terms, turns, steps=job.steps)
    tricks = tricks_in(job.source, notes)
    cheats = int((orders.row == orders.turn).sum()) if len(orders) else 0
    if cheats:
        text = (
            f"{cheats} orders were given after the bar was known and before the broker had "
            "dealt with it"
        )
        tricks.append(Trick(name="cheat-timer", detail=text, grave=False))
    value, cash = float(account[0]), float(account[1])
    # The condition is negated so that a NaN counts as a mismatch.
    if not (abs(value - replayed.value) < _CENT and abs(cash - replayed.cash) < _CENT):
        text = (
            f"its own account says value {value:,.2f} and cash {cash:,.2f}; "
            f"by the orders it is {replayed.value:,.2f} and {replayed.cash:,.2f}"
        )
        tricks.append(Trick(name="account-mismatch", detail=text, grave=False))
    ended = turns if turns < job.bars.rows else None
    return replayed_run(result, orders, replayed, tricks, ended=ended)


def read_account(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return the figures of the child's account: value, cash, completed orders and turns.

    Raises BadOrders if the figures are missing or the number of turns is not a whole number.
    """
    account = columns.get(ACCOUNT)
    if account is None or account.dtype != np.float64 or account.shape != (ACCOUNT_FIGURES,):
        raise BadOrders("the account's figures are missing")
    if not np.isfinite(account[3]) or account[3] != np.floor(account[3]):
        raise BadOrders("the number of turns is no number")
    return account


def replayed_run(
    result: JobResult,
    orders: OrderLog,
    replayed: BrokerReplay,
    tricks: Sequence[Trick],
    *,
    ended: int | None = None,
) -> Backtest:
    """Return the backtest of replayed orders."""
    return replace(
        run_without_account(result, None, tricks),
        orders=orders,
        final_value=replayed.value,
        ended=ended,
        fills=replayed.fills,
        trades=replayed.trades,
        statuses=replayed.statuses,
        equity=replayed.equity,
    )


def run_without_account(
    result: JobResult, failure: Failure | None, tricks: Sequence[Trick]
) -> Backtest:
    """Return a backtest without orders and without an account."""
    return Backtest(
        failure=failure,
        tricks=tuple(tricks),
        usage=result.usage,
        attempts=result.attempts,
        retried=result.retried,
        log=result.log,
    )


# Fed runs. A bar leaves the host only after the orders on the previous bar have arrived. No
# decision can therefore depend on a later bar, whatever the program does, and the score is taken
# from this run.

SCORED_FED: Final = (
    "its orders were taken bar by bar, before the next bar left the host: none "
    "can "
    "depend on a later one"
)
POINTERS: Final = frozenset({"future-index", "preloaded-array", "cheat-timer"})
"""Tricks that access later bars. Only a comparison can prove that the bars were used."""
_SLOWER: Final = 3
"""Factor on the time limits of a fed run, because it computes every indicator bar by bar."""
_RECORD: Final = np.dtype(
    [*((name, "<i8") for name in INTEGERS), *((name, "<f8") for name in FLOATS)]
)


def fed_job(job: BacktestJob) -> Job:
    """Return the sandbox job of a run that gets one bar at a time."""
    limits, bars = job.limits or LIMITS, job.bars
    slower = msgspec.structs.replace(
        limits, cpu_s=limits.cpu_s * _SLOWER, wall_s=limits.wall_s * _SLOWER
    )
    values = [day_numbers(bars.times)]
    for feed in bars.feeds.values():
        values += [feed[name] for name in PRICES]
    table = np.ascontiguousarray(np.column_stack(values), dtype="<f8")
    return Job(
        source=job.source,
        harness=FED,
        params={**job.params, "assets": ",".join(bars.assets)},
        feed=FrameFeed(frames=table.tobytes(), size=table.itemsize * table.shape[1]),
        limits=slower,
        seed=job.seed,
    )


def fed_backtests(executor: JobExecutor, jobs: Iterable[BacktestJob]) -> Iterator[Backtest]:
    """Run programs that get one bar at a time, and return an iterator of backtests in order."""
    return in_order(executor, jobs, fed_job, read_fed)


def fed_together(executor: JobExecutor, jobs: Sequence[BacktestJob]) -> list[Backtest]:
    """Run one program on several tables in one child process, and return the backtests in order.

    If the child fails on the first table, or reports no account for some table, only the first
    backtest is returned.
    """
    sent = [fed_job(job) for job in jobs]
    tables = [job.feed for job in sent if job.feed is not None]
    # A frame of NaN separates two tables.
    separator = np.full(tables[0].size // 8, np.nan).tobytes()
    frames = separator.join(table.frames for table in tables)
    feed = FrameFeed(frames=frames, size=tables[0].size)
    result = executor.run(replace(sent[0], feed=feed))
    if result.failure is not None and len(result.answers) < jobs[0].bars.rows:
        return [read_fed(jobs[0], result)]
    account = None if result.columns is None else result.columns.get(ACCOUNT)
    if result.columns is None or account is None or account.shape != (ACCOUNT_FIGURES * len(jobs),):
        return list(fed_backtests(executor, jobs[:1]))
    usage = msgspec.structs.replace(result.usage, cpu_s=result.usage.cpu_s / len(jobs))
    runs, start = [], 0
    for job, figures in zip(jobs, np.split(account, len(jobs)), strict=True):
        answers = result.answers[start : start + job.bars.rows]
        start += job.bars.rows + 1  # The separator gets one additional answer.
        columns = {**result.columns, ACCOUNT: figures}
        part = replace(result, answers=answers, columns=columns, usage=usage)
        runs.append(read_fed(job, part))
    return runs


def read_fed(job: BacktestJob, result: JobResult) -> Backtest:
    """Return the backtest of a run that got one bar at a time.

    The orders in an answer must have been decided at the end of the answer's bar.
    """

    def carry_out(_: Mapping[str, NDArray[Any]]) -> Backtest:
        if any(len(payload) % ACTION.size for payload in result.answers):
            raise BadOrders("an answer that is no whole number of orders")
        table = np.frombuffer(b"".join(result.answers), dtype=_RECORD)
        bar = np.repeat(
            np.arange(len(result.answers)),
            [len(payload) // ACTION.size for payload in result.answers],
        )
        columns = {name: np.ascontiguousarray(table[name]) for name in (*INTEGERS, *FLOATS)}
        if not ((columns["turn"] == bar + 1) | ((bar == 0) & (columns["turn"] == 0))).all():
            raise BadOrders("an order for a bar that was over, or not yet there")
        orders = read_orders(columns, job.bars.rows, len(job.bars.assets))
        bar = orders.turn - 1
        if (bar < 0).any() or (orders.row != bar).any():
            raise BadOrders("an order that was given before its bar was over")
        return replay_run(job, result, orders, len(result.answers))

    return read_with(result, tricks_in(job.source, ()), carry_out)
