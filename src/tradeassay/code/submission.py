"""A submission (a strategy card and the source of a class ``TradingStrategy``), what it is checked against, and
its runs in a sandbox.

``run(market_data, initial_capital)`` gets a dict of pandas frames by leg, indexed by ``time``, with the columns
``open``, ``high``, ``low``, ``close``, ``volume`` and ``session_last``; it returns a trade log and an audit log.
Times in the logs become bars and names become legs; everything else in them is a claim, and the host works out
what they amount to.
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

from tradeassay.account.backtrader import MAX_SIZE
from tradeassay.account.shares import DecisionList, TradedAccount, keep_account
from tradeassay.code.backtrader import sandbox_config
from tradeassay.code.bars import FIELDS, TaskBars, make_bars
from tradeassay.code.harness.desk import frame_format, pack_rows
from tradeassay.code.lookahead.grow import Enough, with_false_bars
from tradeassay.code.lookahead.trace import Columns, RunFailure, Trace
from tradeassay.code.semantics.interpreter import Semantics, calendar_of, interpret
from tradeassay.code.task import Timeframe
from tradeassay.core.dialogue import schema_of_type
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.printable import printable
from tradeassay.core.secrets import without_secrets
from tradeassay.core.view import Floats, Ints
from tradeassay.sandbox import (
    ChildClaim,
    FrameFeed,
    Job,
    JobExecutor,
    JobLimits,
    JobResult,
    SandboxConfig,
    kind_of,
)
from tradeassay.sandbox.codec import ClaimHead, CodecError, decode
from tradeassay.sandbox.strategy import Scalar

CARD: Final = "strategy_card.json"
CODE: Final = "strategy.py"
CLASS: Final = "TradingStrategy"

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class CardConstraints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the strategy says it will never do. The names are those of the frozen semantics."""

    max_exposure: float
    max_trades_per_bar: int
    flat_overnight: bool = False
    short_allowed: bool = True


class StrategyCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A strategy as its author understood it. ``strategy`` and ``version`` name the frozen semantics. The four
    texts are the core logic: they are compared between iterations after blanks are normalised. ``parameters`` and
    ``constraints`` have the names of the frozen semantics; ``legs`` are the assets it trades or watches. ``notes``
    are for people and compared by nobody.
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
            canonical_json([self.strategy, self.version, self.execution, list(self.legs), self.core_logic])
        )


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The two files of a submission, unread. ``name`` says where it came from (a model, a folder)."""

    source: str
    card: str
    name: str = ""

    @property
    def sha256(self) -> str:
        return sha256_bytes(f"{self.card}\0{self.source}".encode("utf-8", "surrogatepass"))

    def read_card(self) -> StrategyCard:
        """Return the card; raises :class:`UserError` naming the place that does not fit."""
        try:
            check_depth(self.card)
            return msgspec.json.decode(self.card, type=StrategyCard)
        except UNDECODABLE as error:
            raise UserError(f"{CARD}: {error}", hint="compare it with the card's schema") from error


_DEEPEST_CARD: Final = 800
_JSON_TEXT: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def check_depth(card: str) -> None:
    """Raise RecursionError for JSON that is nested too deeply. The limit is ours, because interpreters differ:
    CPython 3.11 gives up near 1,000 levels, later versions at up to 10,000."""
    level = 0
    for sign in re.findall(r"[\[\]{}]", _JSON_TEXT.sub("", card)):
        level += 1 if sign in "[{" else -1
        if level > _DEEPEST_CARD:
            raise RecursionError("maximum recursion depth exceeded while deserializing an object")


def card_schema() -> bytes:
    return canonical_json(schema_of_type(StrategyCard))


def read_submission(folder: Path, name: str = "") -> Submission:
    """Return the submission in a folder; raises :class:`UserError` if one of its files is missing or not text."""
    found = {}
    for file in (CODE, CARD):
        try:
            found[file] = (folder / file).read_text(encoding="utf-8")
        except OSError as error:
            hint = f"a submission is a folder with {CODE} and {CARD}"
            raise UserError(f"{folder} has no readable {file}: {error.strerror}", hint=hint) from error
        except UnicodeDecodeError as error:
            raise UserError(f"{folder / file} is not UTF-8 text") from error
    return Submission(source=found[CODE], card=found[CARD], name=name or folder.name)


def write_submission(submission: Submission, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CODE).write_text(without_secrets(submission.source), encoding="utf-8")
    (folder / CARD).write_text(without_secrets(submission.card), encoding="utf-8")


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A short price path chosen by hand, and what the strategy does on it: one decision for each trade."""

    name: str
    what: str
    bars: TaskBars
    expected: DecisionList


