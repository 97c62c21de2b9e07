"""Read submissions, and run them in a sandbox.

A submission is a strategy card and the source of a class ``TradingStrategy``. Its method
``run(market_data, initial_capital)`` gets a dict of pandas frames by leg, indexed by ``time``, with
the columns ``open``, ``high``, ``low``, ``close``, ``volume`` and ``session_last``. It returns a
trade log and an audit log. The host maps times to bars and names to legs. All other values in the
logs are claims, and the host computes the account itself.
"""

from __future__ import annotations

import re
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import tee
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.printable import printable
from tradeassay.core.secrets import without_secrets
from tradeassay_bench.account.backtrader import MAX_SIZE
from tradeassay_bench.account.shares import DecisionList, TradedAccount, keep_account
from tradeassay_bench.core.dialogue import schema_of_type
from tradeassay_programs.code.backtrader import sandbox_config
from tradeassay_programs.code.bars import FIELDS, TaskBars, make_bars
from tradeassay_programs.code.harness.frames import frame_format, pack_rows
from tradeassay_programs.code.lookahead.grow import Enough, with_false_bars
from tradeassay_programs.code.lookahead.trace import Columns, RunFailure, Trace
from tradeassay_programs.code.semantics.interpreter import Semantics, calendar_of, interpret
from tradeassay_programs.code.task import Timeframe
from tradeassay_programs.sandbox import (
    ChildClaim,
    FrameFeed,
    Job,
    JobExecutor,
    JobLimits,
    JobResult,
    SandboxConfig,
    kind_of,
)
from tradeassay_programs.sandbox.codec import ClaimHead, CodecError, decode
from tradeassay_programs.sandbox.strategy import Scalar

