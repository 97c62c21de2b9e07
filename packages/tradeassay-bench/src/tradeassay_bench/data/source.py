"""Define the interface of a data source, and the panel of market data that a source returns.

A source is a class with a frozen ``Config`` and a ``load`` method. Register it with
``@sources.register("name")`` or with an entry point in the group ``tradeassay.sources``.

A panel contains the future, so it is used only inside ``data``. All other packages read as-of
views.

Adjustment factors look backwards only. ``F[s]`` is the product of all factors up to session ``s``.
The price of session ``s`` as seen from session ``now`` is ``price[s] * F[s] / F[now]``. No action
after ``now`` affects that price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Days, Floats, Ints
from tradeassay.core.registry import Registry
from tradeassay_bench.core.time import Instant
from tradeassay_bench.core.view import (
    Adjustment,
    CorporateAction,
    Field,
    Fundamental,
    Instrument,
    NewsItem,
)

CalendarName = Literal["XNYS", "XSHG", "24/7"]


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """An instrument and its first and last trading day.

    ``listed`` and ``delisted`` are ISO days, both inclusive. ``delisted`` is None for an instrument
    that is still listed.
    """

    instrument: Instrument
    listed: str
    delisted: str | None = None


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A period in which a symbol is a member of an index.

    ``start`` and ``end`` are ISO days, both inclusive. ``end`` is None for a current member.
    """

    index: str
    symbol: str
    start: str
    end: str | None = None


class PanelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a panel.

    ``adjusted`` names the adjustments that the vendor has already applied to the prices. ``biases``
    are sentences that reports display as badges, for example "29 survivors picked with hindsight".
    ``query`` and ``retrieved_at`` document the request for the data. ``retrieved_at`` is an ISO
    time, and None for generated data. ``minutes_per_bar`` is the length of intraday bars, if there
    are any.
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
        """Return the kinds of corporate action that the prices do not contain yet.

        An action that the vendor has already applied must not be applied again.
        """
        if self.adjusted == "none":
            return ("split", "dividend")
        if self.adjusted == "split":
            return ("dividend",)
        return ()


@dataclass(frozen=True, slots=True)
class MinutePanel:
    """Intraday bars. ``close_time`` has shape (rows,), each field has shape (rows, symbols)."""

    symbols: tuple[str, ...]
    close_time: Ints
    bars: Mapping[Field, Floats]


@dataclass(frozen=True, slots=True)
class Panel:
    """The complete data of one market, including the future.

    Columns are sorted by (listed, symbol). The instruments listed by a given day are therefore a
    prefix of the columns, and a view hides later listings with a slice.

    ``bars`` contains all six fields with shape (sessions, columns), with NaN for a missing bar. A
    session's open becomes known at ``open_time``, and its other fields at ``close_time``.
    ``indices`` contains closing levels.
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
    """Return the latest instant at which a session's actions become known: one hour before its
    open.
    """
    return session_open - 3_600_000_000_000


class SourceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of a source's configuration."""


class Source(Protocol):
    """A supplier of panels, such as a vendor, a folder of files or a generator."""

    Config: ClassVar[type[SourceConfig]]
    summary: ClassVar[str]
    """A one-line description for ``tradeassay data list``."""
    extra: ClassVar[str | None]
    """The package extra that must be installed, or None."""

    def __init__(self, config: Any) -> None: ...

    def load(self) -> Panel:
        """Return the fetched or generated panel.

        Raises :class:`~tradeassay_bench.core.errors.SourceError` if the panel cannot be obtained.
        """
        ...


def _missing_attributes(_name: str, source: object) -> str | None:
    """Return a sentence that lists the missing attributes of a source class, or None."""
    required = ("Config", "summary", "extra", "load")
    missing = [attribute for attribute in required if not hasattr(source, attribute)]
    return f"it has no {' and no '.join(missing)}" if missing else None


sources: Registry[type[Source]] = Registry("source", _missing_attributes)


def ex_rows(actions: Sequence[CorporateAction], sessions: Days) -> Ints:
    """Return the row of the first session on or after each action's ex-date.

    The row is -1 for an action before the first session, because every price contains its effect.
    """
    days = np.array([action.ex_date for action in actions], dtype="datetime64[D]")
    rows = np.searchsorted(sessions, days, side="left").astype(np.int64)
    if sessions.size:
        rows[days < sessions[0]] = -1
    return rows


def factors(panel: Panel) -> tuple[Floats | None, Floats | None]:
    """Return the cumulative split factor and total factor, each with shape (sessions, columns).

    The split factor counts shares. The total factor also reinvests dividends at the last close
    before the ex-date. Actions that the vendor has applied to the prices are excluded. Both factors
    are None if no action remains, and the split factor is None if no split remains.

    A dividend on the ex-date of a split is per share held *before* the split. A dividend that is
    not smaller than the last close leaves the factor unchanged.
    """
    live = panel.facts.live_actions
    rows = ex_rows(panel.actions, panel.sessions)
    shape = panel.bars["close"].shape
    column = {symbol: index for index, symbol in enumerate(panel.symbols)}
    by_column: dict[int, list[tuple[int, int, CorporateAction]]] = {}
    for row, action in zip(rows.tolist(), panel.actions, strict=True):
        if action.kind in live and 0 <= row < shape[0]:
            # On a shared ex-date the dividend comes first: it is per share held before the split.
            order = 0 if action.kind == "dividend" else 1
            by_column.setdefault(column[action.symbol], []).append((row, order, action))
    if not by_column:
        return None, None
    kinds = set()
    for of_column in by_column.values():
        kinds |= {action.kind for _, _, action in of_column}
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
    """Return the last close before each session, adjusted to the shares of that session.

    ``total`` is the total factor of :func:`factors`, which removes splits and dividends.
    """
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
