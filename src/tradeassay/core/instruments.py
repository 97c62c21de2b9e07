"""What can be traded: a stock, a coin or a futures contract, with the facts the rules ask about."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec


class Board(StrEnum):
    """The listing board; it decides the daily price limit on A-share venues."""

    NONE = "none"
    MAIN = "main"
    CHINEXT = "chinext"
    STAR = "star"
    BSE = "bse"


class Instrument(msgspec.Struct, frozen=True, kw_only=True):
    """One instrument.

    ``lot`` is the buying unit in shares, ``step`` the smallest quantity that exists (1 for whole
    shares, 1e-8 for a coin), ``tick`` the price step, ``multiplier`` the value of one point.
    ``expiry`` (ISO day) is set for futures, ``root`` names the futures chain.
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
    """A split or a cash dividend.

    ``value`` is new shares per old share for a split (2.0 = two for one) and cash per share for a
    dividend. ``known_at`` is the instant from which it may be read: at the latest the start of the ex-date.
    """

    symbol: str
    kind: Literal["split", "dividend"]
    ex_date: str
    known_at: int
    value: float
