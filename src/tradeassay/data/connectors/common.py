"""What connectors share: one retry policy, and the way from a vendor's series to the columns of a panel.

A connector turns what its vendor library raises into :class:`Throttled` ("come back later") or
:class:`Unanswered` ("no usable answer arrived"). Only those are asked again; everything else (a changed format, an
unknown symbol) is final at once. Nothing is dropped silently.
"""

from __future__ import annotations

import contextlib
import io
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
import numpy as np

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.secrets import clean_foreign
from tradeassay.core.time import SECOND, Clock, Instant, WallClock, iso, moment, parse_day, retry_after_seconds
from tradeassay.core.view import FIELDS, Bools, Days, Field, Floats, Instrument, Ints
from tradeassay.data.calendars import Sessions, sessions_between
from tradeassay.data.source import (
    CalendarName,
    Listing,
    MinutePanel,
    Panel,
    PanelFacts,
    SourceConfig,
    action_known_at,
)

T = TypeVar("T")
LONGEST_REST_S = 86_400.0
"""A vendor that asks to be left alone for longer than a day is asked again after a day."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds in seconds: ``timeout`` for one answer; waits double from ``first_wait`` up to ``longest_wait``. A
    vendor that asks (``Retry-After``) for more than ``longest_wait`` is not waited for."""

    attempts: int = 4
    timeout: float = 30.0
    first_wait: float = 2.0
    longest_wait: float = 120.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout <= 0 or self.first_wait < 0 or self.longest_wait < 0:
            raise UserError(f"impossible retry policy {self}", hint="attempts >= 1, timeout > 0, waits >= 0")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a connector takes from outside, so that no test reads the wall clock or sleeps."""

    clock: Clock = field(default_factory=WallClock)
    sleep: Callable[[float], None] = time.sleep
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def late(self) -> str:
        return f"nothing came within {self.retry.timeout:g} s"


class Unanswered(Exception):
    """No usable answer: a time-out, a broken connection, a truncated body."""

    def __init__(self, reason: str) -> None:
        self.reason = clean_foreign(reason)
        super().__init__(self.reason)


class Throttled(Unanswered):
    """The vendor answered "too many requests"; ``retry_after`` is the wait in seconds, if it named one."""

    def __init__(self, reason: str = "HTTP 429, too many requests", retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


NOT_JSON = "the answer is not complete JSON"
BROKE_OFF = "the answer broke off in the middle"


def http_fault(status: int, wish: str | None, asked: tuple[str, str], runtime: Runtime) -> Exception | None:
    """Return what an HTTP status says about (vendor, what was asked), with the ``Retry-After`` header as ``wish``;
    None for one that is no failure."""
    if status == 429:
        return Throttled(retry_after=retry_after_seconds(wish, runtime.clock))
    if status >= 500:
        return Unanswered(f"HTTP {status}")
    if status >= 400:
        return SourceError(f"{asked[0]} refused {asked[1]}: HTTP {status}", hint="try again later")
    return None


class VendorResting(SourceError):
    """The vendor wants to be left alone for longer than anybody waits here: for ``seconds``."""

    seconds: float = 0.0


def newest_over(days: Days, closes: Floats, day: str) -> float | None:
    """Return the newest of ``closes`` over that of ``day``; None where one of the two is not there."""
    told = np.nan_to_num(closes) > 0.0
    then, newer = closes[told & (days == np.datetime64(day))], closes[told & (days > np.datetime64(day))]
    return float(newer[-1] / then[-1]) if then.size and newer.size else None


def ask_with_retries(ask: Callable[[], T], *, vendor: str, what: str, runtime: Runtime) -> T:
    """Call ``ask`` until it answers, at most ``runtime.retry.attempts`` times, else raise :class:`SourceError`."""
    policy, waited, made = runtime.retry, 0.0, 0
    while True:
        try:
            return ask()
        except Unanswered as error:
            made += 1
            wish = error.retry_after if isinstance(error, Throttled) else None
            if wish is not None and wish > policy.longest_wait:
                refused = VendorResting(
                    f"{vendor} refused {what}: {error.reason}, and wants {wish:.0f} s of rest",
                    hint="fetch again after that time, or ask for fewer symbols at once",
                )
                refused.seconds = min(wish, LONGEST_REST_S)
                raise refused from error
            if made == policy.attempts:
                said, hint = (
                    "gave no usable answer for",
                    "check the connection (and a proxy, if there is one), then fetch again",
                )
                if isinstance(error, Throttled):
                    said, hint = "refused", "wait some minutes and fetch again, or ask for fewer symbols at once"
                effort = f"{made} attempt{'s' if made > 1 else ''}, {waited:.0f} s of waiting between them"
                raise SourceError(f"{vendor} {said} {what}: {error.reason} ({effort})", hint=hint) from error
        pause = min(policy.first_wait * 2.0 ** min(made - 1, 60), policy.longest_wait) if wish is None else wish
        runtime.sleep(pause)
        waited += pause


@contextlib.contextmanager
def quietly(module: str) -> Iterator[None]:
    """Silence a library's log lines, prints, progress bars and the warnings it causes; errors pass."""
    logger = logging.getLogger(module)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