@dataclass(frozen=True, slots=True, eq=False)
class StrategySpec:
    """One strategy of the benchmark, as far as submissions are concerned."""

    semantics: Semantics
    doc: str
    scenarios: tuple[Scenario, ...]

    @property
    def id(self) -> str:
        return self.semantics.id

    @property
    def signals(self) -> tuple[str, ...]:
        return tuple(rule.signal for rule in self.semantics.rules)

    def frozen_decisions(self, bars: TaskBars) -> DecisionList:
        """Return what the semantics decide, worked out once: an examination asks four times about one year."""
        known = _FROZEN.setdefault(bars, {})
        if self not in known:
            feeds = dict(zip(self.semantics.inputs.legs, bars.feeds.values(), strict=False))
            known[self] = interpret(self.semantics, feeds, bars.times)
        return known[self]

    def practice_bars(self, rows: int = 500, seed: int = 1) -> TaskBars:
        """Return synthetic bars: daily, or quarter hours in place of minutes, to span enough sessions."""
        timeframe: Timeframe = "1d" if "1d" in self.semantics.inputs.timeframes else "15m"
        count = len(self.semantics.inputs.legs)
        market = "us" if count == 1 else "pairs" if count == 2 else "trend"
        return make_bars(market, timeframe, count, rows, seed)


_FROZEN: Final[WeakKeyDictionary[TaskBars, dict[StrategySpec, DecisionList]]] = WeakKeyDictionary()
"""Goes with the bars: a year of minutes must not be kept in memory by what was decided on it."""


Texts = NDArray[np.object_]
_SIDES: Final = {"BUY": 1.0, "SELL": -1.0}
_TRADE: Final = ("time", "symbol", "side", "quantity", "price", "signal", "order_id", "pnl", "equity")
_AUDIT: Final = ("time", "kind", "id", "parent", "symbol", "value")
_SHOWN: Final = 60


class BadLog(ValueError):
    """A log that cannot be read as trades. The text says which row and why."""


@dataclass(frozen=True, slots=True, eq=False)
class TradeLog:
    """Trades in the order of their bars. The host takes ``row``, ``leg``, ``quantity`` (signed) and ``signal``.
    ``price``, ``pnl`` and ``equity`` are what the submission claims; NaN where it claims nothing.
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
        """The hash of what was decided: bars, legs, quantities to the bit, signals."""
        words = "\0".join("" if word is None else str(word) for word in self.signal)
        parts = (self.row.tobytes(), self.leg.tobytes(), self.quantity.tobytes(), words.encode())
        return sha256_bytes(b"\0\0".join(parts))


@dataclass(frozen=True, slots=True, eq=False)
class AuditLog:
    """The audit rows as they came. ``row`` is -1 where the time is not a bar's, ``leg`` for an unknown symbol."""

    row: Ints
    leg: Ints
    kind: Texts
    id: Texts
    parent: Texts
    value: Floats


