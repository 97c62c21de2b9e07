"""What can be seen: what can be traded, the read-only contract of an as-of view (what can be known now), one
session's bars, and an agent's own account.

``data.AsOfView`` implements :class:`MarketView`; ``masking`` wraps one. Agents depend on this protocol
only, so they cannot reach a store.
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
    """The listing board; it decides the daily price limit on A-share venues."""

    NONE = "none"
    MAIN = "main"
    CHINEXT = "chinext"
    STAR = "star"
    BSE = "bse"


class Instrument(msgspec.Struct, frozen=True, kw_only=True):
    """One instrument. ``lot`` is the buying unit in shares, ``step`` the smallest quantity that exists (1 for
    whole shares, 1e-8 for a coin), ``tick`` the price step, ``multiplier`` the value of one point. ``expiry`` (ISO
    day) is set for futures, ``root`` names the futures chain."""

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
        """Return whether this is a fund of ``index``: by its name, its name with an F, or its root."""
        return self.kind == "index" and (self.symbol in (index, f"{index}F") or self.root == index)


class NewsItem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A dated text. ``published_at`` is the instant from which it may be read."""

    id: str
    published_at: int
    symbols: tuple[str, ...]
    title: str
    body: str = ""
    source: str = ""
    url: str = ""


class Fundamental(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One reported figure. ``known_at`` is the instant from which it may be read."""

    symbol: str
    field: str
    period_end: str
    known_at: int
    value: float


class CorporateAction(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A split or a cash dividend. ``value`` is new shares per old share for a split (2.0 = two for one) and cash
    per share for a dividend. ``known_at`` is the instant from which it may be read: at the latest the start of the
    ex-date."""

    symbol: str
    kind: Literal["split", "dividend"]
    ex_date: str
    known_at: int
    value: float


Field = Literal["open", "high", "low", "close", "volume", "amount"]
FIELDS: tuple[Field, ...] = ("open", "high", "low", "close", "volume", "amount")
Frequency = Literal["1d", "1m"]
Adjustment = Literal["none", "split", "total"]
"""``none`` = as traded; ``split`` = splits undone; ``total`` = splits and dividends, as of the clock."""


class MarketView(Protocol):
    """Everything readable at one instant, and nothing later. Columns are the instruments listed by now, in a fixed
    order: an instrument never changes its column, later listings are appended. All arrays are read-only. Anything
    dated after :attr:`clock` raises :class:`~tradeassay_bench.core.errors.FutureDataError`."""

    @property
    def clock(self) -> Instant:
        """The present of this view."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Instruments listed so far (delisted ones keep their column), in column order."""

    def column(self, symbol: str) -> int:
        """Return a symbol's column; raises :class:`~tradeassay.core.errors.DataError` if unknown by now."""

    def instrument(self, symbol: str) -> Instrument:
        """Return the facts about one instrument."""

    def sessions(self, lookback: int | None = None) -> Days:
        """Return the dates of the completed sessions, oldest first (the last ``lookback`` of them)."""

    def bars(
        self, field: Field, lookback: int | None = None, *, adjust: Adjustment = "split"
    ) -> Floats:
        """Return completed daily bars, shape (rows, columns), oldest first; NaN where a bar is missing. Fewer than
        ``lookback`` rows come back when history is shorter."""

    def opens(self) -> Floats | None:
        """Return today's opening prices as traded when the session has opened by now, else None."""

    def minutes(self, symbol: str, lookback: int) -> tuple[Ints, dict[Field, Floats]]:
        """Return the last completed minute bars of one symbol: their closing instants and fields."""

    def tradable(self) -> Bools:
        """Return which columns are listed and were not suspended in the last known state."""

    def members(self, index: str) -> tuple[str, ...]:
        """Return an index's members as of now, in column order."""

    def index_levels(self, index: str, lookback: int | None = None) -> Floats:
        """Return the completed closing levels of an index, oldest first."""

    def fundamentals(self, symbol: str) -> tuple[Fundamental, ...]:
        """Return the figures known by now, oldest first."""

    def news(
        self, since: Instant, *, symbols: Sequence[str] | None = None, limit: int | None = None
    ) -> tuple[NewsItem, ...]:
        """Return items published in (since, clock], newest first."""

    def actions(self, since: Instant) -> tuple[CorporateAction, ...]:
        """Return corporate actions that became known in (since, clock]."""


@dataclass(frozen=True, slots=True)
class SessionBars:
    """One session as an exchange needs it; every array has one entry per column.

    ``trading`` is False where a name is suspended or not listed. ``prev_close`` is the previous close
    *adjusted for today's corporate actions*, which is what price limits refer to. ``first_row`` is the row of a
    name's first session, 0 where it may have been listed before the data begins; ``special`` marks names under
    special treatment (ST). Both are None where nothing is known about any name.
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
        """Return the number of sessions since a name's first one, -1 where that is not known."""
        first = 0 if self.first_row is None else int(self.first_row[column])
        return self.row - first if first > 0 else -1

    def is_special(self, column: int) -> bool:
        return self.special is not None and bool(self.special[column])


class Position(msgspec.Struct, frozen=True, gc=False):
    """A holding. ``sellable`` is less than ``quantity`` while T+1 locks part of it. ``cost`` is the average price
    paid, ``mark`` the last marking price, ``held`` the number of sessions since it was opened."""

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
    """What an agent is told about its own account. ``positions`` are in the order they were opened."""

    cash: float
    nav: float
    initial: float
    positions: Mapping[str, Position]

    def weight(self, symbol: str) -> float:
        position = self.positions.get(symbol)
        return 0.0 if position is None or self.nav == 0 else position.value / self.nav