# -- from a vendor's series to columns ---------------------------------------------------------------------------

DELISTING_SLACK = 30
"""Sessions by which a series may end before its vendor's delisting date, which is the day of the formal act."""
DELISTING_DAYS = 45
"""The same slack in calendar days, for a formal act after the last session asked for."""
FORGIVEN = 20
"""Of so many bars one may be on a day without a session. More of them are days told in another zone, say."""
PRICES: tuple[Field, ...] = ("open", "high", "low", "close")
SURVIVORS = "symbols chosen at the time of retrieval: survivorship"


@dataclass(frozen=True, slots=True)
class Column:
    """One symbol as a vendor gave it: days in order, one array per field (``amount`` may be missing).
    ``listed``/``delisted`` are the vendor's own ISO dates, None when it does not say. ``halted`` are days on which
    the vendor itself says that nothing traded."""

    instrument: Instrument
    days: Days
    fields: Mapping[Field, Floats]
    listed: str | None = None
    delisted: str | None = None
    halted: Days | None = None


class MinuteColumn(NamedTuple):
    """One symbol's minute bars: closing instants in order and one array per field."""

    symbol: str
    close_time: Ints
    fields: Mapping[Field, Floats]


class Vendor(NamedTuple):
    """Where a panel comes from: what messages call it, the source's name, its calendar, its currency, what may be
    done with the data."""

    name: str
    source: str
    calendar: CalendarName
    currency: str
    licence: str


