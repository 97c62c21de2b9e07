"""20 S&P 500 names and the index, adjusted closes, 1990-2022."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tradeassay.core.instruments import Instrument
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import CLOSE_ONLY, Market, close_only, panel_from_grid, read_wide

_STOCKS = "skfolio/datasets/data/sp500_dataset.csv.gz"
_INDEX = "skfolio/datasets/data/sp500_index.csv.gz"

ENTRY = Entry(
    name="skfolio-sp500",
    title="20 S&P 500 names and the index, daily adjusted close",
    packages=(
        Package(
            name="skfolio",
            version="1.12.2",
            files=(_STOCKS, _INDEX),
            sha256="78b0b81b69851836448eb410aa93f6d0cf9048ce697adbb7676ca447a863353a",
        ),
    ),
    content="20 stocks and 1 index, daily closes",
    span="1990-01-02..2022-12-28",
    columns="Date, one column per symbol",
    flaws=(
        "20 large caps picked with hindsight: all of them survived",
        CLOSE_ONLY,
        "no volume in the files",
        "a few real moves above 30 % in a day",
    ),
    licence="package BSD-3-Clause; the prices have a vendor of their own",
    megabytes=1.5,
    accepts=("gap without corporate action",),
)


def build(entry: Entry, archive: Archive) -> Built:
    """Read the wide table of stocks and the index beside it."""
    stocks, index = read_wide(archive.read(_STOCKS), _STOCKS), read_wide(archive.read(_INDEX), _INDEX)
    market = Market(
        calendar="XNYS",
        currency="USD",
        adjusted="total",
        instruments={symbol: Instrument(symbol=symbol, name=symbol) for symbol in stocks.symbols},
    )
    panel = panel_from_grid(entry, market, stocks.days, stocks.symbols, close_only(stocks.values))
    levels = np.full(stocks.days.size, np.nan)
    place = np.searchsorted(index.days, stocks.days)
    known = place < index.days.size
    known[known] = index.days[place[known]] == stocks.days[known]
    levels[known] = index.values[place[known], 0]
    return Built(replace(panel, indices={"SPX": levels}))


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
