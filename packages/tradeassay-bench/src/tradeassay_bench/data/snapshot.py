"""Open a stored market. Its metadata is public. Its numbers are read through as-of views only."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, SupportsIndex

import numpy as np

from tradeassay.core.arguments import instance_of, whole_number
from tradeassay.core.arrays import Bools, Days, Floats, Ints
from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.core.errors import FutureDataError
from tradeassay_bench.core.time import Instant, iso, parse_day
from tradeassay_bench.core.view import (
    FIELDS,
    Adjustment,
    CorporateAction,
    Field,
    Fundamental,
    Instrument,
    NewsItem,
    SessionBars,
)
from tradeassay_bench.data.source import CalendarName, action_known_at
from tradeassay_bench.data.store.manifest import Manifest, read_manifest
from tradeassay_bench.data.store.read import History, check_files, main_index, verify_snapshot


class Snapshot:
    """An opened snapshot of a market.

    A snapshot can be pickled. The other process then opens the same folder.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self.name, self.sha256, self.facts = manifest.name, manifest.sha256, manifest.facts
        self.calendar: CalendarName = manifest.facts.calendar
        self._history = History(folder, manifest)
        opens, closes = self._history.open_times, self._history.close_times
        # On a 24/7 market a session opens at the instant at which the previous one closes. Its
        # pre-open is then the same instant.
        before = [max(at - 1, closes[row - 1]) if row else at - 1 for row, at in enumerate(opens)]
        self._clocks: dict[str, list[int]] = {"pre_open": before, "open": opens, "close": closes}

    def __repr__(self) -> str:
        return (
            f"<Snapshot '{self.name}' {self.manifest.first_session}..{self.manifest.last_session}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return open_snapshot, (self.folder,)

    @property
    def sessions(self) -> Days:
        return self._history.sessions

    def news_begin(self, share: float) -> int:
        """Return the first row before whose open a given fraction of all news was published.

        Return 0 for a snapshot without news.
        """
        news = self._history.news
        if not len(news):
            return 0
        return bisect_left(self._history.open_times, share * len(news), key=news.up_to)

    def rows(self, first: str | None = None, last: str | None = None) -> range:
        """Return the rows of the sessions from ISO day ``first`` to ``last``, both inclusive.

        Raises :class:`UserError` if there is no session in that period.
        """
        days = self._history.sessions
        start, stop = 0, days.size
        if first is not None:
            start = int(np.searchsorted(days, np.datetime64(parse_day(first), "D")))
        if last is not None:
            stop = int(np.searchsorted(days, np.datetime64(parse_day(last), "D"), "right"))
        if start >= stop:
            raise UserError(
                f"'{self.name}' has no session from {first or 'its start'} to {last or 'its end'}",
                hint=f"it has sessions from {self.manifest.first_session} to "
                f"{self.manifest.last_session}",
            )
        return range(start, stop)

    def at(self, row: int, phase: SessionPhase) -> AsOfView:
        """Return the view at a phase of a session.

        Raises :class:`DataError` for an unknown row, and :class:`UserError` for an unknown phase.
        """
        try:
            clocks = self._clocks[phase]
        except KeyError:
            raise UserError(
                f"unknown phase '{phase}'", hint="use pre_open, open or close"
            ) from None
        try:
            exists = 0 <= row < len(clocks)
        except TypeError:
            raise UserError(
                f"{row!r} is not a row", hint="use rows('2025-03-03')[0] for the row of a day"
            ) from None
        if not exists:
            raise DataError(
                f"'{self.name}' has no session in row {row}",
                hint=f"use rows 0 to {len(clocks) - 1}",
            )
        return AsOfView(self._history, row, phase, clocks[row])

    def as_of(self, clock: Instant) -> AsOfView:
        """Return the view at an instant."""
        row, phase = locate(self._history, clock)
        return AsOfView(self._history, row, phase, clock)


def open_snapshot(folder: Path) -> Snapshot:
    """Return the snapshot in ``folder``.

    The hash of a file is checked before the file is decoded. News, fundamentals and minutes are
    decoded on first use. Raises :class:`DataError` that names a missing or altered file.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    if not manifest.own_sha256:
        verify_snapshot(folder, again=False)
    try:
        return Snapshot(folder, manifest)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise DataError(f"the content of {folder} does not match its manifest: {error}") from error


SessionPhase = Literal["pre_open", "open", "close"]
"""A phase of the current session. Its corporate actions are known at ``pre_open``, its opening
prices at ``open``, and its complete bar at ``close``.
"""

_NO_COLUMNS: Bools = np.zeros(0, dtype=np.bool_)
_NO_COLUMNS.setflags(write=False)


class AsOfView:
    """A market as it was known at one instant.

    Implements :class:`~tradeassay_bench.core.view.MarketView`, and adds the current session for the
    exchange. Create a view with ``Snapshot.at`` or ``Snapshot.as_of``. Every array is read-only.
    """

    __slots__ = ("_clock", "_completed", "_history", "_phase", "_row", "_visible")

    def __init__(self, history: History, row: int, phase: SessionPhase, clock: Instant) -> None:
        self._history = history
        self._row = row
        self._phase = phase
        self._clock = clock
        self._completed = row + 1 if phase == "close" else row
        self._visible = history.visible[row] if row >= 0 else 0

    def __repr__(self) -> str:
        return (
            f"<AsOfView {iso(self._clock)} row={self._row} phase={self._phase} "
            f"columns={self._visible}>"
        )

    # -- the current session and clock --

    @property
    def clock(self) -> Instant:
        return self._clock

    @property
    def row(self) -> int:
        return self._row

    @property
    def phase(self) -> SessionPhase:
        return self._phase

    @property
    def session(self) -> str:
        """Return the ISO day of the current session.

        Raises :class:`DataError` before the first session.
        """
        if self._row < 0:
            raise DataError(f"at {iso(self._clock)} no session has begun")
        return str(self._history.sessions[self._row])

    # -- instruments --

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the instruments listed so far in column order. Delisted ones keep their column."""
        return self._history.symbols(self._visible)

    @property
    def instruments(self) -> tuple[Instrument, ...]:
        return self._history.instruments(self._visible)

    def column(self, symbol: str) -> int:
        """Return a symbol's column. Raises :class:`DataError` if it is not listed yet."""
        column = self._history.column_of.get(symbol, self._visible)
        if column >= self._visible:
            raise DataError(f"no instrument '{symbol}' is listed by {iso(self._clock)}")
        return column

    def instrument(self, symbol: str) -> Instrument:
        """Return an instrument's facts. Raises :class:`DataError` if it is not listed yet."""
        return self._history.every_instrument[self.column(symbol)]

    def tradable(self) -> Bools:
        """Return a mask of the columns that are listed and not suspended.

        Before the open, the mask uses the suspensions of the previous session. Later it uses
        today's suspensions.
        """
        history, row, visible = self._history, self._row, self._visible
        if row < 0:
            return _NO_COLUMNS
        if self._phase == "close":
            return history.trading[row, :visible]
        listed = history.last_rows[:visible] >= row
        if self._phase == "open":
            # An instrument that was halted later in the session could be traded at the open.
            halted = history.suspended[row, :visible] & np.isnan(
                history.fields["open"][row, :visible]
            )
        elif row == 0:
            halted = np.zeros(visible, dtype=np.bool_)
        else:
            halted = history.suspended[row - 1, :visible] & (history.listed_rows[:visible] < row)
        result: Bools = listed & ~halted
        result.setflags(write=False)
        return result

    def delisted_now(self) -> tuple[str, ...]:
        """Return the symbols whose last session was before the current one, in column order."""
        return self._history.gone_by(self._row)

    # -- bars --

    def sessions(self, lookback: int | None = None) -> Days:
        """Return the days of the last ``lookback`` completed sessions (None: all), oldest first."""
        return self._history.sessions[self._start(lookback) : self._completed]

    def bars(
        self, field: Field, lookback: int | None = None, *, adjust: Adjustment = "split"
    ) -> Floats:
        """Return one field of the completed daily bars, shape (sessions, columns), oldest first.

        A missing bar is NaN. Values are adjusted to the current session. A split changes volumes
        inversely to prices. ``amount`` is never adjusted.
        """
        if field not in FIELDS:
            raise UserError(f"unknown field '{field}'", hint=f"one of {', '.join(FIELDS)}")
        values = self._history.fields[field]
        start = self._start(lookback)
        window = values[start : self._completed, : self._visible]
        if adjust == "none":
            return window
        return self._history.adjusted(window, field, adjust, start, self._row)

    def opens(self) -> Floats | None:
        """Return today's opening prices by column, or None before the open."""
        if self._phase == "pre_open" or self._row < 0:
            return None
        return self._history.fields["open"][self._row, : self._visible]

    def minutes(self, symbol: str, lookback: int) -> tuple[Ints, dict[Field, Floats]]:
        """Return the last completed intraday bars of a symbol as closing instants and fields.

        Prices are not adjusted. Raises :class:`DataError` if the symbol has no intraday bars.
        """
        lookback = whole_number("lookback", lookback)
        self.column(symbol)
        bars = self._history.minute_bars(symbol)
        if bars is None:
            raise DataError(f"no minute bars of '{symbol}'", hint="use bars() for daily bars")
        times, columns = bars
        stop = int(np.searchsorted(times, self._clock, side="right"))
        start = max(0, stop - lookback)
        return times[start:stop], {name: values[start:stop] for name, values in columns.items()}

    def session_bars(self) -> SessionBars:
        """Return the current session's bars. Raises :class:`FutureDataError` before its close."""
        history, row, visible = self._history, self._row, self._visible
        if self._phase != "close" or row < 0:
            problem = f"the session's bars are not known at {iso(self._clock)}"
            raise FutureDataError(problem, hint="use a view after the session's close")
        bars: dict[str, Any] = {
            name: values[row, :visible] for name, values in history.fields.items()
        }
        return SessionBars(
            session=str(history.sessions[row]),
            row=row,
            symbols=history.symbols(visible),
            instruments=history.instruments(visible),
            prev_close=history.prev_close[row, :visible],
            trading=history.trading[row, :visible],
            first_row=history.listed_rows[:visible],
            special=history.special_at(row, visible),
            **bars,
        )

    # -- indices --

    def members(self, index: str) -> tuple[str, ...]:
        """Return an index's members in the current session, in column order.

        Raises :class:`DataError` for an unknown index.
        """
        return self._history.members_at(index, self._row)

    def index_levels(self, index: str, lookback: int | None = None) -> Floats:
        """Return the closing levels of an index in completed sessions, oldest first.

        Raises :class:`DataError` for an unknown index.
        """
        history = self._history
        levels = history.levels.get(main_index(index, history.levels))
        if levels is None:
            raise history.no_index(index, self._row)
        return levels[self._start(lookback) : self._completed]

    def index_name(self, index: str) -> str:
        """Return the name of an index in this dataset."""
        return self._history.name_of(index)

    # -- records --

    def fundamentals(self, symbol: str) -> tuple[Fundamental, ...]:
        """Return a symbol's published fundamentals, oldest first.

        Raises :class:`DataError` for an unknown symbol.
        """
        self.column(symbol)
        table = self._history.fundamentals
        return self._history.known_figures(
            symbol, table.count_of_symbol(symbol, table.up_to(self._clock))
        )

    def news(
        self, since: Instant, *, symbols: Sequence[str] | None = None, limit: int | None = None
    ) -> tuple[NewsItem, ...]:
        """Return the news published after ``since`` and up to the clock, newest first.

        ``symbols`` selects items about at least one of the symbols. ``limit`` is the maximum number
        of items. Raises :class:`FutureDataError` if ``since`` is after the clock.
        """
        self._not_later(since)
        table = self._history.news
        published = range(table.up_to(since), table.up_to(self._clock))
        rows: Sequence[int] = published
        if symbols is not None:
            matching: set[int] = set()  # an item about several of the symbols is returned once
            for symbol in symbols:
                matching.update(table.of_symbol(symbol, published))
            rows = sorted(matching)
        newest = rows[::-1] if limit is None else rows[::-1][: whole_number("limit", limit)]
        return tuple(table.record(row) for row in newest)

    def actions(self, since: Instant) -> tuple[CorporateAction, ...]:
        """Return the corporate actions announced after ``since`` and up to the clock, oldest first.

        The result includes actions that the prices already contain. Use :meth:`todays_actions` to
        apply actions to an account.
        """
        self._not_later(since)
        times = self._history.action_times
        start, stop = bisect_right(times, since), bisect_right(times, self._clock)
        return self._history.actions[start:stop]

    def todays_actions(self) -> tuple[CorporateAction, ...]:
        """Return the corporate actions of the current session that the prices do not contain.

        A dividend comes before a split, because it is per share held before the split.
        """
        return self._history.actions_of(self._row)

    # -- checks on arguments --

    def _start(self, lookback: int | None) -> int:
        """Return the first row of the last ``lookback`` completed sessions."""
        if lookback is None:
            return 0
        return max(0, self._completed - whole_number("lookback", lookback))

    def _not_later(self, at: Instant) -> None:
        """Raise :class:`FutureDataError` for an instant after the view's clock."""
        instance_of(
            "since",
            at,
            SupportsIndex,
            "use an instant, e.g. from parse_iso() of tradeassay_bench.core.time",
        )
        if at > self._clock:
            problem = f"{iso(at)} is after the view's clock {iso(self._clock)}"
            raise FutureDataError(problem, hint="use an instant up to the clock")


def locate(history: History, clock: Instant) -> tuple[int, SessionPhase]:
    """Return the row and the phase of the session that is current at an instant.

    The next session becomes current one hour before its open, in the phase ``pre_open``. Before the
    first session the row is -1.
    """
    row = bisect_right(history.open_times, clock) - 1
    closed = history.close_times[row] if row >= 0 else -(1 << 62)
    if clock < closed:
        return row, "open"
    if row + 1 < len(history.open_times):
        if clock >= max(action_known_at(history.open_times[row + 1]), closed + 1):
            return row + 1, "pre_open"
    return row, "close"
