"""Share code between connectors: retries, and the conversion of a vendor's series to a panel.

A connector converts the errors of its vendor library to :class:`Throttled` (too many requests) or
:class:`Unanswered` (no usable answer). Only these are retried. All other errors, such as a changed
format or an unknown symbol, are final. No data is dropped without a note.
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

from tradeassay.core.arrays import Bools, Days, Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.secrets import clean_foreign
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import (
    SECOND,
    Clock,
    Instant,
    WallClock,
    iso,
    moment,
    parse_day,
    retry_after_seconds,
)
from tradeassay_bench.core.view import FIELDS, Field, Instrument
from tradeassay_bench.data.calendars import Sessions, sessions_between
from tradeassay_bench.data.source import (
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
"""Longest pause that :class:`VendorResting` reports, in seconds (one day), even if the vendor
demands more.
"""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of retries. All times are in seconds.

    ``timeout`` is the limit for one answer. Waits double from ``first_wait`` up to
    ``longest_wait``. If the vendor demands a longer wait with ``Retry-After``, the request fails.
    """

    attempts: int = 4
    timeout: float = 30.0
    first_wait: float = 2.0
    longest_wait: float = 120.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout <= 0 or self.first_wait < 0 or self.longest_wait < 0:
            raise UserError(
                f"invalid retry policy {self}", hint="attempts >= 1, timeout > 0, waits >= 0"
            )


@dataclass(frozen=True, slots=True)
class Runtime:
    """The clock, sleep function and retry policy of a connector. Tests replace them."""

    clock: Clock = field(default_factory=WallClock)
    sleep: Callable[[float], None] = time.sleep
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def late(self) -> str:
        """Return the reason for a failure by time-out."""
        return f"no answer within {self.retry.timeout:g} s"


class Unanswered(Exception):
    """There was no usable answer: a time-out, a broken connection or a truncated body."""

    def __init__(self, reason: str) -> None:
        self.reason = clean_foreign(reason)
        super().__init__(self.reason)


