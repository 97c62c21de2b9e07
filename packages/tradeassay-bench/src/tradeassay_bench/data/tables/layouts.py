"""Convert the data layouts of other projects and vendors to the plain tables that ``import`` reads.

Actions, memberships, news, fundamentals and names become side files. Data that is missing in a
layout is never invented. ``tradeassay benchmarks ID --needs DATASET`` shows the effect of missing
data on a benchmark.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.lazy import OptionalPackage
from tradeassay.core.registry import refuse_unknown
from tradeassay.tables.cells import is_table, other_than_file, stem_of
from tradeassay_bench.core.view import FIELDS
from tradeassay_bench.data.names import ashare_code, company_name
from tradeassay_bench.data.source import CalendarName
from tradeassay_bench.data.tables.bars import SIDE_TABLES
from tradeassay_bench.data.tables.files import FilesConfig

if TYPE_CHECKING:
    import polars as pl
else:
    pl = OptionalPackage("polars", "polars", "reading another project's layout")

_DAY = re.compile(r"(\d{4}-?\d{2}-?\d{2})\.(?:parquet|csv)$")


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The tables of a layout, with the options for their import.

    ``sides`` contains side tables by the name of their future file.
    """

    bars: pl.DataFrame
    sides: dict[str, pl.DataFrame] = field(default_factory=dict)
    calendar: CalendarName | None = None
    currency: str | None = None
    volume_unit: float | None = None
    notes: tuple[str, ...] = ()


@contextmanager
def unpacked(layout: str, path: Path, config: FilesConfig) -> Iterator[FilesConfig]:
    """Write a layout's tables to a temporary folder and yield the configuration of their import."""
    refuse_unknown(layout, LAYOUTS, f"unknown layout '{layout}'")
    root = path.expanduser()
    if not root.exists():
        raise UserError(f"{path} does not exist", hint="give the folder that contains the layout")
    for file in (root, *root.rglob("*")):
        if not file.is_dir() and (kind := other_than_file(file)):
            raise UserError(f"{file} is {kind}, not a file", hint="remove it, or save it as a file")
    tables = LAYOUTS[layout](root)
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as temporary:
        folder = Path(temporary) / "data"
        folder.mkdir()
        tables.bars.write_parquet(folder / "bars.parquet")
        for name, table in tables.sides.items():
            if table.height:
                table.write_csv(folder / f"{name}.csv")
        for kind, file in _side_files(root).items():
            if kind in tables.sides:
                problem = f"{root.name} has {file.name}, and the layout also has {kind}"
                raise UserError(problem, hint="keep one of the two")
            shutil.copyfile(file, folder / file.name)
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().stem).strip("-.").lower()
        volume_unit = config.volume_unit
        if volume_unit is None:
            volume_unit = tables.volume_unit
        yield msgspec.structs.replace(
            config,
            path=str(folder),
            name=config.name or plain or "imported",
            calendar=config.calendar or tables.calendar,
            currency=config.currency or tables.currency,
            volume_unit=volume_unit,
            biases=(*config.biases, *tables.notes),
        )


def _side_files(root: Path) -> dict[str, Path]:
    """Return the side files in a layout's folder, by kind."""
    if not root.is_dir():
        return {}
    side_files = {}
    for path in sorted(root.iterdir()):
        stem = stem_of(path).lower()
        if path.is_file() and is_table(path) and stem in SIDE_TABLES:
            side_files[SIDE_TABLES[stem]] = path
    return side_files


# -- one file per day and symbol: SYMBOL/day/DATE.parquet --


def _daily_files(root: Path) -> pl.DataFrame:
    """Return the bars of a folder with one file per symbol and day."""
    frames: list[pl.DataFrame] = []
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        days = folder / "day" if (folder / "day").is_dir() else folder
        files = sorted(path for path in days.iterdir() if _DAY.search(path.name))
        if files:
            parts = [_read_table(path) for path in files]
            frames.append(_bars(pl.concat(parts, how="diagonal_relaxed"), folder.name, days))
    if not frames:
        problem = f"{root} has no SYMBOL/day/DATE.parquet"
        raise UserError(problem, hint="give the folder above the symbols' folders")
    return (
        pl.concat(frames, how="diagonal_relaxed")
        .unique(["symbol", "date"], keep="last")
        .sort("symbol", "date")
    )


