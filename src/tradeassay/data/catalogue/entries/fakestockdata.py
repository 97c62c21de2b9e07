"""29 large US stocks, 1998-2013, real dailies despite the package's name: the default real US panel."""

from __future__ import annotations

from tradeassay.core.instruments import Instrument
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import panel_from_files
from tradeassay.data.files.config import FilesConfig

_FILES = "*/data/share/fakestockdata/daily/table_*.csv.bz2"

ENTRY = Entry(
    name="fakestockdata",
    title="29 US large caps, daily OHLCV",
    packages=(
        Package(
            name="fakestockdata",
            version="0.0.2",
            files=(_FILES,),
            sha256="816c679d79a1c1111b592d7e8946940c3fc056df81eeb94490eefde9cfbe038a",
        ),
    ),
    content="29 stocks, daily",
    span="1998-01-02..2013-08-09",
    columns="date (yyyymmdd), 0, open, high, low, close, volume; no header; one file per symbol",
    flaws=("29 large caps picked with hindsight: all of them survived", "nine real moves above 30 % in a day"),
    licence="package BSD; the prices have a vendor of their own that the package does not name",
    megabytes=2.0,
    accepts=("gap without corporate action",),
)


def build(entry: Entry, archive: Archive) -> Built:
    """Read one file per symbol."""
    files = {
        f"{name.rsplit('table_', 1)[1].removesuffix('.csv.bz2').upper()}.csv.bz2": archive.read(name)
        for name in archive.names(_FILES)
    }
    config = FilesConfig(
        path="",
        header=("date", "ignore", "open", "high", "low", "close", "volume"),
        calendar="XNYS",
        adjusted="total",
    )
    symbols = [name.removesuffix(".csv.bz2") for name in files]
    instruments = {symbol: Instrument(symbol=symbol, name=symbol) for symbol in symbols}
    return panel_from_files(entry, files, config, instruments)


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
