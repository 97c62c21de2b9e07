"""The interface of a data source, and the panel it answers with: everything it knows, before it is stored.

A source is a class with a frozen ``Config`` (how it is asked) and ``load``, registered with
``@sources.register("name")`` or an entry point in the group ``tradeassay.sources``. A panel knows the future: it
exists inside ``data`` only, and the rest of the house reads as-of views.

Adjustment factors look backwards only: ``F[s]`` is the product of everything up to session ``s``, so a price of
``s`` seen from ``now`` is ``price[s] * F[s] / F[now]``, and nothing after ``now`` enters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import msgspec
import numpy as np

from tradeassay.core.registry import Registry
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
    """An instrument and the ISO days on which it may trade, both ends included. ``delisted`` is the last session
    on which it trades, None while it is listed."""

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
    ``biases`` are plain sentences that become badges ("29 survivors picked with hindsight"). ``query`` and
    ``retrieved_at`` (ISO, None for generated data) make it possible to fetch it again. ``minutes_per_bar`` is the
    length of the intraday bars, where there are any."""

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
        twice."""
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
    """A whole market. Columns are sorted by (listed, symbol): the instruments listed by any day are then a prefix
    of the columns, and a view that hides later listings is a slice. ``bars`` holds all six fields with shape
    (sessions, columns), NaN where a name has no bar. ``open_time``/``close_time`` are the instants at which a
    session's open and its other fields become known. ``indices`` holds closing levels."""

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


class SourceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every source's configuration."""


class Source(Protocol):
    """Where a panel comes from."""

    Config: ClassVar[type[SourceConfig]]
    summary: ClassVar[str]
    """One line for ``tradeassay data list``."""
    extra: ClassVar[str | None]
    """The extra that must be installed, or None."""

    def __init__(self, config: Any) -> None: ...

    def load(self) -> Panel:
        """Fetch or generate the panel; raises :class:`~tradeassay.core.errors.SourceError` when it cannot."""
        ...


def _wrong(_name: str, item: object) -> str | None:
    """Return what a class lacks that is to be a source, or None."""
    missing = [one for one in ("Config", "summary", "extra", "load") if not hasattr(item, one)]
    return f"it has no {' and no '.join(missing)}" if missing else None


sources: Registry[type[Source]] = Registry("source", _wrong)


def ex_rows(actions: Sequence[CorporateAction], sessions: Days) -> Ints:
    """Return the first row on or after each action's ex-date; -1 for one before the first session, whose effect is
    in every price."""
    days = np.array([action.ex_date for action in actions], dtype="datetime64[D]")
    rows = np.searchsorted(sessions, days, side="left").astype(np.int64)
    if sessions.size:
        rows[days < sessions[0]] = -1
    return rows


def factors(panel: Panel) -> tuple[Floats | None, Floats | None]:
    """Return cumulative factors, shape (sessions, columns), without what the vendor has applied: of splits, which
    count shares, and in total, with dividends reinvested at the last close before the ex-date; None where nothing
    of the kind ever happens. A dividend on a split's ex-date is per share held *before* it; one that is not
    smaller than the last close leaves the factor at 1."""
    live = panel.facts.live_actions
    rows = ex_rows(panel.actions, panel.sessions)
    shape = panel.bars["close"].shape
    column = {symbol: index for index, symbol in enumerate(panel.symbols)}
    by_column: dict[int, list[tuple[int, int, CorporateAction]]] = {}
    for row, action in zip(rows.tolist(), panel.actions, strict=True):
        if action.kind in live and 0 <= row < shape[0]:
            order = 0 if action.kind == "dividend" else 1
            by_column.setdefault(column[action.symbol], []).append((row, order, action))
    if not by_column:
        return None, None
    kinds = {action.kind for entries in by_column.values() for _, _, action in entries}
    split = np.ones(shape) if "split" in kinds else None
    total = np.ones(shape)
    for index, entries in by_column.items():
        entries.sort(key=lambda entry: (entry[0], entry[1], entry[2].value))
        close = panel.bars["close"][:, index]
        quoted = np.flatnonzero(np.isfinite(close))
        shares, value = 1.0, 1.0
        for row, _, action in entries:
            before = int(np.searchsorted(quoted, row)) - 1
            if action.kind == "split":
                shares *= action.value
                value *= action.value
            elif before >= 0:
                last = int(quoted[before])
                price = float(close[last]) * (float(total[last, index]) / value)
                if price > action.value:
                    value *= price / (price - action.value)
            if split is not None:
                split[row:, index] = shares
            total[row:, index] = value
    return split, total


def previous_close(close: Floats, total: Floats | None) -> Floats:
    """Return the last close before each session in that session's terms (splits and dividends taken out)."""
    rows = np.arange(close.shape[0])[:, None]
    last = np.maximum.accumulate(np.where(np.isfinite(close), rows, -1), axis=0)
    result = np.full_like(close, np.nan)
    if close.shape[0] < 2:
        return result
    source = np.maximum(last[:-1], 0)
    prices = np.take_along_axis(close, source, axis=0)
    if total is not None:
        prices = prices * (np.take_along_axis(total, source, axis=0) / total[1:])
    result[1:] = np.where(last[:-1] >= 0, prices, np.nan)
    return result
