"""Define the read-only views of agents: instruments, market data as of a clock, and the account.

``data.AsOfView`` implements :class:`MarketView`, and ``masking`` wraps it. Agents depend only on
this protocol, so they cannot access a store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

import msgspec

from tradeassay.core.arrays import Bools, Days, Floats, Ints
from tradeassay_bench.core.time import Instant


class Board(StrEnum):
    """The listing board, which determines the daily price limit on A-share venues."""

    NONE = "none"
    MAIN = "main"
    CHINEXT = "chinext"
    STAR = "star"
    BSE = "bse"


class Instrument(msgspec.Struct, frozen=True, kw_only=True):
    """One instrument.

    ``lot`` is the unit of purchases in shares. ``step`` is the smallest quantity (1 for whole
    shares, 1e-8 for a coin). ``tick`` is the price step, ``multiplier`` the value of one point.
    ``expiry`` (ISO day) is set for futures. ``root`` names the futures chain.
    """

    symbol: str
    name: str = ""
    kind: Literal["stock", "index", "crypto", "future"] = "stock"
    board: Board = Board.NONE
    sector: str | None = None
    currency: str = "USD"
    lot: float = 1.0
    step: float = 1.0
    tick: float = 0.01
    multiplier: float = 1.0
    expiry: str | None = None
    root: str | None = None

    def tracks(self, index: str) -> bool:
        """Return whether this is a fund of ``index``.

        The fund's symbol is the index or the index followed by F, or its root is the index.
        """
        return self.kind == "index" and (self.symbol in (index, f"{index}F") or self.root == index)


class NewsItem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A dated text. ``published_at`` is the earliest instant at which it may be read."""

    id: str
    published_at: int
    symbols: tuple[str, ...]
    title: str
    body: str = ""
    source: str = ""
    url: str = ""


class Fundamental(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One reported figure. ``known_at`` is the earliest instant at which it may be read."""

    symbol: str
    field: str
    period_end: str
    known_at: int
    value: float


class CorporateAction(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A split or a cash dividend.

    ``value`` is the number of new shares per old share for a split (2.0 = two for one), and cash
    per share for a dividend. ``known_at`` is the earliest instant at which the action may be read,
    at the latest the start of the ex-date.
    """

    symbol: str
    kind: Literal["split", "dividend"]
    ex_date: str
    known_at: int
    value: float


Field = Literal["open", "high", "low", "close", "volume", "amount"]
FIELDS: tuple[Field, ...] = ("open", "high", "low", "close", "volume", "amount")
Frequency = Literal["1d", "1m"]
Adjustment = Literal["none", "split", "total"]
"""``none``: prices as traded. ``split``: adjusted for splits. ``total``: adjusted for splits and
dividends, as of the clock.
"""


class MarketView(Protocol):
    """The market data that is known at one instant.

    Columns are the instruments listed so far, in a fixed order. An instrument never changes its
    column, and later listings are appended. All arrays are read-only. A request for data after
    :attr:`clock` raises :class:`~tradeassay_bench.core.errors.FutureDataError`.
    """

    @property
    def clock(self) -> Instant:
        """Return the current instant of this view."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the instruments listed so far in column order. Delisted ones keep their column."""

    def column(self, symbol: str) -> int:
        """Return a symbol's column.

        Raises :class:`~tradeassay.core.errors.DataError` if the symbol is not known at the clock.
        """

    def instrument(self, symbol: str) -> Instrument:
        """Return the facts about one instrument."""

    def sessions(self, lookback: int | None = None) -> Days:
        """Return the dates of the last ``lookback`` completed sessions, oldest first.

        Without ``lookback``, return all completed sessions.
        """

    def bars(
        self, field: Field, lookback: int | None = None, *, adjust: Adjustment = "split"
    ) -> Floats:
        """Return completed daily bars, shape (rows, columns), oldest first.

        A missing bar is NaN. A history shorter than ``lookback`` returns fewer rows.
        """

    def opens(self) -> Floats | None:
        """Return today's opening prices as traded, or None before the session opens."""

    def minutes(self, symbol: str, lookback: int) -> tuple[Ints, dict[Field, Floats]]:
        """Return the closing instants and the fields of a symbol's last completed minute bars."""

    def tradable(self) -> Bools:
        """Return a mask of the columns that are listed and, as far as is known, not suspended."""

    def members(self, index: str) -> tuple[str, ...]:
        """Return an index's members as of the clock, in column order."""

    def index_levels(self, index: str, lookback: int | None = None) -> Floats:
        """Return the completed closing levels of an index, oldest first."""

    def fundamentals(self, symbol: str) -> tuple[Fundamental, ...]:
        """Return the figures known at the clock, oldest first."""

    def news(
        self, since: Instant, *, symbols: Sequence[str] | None = None, limit: int | None = None
    ) -> tuple[NewsItem, ...]:
        """Return the items published after ``since`` and up to the clock, newest first."""

    def actions(self, since: Instant) -> tuple[CorporateAction, ...]:
        """Return the corporate actions that became known after ``since`` and up to the clock."""


@dataclass(frozen=True, slots=True)
class SessionBars:
    """One session for the exchange. Every array has one entry per column.

    ``trading`` is False for a name that is suspended or not listed. ``prev_close`` is the previous
    close *adjusted for today's corporate actions*, the reference of price limits. ``first_row`` is
    the row of a name's first session, or 0 if the name was possibly listed before the data begins.
    ``special`` marks names under special treatment (ST). Both are None if the data has no such
    information.
    """

    session: str
    row: int
    symbols: tuple[str, ...]
    instruments: tuple[Instrument, ...]
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats
    amount: Floats
    prev_close: Floats
    trading: Bools
    first_row: Ints | None = None
    special: Bools | None = None

    def age(self, column: int) -> int:
        """Return the number of sessions since a name's first session, or -1 if that is unknown."""
        first = 0 if self.first_row is None else int(self.first_row[column])
        return self.row - first if first > 0 else -1

    def is_special(self, column: int) -> bool:
        return self.special is not None and bool(self.special[column])


class Position(msgspec.Struct, frozen=True, gc=False):
    """A holding.

    ``sellable`` is less than ``quantity`` while T+1 locks a part of it. ``cost`` is the average
    price paid, ``mark`` the last marking price, ``held`` the number of sessions since the position
    was opened.
    """

    symbol: str
    quantity: float
    sellable: float
    cost: float
    mark: float
    held: int
    multiplier: float = 1.0

    @property
    def value(self) -> float:
        return self.quantity * self.mark * self.multiplier


class AccountState(msgspec.Struct, frozen=True):
    """An agent's own account as the agent sees it.

    ``positions`` has the order in which the positions were opened.
    """

    cash: float
    nav: float
    initial: float
    positions: Mapping[str, Position]

    def weight(self, symbol: str) -> float:
        """Return a position's value as a fraction of NAV, or 0 if the symbol is not held."""
        position = self.positions.get(symbol)
        return 0.0 if position is None or self.nav == 0 else position.value / self.nav
