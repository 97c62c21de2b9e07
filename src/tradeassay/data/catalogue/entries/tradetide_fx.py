"""Five currency pairs against the dollar, one-minute bars, 2023-2024."""

from __future__ import annotations

from tradeassay.core.instruments import Instrument
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import panel_from_files
from tradeassay.data.files.config import FilesConfig

_FILES = "TradeTide/data/???_USD.csv"

ENTRY = Entry(
    name="tradetide-fx",
    title="EUR GBP JPY CHF CAD against USD, 1-minute OHLC",
    packages=(
        Package(
            name="tradetide",
            version="1.1.19",
            files=(_FILES,),
            sha256="b1d0edcf5c8408d4b407a90592f5121b9b9b1602608ce21112857b89a6544872",
        ),
    ),
    content="5 currency pairs, 1 minute",
    span="2023-08-04..2024-02-19",
    columns="date (start of the minute, UTC), ask_open .. ask_close, bid_open .. bid_close; 3 comment lines",
    flaws=(
        "bid equals ask in the files: there is no spread to pay",
        "no volume in the files",
        "JPY, CHF and CAD are quoted per dollar, EUR and GBP in dollars",
        "no session on Saturdays, and short ones on Sundays",
    ),
    licence="package MIT; the quotes have a vendor of their own that the package does not name",
    megabytes=13.1,
    accepts=("missing session",),
)


def build(entry: Entry, archive: Archive) -> Built:
    """Read one file per pair; the ask is taken, which in these files is the bid."""
    files = {name.rsplit("/", 1)[1]: archive.read(name) for name in archive.names(_FILES)}
    config = FilesConfig(
        path="",
        columns={
            "date": "date", "open": "ask_open", "high": "ask_high", "low": "ask_low", "close": "ask_close",
        },
        calendar="24/7",
        timezone="UTC",
        frequency="1m",
        stamps="start",
        currency="USD",
    )  # fmt: skip
    instruments = {}
    for name in files:
        symbol = name.removesuffix(".csv")
        instruments[symbol] = Instrument(
            symbol=symbol, name=symbol.replace("_", "/"), kind="crypto", lot=0.01, step=0.01, tick=1e-5
        )
    return panel_from_files(entry, files, config, instruments)


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