CARD: Final = "strategy_card.json"
CODE: Final = "strategy.py"
CLASS: Final = "TradingStrategy"

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class CardConstraints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits that the strategy promises to respect, named as in the frozen semantics."""

    max_exposure: float
    max_trades_per_bar: int
    flat_overnight: bool = False
    short_allowed: bool = True


class StrategyCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A strategy as its author understood it.

    ``strategy`` and ``version`` name the frozen semantics. The four texts are the core logic. They
    are compared between iterations with normalised white space. ``parameters`` and ``constraints``
    use the names of the frozen semantics. ``legs`` are the assets that the strategy trades or
    watches. ``notes`` are for people and are not compared.
    """

    strategy: str
    version: int
    strategy_family: Text
    entry_rule: Text
    exit_rule: Text
    position_sizing_rule: Text
    parameters: dict[str, float]
    constraints: CardConstraints
    legs: tuple[str, ...]
    execution: Literal["signal-bar-close"]
    notes: str = ""

    @property
    def core_logic(self) -> dict[str, str]:
        names = ("strategy_family", "entry_rule", "exit_rule", "position_sizing_rule")
        return {name: " ".join(str(getattr(self, name)).split()) for name in names}

    @property
    def core_sha256(self) -> str:
        return sha256_bytes(
            canonical_json(
                [self.strategy, self.version, self.execution, list(self.legs), self.core_logic]
            )
        )


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The two files of a submission as text. ``name`` is its origin: a model or a folder."""

    source: str
    card: str
    name: str = ""

    @property
    def sha256(self) -> str:
        """The hash of both files."""
        return sha256_bytes(f"{self.card}\0{self.source}".encode("utf-8", "surrogatepass"))

    def read_card(self) -> StrategyCard:
        """Return the card. Raises :class:`UserError` with the location of the schema error."""
        try:
            check_depth(self.card)
            return msgspec.json.decode(self.card, type=StrategyCard)
        except UNDECODABLE as error:
            raise UserError(f"{CARD}: {error}", hint="compare it with the card's schema") from error


_DEEPEST_CARD: Final = 800
_JSON_TEXT: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def check_depth(card: str) -> None:
    """Raise RecursionError for JSON that is nested too deeply.

    The limit is fixed here because interpreters differ. CPython 3.11 stops near 1,000 levels, and
    later versions at up to 10,000.
    """
    level = 0
    for sign in re.findall(r"[\[\]{}]", _JSON_TEXT.sub("", card)):
        level += 1 if sign in "[{" else -1
        if level > _DEEPEST_CARD:
            raise RecursionError("maximum recursion depth exceeded while deserializing an object")


def card_schema() -> bytes:
    """Return the JSON schema of strategy cards."""
    return canonical_json(schema_of_type(StrategyCard))


def read_submission(folder: Path, name: str = "") -> Submission:
    """Return the submission in a folder.

    Raises :class:`UserError` if a file is missing or not text.
    """
    texts = {}
    for file in (CODE, CARD):
        try:
            texts[file] = (folder / file).read_text(encoding="utf-8")
        except OSError as error:
            hint = f"a submission is a folder with {CODE} and {CARD}"
            raise UserError(
                f"{folder} has no readable {file}: {error.strerror}", hint=hint
            ) from error
        except UnicodeDecodeError as error:
            raise UserError(f"{folder / file} is not UTF-8 text") from error
    return Submission(source=texts[CODE], card=texts[CARD], name=name or folder.name)


def write_submission(submission: Submission, folder: Path) -> None:
    """Write the two files of a submission to a folder, with API keys removed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CODE).write_text(without_secrets(submission.source), encoding="utf-8")
    (folder / CARD).write_text(without_secrets(submission.card), encoding="utf-8")


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A short, hand-chosen price path, and the expected decisions on it, one for each trade."""

    name: str
    what: str
    bars: TaskBars
    expected: DecisionList


@dataclass(frozen=True, slots=True, eq=False)
class StrategySpec:
    """One strategy of the benchmark: its frozen semantics, its document and its micro-scenarios."""

    semantics: Semantics
    doc: str
    scenarios: tuple[Scenario, ...]

    @property
    def id(self) -> str:
        """The id of the strategy."""
        return self.semantics.id

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals of the rules, in order."""
        return tuple(rule.signal for rule in self.semantics.rules)

    def frozen_decisions(self, bars: TaskBars) -> DecisionList:
        """Return the decisions of the frozen semantics on bars.

        They are cached, because an examination needs them four times for one year.
        """
        known = _FROZEN.setdefault(bars, {})
        if self not in known:
            feeds = dict(zip(self.semantics.inputs.legs, bars.feeds.values(), strict=False))
            known[self] = interpret(self.semantics, feeds, bars.times)
        return known[self]

    def practice_bars(self, rows: int = 500, seed: int = 1) -> TaskBars:
        """Return synthetic daily bars, or quarter-hour bars for a strategy on minutes.

        The longer interval covers enough sessions with ``rows`` bars.
        """
        timeframe: Timeframe = "1d" if "1d" in self.semantics.inputs.timeframes else "15m"
        count = len(self.semantics.inputs.legs)
        market = {1: "us", 2: "pairs"}.get(count, "trend")
        return make_bars(market, timeframe, count, rows, seed)


_FROZEN: Final[WeakKeyDictionary[TaskBars, dict[StrategySpec, DecisionList]]] = WeakKeyDictionary()
"""Cache of frozen decisions by bars.

The keys are weak, so the cache does not keep a year of minute bars in memory.
"""


Texts = NDArray[np.object_]
_SIDES: Final = {"BUY": 1.0, "SELL": -1.0}
_TRADE: Final = (
    "time",
    "symbol",
    "side",
    "quantity",
    "price",
    "signal",
    "order_id",
    "pnl",
    "equity",
)
_AUDIT: Final = ("time", "kind", "id", "parent", "symbol", "value")
_SHOWN: Final = 60


