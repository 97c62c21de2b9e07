"""S&P 500 and Nasdaq Composite with open, high, low; VIX and WTI as levels beside them."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from tradeassay.core.instruments import Instrument
from tradeassay.core.view import Days, Floats
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import Wide, panel_from_files, read_wide, unpacked
from tradeassay.data.files.config import FilesConfig
from tradeassay.data.panel import Listing

_FUNDS = {"SPX": "arch/data/sp500/sp500.csv.gz", "IXIC": "arch/data/nasdaq/nasdaq.csv.gz"}
_LEVELS = {"VIX": "arch/data/vix/vix.csv.gz", "WTI": "arch/data/wti/wti.csv.gz"}
_NAMES = {"SPX": "S&P 500", "IXIC": "Nasdaq Composite"}

ENTRY = Entry(
    name="arch-indices",
    title="S&P 500 and Nasdaq Composite, daily; VIX and WTI levels",
    packages=(
        Package(
            name="arch",
            version="8.0.0",
            files=(*_FUNDS.values(), *_LEVELS.values()),
            sha256="6cec65c3b9fb84076186938815362aab3a2d70ba737e1a2a3ffb4013dd95eca8",
        ),
    ),
    content="2 indices with OHLCV, 2 more as levels, daily",
    span="1999-01-04..2018-12-31",
    columns="Date (m/d/y), Open, High, Low, Close, Adj Close, Volume; Date and level",
    flaws=(
        "indices, not funds: nobody could trade them at these levels, and they pay no dividends",
        "VIX starts in 2014",
    ),
    licence="package NCSA; the levels have vendors of their own",
    megabytes=1.0,
)


def build(entry: Entry, archive: Archive) -> Built:
    """Read the two indices as index instruments, and all four as levels."""
    files = {f"{symbol}.csv": unpacked(archive.read(path)) for symbol, path in _FUNDS.items()}
    built = panel_from_files(entry, files, FilesConfig(path="", calendar="XNYS", kind="index"))
    panel = built.panel
    levels: dict[str, Floats] = {symbol: panel.bars["close"][:, panel.symbols.index(symbol)] for symbol in _FUNDS}
    for index, path in _LEVELS.items():
        levels[index] = _on(panel.sessions, read_wide(archive.read(path), path))
    listings = tuple(_named(entry) for entry in panel.listings)
    return replace(built, panel=replace(panel, indices=levels, listings=listings))


def _on(sessions: Days, wide: Wide) -> Floats:
    result = np.full(sessions.size, np.nan)
    place = np.searchsorted(sessions, wide.days)
    inside = place < sessions.size
    inside[inside] = sessions[place[inside]] == wide.days[inside]
    result[place[inside]] = wide.values[inside, 0]
    return result


def _named(listing: Listing) -> Listing:
    symbol = listing.instrument.symbol
    instrument = Instrument(symbol=symbol, name=_NAMES[symbol], kind="index")
    return msgspec.structs.replace(listing, instrument=instrument)


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