class ConnectorSource:
    """What the sources share. ``wire`` is what a test puts in the place of a vendor's connection."""

    Config: ClassVar[type[SourceConfig]]
    summary: ClassVar[str]
    extra: ClassVar[str | None]

    def __init__(self, config: Any, *, runtime: Runtime | None = None, **wire: Any) -> None:
        self._config = config
        self._runtime = runtime or Runtime()
        self._wire = wire

    def go_by(self, clock: Clock) -> None:
        """Take the time from another clock: what is over is a question of whoever asks."""
        self._runtime = replace(self._runtime, clock=clock)

    def panel(
        self,
        vendor: Vendor,
        columns: Sequence[Column],
        sessions: Sessions,
        *,
        minutes: Sequence[MinuteColumn] = (),
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> Panel:
        """Return the panel of fetched columns; ``before`` and ``after`` the notes on them come other biases."""
        config: ConnectorConfig = self._config
        partial = config.allow_partial
        listings, bars, suspended, notes = lay_out(
            columns, sessions, vendor=vendor.name, allow_partial=partial, forgive=config.forgive
        )
        joined, gaps = join_minutes(minutes, columns, vendor=vendor.name, allow_partial=partial)
        facts = PanelFacts(
            kind="real",
            source=vendor.source,
            query=canonical_json(config).decode(),
            currency=vendor.currency,
            calendar=vendor.calendar,
            adjusted="none",
            biases=(*before, *notes, *gaps, *after),
            licence=vendor.licence,
            retrieved_at=iso(self._runtime.clock.now() // SECOND * SECOND),
        )
        return Panel(
            name=config.name or vendor.source.replace("/", "-"),
            facts=facts,
            listings=listings,
            sessions=sessions.days,
            open_time=sessions.open_time,
            close_time=sessions.close_time,
            bars=bars,
            suspended=suspended,
            minutes=joined,
        )


def lay_out(
    columns: Sequence[Column], sessions: Sessions, *, vendor: str, allow_partial: bool, forgive: bool = False
) -> tuple[tuple[Listing, ...], dict[Field, Floats], Bools, list[str]]:
    """Return vendor series on a calendar: listings sorted by (day, symbol), bars, suspended cells, and notes.

    A session without a bar between listing and delisting becomes a suspension. Refused: a bar on a day without a
    session, days out of order (``forgive`` a few), a part of the range (``allow_partial``)."""
    cut, gaps, broken, forgiven = (list[str]() for _ in range(4))
    placed = []
    for column in columns:
        if forgive:
            column = _forgiven(column, sessions, vendor, forgiven)
        finite = [np.isfinite(column.fields[name]) for name in PRICES]
        whole, some = np.all(finite, axis=0), np.any(finite, axis=0)
        rows = _rows(column, column.days, sessions, vendor)[whole]
        halted = rows[:0] if column.halted is None else _rows(column, column.halted, sessions, vendor)
        told = np.union1d(rows, halted)
        if told.size == 0:
            raise SourceError(
                f"{vendor} sent no bar of {column.instrument.symbol} on a session from {sessions.first} to "
                f"{sessions.last}",
                hint="check the symbol and the days, or leave it out",
            )
        listing, parts = _listing(column, int(told[0]), int(told[-1]), sessions, vendor, allow_partial)
        placed.append((listing, rows, halted, parts, column.days[some & ~whole], whole, column.fields))
    placed.sort(key=lambda one: (one[0].listed, one[0].instrument.symbol))
    shape = (sessions.days.size, len(placed))
    bars: dict[Field, Floats] = {name: np.full(shape, np.nan) for name in FIELDS}
    suspended = np.zeros(shape, dtype=np.bool_)
    for index, (listing, rows, halted, parts, days, whole, fields) in enumerate(placed):
        symbol, last = listing.instrument.symbol, np.datetime64(listing.delisted or sessions.last, "D")
        for name, values in fields.items():
            bars[name][rows, index] = values[whole]
        silent = (sessions.days >= np.datetime64(listing.listed, "D")) & (sessions.days <= last)
        silent[rows] = False
        suspended[:, index] = silent
        silent[halted] = False  # the vendor itself says that nothing traded
        cut += parts
        gaps += [f"{symbol} {silent.sum()}"] if silent.any() else []
        broken += [f"{symbol} {day}" for day in days]
    said = {
        f"{vendor} has only part of the range, taken as listing or delisting": cut,
        "sessions without a bar, taken as suspensions": gaps,
        "incomplete bars, left out": broken,
    }
    notes = [f"{what}: {shorten(names)}" for what, names in said.items() if names]
    return tuple(one[0] for one in placed), bars, suspended, notes + forgiven


def _forgiven(column: Column, sessions: Sessions, vendor: str, notes: list[str]) -> Column:
    """Return a series in order, without its second copies and a few bars of days without a session."""
    order = np.argsort(column.days, kind="stable")
    days = column.days[order]
    fields = {name: values[order] for name, values in column.fields.items()}
    twice = np.zeros(days.size, dtype=np.bool_)
    if days.size > 1:
        alike = [(v[1:] == v[:-1]) | (np.isnan(v[1:]) & np.isnan(v[:-1])) for v in fields.values()]
        twice[1:] = (days[1:] == days[:-1]) & np.logical_and.reduce(alike)
    strange = ~np.isin(days, sessions.days) & ~twice
    if strange.sum() > max(days.size // FORGIVEN, 1):
        strange[:] = False
    if strange.any():
        named = shorten([f"{column.instrument.symbol} {day}" for day in days[strange]])
        notes.append(f"{vendor} sent bars on days without a session, left out: {named}")
    if twice.any():
        notes.append(f"{vendor} sent bars twice: {column.instrument.symbol} {int(twice.sum())}")
    keep = ~(twice | strange)
    return replace(column, days=days[keep], fields={name: values[keep] for name, values in fields.items()})


def _rows(column: Column, days: Days, sessions: Sessions, vendor: str) -> Ints:
    symbol = column.instrument.symbol
    back = np.flatnonzero(days[1:] <= days[:-1])
    if back.size:
        problem = f"{vendor}'s days of {symbol} are doubled or out of order at {days[back[0] + 1]}"
        raise SourceError(problem, hint="fetch again; if it stays so, leave the symbol out")
    strange = days[~np.isin(days, sessions.days)]
    if strange.size:
        problem = f"{vendor} sent a bar of {symbol} for {strange[0]}, when {sessions.calendar} has no session"
        raise SourceError(problem, hint="leave the symbol out, or fetch it from another source")
    return np.searchsorted(sessions.days, days).astype(np.int64)


def _listing(
    column: Column, first_bar: int, last_bar: int, sessions: Sessions, vendor: str, partial: bool
) -> tuple[Listing, list[str]]:
    """Return when a series counts as listed, and the parts of the range it lacks (refused unless ``partial``)."""
    symbol = column.instrument.symbol
    listed = column.listed or sessions.first
    delisted = column.delisted if column.delisted is not None and column.delisted <= sessions.last else None
    begin = int(np.searchsorted(sessions.days, np.datetime64(listed, "D")))
    end = int(np.searchsorted(sessions.days, np.datetime64(delisted or sessions.last, "D"), side="right")) - 1
    first_day, last_day = str(sessions.days[first_bar]), str(sessions.days[last_bar])
    # A delisting is dated by its formal act, some time after the last bar.
    soon = column.delisted is not None and column.delisted <= str(sessions.days[-1] + DELISTING_DAYS)
    closing = soon and end - DELISTING_SLACK <= last_bar < end
    cut = []
    for missing, side, day, wanted, taken in (
        (first_bar > begin, "begin", first_day, "first", "listing"),
        (last_bar < end and not closing, "end", last_day, "last", "delisting"),
    ):
        if missing and not partial:
            asked = f"{sessions.first} to {sessions.last}"
            raise SourceError(
                f"{vendor}'s bars of {symbol} {side} on {day}, but {asked} was asked for",
                hint=f"ask with {wanted}={day}, or with allow_partial=true to take that day as its {taken}",
            )
        if missing:
            cut.append(f"{symbol} {'from' if side == 'begin' else 'to'} {day}")
    if first_bar != begin:
        listed = first_day
    if last_bar != end:
        delisted = last_day if last_bar < sessions.days.size - 1 else None
    return Listing(instrument=column.instrument, listed=listed, delisted=delisted), cut


def join_minutes(
    minutes: Sequence[MinuteColumn], daily: Sequence[Column], *, vendor: str, allow_partial: bool
) -> tuple[MinutePanel | None, list[str]]:
    """Return minute bars on their common closing times, NaN where a symbol has none, and a note on traded days
    without any (refused unless ``allow_partial``). Raises :class:`SourceError` for times out of order."""
    if not minutes:
        return None, []
    traded = {column.instrument.symbol: column.days for column in daily}
    every = np.unique(np.concatenate([column.close_time for column in minutes]))
    bars: dict[Field, Floats] = {name: np.full((every.size, len(minutes)), np.nan) for name in FIELDS}
    missing: list[str] = []
    for index, (symbol, close_time, fields) in enumerate(minutes):
        if (np.diff(close_time) <= 0).any():
            problem = f"{vendor}'s minutes of {symbol} are doubled or out of order"
            raise SourceError(problem, hint="fetch again; if it stays so, leave minutes out")
        # A bar that ends at midnight belongs to the day before.
        days = (close_time - 1).astype("datetime64[ns]").astype("datetime64[D]")
        gone = np.setdiff1d(traded[symbol], days)
        if gone.size and not allow_partial:
            problem = f"{vendor} has no minutes of {symbol} on {gone[0]} ({gone.size} days in all)"
            raise SourceError(problem, hint="ask for other days, without minutes, or with allow_partial=true")
        missing += [f"{symbol} {day}" for day in gone]
        for name, values in fields.items():
            bars[name][np.searchsorted(every, close_time), index] = values
    joined = MinutePanel(tuple(column.symbol for column in minutes), every, bars)
    return joined, [f"days without minute bars: {shorten(missing)}"] if missing else []


def one_currency(symbols: Mapping[str, str]) -> str:
    """Return the currency that all symbols (by currency) share; raises :class:`UserError` for several."""
    if len(symbols) > 1:
        named = ", ".join(f"{symbol} in {currency}" for currency, symbol in sorted(symbols.items()))
        raise UserError(f"one panel has one currency, but {named}", hint="fetch them as separate panels")
    return next(iter(symbols))


def shorten(items: Sequence[str]) -> str:
    """Join a list for a sentence, saying how many were left unnamed."""
    named = ", ".join(items[:10])
    return f"{named} and {len(items) - 10} more" if len(items) > 10 else named


# -- what is asked -----------------------------------------------------------------------------------------------


class ConnectorConfig(SourceConfig, frozen=True, kw_only=True):
    """Symbols and the days wanted, both ends included; ``last`` None means the last session that is over. A symbol
    whose bars do not reach from its listing (or ``first``) to ``last`` is refused unless ``allow_partial`` is set;
    then it counts as listed and delisted where its bars begin and end, and the panel says so. ``forgive`` leaves
    out what cannot be a bar (on a day without a session, the same one twice), one in twenty at the most, and says
    so; otherwise it is refused. ``name`` is the panel's name; empty means the source's."""

    first: str
    symbols: tuple[str, ...] = ()
    last: str | None = None
    allow_partial: bool = False
    forgive: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        symbols: object = self.symbols
        if isinstance(symbols, str):
            raise UserError(f"symbols is the text '{symbols}'", hint=f"write ('{symbols}',)")
        first = parse_day(self.first)
        if self.last is not None and parse_day(self.last) < first:
            raise UserError(f"last {self.last} lies before first {self.first}", hint="swap them")
        refuse_doubles(self.symbols)


def refuse_doubles(symbols: tuple[str, ...]) -> None:
    twice = sorted({symbol for symbol in symbols if symbols.count(symbol) > 1})
    if twice:
        raise UserError(f"asked twice for {', '.join(twice)}", hint="name each symbol once")


def need_symbols(config: ConnectorConfig, example: str) -> None:
    if not config.symbols:
        raise UserError("no symbols to fetch", hint=f"name at least one, e.g. {example}")


def changed_format(vendor: str, what: str, detail: str, package: str) -> SourceError:
    return SourceError(
        f"{vendor} answered {what} in another format than expected: {detail}",
        hint=f"pip install -U {package}; if that does not help, the connector needs an update",
    )


def empty_answer(vendor: str, symbol: str, first: str, last: str, reason: str = "") -> SourceError:
    return SourceError(
        f"{vendor} has no bars of {symbol} from {first} to {last}" + (f": {reason}" if reason else ""),
        hint="check the symbol and the days, or leave it out",
    )


def sessions_asked(calendar: CalendarName, first: str, last: str | None, clock: Clock) -> Sessions:
    """Return the sessions asked for, never empty. A ``last`` that is not over is refused: a bar that still moves
    would be stored as final."""
    now = clock.now()
    tomorrow = moment(now).date() + timedelta(days=1)
    end = parse_day(last) if last is not None else max(tomorrow, parse_day(first))
    found = sessions_between(calendar, first, end)
    over = int(np.searchsorted(found.close_time, now, side="right"))
    if last is not None and over < found.days.size:
        raise UserError(
            f"session {found.days[over]} of {calendar} is not over at {iso(now)}",
            hint=f"ask up to {found.days[over - 1]}" if over else "ask for days that are over",
        )
    if over == 0:
        asked = f"from {first} to {last or 'now'}"
        raise UserError(f"{calendar} has no finished session {asked}", hint="ask for other days")
    return found.part(0, over)


def action_time(sessions: Sessions, ex_date: str) -> Instant | None:
    """Return when an action of ``ex_date`` (or the next session) is known; None outside the sessions."""
    day = np.datetime64(ex_date, "D")
    if not sessions.days[0] <= day <= sessions.days[-1]:
        return None
    return action_known_at(int(sessions.open_time[np.searchsorted(sessions.days, day)]))
