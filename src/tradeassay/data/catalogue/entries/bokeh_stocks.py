"""Five US technology stocks, OHLCV, 2000-2013."""

from __future__ import annotations

from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import panel_from_files
from tradeassay.data.files.config import FilesConfig

_FILE = "bokeh_sampledata/_data/stocks.csv.gz"

ENTRY = Entry(
    name="bokeh-stocks",
    title="AAPL FB GOOG IBM MSFT, daily OHLCV",
    packages=(
        Package(
            name="bokeh-sampledata",
            version="2026.1",
            files=(_FILE,),
            sha256="e341f587e47ca1e0ef0fe9aaa60fdb38ba18deba80918316a174418dcf80a534",
        ),
    ),
    content="5 stocks, daily",
    span="2000-03-01..2013-03-01",
    columns="Ticker, Date, Open, High, Low, Close, Volume, Adj Close (bars are scaled by Adj Close / Close)",
    flaws=("five winners of the period picked with hindsight", "a few real moves above 30 % in a day"),
    licence="package BSD-3-Clause; the prices have a vendor of their own",
    megabytes=12.9,
    accepts=("gap without corporate action",),
)


def build(entry: Entry, archive: Archive) -> Built:
    """Read the long table with its adjusted closes."""
    config = FilesConfig(path="", calendar="XNYS", prices="adjusted")
    return panel_from_files(entry, {"stocks.csv.gz": archive.read(_FILE)}, config)


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