class Throttled(Unanswered):
    """The vendor answered "too many requests".

    ``retry_after`` is the wait in seconds that the vendor demands, or None.
    """

    def __init__(
        self, reason: str = "HTTP 429, too many requests", retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


NOT_JSON = "the answer is not complete JSON"
BROKE_OFF = "the answer broke off in the middle"


def http_fault(
    status: int, wish: str | None, asked: tuple[str, str], runtime: Runtime
) -> Exception | None:
    """Return the error for an HTTP status, or None for success.

    ``asked`` is the pair (vendor, description of the request). ``wish`` is the ``Retry-After``
    header.
    """
    if status == 429:
        return Throttled(retry_after=retry_after_seconds(wish, runtime.clock))
    if status >= 500:
        return Unanswered(f"HTTP {status}")
    if status >= 400:
        return SourceError(f"{asked[0]} refused {asked[1]}: HTTP {status}", hint="try again later")
    return None


class VendorResting(SourceError):
    """The vendor demands a longer pause than the retry policy allows.

    ``seconds`` is the length of the pause.
    """

    seconds: float = 0.0


def growth_since(days: Days, closes: Floats, day: str) -> float | None:
    """Return the newest close divided by the close of ``day``.

    Return None if either close is missing.
    """
    known = np.nan_to_num(closes) > 0.0
    base = closes[known & (days == np.datetime64(day))]
    later = closes[known & (days > np.datetime64(day))]
    return float(later[-1] / base[-1]) if base.size and later.size else None


def ask_with_retries(ask: Callable[[], T], *, vendor: str, what: str, runtime: Runtime) -> T:
    """Return the result of ``ask``, which is called up to ``runtime.retry.attempts`` times.

    A call is repeated only after :class:`Unanswered`. Raises :class:`SourceError` after the last
    attempt, and :class:`VendorResting` if the vendor demands a pause that is too long. ``what``
    describes the request in messages.
    """
    policy, waited, attempts = runtime.retry, 0.0, 0
    while True:
        try:
            return ask()
        except Unanswered as error:
            attempts += 1
            wish = error.retry_after if isinstance(error, Throttled) else None
            if wish is not None and wish > policy.longest_wait:
                refused = VendorResting(
                    f"{vendor} refused {what}: {error.reason}, and demands a pause of {wish:.0f} s",
                    hint="fetch again after that time, or request fewer symbols at once",
                )
                refused.seconds = min(wish, LONGEST_REST_S)
                raise refused from error
            if attempts == policy.attempts:
                problem = "returned no usable answer for"
                hint = "check the connection (and a proxy, if there is one), then fetch again"
                if isinstance(error, Throttled):
                    problem = "refused"
                    hint = "wait some minutes and fetch again, or request fewer symbols at once"
                effort = (
                    f"{attempts} attempt{'s' if attempts > 1 else ''}, {waited:.0f} s of "
                    "waiting between them"
                )
                raise SourceError(
                    f"{vendor} {problem} {what}: {error.reason} ({effort})", hint=hint
                ) from error
        if wish is not None:
            pause = wish
        else:
            # The exponent is bounded, because a float cannot hold 2.0 ** 1024.
            pause = min(policy.first_wait * 2.0 ** min(attempts - 1, 60), policy.longest_wait)
        runtime.sleep(pause)
        waited += pause


@contextlib.contextmanager
def silenced(module: str) -> Iterator[None]:
    """Silence the logs, prints and warnings of a library in a ``with`` block.

    Errors are not suppressed.
    """
    logger = logging.getLogger(module)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        nowhere = io.StringIO()
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


# -- from a vendor's series to columns --

DELISTING_SLACK = 30
"""Maximum number of sessions between a name's last bar and its delisting date. Vendors report the
day of the formal act, which follows the last bar.
"""
DELISTING_DAYS = 45
"""Maximum number of calendar days between the last requested session and a delisting date that may
explain missing bars at the end.
"""
FORGIVEN = 20
"""With ``forgive``, at most one in this many bars may be on a day without a session. A higher share
indicates a systematic error, such as days in a wrong time zone.
"""
PRICES: tuple[Field, ...] = ("open", "high", "low", "close")
SURVIVORS = "symbols chosen at the time of retrieval: survivorship"


@dataclass(frozen=True, slots=True)
class Column:
    """A vendor's series of one symbol: days in order, and one array per field.

    ``amount`` may be missing. ``listed`` and ``delisted`` are the vendor's ISO dates, or None.
    ``halted`` are the days that the vendor marks as days without trading.
    """

    instrument: Instrument
    days: Days
    fields: Mapping[Field, Floats]
    listed: str | None = None
    delisted: str | None = None
    halted: Days | None = None


class MinuteColumn(NamedTuple):
    """The minute bars of one symbol: closing instants in order, and one array per field."""

    symbol: str
    close_time: Ints
    fields: Mapping[Field, Floats]


class Vendor(NamedTuple):
    """The vendor of a panel. ``name`` is used in messages, ``source`` in the panel's metadata."""

    name: str
    source: str
    calendar: CalendarName
    currency: str
    licence: str


class ConnectorSource:
    """Base class of the connectors' sources.

    ``wire`` replaces the vendor's connection in tests.
    """

    Config: ClassVar[type[SourceConfig]]
    summary: ClassVar[str]
    extra: ClassVar[str | None]

    def __init__(self, config: Any, *, runtime: Runtime | None = None, **wire: Any) -> None:
        self._config = config
        self._runtime = runtime or Runtime()
        self._wire = wire

    def go_by(self, clock: Clock) -> None:
        """Set the clock that decides which sessions are over."""
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
        """Return the panel of fetched columns.

        ``before`` and ``after`` are additional biases, listed before and after the notes on the
        columns.
        """
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
    columns: Sequence[Column],
    sessions: Sessions,
    *,
    vendor: str,
    allow_partial: bool,
    forgive: bool = False,
) -> tuple[tuple[Listing, ...], dict[Field, Floats], Bools, list[str]]:
    """Place vendor series on a calendar, and return listings, bars, suspensions and notes.

    Listings are sorted by (listed, symbol). A session without a bar between listing and delisting
    becomes a suspension. Raises :class:`SourceError` for bars on days without a session and for
    days out of order. With ``forgive`` a few such bars are dropped instead. The error is also
    raised for a series that covers only a part of the range, unless ``allow_partial`` is set.
    """
    cut: list[str] = []
    gaps: list[str] = []
    broken: list[str] = []
    forgiven: list[str] = []
    placed = []
    for column in columns:
        if forgive:
            column = _forgiven(column, sessions, vendor, forgiven)
        finite = [np.isfinite(column.fields[name]) for name in PRICES]
        whole, some = np.all(finite, axis=0), np.any(finite, axis=0)
        rows = _rows(column, column.days, sessions, vendor)[whole]
        halted = (
            rows[:0] if column.halted is None else _rows(column, column.halted, sessions, vendor)
        )
        reported = np.union1d(rows, halted)
        if reported.size == 0:
            raise SourceError(
                f"{vendor} sent no bar of {column.instrument.symbol} on a session from "
                f"{sessions.first} to "
                f"{sessions.last}",
                hint="check the symbol and the days, or drop the symbol",
            )
        listing, parts = _listing(
            column, int(reported[0]), int(reported[-1]), sessions, vendor, allow_partial
        )
        placed.append(
            (listing, rows, halted, parts, column.days[some & ~whole], whole, column.fields)
        )
    placed.sort(key=lambda entry: (entry[0].listed, entry[0].instrument.symbol))
    shape = (sessions.days.size, len(placed))
    bars: dict[Field, Floats] = {name: np.full(shape, np.nan) for name in FIELDS}
    suspended = np.zeros(shape, dtype=np.bool_)
    for index, (listing, rows, halted, parts, days, whole, fields) in enumerate(placed):
        symbol = listing.instrument.symbol
        last = np.datetime64(listing.delisted or sessions.last, "D")
        for name, values in fields.items():
            bars[name][rows, index] = values[whole]
        silent = (sessions.days >= np.datetime64(listing.listed, "D")) & (sessions.days <= last)
        silent[rows] = False
        suspended[:, index] = silent
        silent[halted] = False  # the vendor states that there was no trade
        cut += parts
        if silent.any():
            gaps.append(f"{symbol} {silent.sum()}")
        broken += [f"{symbol} {day}" for day in days]
    # These sentences become biases, which are part of a dataset's hash.
    names_by_note = {
        f"{vendor} has only part of the range, taken as listing or delisting": cut,
        "sessions without a bar, taken as suspensions": gaps,
        "incomplete bars, left out": broken,
    }
    notes = [f"{note}: {shorten(names)}" for note, names in names_by_note.items() if names]
    return tuple(entry[0] for entry in placed), bars, suspended, notes + forgiven


