"""Helpers for recipes: from the files of a wheel to a panel."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tradeassay.core.instruments import Instrument
from tradeassay.core.view import FIELDS, Adjustment, Days, Field, Floats
from tradeassay.data.catalogue.entry import Built, CatalogueEntry
from tradeassay.data.panel import CalendarName, Listing, MinutePanel, Panel, PanelFacts
from tradeassay.data.tables.bars import session_times
from tradeassay.data.tables.cells import read_csv, read_stamps, to_floats
from tradeassay.data.tables.columns import FilesConfig
from tradeassay.data.tables.folder import read_files
from tradeassay.data.tables.grid import BarGrid, days_of_minutes, listings_of

NO_MEMBERSHIP = "no dated index membership: the universe is whoever is in the files"


@dataclass(frozen=True, slots=True)
class Wide:
    """A table with one row per time and one column per symbol. ``stamps`` are local wall times in nanoseconds."""

    stamps: np.ndarray[Any, np.dtype[np.int64]]
    symbols: tuple[str, ...]
    values: Floats

    @property
    def days(self) -> Days:
        """The calendar days of the rows."""
        return (self.stamps // 86_400_000_000_000).astype("datetime64[D]")


def read_wide(content: bytes, label: str) -> Wide:
    """Read a CSV whose first column is a date and whose other columns are symbols; gz is unpacked."""
    table = read_csv(unpacked(content), label)
    date, *symbols = table.columns
    stamps, _ = read_stamps(table, date)
    values = np.column_stack([to_floats(table, symbol)[0] for symbol in symbols])
    there = np.isfinite(values).any(axis=1)  # a row without any number is not a session
    return Wide(stamps.local[there], tuple(symbols), values[there])


def unpacked(content: bytes) -> bytes:
    """Return gz content unpacked, any other content unchanged."""
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def panel_from_files(
    entry: CatalogueEntry,
    files: Mapping[str, bytes],
    config: FilesConfig,
    instruments: Mapping[str, Instrument] | None = None,
) -> Built:
    """Read files (by the name they should have) with the import reader; the entry's flaws become biases."""
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as temporary:
        folder = Path(temporary) / entry.name
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        asked = msgspec.structs.replace(config, path=str(folder), name=entry.name, biases=entry.flaws)
        imported = read_files(asked)
    panel = imported.panel
    if instruments is not None:
        panel = replace(panel, listings=tuple(_informed(listing, instruments) for listing in panel.listings))
    return Built(panel, imported.faults, imported.locate)


def _informed(listing: Listing, instruments: Mapping[str, Instrument]) -> Listing:
    known = instruments.get(listing.instrument.symbol)
    return listing if known is None else msgspec.structs.replace(listing, instrument=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelMarket:
    """What a grid of numbers does not say about itself."""

    calendar: CalendarName
    currency: str
    adjusted: Adjustment
    instruments: Mapping[str, Instrument]
    biases: tuple[str, ...] = ()
    minutes_per_bar: int = 1


def panel_from_grid(
    entry: CatalogueEntry,
    market: PanelMarket,
    sessions: Days,
    symbols: tuple[str, ...],
    bars: Mapping[Field, Floats],
) -> Panel:
    """Return a panel of daily bars on a grid; columns are sorted by first bar, as a panel must be."""
    empty = np.zeros((sessions.size, len(symbols)), dtype=np.bool_)
    origin = np.full(empty.shape, -1, dtype=np.int32)
    grid = BarGrid(sessions, symbols, {field: bars[field] for field in FIELDS}, empty, origin)
    config = FilesConfig(path="", currency=market.currency)
    told = {symbol: Listing(instrument=item, listed="") for symbol, item in market.instruments.items()}
    listings, notes = listings_of(grid, market.calendar, config, told)
    opens, closes = session_times(market.calendar, sessions)
    order = sorted(range(len(symbols)), key=lambda i: (listings[i].listed, symbols[i]))
    return Panel(
        name=entry.name,
        facts=PanelFacts(
            kind="real",
            source="packaged",
            query="",
            currency=market.currency,
            calendar=market.calendar,
            adjusted=market.adjusted,
            biases=(*entry.flaws, *market.biases, *notes, NO_MEMBERSHIP),
            minutes_per_bar=market.minutes_per_bar,
        ),
        listings=tuple(listings[i] for i in order),
        sessions=sessions,
        open_time=opens,
        close_time=closes,
        bars={field: grid.bars[field][:, order] for field in FIELDS},
        suspended=empty,
    )


def close_only(close: Floats, volume: Floats | None = None) -> dict[Field, Floats]:
    """Return bars of closing prices: open, high and low equal the close; amount is volume times close."""
    volumes = np.full_like(close, np.nan) if volume is None else np.where(np.isnan(close), np.nan, volume)
    return {
        "open": close, "high": close, "low": close, "close": close, "volume": volumes, "amount": volumes * close,
    }  # fmt: skip


def panel_from_minutes(entry: CatalogueEntry, market: PanelMarket, minutes: MinutePanel, day: Days) -> Panel:
    """Return a panel of intraday bars and of the daily bars they add up to; ``day`` is each row's session."""
    sessions, first = np.unique(day, return_index=True)
    daily = days_of_minutes(minutes.bars, first)
    panel = panel_from_grid(entry, market, sessions, minutes.symbols, daily)
    return replace(panel, minutes=minutes)