def read_trades(columns: Mapping[str, NDArray[Any]], times: NDArray[Any], legs: Sequence[str]) -> TradeLog:
    """Return the trade log; :class:`BadLog` for a strange time, leg or side, or no positive quantity."""
    found, row, leg = _log(columns, "trade", _TRADE, times, legs)
    sign = np.array([_SIDES.get(str(side).upper(), 0.0) for side in found["side"]], dtype=np.float64)
    quantity = found["quantity"].astype(np.float64)
    with np.errstate(invalid="ignore"):
        positive = np.isfinite(quantity) & (quantity > 0)
    for wrong, what, values in (
        (row < 0, "is dated at a time that is no bar", found["time"]),
        (leg < 0, f"names an asset that is not among {', '.join(legs)}", found["symbol"]),
        (sign == 0.0, "has a side that is neither BUY nor SELL", found["side"]),
        (~positive, "has a quantity that is no positive number", quantity),
        (quantity > MAX_SIZE, "has a quantity that no number of units can have", quantity),
    ):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise BadLog(f"trade {first} {what}: {printable(str(values[first])[:_SHOWN])}")
    order = np.argsort(row, kind="stable")
    signal, order_id = found["signal"][order], found["order_id"][order]
    claims = [found[name].astype(np.float64)[order] for name in ("price", "pnl", "equity")]
    return TradeLog(row[order], leg[order], (sign * quantity)[order], signal, order_id, *claims)


def _log(
    columns: Mapping[str, NDArray[Any]], log: str, names: Sequence[str], times: NDArray[Any], legs: Sequence[str]
) -> tuple[dict[str, NDArray[Any]], Ints, Ints]:
    """Return the columns of a log, and the bar and the leg of every row, -1 where there is none."""
    found = {name: columns[f"{log}/{name}"] for name in names if f"{log}/{name}" in columns}
    kinds = {"time": "M", "quantity": "f", "price": "f", "pnl": "f", "equity": "f", "value": "f"}
    if len(found) != len(names) or len({len(values) for values in found.values()}) != 1:
        raise BadLog(f"the {log} log came back without its columns")
    for name, values in found.items():
        if values.dtype.kind != kinds.get(name, "O"):
            raise BadLog(f"the column '{name}' of the {log} log has another type than it was sent with")
    clock, places = times.astype("M8[ns]"), {leg: place for place, leg in enumerate(legs)}
    place = np.minimum(np.searchsorted(clock, found["time"]), len(clock) - 1)
    row: Ints = np.where(clock[place] == found["time"], place, -1).astype(np.int64)
    return found, row, np.array([places.get(symbol, -1) for symbol in found["symbol"]], dtype=np.int64)


HARNESS: Final = "tradeassay.code.systrade_child"
"""To be named in ``SandboxConfig(harnesses=...)`` of an executor that will run submissions."""

LIMITS: Final = JobLimits(cpu_s=60, wall_s=120.0, memory_mb=2048)
CAPITAL: Final = 100_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRun:
    """The outcome of one run. With a ``failure`` there are no logs. ``line`` is the line of ``strategy.py`` that
    the submission's own traceback names, if it does. ``decisions`` are the host's reading of the trades as shares
    of equity, ``account`` what they amount to, ``share`` the part of it that each trade left in its leg.
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
        return self.failure is None

    @property
    def outcome(self) -> Trace | RunFailure:
        """The trades as the look-ahead check compares them, or why there are none."""
        if self.failure is not None:
            return self.failure
        assert self.trades is not None
        fields = {name: getattr(self.trades, name) for name in ("leg", "quantity", "signal")}
        # An answer that came while the child went on has no time of its own.
        return Trace(rows=self.trades.row, fields=fields, cpu_s=self.cpu_s or None, share=self.share)


def submission_config(config: SandboxConfig | None = None) -> SandboxConfig:
    return sandbox_config(config, (HARNESS,))


def market_columns(bars: TaskBars, legs: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return bars under the names of the legs. ``session_last``, the last bar of a day, comes from the timetable,
    so that code need not look at the next bar to know it.
    """
    if len(bars.assets) < len(legs):
        hint = f"give bars of at least {len(legs)} assets"
        raise UserError(f"the strategy has {len(legs)} legs, the bars have {len(bars.assets)} assets", hint=hint)
    last = calendar_of(bars.times).last.astype(np.float64)
    made: dict[str, NDArray[Any]] = {}
    for leg, feed in zip(legs, bars.feeds.values(), strict=False):
        made |= {f"{leg}/{name}": feed[name] for name in FIELDS}
        made[f"{leg}/session_last"] = last
    return made


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """Other surroundings of one run: a seed, a time zone and a clock moved by days; ``hashing`` takes the second
    executor of a :class:`TwinExecutor`, whose processes hash texts with another seed.
    """

    seed: int
    zone: str = ""
    days: int = 0
    hashing: bool = False

    @property
    def text(self) -> str:
        when = f", time zone {self.zone}, {abs(self.days)} days {'later' if self.days > 0 else 'earlier'}"
        return f"seed {self.seed}{when if self.zone else ''}{', another hash seed' if self.hashing else ''}"