def _forgiven(column: Column, sessions: Sessions, vendor: str, notes: list[str]) -> Column:
    """Return a series in order, without duplicates and bars on days without a session.

    Only a few such bars are accepted.
    """
    order = np.argsort(column.days, kind="stable")
    days = column.days[order]
    fields = {name: values[order] for name, values in column.fields.items()}
    twice = np.zeros(days.size, dtype=np.bool_)
    if days.size > 1:
        equal = [(v[1:] == v[:-1]) | (np.isnan(v[1:]) & np.isnan(v[:-1])) for v in fields.values()]
        twice[1:] = (days[1:] == days[:-1]) & np.logical_and.reduce(equal)
    strange = ~np.isin(days, sessions.days) & ~twice
    if strange.sum() > max(days.size // FORGIVEN, 1):
        strange[:] = False
    if strange.any():
        named = shorten([f"{column.instrument.symbol} {day}" for day in days[strange]])
        notes.append(f"{vendor} sent bars on days without a session, left out: {named}")
    if twice.any():
        notes.append(f"{vendor} sent bars twice: {column.instrument.symbol} {int(twice.sum())}")
    keep = ~(twice | strange)
    return replace(
        column, days=days[keep], fields={name: values[keep] for name, values in fields.items()}
    )


def _rows(column: Column, days: Days, sessions: Sessions, vendor: str) -> Ints:
    """Return the rows of a series' days. Raises :class:`SourceError` for impossible days."""
    symbol = column.instrument.symbol
    back = np.flatnonzero(days[1:] <= days[:-1])
    if back.size:
        problem = f"{vendor}'s days of {symbol} are repeated or out of order at {days[back[0] + 1]}"
        raise SourceError(problem, hint="fetch again; if the error remains, drop the symbol")
    strange = days[~np.isin(days, sessions.days)]
    if strange.size:
        problem = (
            f"{vendor} sent a bar of {symbol} for {strange[0]}, when {sessions.calendar} "
            "has "
            "no session"
        )
        raise SourceError(problem, hint="drop the symbol, or fetch it from another source")
    return np.searchsorted(sessions.days, days).astype(np.int64)


def _listing(
    column: Column, first_bar: int, last_bar: int, sessions: Sessions, vendor: str, partial: bool
) -> tuple[Listing, list[str]]:
    """Return the listing of a series, and notes on missing parts of the range.

    Raises :class:`SourceError` for a missing part unless ``partial`` is set.
    """
    symbol = column.instrument.symbol
    listed = column.listed or sessions.first
    delisted = None
    if column.delisted is not None and column.delisted <= sessions.last:
        delisted = column.delisted
    begin = int(np.searchsorted(sessions.days, np.datetime64(listed, "D")))
    last_listed = np.datetime64(delisted or sessions.last, "D")
    end = int(np.searchsorted(sessions.days, last_listed, side="right")) - 1
    first_day, last_day = str(sessions.days[first_bar]), str(sessions.days[last_bar])
    # A delisting is dated by its formal act, some time after the last bar.
    soon = column.delisted is not None and column.delisted <= str(
        sessions.days[-1] + DELISTING_DAYS
    )
    closing = soon and end - DELISTING_SLACK <= last_bar < end
    cut = []
    for missing, side, day, option, event in (
        (first_bar > begin, "begin", first_day, "first", "listing"),
        (last_bar < end and not closing, "end", last_day, "last", "delisting"),
    ):
        if missing and not partial:
            period = f"{sessions.first} to {sessions.last}"
            raise SourceError(
                f"{vendor}'s bars of {symbol} {side} on {day}, but {period} was requested",
                hint=f"use {option}={day}, or allow_partial=true to use that day as its {event}",
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
    """Return minute bars on their common closing times, and a note on days without minute bars.

    A missing bar is NaN. Raises :class:`SourceError` for times out of order, and for traded days
    without minute bars unless ``allow_partial`` is set.
    """
    if not minutes:
        return None, []
    traded = {column.instrument.symbol: column.days for column in daily}
    every = np.unique(np.concatenate([column.close_time for column in minutes]))
    bars: dict[Field, Floats] = {
        name: np.full((every.size, len(minutes)), np.nan) for name in FIELDS
    }
    missing: list[str] = []
    for index, (symbol, close_time, fields) in enumerate(minutes):
        if (np.diff(close_time) <= 0).any():
            problem = f"{vendor}'s minutes of {symbol} are repeated or out of order"
            raise SourceError(problem, hint="fetch again; if the error remains, drop minutes")
        # A bar that ends at midnight belongs to the day before.
        days = (close_time - 1).astype("datetime64[ns]").astype("datetime64[D]")
        gone = np.setdiff1d(traded[symbol], days)
        if gone.size and not allow_partial:
            problem = f"{vendor} has no minutes of {symbol} on {gone[0]} ({gone.size} days in all)"
            raise SourceError(problem, hint="use other days, no minutes, or allow_partial=true")
        missing += [f"{symbol} {day}" for day in gone]
        for name, values in fields.items():
            bars[name][np.searchsorted(every, close_time), index] = values
    joined = MinutePanel(tuple(column.symbol for column in minutes), every, bars)
    return joined, [f"days without minute bars: {shorten(missing)}"] if missing else []


def one_currency(symbols: Mapping[str, str]) -> str:
    """Return the common currency of symbols. Raises :class:`UserError` for several currencies.

    ``symbols`` maps each currency to one of its symbols.
    """
    if len(symbols) > 1:
        named = ", ".join(f"{symbol} in {currency}" for currency, symbol in sorted(symbols.items()))
        raise UserError(
            f"one panel has one currency, but {named}", hint="fetch them as separate panels"
        )
    return next(iter(symbols))


def shorten(items: Sequence[str]) -> str:
    """Return the first ten items as text, followed by the number of the remaining items."""
    named = ", ".join(items[:10])
    return f"{named} and {len(items) - 10} more" if len(items) > 10 else named


# -- configuration --


class ConnectorConfig(SourceConfig, frozen=True, kw_only=True):
    """The options of all connectors.

    - ``symbols``: the symbols to fetch.
    - ``first``, ``last``: the first and last ISO day, both inclusive. By default ``last`` is the
      last completed session.
    - ``allow_partial``: accept a symbol whose bars do not cover the time from its listing (or
      ``first``) to ``last``. It is then listed from its first to its last bar, and the panel
      has a note on it.
    - ``forgive``: drop invalid bars (on days without a session, or repeated) if they are at most
      one in twenty. The panel has a note on them. By default such bars are refused.
    - ``name``: the name of the panel, by default the source's name.
    """

    first: str
    symbols: tuple[str, ...] = ()
    last: str | None = None
    allow_partial: bool = False
    forgive: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        symbols: object = self.symbols
        if isinstance(symbols, str):
            raise UserError(
                f"expected a tuple of symbols, got '{symbols}'", hint=f"write ('{symbols}',)"
            )
        first = parse_day(self.first)
        if self.last is not None and parse_day(self.last) < first:
            raise UserError(f"last {self.last} is before first {self.first}", hint="swap the two")
        refuse_duplicates(self.symbols)


def refuse_duplicates(symbols: tuple[str, ...]) -> None:
    """Raise :class:`UserError` for symbols that are listed more than once."""
    duplicates = sorted({symbol for symbol in symbols if symbols.count(symbol) > 1})
    if duplicates:
        raise UserError(f"repeated symbols: {', '.join(duplicates)}", hint="give each symbol once")


def need_symbols(config: ConnectorConfig, example: str) -> None:
    """Raise :class:`UserError` if there are no symbols to fetch."""
    if not config.symbols:
        raise UserError("no symbols to fetch", hint=f"name at least one, e.g. {example}")


def changed_format(vendor: str, what: str, detail: str, package: str) -> SourceError:
    """Return the error for an answer in an unexpected format.

    ``package`` is the vendor's library.
    """
    return SourceError(
        f"{vendor} answered {what} in an unexpected format: {detail}",
        hint=f"pip install -U {package}; if that does not help, the connector needs an update",
    )


def empty_answer(vendor: str, symbol: str, first: str, last: str, reason: str = "") -> SourceError:
    """Return the error for a symbol without bars in a period."""
    return SourceError(
        f"{vendor} has no bars of {symbol} from {first} to {last}"
        + (f": {reason}" if reason else ""),
        hint="check the symbol and the days, or drop the symbol",
    )


def sessions_asked(calendar: CalendarName, first: str, last: str | None, clock: Clock) -> Sessions:
    """Return the completed sessions of a period, at least one.

    Raises :class:`UserError` if the period has no completed session, or if ``last`` is not over
    yet. The bar of an unfinished session would be stored as final.
    """
    now = clock.now()
    tomorrow = moment(now).date() + timedelta(days=1)
    end = parse_day(last) if last is not None else max(tomorrow, parse_day(first))
    sessions = sessions_between(calendar, first, end)
    completed = int(np.searchsorted(sessions.close_time, now, side="right"))
    if last is not None and completed < sessions.days.size:
        hint = "request days that are over"
        if completed:
            hint = f"request days up to {sessions.days[completed - 1]}"
        raise UserError(
            f"session {sessions.days[completed]} of {calendar} is not over at {iso(now)}", hint=hint
        )
    if completed == 0:
        period = f"from {first} to {last or 'now'}"
        raise UserError(f"{calendar} has no completed session {period}", hint="request other days")
    return sessions.part(0, completed)


def action_time(sessions: Sessions, ex_date: str) -> Instant | None:
    """Return the instant at which an action is known, or None outside the sessions.

    An ex-date without a session is moved to the next session.
    """
    day = np.datetime64(ex_date, "D")
    if not sessions.days[0] <= day <= sessions.days[-1]:
        return None
    return action_known_at(int(sessions.open_time[np.searchsorted(sessions.days, day)]))
