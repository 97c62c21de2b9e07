"""Minute series of several symbols, joined on the instants at which their bars close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tradeassay.core.errors import SourceError
from tradeassay.core.view import FIELDS, Field, Floats, Ints
from tradeassay.data.connectors.grid import Column, shorten
from tradeassay.data.panel import MinutePanel


@dataclass(frozen=True, slots=True)
class MinuteColumn:
    """One symbol's minute bars: closing instants in order and one array per field."""

    symbol: str
    close_time: Ints
    fields: Mapping[Field, Floats]


def join_minutes(columns: Sequence[MinuteColumn], *, vendor: str) -> MinutePanel:
    """Join minute bars; NaN where a symbol has none. Raises :class:`SourceError` for times out of order."""
    for column in columns:
        steps = np.diff(column.close_time)
        if bool((steps <= 0).any()):
            raise SourceError(
                f"{vendor}'s minutes of {column.symbol} are doubled or out of order",
                mend="fetch again; if it stays so, leave minutes out",
            )
    every = np.unique(np.concatenate([column.close_time for column in columns]))
    bars: dict[Field, Floats] = {name: np.full((every.size, len(columns)), np.nan) for name in FIELDS}
    for index, column in enumerate(columns):
        rows = np.searchsorted(every, column.close_time)
        for name, values in column.fields.items():
            bars[name][rows, index] = values
    return MinutePanel(tuple(column.symbol for column in columns), every, bars)


def check_minutes(
    minutes: Sequence[MinuteColumn], daily: Sequence[Column], *, vendor: str, allow_partial: bool
) -> tuple[str, ...]:
    """Refuse a symbol that traded on a day of which the vendor sent no minute, or say so when that is allowed.

    Returns the notes a reader needs; raises :class:`SourceError` unless ``allow_partial``.
    """
    traded = {column.instrument.symbol: column.days for column in daily}
    missing: list[str] = []
    for column in minutes:
        # A bar that ends at midnight belongs to the day before.
        days = np.unique((column.close_time - 1).astype("datetime64[ns]").astype("datetime64[D]"))
        gone = np.setdiff1d(traded[column.symbol], days)
        if gone.size and not allow_partial:
            raise SourceError(
                f"{vendor} has no minutes of {column.symbol} on {gone[0]} ({gone.size} days in all)",
                mend="ask for other days, without minutes, or with allow_partial=true",
            )
        missing += [f"{column.symbol} {day}" for day in gone]
    return (f"days without minute bars: {shorten(missing)}",) if missing else ()