class TwinExecutor:
    """An executor, and a second one, opened when it is first needed, whose processes hash texts differently."""

    def __init__(self, first: JobExecutor, second: Callable[[], JobExecutor]) -> None:
        self.tier, self.run, self.map = first.tier, first.run, first.map
        self._opened, self._open, self._opening = [first], second, threading.Lock()

    @property
    def twin(self) -> JobExecutor:
        with self._opening:
            if len(self._opened) == 1:
                self._opened.append(self._open())
            return self._opened[1]

    def close(self) -> None:
        for executor in self._opened:
            executor.close()

    def __enter__(self) -> TwinExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class Spent:
    """What a submission's runs have used so far: children, and their processor seconds."""

    runs: int = 0
    cpu_s: float = 0.0

    def add(self, result: JobResult) -> JobResult:
        self.runs += 1
        self.cpu_s += result.usage.cpu_s
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRunner:
    """Runs one source on any columns of the form of :func:`market_columns`, a fresh child each time. ``trust`` is
    ``reference`` only for sources that the project itself ships, which may run inside the process.
    """

    executor: JobExecutor
    source: str
    semantics: Semantics
    limits: JobLimits = LIMITS
    capital: float = CAPITAL
    trust: Literal["untrusted", "reference"] = "untrusted"
    spent: Spent = field(default_factory=Spent)

    def varied(self, columns: Columns, variations: Sequence[Variation]) -> list[SubmissionRun]:
        """Run on one table in other surroundings; only the trades come back."""
        found = []
        for one in variations:
            twin = getattr(self.executor, "twin", None) if one.hashing else None
            other: dict[str, Scalar] = {"only": "trades"}
            if one.zone and self.trust == "untrusted":
                other |= {"zone": one.zone, "later_s": one.days * 86_400.0}
            job = self._job(columns, one.seed, **other)
            found.append(self._read(columns, self.spent.add((twin or self.executor).run(job))))
        return found

    def logs(self, wanted: Iterable[tuple[Columns, int]]) -> Iterator[SubmissionRun]:
        sent, kept = tee(wanted)
        results = self.executor.map(self._job(columns, seed) for columns, seed in sent)
        for result, (columns, _) in zip(results, kept, strict=False):
            yield self._read(columns, self.spent.add(result))

    def run(self, columns: Columns) -> Trace | RunFailure:
        result = self.spent.add(self.executor.run(self._job(columns, 0, only="trades")))
        return self._read(columns, result, only_trades=True).outcome

    def next_bars(
        self, columns: Columns, false: Columns, enough: Enough, rows: Ints | None = None
    ) -> Iterable[Trace | RunFailure]:
        """Run at every bar with a false bar behind it, in a child that never holds a true bar before its turn,
        until ``enough``. A second look at some ``rows`` is one with the first, and no run of its own.
        """
        if self.trust == "reference":
            return map(self.run, with_false_bars(columns, false, rows))
        both: dict[str, Any] = {**columns, **{f"{name}\0": values for name, values in false.items()}}
        last = len(next(iter(columns.values()))) - 1 if rows is None else int(rows[-1]) + 1
        if rows is not None:
            both["asked\0"] = np.isin(np.arange(last), rows)
        form = frame_format(both)

        @cache  # each different answer is read once: on most bars nothing is traded
        def read(payload: bytes) -> Trace | RunFailure:
            try:
                message = decode(payload, self.limits.caps())
            except CodecError as error:
                return RunFailure(kind="bad_log", text=str(error))
            if isinstance(message, ClaimHead):
                return RunFailure(kind=message.kind, text=f"{message.error}: {message.message}"[:400])
            return self._logs(columns, message, only_trades=True).outcome

        job = Job(
            source=self.source,
            params={"capital": self.capital, "columns": "\n".join(columns), "format": form, "bars": last},
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
        given = result.answers
        answers = given if rows is None else [given[row] for row in rows.tolist() if row < len(given)]
        found = tuple(read(payload) for payload in answers)
        return found if result.failure is None else (*found, _failure(result))

    def _job(self, columns: Columns, seed: int, **params: Scalar) -> Job:
        return Job(
            source=self.source,
            columns=columns,
            params={"capital": self.capital, **params},
            harness=f"{HARNESS}:run",
            limits=self.limits,
            seed=seed,
            trust=self.trust,
        )

    def _read(self, columns: Columns, result: JobResult, *, only_trades: bool = False) -> SubmissionRun:
        if result.columns is not None:
            usage, log = result.usage, result.log
            return self._logs(columns, result.columns, usage.cpu_s, log, only_trades=only_trades)
        line = result.failure.line if isinstance(result.failure, ChildClaim) else None
        return SubmissionRun(cpu_s=result.usage.cpu_s, failure=_failure(result), line=line, log=result.log)

    def _logs(
        self,
        columns: Columns,
        found: Mapping[str, NDArray[Any]],
        cpu_s: float = 0.0,
        log: bytes = b"",
        *,
        only_trades: bool = False,
    ) -> SubmissionRun:
        """Read the logs that came back, and work out what the trades amount to. The look-ahead check, which asks
        on every bar, wants ``only_trades``: no decisions, and an audit log that came unasked is not looked at.
        """
        legs = self.semantics.inputs.legs
        times = columns[f"{legs[0]}/time"]
        try:
            trades, audit = read_trades(found, times, legs), None
            if "audit/time" in found and not only_trades:
                said, row, leg = _log(found, "audit", _AUDIT, times, legs)
                texts = {name: said[name] for name in ("kind", "id", "parent")}
                audit = AuditLog(row=row, leg=leg, **texts, value=said["value"].astype(np.float64))
        except BadLog as error:
            return SubmissionRun(cpu_s=cpu_s, failure=RunFailure(kind="bad_log", text=str(error)), log=log)
        closes = closes_of(columns, legs)
        account = keep_account(trades, closes, self.capital)
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = account.position * closes[trades.leg, trades.row] / account.equity[trades.row]
        signals = [rule.signal for rule in self.semantics.rules]
        return SubmissionRun(
            cpu_s=cpu_s,
            trades=trades,
            audit=audit,
            account=account,
            decisions=None if only_trades else decisions_of(trades, account, closes, signals),
            log=log,
            share=np.asarray(np.round(np.nan_to_num(worth, nan=0.0, posinf=0.0, neginf=0.0), 9), dtype=np.float64),
        )


def closes_of(columns: Columns, legs: Sequence[str]) -> Floats:
    return np.stack([np.asarray(columns[f"{leg}/close"], dtype=np.float64) for leg in legs])


def decisions_of(trades: TradeLog, account: TradedAccount, closes: Floats, signals: Sequence[str]) -> DecisionList:
    """Return trades as exposures wanted, one for each bar and leg; ``signals`` name the rules in order."""
    bars = closes.shape[1]
    keys = trades.row * closes.shape[0] + trades.leg
    # A leg's last trade on a bar says what was wanted; np.unique gives the first of the reversed keys.
    unique, reverse = np.unique(keys[::-1], return_index=True)
    last = len(trades) - 1 - reverse
    row, leg = unique // max(closes.shape[0], 1), unique % max(closes.shape[0], 1)
    equity = account.equity[np.minimum(row, max(bars - 1, 0))] if len(trades) else np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(equity > 0.0, account.held[leg, row] * closes[leg, row] / equity, 0.0)
    places = {name: signals.index(name) for name in signals}  # of two rules with one name the first
    named = np.array([places.get(str(trades.signal[number]), -1) for number in last], dtype=np.int64)
    return DecisionList(row.astype(np.int64), leg.astype(np.int64), share, named)


def _failure(result: JobResult) -> RunFailure:
    assert result.failure is not None
    return RunFailure(kind=kind_of(result.failure), text=result.failure.text)
