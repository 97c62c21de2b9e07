"""A panel: everything a source knows about a market, in memory, before it is written to the store.

A panel knows the future. It exists inside ``data`` only; the rest of the house reads as-of views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from tradeassay.core.time import Instant
from tradeassay.core.view import (
    Adjustment,
    Bools,
    CorporateAction,
    Days,
    Field,
    Floats,
    Fundamental,
    Instrument,
    Ints,
    NewsItem,
)

CalendarName = Literal["XNYS", "XSHG", "24/7"]


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """An instrument and the ISO days on which it may trade, both ends included.

    ``delisted`` is the last session on which it trades, None while it is listed.
    """

    instrument: Instrument
    listed: str
    delisted: str | None = None


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """An index membership, from the start of ISO day ``start`` to the end of ``end`` (None = until now)."""

    index: str
    symbol: str
    start: str
    end: str | None = None


class PanelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader must know about a panel. ``adjusted`` says what the vendor already did to the prices.

    ``biases`` are plain sentences that become badges ("29 survivors picked with hindsight").
    ``query`` and ``retrieved_at`` (ISO, None for generated data) make it possible to fetch it again.
    ``minutes_per_bar`` is the length of the intraday bars, where there are any.
    """

    kind: Literal["real", "synthetic"]
    source: str
    query: str
    currency: str
    calendar: CalendarName
    adjusted: Adjustment = "none"
    biases: tuple[str, ...] = ()
    licence: str = ""
    retrieved_at: str | None = None
    minutes_per_bar: int = 1

    @property
    def live_actions(self) -> tuple[Literal["split", "dividend"], ...]:
        """The kinds that the prices do not contain yet: applying a split that a vendor has applied would count it
        twice.
        """
        if self.adjusted == "none":
            return ("split", "dividend")
        return ("dividend",) if self.adjusted == "split" else ()


@dataclass(frozen=True, slots=True)
class MinutePanel:
    """Minute bars: ``close_time`` of shape (rows,), each field of shape (rows, symbols)."""

    symbols: tuple[str, ...]
    close_time: Ints
    bars: Mapping[Field, Floats]


@dataclass(frozen=True, slots=True)
class Panel:
    """A whole market.

    Columns are sorted by (listed, symbol): the instruments listed by any day are then a prefix of the
    columns, and a view that hides later listings is a slice. ``bars`` holds all six fields with shape
    (sessions, columns), NaN where a name has no bar. ``open_time``/``close_time`` are the instants at
    which a session's open and its other fields become known. ``indices`` holds closing levels.
    """

    name: str
    facts: PanelFacts
    listings: tuple[Listing, ...]
    sessions: Days
    open_time: Ints
    close_time: Ints
    bars: Mapping[Field, Floats]
    suspended: Bools
    minutes: MinutePanel | None = None
    actions: tuple[CorporateAction, ...] = ()
    memberships: tuple[Membership, ...] = ()
    indices: Mapping[str, Floats] = field(default_factory=dict)
    fundamentals: tuple[Fundamental, ...] = ()
    news: tuple[NewsItem, ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(listing.instrument.symbol for listing in self.listings)


def action_known_at(session_open: Instant) -> Instant:
    """Return the latest time at which a corporate action of a session is known: one hour before its open."""
    return session_open - 3_600_000_000_000
