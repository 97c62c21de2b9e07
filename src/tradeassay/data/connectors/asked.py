"""What every connector is asked (which symbols, for which completed sessions), and how it words its errors."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from tradeassay.core.errors import SourceError, UserError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.time import SECOND, Clock, Instant, iso, moment, parse_day
from tradeassay.data.calendars import Sessions, sessions_between
from tradeassay.data.panel import CalendarName, action_known_at
from tradeassay.data.source import SourceConfig


class ConnectorConfig(SourceConfig, frozen=True, kw_only=True):
    """Symbols and the days wanted, both ends included; ``last`` None means the last session that is over.

    A symbol whose bars do not reach from its listing (or ``first``) to ``last`` is refused unless
    ``allow_partial`` is set; then it counts as listed and delisted where its bars begin and end, and the panel
    says so. ``forgive`` leaves out what cannot be a bar (on a day without a session, the same one twice), one in
    twenty at the most, and says so; otherwise it is refused. ``name`` is the panel's name; empty means the
    source's.
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
            raise UserError(f"symbols is the text '{symbols}'", hint=f"write ('{symbols}',)")
        first = parse_day(self.first)
        if self.last is not None and parse_day(self.last) < first:
            raise UserError(f"last {self.last} lies before first {self.first}", hint="swap them")
        refuse_doubles(self.symbols)


def refuse_doubles(symbols: tuple[str, ...]) -> None:
    """Raise :class:`UserError` when a symbol is named twice."""
    twice = sorted({symbol for symbol in symbols if symbols.count(symbol) > 1})
    if twice:
        raise UserError(f"asked twice for {', '.join(twice)}", hint="name each symbol once")


def need_symbols(config: ConnectorConfig, example: str) -> None:
    """Raise :class:`UserError` when no symbol was named."""
    if not config.symbols:
        raise UserError("no symbols to fetch", hint=f"name at least one, e.g. {example}")


def query_text(config: ConnectorConfig) -> str:
    """Return the request as canonical JSON, so that it can be repeated."""
    return canonical_json(config).decode()


def retrieved(clock: Clock) -> str:
    """Return the time of retrieval, to the second."""
    return iso(clock.now() // SECOND * SECOND)


def changed_format(vendor: str, what: str, detail: str, package: str) -> SourceError:
    """Return the error for an answer that is not in the shape its connector knows."""
    return SourceError(
        f"{vendor} answered {what} in another format than expected: {detail}",
        hint=f"pip install -U {package}; if that does not help, the connector needs an update",
    )


def empty_answer(vendor: str, symbol: str, first: str, last: str, reason: str = "") -> SourceError:
    """Return the error for a symbol about which a vendor sent nothing."""
    return SourceError(
        f"{vendor} has no bars of {symbol} from {first} to {last}" + (f": {reason}" if reason else ""),
        hint="check the symbol and the days, or leave it out",
    )


def sessions_asked(calendar: CalendarName, first: str, last: str | None, clock: Clock) -> Sessions:
    """Return the sessions from ``first`` to ``last`` (None = the last one that is over by now), never empty.

    Raises :class:`UserError` when there are none, or when ``last`` is not over yet: a bar that still moves
    would be stored as final.
    """
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
        raise UserError(
            f"{calendar} has no finished session from {first} to {last or 'now'}", hint="ask for other days"
        )
    return Sessions(
        calendar, found.days[:over], found.open_time[:over], found.close_time[:over], found.early[:over]
    )


def first_day(sessions: Sessions) -> str:
    """Return the first session's ISO day."""
    return str(sessions.days[0])


def last_day(sessions: Sessions) -> str:
    """Return the last session's ISO day."""
    return str(sessions.days[-1])


def action_time(sessions: Sessions, ex_date: str) -> Instant | None:
    """Return the latest time at which an action of ``ex_date`` is known; None when it is outside the sessions.

    An ex-date without a session takes effect at the next one.
    """
    day = np.datetime64(ex_date, "D")
    if not sessions.days[0] <= day <= sessions.days[-1]:
        return None
    row = int(np.searchsorted(sessions.days, day))
    return action_known_at(int(sessions.open_time[row]))