class BadLog(ValueError):
    """Raised for a log that cannot be read as trades. The message names the row and the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class TradeLog:
    """Trades in the order of their bars.

    The host uses ``row``, ``leg``, ``quantity`` (signed) and ``signal``. ``price``, ``pnl`` and
    ``equity`` are claims from the submission, or NaN without a claim.
    """

    row: Ints
    leg: Ints
    quantity: Floats
    signal: Texts
    order_id: Texts
    price: Floats
    pnl: Floats
    equity: Floats

    def __len__(self) -> int:
        return int(self.row.size)

    @property
    def sha256(self) -> str:
        """The hash of the decisions: bars, legs, exact quantities and signals."""
        words = "\0".join("" if word is None else str(word) for word in self.signal)
        parts = (self.row.tobytes(), self.leg.tobytes(), self.quantity.tobytes(), words.encode())
        return sha256_bytes(b"\0\0".join(parts))


@dataclass(frozen=True, slots=True, eq=False)
class AuditLog:
    """The rows of an audit log.

    ``row`` is -1 for a time that matches no bar, and ``leg`` is -1 for an unknown symbol.
    """

    row: Ints
    leg: Ints
    kind: Texts
    id: Texts
    parent: Texts
    value: Floats


def read_trades(
    columns: Mapping[str, NDArray[Any]], times: NDArray[Any], legs: Sequence[str]
) -> TradeLog:
    """Return the trade log. Raises :class:`BadLog` for a bad time, leg, side or quantity."""
    log, row, leg = _log(columns, "trade", _TRADE, times, legs)
    sign = np.array([_SIDES.get(str(side).upper(), 0.0) for side in log["side"]], dtype=np.float64)
    quantity = log["quantity"].astype(np.float64)
    with np.errstate(invalid="ignore"):
        positive = np.isfinite(quantity) & (quantity > 0)
    for wrong, fault, values in (
        (row < 0, "is dated at a time that is no bar", log["time"]),
        (leg < 0, f"names an asset that is not among {', '.join(legs)}", log["symbol"]),
        (sign == 0.0, "has a side that is neither BUY nor SELL", log["side"]),
        (~positive, "has a quantity that is no positive number", quantity),
        (quantity > MAX_SIZE, "has a quantity that no number of units can have", quantity),
    ):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise BadLog(f"trade {first} {fault}: {printable(str(values[first])[:_SHOWN])}")
    order = np.argsort(row, kind="stable")
    signal, order_id = log["signal"][order], log["order_id"][order]
    claims = [log[name].astype(np.float64)[order] for name in ("price", "pnl", "equity")]
    return TradeLog(row[order], leg[order], (sign * quantity)[order], signal, order_id, *claims)


def _log(
    columns: Mapping[str, NDArray[Any]],
    log: str,
    names: Sequence[str],
    times: NDArray[Any],
    legs: Sequence[str],
) -> tuple[dict[str, NDArray[Any]], Ints, Ints]:
    """Return the columns of a log, and the bar and the leg of every row.

    Unknown bars and legs are -1.
    """
    table = {name: columns[f"{log}/{name}"] for name in names if f"{log}/{name}" in columns}
    kinds = {"time": "M", "quantity": "f", "price": "f", "pnl": "f", "equity": "f", "value": "f"}
    if len(table) != len(names) or len({len(values) for values in table.values()}) != 1:
        raise BadLog(f"the {log} log came back without its columns")
    for name, values in table.items():
        if values.dtype.kind != kinds.get(name, "O"):
            raise BadLog(
                f"the column '{name}' of the {log} log has another type than it was sent with"
            )
    clock, leg_numbers = times.astype("M8[ns]"), {leg: number for number, leg in enumerate(legs)}
    place = np.minimum(np.searchsorted(clock, table["time"]), len(clock) - 1)
    row: Ints = np.where(clock[place] == table["time"], place, -1).astype(np.int64)
    leg = np.array([leg_numbers.get(symbol, -1) for symbol in table["symbol"]], dtype=np.int64)
    return table, row, leg


HARNESS: Final = "tradeassay_programs.code.systrade_child"
"""The harness that ``SandboxConfig(harnesses=...)`` must name for an executor that runs
submissions.
"""

LIMITS: Final = JobLimits(cpu_s=60, wall_s=120.0, memory_mb=2048)
CAPITAL: Final = 100_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRun:
    """The outcome of one run. With a ``failure`` there are no logs.

    - ``line`` is the line of ``strategy.py`` in the submission's traceback, if present.
    - ``decisions`` are the trades as shares of equity, computed by the host.
    - ``account`` is the account that results from the trades.
    - ``share`` is the traded leg's share of the account after each trade.
    """

    cpu_s: float
    trades: TradeLog | None = None
    audit: AuditLog | None = None
    account: TradedAccount | None = None
    decisions: DecisionList | None = None
    failure: RunFailure | None = None
    line: int | None = None
    log: bytes = b""
    share: Floats | None = None

    @property
    def ok(self) -> bool:
        """Whether the run returned readable logs."""
        return self.failure is None

    @property
    def outcome(self) -> Trace | RunFailure:
        """The trades in the form of the look-ahead check, or the failure."""
        if self.failure is not None:
            return self.failure
        assert self.trades is not None
        fields = {name: getattr(self.trades, name) for name in ("leg", "quantity", "signal")}
        # The processor time of a fed child is not split by answer.
        return Trace(
            rows=self.trades.row, fields=fields, cpu_s=self.cpu_s or None, share=self.share
        )


def submission_config(config: SandboxConfig | None = None) -> SandboxConfig:
    """Return the configuration of a sandbox that can run submissions."""
    return sandbox_config(config, (HARNESS,))


def market_columns(bars: TaskBars, legs: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of bars under the names of the legs.

    The column ``session_last`` marks the last bar of a day. It is taken from the timetable, so code
    need not look at the next bar to find it. Raises UserError for bars with fewer assets than legs.
    """
    if len(bars.assets) < len(legs):
        hint = f"give bars of at least {len(legs)} assets"
        raise UserError(
            f"expected bars of {len(legs)} assets, one for each leg, got {len(bars.assets)}",
            hint=hint,
        )
    last = calendar_of(bars.times).last.astype(np.float64)
    columns: dict[str, NDArray[Any]] = {}
    for leg, feed in zip(legs, bars.feeds.values(), strict=False):
        columns |= {f"{leg}/{name}": feed[name] for name in FIELDS}
        columns[f"{leg}/session_last"] = last
    return columns


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """A different environment for a run: a seed, a time zone, and a clock moved by ``days``.

    With ``hashing``, the run uses the second executor of a :class:`TwinExecutor`, whose processes
    use another hash seed.
    """

    seed: int
    zone: str = ""
    days: int = 0
    hashing: bool = False

    @property
    def text(self) -> str:
        """A phrase that describes the variation."""
        text = f"seed {self.seed}"
        if self.zone:
            direction = "later" if self.days > 0 else "earlier"
            text += f", time zone {self.zone}, {abs(self.days)} days {direction}"
        if self.hashing:
            text += ", another hash seed"
        return text