def _read_table(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)


def _bars(table: pl.DataFrame, symbol: str, where: Path) -> pl.DataFrame:
    """Return the bar columns of a symbol's table.

    Raises :class:`UserError` if there is no date or close.
    """
    names = {name.lower(): name for name in table.columns}
    missing = [name for name in ("date", "close") if name not in names]
    if missing:
        problem = f"{where}: no column {' and '.join(missing)} among {', '.join(table.columns)}"
        raise UserError(problem, hint="rename the columns, or import the folder without a layout")
    wanted = [name for name in ("date", *FIELDS) if name in names]
    return table.select([pl.col(names[name]).alias(name) for name in wanted]).with_columns(
        pl.col("date").cast(pl.String).str.slice(0, 10), pl.lit(symbol).alias("symbol")
    )


# -- StockBench's own storage --


def stockbench(root: Path) -> Unpacked:
    """Return the tables in the storage of StockBench's reference implementation.

    Fundamentals are taken from filed reports, and each is known from its filing date. The file of
    "current" indicators is not read, because it assigns one day's values to all earlier days.
    """
    storage = next((path for path in (root, root / "storage") if (path / "parquet").is_dir()), None)
    if storage is None:
        raise UserError(
            f"{root} has no folder parquet or storage/parquet", hint="give the reference's folder"
        )
    bars = _daily_files(storage / "parquet")
    symbols = [name for name in bars["symbol"].unique().sort().to_list() if name != "SPY"]
    bars = bars.filter(pl.col("symbol") != "SPY")
    cache = storage / "cache"
    actions: set[tuple[str, str, str, float]] = set()
    news: dict[tuple[str, str], tuple[str, ...]] = {}
    for symbol in symbols:
        actions |= _stockbench_actions(cache / "corporate_actions", symbol)
        news |= _stockbench_news(cache / "news_by_day" / symbol, symbol)
    first = str(bars["date"].min())
    # An action without a date or a value is unusable. Actions before the data are already in every
    # price.
    kept = sorted(row for row in actions if row[1] >= first and row[3] > 0)
    columns = ["published_at", "title", "symbols", "body", "source", "url"]
    instruments = pl.DataFrame(
        {"symbol": symbols, "name": [company_name(symbol) for symbol in symbols]}
    )
    return Unpacked(
        bars=bars,
        sides={
            "instruments": instruments,
            "actions": pl.DataFrame(
                kept, schema=["symbol", "ex_date", "kind", "value"], orient="row"
            ),
            "news": pl.DataFrame(
                list(news.values()), schema=dict.fromkeys(columns, pl.String), orient="row"
            ),
            "fundamentals": _filed(cache / "financials", symbols),
        },
        calendar="XNYS",
        currency="USD",
        notes=("picked with hindsight",),
    )


def _stockbench_actions(folder: Path, symbol: str) -> set[tuple[str, str, str, float]]:
    """Return a symbol's corporate actions as (symbol, ex-date, kind, value)."""
    actions: set[tuple[str, str, str, float]] = set()
    for item in _json_list(folder / f"{symbol}.dividends.json"):
        cash = float(item.get("cash_amount") or 0)
        actions.add((symbol, str(item.get("ex_dividend_date")), "dividend", cash))
    for item in _json_list(folder / f"{symbol}.splits.json"):
        ratio = float(item.get("split_to") or 0) / float(item.get("split_from") or 1)
        actions.add((symbol, str(item.get("execution_date")), "split", ratio))
    return actions


