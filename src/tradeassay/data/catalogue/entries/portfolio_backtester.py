"""503 names of the S&P 500 of 2021, adjusted closes and volumes, 2006-2021."""

from __future__ import annotations

import numpy as np

from tradeassay.core.instruments import Instrument
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import CLOSE_ONLY, Market, close_only, panel_from_grid, read_wide
from tradeassay.data.panel import Panel

CLOSES = "portfolio_backtester/data/SP500 20060901-20211015.csv"
VOLUMES = "portfolio_backtester/data/SP500 20060901-20211015 volume.csv"

PACKAGE = Package(
    name="portfolio-backtester",
    version="0.1.0",
    files=(CLOSES, VOLUMES),
    sha256="d129386b59119ec178aab9d9d5610bb8a304330ab7cf68953bedde6995f5f8c3",
)
FLAWS = (
    "the members of October 2021 picked with hindsight: names that left the index before are missing",
    CLOSE_ONLY,
    "about 200 real moves above 30 % in a day",
    "half of AMCR's sessions are missing",
)

ENTRY = Entry(
    name="portfolio-backtester",
    title="503 S&P 500 names, daily adjusted close and volume",
    packages=(PACKAGE,),
    content="503 stocks, daily closes",
    span="2006-08-31..2021-10-14",
    columns="Date, one column per symbol; a second file of the same shape holds volumes",
    flaws=FLAWS,
    licence="package MIT; the prices have a vendor of their own that the package does not name",
    megabytes=46.0,
    accepts=("gap without corporate action",),
)


def make_panel(entry: Entry, archive: Archive) -> Panel:
    """Read the two wide tables."""
    closes, volumes = read_wide(archive.read(CLOSES), CLOSES), read_wide(archive.read(VOLUMES), VOLUMES)
    column = [volumes.symbols.index(symbol) for symbol in closes.symbols]
    row = np.searchsorted(volumes.days, closes.days)
    market = Market(
        calendar="XNYS",
        currency="USD",
        adjusted="total",
        instruments={symbol: Instrument(symbol=symbol, name=symbol) for symbol in closes.symbols},
    )
    bars = close_only(closes.values, volumes.values[row][:, column])
    return panel_from_grid(entry, market, closes.days, closes.symbols, bars)


def build(entry: Entry, archive: Archive) -> Built:
    """Read the panel alone."""
    return Built(make_panel(entry, archive))


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