class TwinExecutor:
    """An executor with a second executor whose processes use another hash seed.

    The second executor is opened when it is first needed.
    """

    def __init__(self, first: JobExecutor, second: Callable[[], JobExecutor]) -> None:
        self.tier, self.run, self.map = first.tier, first.run, first.map
        self._opened = [first]
        self._open_second = second
        self._lock = threading.Lock()

    @property
    def twin(self) -> JobExecutor:
        """The second executor."""
        with self._lock:
            if len(self._opened) == 1:
                self._opened.append(self._open_second())
            return self._opened[1]

    def close(self) -> None:
        """Close both executors."""
        for executor in self._opened:
            executor.close()

    def __enter__(self) -> TwinExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class Spent:
    """The number of a submission's runs so far, and their processor seconds."""

    runs: int = 0
    cpu_s: float = 0.0

    def add(self, result: JobResult) -> JobResult:
        """Count a run, and return its result."""
        self.runs += 1
        self.cpu_s += result.usage.cpu_s
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRunner:
    """Runs the source of a submission on market columns, in a fresh child each time.

    The columns are made by :func:`market_columns`.

    ``trust`` is ``reference`` only for sources that the project ships. Such sources may run inside
    this process.
    """

    executor: JobExecutor
    source: str
    semantics: Semantics
    limits: JobLimits = LIMITS
    capital: float = CAPITAL
    trust: Literal["untrusted", "reference"] = "untrusted"
    spent: Spent = field(default_factory=Spent)

    def varied(self, columns: Columns, variations: Sequence[Variation]) -> list[SubmissionRun]:
        """Run on one table in different environments. The runs have trades and no audit log."""
        runs = []
        for variation in variations:
            twin = getattr(self.executor, "twin", None) if variation.hashing else None
            executor = twin or self.executor
            params: dict[str, Scalar] = {"only": "trades"}
            # Code that runs inside this process must not change its time zone.
            if variation.zone and self.trust == "untrusted":
                params |= {"zone": variation.zone, "later_s": variation.days * 86_400.0}
            result = executor.run(self._job(columns, variation.seed, **params))
            runs.append(self._read(columns, self.spent.add(result)))
        return runs

    def logs(self, wanted: Iterable[tuple[Columns, int]]) -> Iterator[SubmissionRun]:
        """Run on tables, each with a seed, and yield the runs in order."""
        sent, kept = tee(wanted)
        results = self.executor.map(self._job(columns, seed) for columns, seed in sent)
        for result, (columns, _) in zip(results, kept, strict=False):
            yield self._read(columns, self.spent.add(result))

    def run(self, columns: Columns) -> Trace | RunFailure:
        """Run on one table, and return the trades in the form of the look-ahead check."""
        result = self.spent.add(self.executor.run(self._job(columns, 0, only="trades")))
        return self._read(columns, result, only_trades=True).outcome

    def next_bars(
        self, columns: Columns, false: Columns, enough: Enough, rows: Ints | None = None
    ) -> Iterable[Trace | RunFailure]:
        """Run at every bar followed by a false bar, in one child.

        The child never receives a true bar early.

        The child stops after an outcome for which ``enough`` is true. ``rows`` selects bars for a
        second look, which belongs to the first look and is not counted as a run.
        """
        if self.trust == "reference":
            return map(self.run, with_false_bars(columns, false, rows))
        both: dict[str, Any] = {
            **columns,
            **{f"{name}\0": values for name, values in false.items()},
        }
        last = len(next(iter(columns.values()))) - 1 if rows is None else int(rows[-1]) + 1
        if rows is not None:
            both["asked\0"] = np.isin(np.arange(last), rows)
        form = frame_format(both)

        # Equal answers are parsed once, because most bars have no trade.
        @cache
        def read(payload: bytes) -> Trace | RunFailure:
            try:
                message = decode(payload, self.limits.caps())
            except CodecError as error:
                return RunFailure(kind="bad_log", text=str(error))
            if isinstance(message, ClaimHead):
                return RunFailure(
                    kind=message.kind, text=f"{message.error}: {message.message}"[:400]
                )
            return self._logs(columns, message, only_trades=True).outcome

        job = Job(
            source=self.source,
            params={
                "capital": self.capital,
                "columns": "\n".join(columns),
                "format": form,
                "bars": last,
            },
            harness=f"{HARNESS}:replay",
            feed=FrameFeed(
                frames=pack_rows({name: values[:last] for name, values in both.items()}),
                size=struct.calcsize(form),
                until=lambda row, answer: enough(row, read(answer)),
            ),
            limits=self.limits,
        )
        result = self.spent.add(self.executor.run(job))
        self.spent.runs -= rows is not None
        answers: Sequence[bytes] = result.answers
        if rows is not None:
            answers = [answers[row] for row in rows.tolist() if row < len(answers)]
        outcomes = tuple(read(payload) for payload in answers)
        return outcomes if result.failure is None else (*outcomes, _failure(result))

    def _job(self, columns: Columns, seed: int, **params: Scalar) -> Job:
        """Return the job of one run."""
        return Job(
            source=self.source,
            columns=columns,
            params={"capital": self.capital, **params},
            harness=f"{HARNESS}:run",
            limits=self.limits,
            seed=seed,
            trust=self.trust,
        )

    def _read(
        self, columns: Columns, result: JobResult, *, only_trades: bool = False
    ) -> SubmissionRun:
        if result.columns is not None:
            usage, log = result.usage, result.log
            return self._logs(columns, result.columns, usage.cpu_s, log, only_trades=only_trades)
        line = result.failure.line if isinstance(result.failure, ChildClaim) else None
        return SubmissionRun(
            cpu_s=result.usage.cpu_s, failure=_failure(result), line=line, log=result.log
        )

    def _logs(
        self,
        columns: Columns,
        logs: Mapping[str, NDArray[Any]],
        cpu_s: float = 0.0,
        log: bytes = b"",
        *,
        only_trades: bool = False,
    ) -> SubmissionRun:
        """Return a run from its logs, with the account that the host computes.

        The look-ahead check runs on every bar, so it sets ``only_trades`` and skips the decisions
        and the audit log.
        """
        legs = self.semantics.inputs.legs
        times = columns[f"{legs[0]}/time"]
        try:
            trades, audit = read_trades(logs, times, legs), None
            if "audit/time" in logs and not only_trades:
                table, row, leg = _log(logs, "audit", _AUDIT, times, legs)
                texts = {name: table[name] for name in ("kind", "id", "parent")}
                audit = AuditLog(row=row, leg=leg, **texts, value=table["value"].astype(np.float64))
        except BadLog as error:
            return SubmissionRun(
                cpu_s=cpu_s, failure=RunFailure(kind="bad_log", text=str(error)), log=log
            )
        closes = closes_of(columns, legs)
        account = keep_account(trades, closes, self.capital)
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = account.position * closes[trades.leg, trades.row] / account.equity[trades.row]
        # Rounding prevents the last digits of a division from creating a different decision.
        share = np.round(np.nan_to_num(worth, nan=0.0, posinf=0.0, neginf=0.0), 9)
        signals = [rule.signal for rule in self.semantics.rules]
        return SubmissionRun(
            cpu_s=cpu_s,
            trades=trades,
            audit=audit,
            account=account,
            decisions=None if only_trades else decisions_of(trades, account, closes, signals),
            log=log,
            share=np.asarray(share, dtype=np.float64),
        )