def _stockbench_news(folder: Path, symbol: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the rows of a symbol's news by (symbol, time and title).

    The key removes an item that is repeated on another day.
    """
    news: dict[tuple[str, str], tuple[str, ...]] = {}
    for file in sorted(folder.glob("*.json")):
        body = _json(file)
        for item in body.get("items", ()) if isinstance(body, dict) else ():
            published = str(item.get("published_utc") or "")
            title = str(item.get("title") or "").strip()
            if published and title:
                stamp = published if published.endswith("Z") else f"{published}Z"
                texts = (str(item.get(name) or "") for name in ("description", "source", "url"))
                news[symbol, f"{stamp} {title}"] = (stamp, title, symbol, *texts)
    return news


def _filed(folder: Path, symbols: Sequence[str]) -> pl.DataFrame:
    """Return trailing earnings per share and share counts from the quarterly reports."""
    rows: list[tuple[str, str, str, str, float]] = []
    for symbol in symbols:
        quarters = sorted(
            (str(item["end_date"]), str(item["filing_date"]), item)
            for item in _json_list(folder / f"{symbol}.all.json")
            if item.get("timeframe") == "quarterly"
            and item.get("filing_date")
            and item.get("end_date")
        )
        earnings: list[float | None] = []
        for end, filed, item in quarters:
            statement = (item.get("financials") or {}).get("income_statement") or {}
            earnings.append(_figure(statement, "diluted_earnings_per_share"))
            last = [value for value in earnings[-4:] if value is not None]
            if len(last) == 4:
                rows.append((symbol, "eps_ttm", end, filed, float(np.sum(last))))
            shares = _figure(statement, "diluted_average_shares")
            if shares is not None and shares > 0:
                rows.append((symbol, "shares_outstanding", end, filed, shares))
    return pl.DataFrame(
        rows, schema=["symbol", "field", "period_end", "known_at", "value"], orient="row"
    )


def _figure(statement: dict[str, Any], name: str) -> float | None:
    value = (statement.get(name) or {}).get("value")
    return float(value) if isinstance(value, int | float) else None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}", hint="fix or remove the file") from error


def _json_list(path: Path) -> list[dict[str, Any]]:
    body = _json(path) if path.is_file() else []
    return [item for item in body if isinstance(item, dict)] if isinstance(body, list) else []


# -- Qlib's binary store --


def qlib(root: Path) -> Unpacked:
    """Return the tables of a Qlib store.

    Qlib's adjusted prices divided by ``factor`` are the prices as traded. Each change of the factor
    becomes a split of that ratio. The factor contains dividends too, so total returns are
    preserved.
    """
    days = _lines(root / "calendars" / "day.txt")
    if not days:
        problem = f"{root} has no calendars/day.txt"
        raise UserError(problem, hint="give Qlib's data folder, e.g. ~/.qlib/qlib_data/cn_data")
    frames, actions = [], []
    for folder in sorted(path for path in (root / "features").iterdir() if path.is_dir()):
        frame = _qlib_symbol(folder, days)
        if frame is not None:
            frames.append(frame.drop("factor"))
            factor = frame["factor"].to_numpy()
            ratio = np.ones(factor.size)
            with np.errstate(all="ignore"):
                ratio[1:] = factor[1:] / factor[:-1]
            splits = frame.select(
                "symbol", ex_date="date", kind=pl.lit("split"), value=pl.Series(ratio)
            )
            changes = np.isfinite(ratio) & (np.abs(ratio - 1.0) > 1e-4)
            actions.append(splits.filter(pl.Series(changes)))
    if not frames:
        raise UserError(
            f"{root}/features contains no bars", hint="download the data with Qlib first"
        )
    members: list[tuple[str, str, str, str]] = []
    is_chinese = False
    for path in sorted((root / "instruments").glob("*.txt")):
        if path.stem == "all":
            continue
        for line in _lines(path):
            symbol, start, end = line.split("\t")[:3]
            members.append((path.stem.upper(), _standard_symbol(symbol), start, end))
            is_chinese = is_chinese or re.match(r"(?i)s[hz]\d{6}$", symbol) is not None
    return Unpacked(
        bars=pl.concat(frames),
        sides={
            "actions": pl.concat(actions),
            "memberships": pl.DataFrame(
                members, schema=["index", "symbol", "start", "end"], orient="row"
            ),
        },
        calendar="XSHG" if is_chinese else None,
    )


def _qlib_symbol(folder: Path, days: Sequence[str]) -> pl.DataFrame | None:
    """Return one symbol's bars as traded, with the factor.

    Return None for a folder without closes.
    """
    columns: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}
    for name in (*FIELDS, "factor"):
        file = folder / f"{name}.day.bin"
        if file.is_file():
            raw = np.fromfile(file, dtype="<f4")
            whole = np.full(len(days), np.nan)
            start = int(raw[0]) if raw.size else 0
            values = raw[1:].astype(np.float64)[: max(0, len(days) - start)]
            whole[start : start + values.size] = values
            columns[name] = whole
    if "close" not in columns:
        return None
    factor = columns.get("factor", np.ones(len(days)))
    for name in ("open", "high", "low", "close"):
        if name in columns:
            # Prices as traded have two decimals. Rounding removes the error of single precision.
            columns[name] = np.asarray(np.round(columns[name] / factor, 2), dtype=np.float64)
    if "volume" in columns:
        columns["volume"] = np.asarray(np.round(columns["volume"] * factor), dtype=np.float64)
    columns.setdefault("factor", factor)
    table = pl.DataFrame(
        {"date": list(days), **columns, "symbol": [_standard_symbol(folder.name)] * len(days)}
    )
    return table.filter(pl.col("close").is_not_nan() & (pl.col("close") > 0))


def _standard_symbol(symbol: str) -> str:
    """Return ``SH600519`` as ``600519.SH``, and other symbols in capitals."""
    match = re.fullmatch(r"(?i)(sh|sz|bj)(\d{6})", symbol.strip())
    return f"{match[2]}.{match[1].upper()}" if match else symbol.strip().upper()


def _lines(path: Path) -> list[str]:
    """Return the non-empty lines of a file, or an empty list if the file does not exist."""
    if not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line]


# -- akshare's daily files, and one wide table --

_CHINESE = dict(
    zip("日期 开盘 最高 最低 收盘 成交量 成交额".split(), ("date", *FIELDS), strict=True)
)


def akshare_daily(root: Path) -> Unpacked:
    """Return the tables of a folder with saved results of akshare's ``stock_zh_a_hist``.

    The folder has one CSV per symbol, with Chinese column names and volumes in lots of 100.
    """
    frames = []
    for file in sorted(root.glob("*.csv")):
        code = ashare_code(file.stem.split("_")[0])
        if code is None:
            continue
        table = pl.read_csv(file, infer_schema_length=2_000)
        english = {name: _CHINESE[name] for name in table.columns if name in _CHINESE}
        frames.append(_bars(table.rename(english), code, file))
    if not frames:
        raise UserError(
            f"{root} has no file named after an A-share code", hint="name files like 600519.csv"
        )
    sides = {}
    names = root / "names.csv"
    if names.is_file():
        sides["instruments"] = pl.read_csv(names, infer_schema=False)
    bars = pl.concat(frames, how="diagonal_relaxed")
    return Unpacked(bars=bars, sides=sides, calendar="XSHG", currency="CNY", volume_unit=100.0)


def wide(root: Path) -> Unpacked:
    """Return the bars of a table of closing prices with a row per day and a column per symbol."""
    sides = set(_side_files(root).values())
    tables = [root] if root.is_file() else sorted([*root.glob("*.csv"), *root.glob("*.parquet")])
    files = [path for path in tables if path not in sides]
    if len(files) != 1:
        raise UserError(
            f"{root} contains {len(files)} tables", hint="give the path of the one wide file"
        )
    table = _read_table(files[0])
    day, *symbols = table.columns
    # A symbol may be called "close" or "symbol". The null byte prevents a name clash.
    long = table.rename({day: "\0date"}).unpivot(
        symbols, index="\0date", variable_name="\0symbol", value_name="\0close"
    )
    bars = long.rename({"\0date": "date", "\0symbol": "symbol", "\0close": "close"}).with_columns(
        pl.col("date").cast(pl.String).str.slice(0, 10),
        pl.col("close").cast(pl.Float64, strict=False),
    )
    return Unpacked(bars=bars.drop_nulls("close"))


LAYOUTS: dict[str, Callable[[Path], Unpacked]] = {
    "stockbench": stockbench,
    "qlib": qlib,
    "akshare-daily": akshare_daily,
    "per-day": lambda root: Unpacked(bars=_daily_files(root)),
    "wide": wide,
}
"""The functions that read a layout, by the value of ``--layout``."""


def guess_layout(root: Path) -> str | None:
    """Return the layout of a folder, or None if it has no known layout."""
    if (root / "calendars" / "day.txt").is_file() and (root / "features").is_dir():
        return "qlib"
    for path in (root, root / "storage"):
        if (path / "parquet").is_dir() and (path / "cache").is_dir():
            return "stockbench"
    if root.is_dir() and any((path / "day").is_dir() for path in root.iterdir()):
        return "per-day"
    return None