def closes_of(columns: Columns, legs: Sequence[str]) -> Floats:
    """Return the closes of the legs, with shape (legs, bars)."""
    return np.stack([np.asarray(columns[f"{leg}/close"], dtype=np.float64) for leg in legs])


def decisions_of(
    trades: TradeLog, account: TradedAccount, closes: Floats, signals: Sequence[str]
) -> DecisionList:
    """Return trades as target shares of equity, one for each bar and leg.

    ``signals`` name the rules in order.
    """
    bars = closes.shape[1]
    keys = trades.row * closes.shape[0] + trades.leg
    # The last trade of a leg on a bar decides. np.unique returns the first of the reversed keys.
    unique, reverse = np.unique(keys[::-1], return_index=True)
    last = len(trades) - 1 - reverse
    row, leg = unique // max(closes.shape[0], 1), unique % max(closes.shape[0], 1)
    equity = account.equity[np.minimum(row, max(bars - 1, 0))] if len(trades) else np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(equity > 0.0, account.held[leg, row] * closes[leg, row] / equity, 0.0)
    # If two rules share a signal, the first rule counts.
    numbers = {name: signals.index(name) for name in signals}
    signal = np.array(
        [numbers.get(str(trades.signal[number]), -1) for number in last], dtype=np.int64
    )
    return DecisionList(row.astype(np.int64), leg.astype(np.int64), share, signal)


def _failure(result: JobResult) -> RunFailure:
    """Return the failure of a job in the form of the look-ahead check."""
    assert result.failure is not None
    return RunFailure(kind=kind_of(result.failure), text=result.failure.text)
