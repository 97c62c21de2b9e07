"""Layouts that other projects and vendors keep their data in, rewritten as the plain tables that ``import`` reads.

Whatever a layout holds besides bars (actions, memberships, news, figures, names) becomes a side file. What it does
not hold is left out, never made up; ``tradeassay benchmarks ID --needs DATASET`` says what that changes.
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
from tradeassay.core.measure import plain_sum
from tradeassay.core.registry import refuse_unknown
from tradeassay.core.view import FIELDS
from tradeassay.data.names import ashare_code, company_name
from tradeassay.data.source import CalendarName
from tradeassay.data.tables.bars import SIDE_TABLES
from tradeassay.data.tables.cells import is_table, other_than_file, stem_of
from tradeassay.data.tables.files import FilesConfig

if TYPE_CHECKING:
    import polars as pl
else:
    pl = OptionalPackage("polars", "polars", "reading another project's layout")

_DAY = re.compile(r"(\d{4}-?\d{2}-?\d{2})\.(?:parquet|csv)$")


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Tables by the name of the file they become, and what the import must be told about them."""

    bars: pl.DataFrame
    sides: dict[str, pl.DataFrame] = field(default_factory=dict)
    calendar: CalendarName | None = None
    currency: str | None = None
    volume_unit: float | None = None
    notes: tuple[str, ...] = ()


@contextmanager
def unpacked(layout: str, path: Path, config: FilesConfig) -> Iterator[FilesConfig]:
    """Rewrite a layout into a temporary folder and yield the configuration that imports it."""
    refuse_unknown(layout, LAYOUTS, f"no layout '{layout}'")
    root = path.expanduser()
    if not root.exists():
        raise UserError(f"{path} does not exist", hint="give the folder that holds the layout")
    for one in (root, *root.rglob("*")):
        if not one.is_dir() and (what := other_than_file(one)):
            raise UserError(f"{one} is {what}, not a file", hint="remove it, or save it as a file")
    found = LAYOUTS[layout](root)
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as folder:
        place = Path(folder) / "data"
        place.mkdir()
        found.bars.write_parquet(place / "bars.parquet")
        for name, table in found.sides.items():
            if table.height:
                table.write_csv(place / f"{name}.csv")
        for kind, file in _side_files(root).items():
            if kind in found.sides:
                problem = f"{root.name} has {file.name}, and {kind} of the layout as well"
                raise UserError(problem, hint="keep one of the two")
            shutil.copyfile(file, place / file.name)
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().stem).strip("-.").lower()
        yield msgspec.structs.replace(
            config,
            path=str(place),
            name=config.name or plain or "imported",
            calendar=config.calendar or found.calendar,
            currency=config.currency or found.currency,
            volume_unit=found.volume_unit if config.volume_unit is None else config.volume_unit,
            biases=(*config.biases, *found.notes),
        )


def _side_files(root: Path) -> dict[str, Path]:
    """Return the side files that lie in a layout's folder, by kind."""
    if not root.is_dir():
        return {}
    tables = [path for path in sorted(root.iterdir()) if path.is_file() and is_table(path)]
    return {SIDE_TABLES[stem]: path for path in tables if (stem := stem_of(path).lower()) in SIDE_TABLES}


# -- one file per day and symbol: SYMBOL/day/DATE.parquet ---------------------------------------------------------


def _daily_files(root: Path) -> pl.DataFrame:
    frames: list[pl.DataFrame] = []
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        days = folder / "day" if (folder / "day").is_dir() else folder
        files = sorted(path for path in days.iterdir() if _DAY.search(path.name)) if days.is_dir() else []
        if files:
            read = [pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path) for path in files]
            frames.append(_bars(pl.concat(read, how="diagonal_relaxed"), folder.name, days))
    if not frames:
        problem = f"{root} has no SYMBOL/day/DATE.parquet"
        raise UserError(problem, hint="give the folder above the symbols' folders")
    return pl.concat(frames, how="diagonal_relaxed").unique(["symbol", "date"], keep="last").sort("symbol", "date")


def _bars(table: pl.DataFrame, symbol: str, where: Path) -> pl.DataFrame:
    names = {name.lower(): name for name in table.columns}
    missing = [name for name in ("date", "close") if name not in names]
    if missing:
        problem = f"{where}: no column {' and '.join(missing)} among {', '.join(table.columns)}"
        raise UserError(problem, hint="rename the columns, or import the folder without a layout")
    wanted = [name for name in ("date", *FIELDS) if name in names]
    return table.select([pl.col(names[name]).alias(name) for name in wanted]).with_columns(
        pl.col("date").cast(pl.String).str.slice(0, 10), pl.lit(symbol).alias("symbol")
    )


# -- StockBench's own storage -------------------------------------------------------------------------------------


def stockbench(root: Path) -> Unpacked:
    """Read the storage of StockBench's reference. Its file of "current" indicators is not read: it serves one
    day's figures to all days before it; figures come from filed reports, each known from its filing on."""
    storage = next((path for path in (root, root / "storage") if (path / "parquet").is_dir()), None)
    if storage is None:
        raise UserError(f"{root} has no folder parquet or storage/parquet", hint="give the reference's folder")
    bars = _daily_files(storage / "parquet")
    symbols = [name for name in bars["symbol"].unique().sort().to_list() if name != "SPY"]
    bars = bars.filter(pl.col("symbol") != "SPY")
    cache = storage / "cache"
    actions: set[tuple[str, str, str, float]] = set()
    news: dict[tuple[str, str], tuple[str, ...]] = {}
    for symbol in symbols:
        for item in _json_list(cache / "corporate_actions" / f"{symbol}.dividends.json"):
            paid = float(item.get("cash_amount") or 0)
            actions.add((symbol, str(item.get("ex_dividend_date")), "dividend", paid))
        for item in _json_list(cache / "corporate_actions" / f"{symbol}.splits.json"):
            ratio = float(item.get("split_to") or 0) / float(item.get("split_from") or 1)
            actions.add((symbol, str(item.get("execution_date")), "split", ratio))
        for file in sorted((cache / "news_by_day" / symbol).glob("*.json")):
            body = _json(file)
            for item in body.get("items", ()) if isinstance(body, dict) else ():
                at, title = str(item.get("published_utc") or ""), str(item.get("title") or "").strip()
                if at and title:
                    stamp = at if at.endswith("Z") else f"{at}Z"
                    rest = (str(item.get(name) or "") for name in ("description", "source", "url"))
                    news[symbol, f"{stamp} {title}"] = (stamp, title, symbol, *rest)
    first = str(bars["date"].min())
    kept = sorted(row for row in actions if row[1] >= first and row[3] > 0)
    columns = ["published_at", "title", "symbols", "body", "source", "url"]
    instruments = pl.DataFrame({"symbol": symbols, "name": [company_name(symbol) for symbol in symbols]})
    return Unpacked(
        bars=bars,
        sides={
            "instruments": instruments,
            "actions": pl.DataFrame(kept, schema=["symbol", "ex_date", "kind", "value"], orient="row"),
            "news": pl.DataFrame(list(news.values()), schema=dict.fromkeys(columns, pl.String), orient="row"),
            "fundamentals": _filed(cache / "financials", symbols),
        },
        calendar="XNYS",
        currency="USD",
        notes=("picked with hindsight",),
    )


def _filed(folder: Path, symbols: Sequence[str]) -> pl.DataFrame:
    rows: list[tuple[str, str, str, str, float]] = []
    for symbol in symbols:
        quarters = sorted(
            (str(item["end_date"]), str(item["filing_date"]), item)
            for item in _json_list(folder / f"{symbol}.all.json")
            if item.get("timeframe") == "quarterly" and item.get("filing_date") and item.get("end_date")
        )
        earned: list[float | None] = []
        for end, filed, item in quarters:
            statement = (item.get("financials") or {}).get("income_statement") or {}
            earned.append(_figure(statement, "diluted_earnings_per_share"))
            last = [value for value in earned[-4:] if value is not None]
            if len(last) == 4:
                rows.append((symbol, "eps_ttm", end, filed, float(plain_sum(last))))
            shares = _figure(statement, "diluted_average_shares")
            if shares is not None and shares > 0:
                rows.append((symbol, "shares_outstanding", end, filed, shares))
    return pl.DataFrame(rows, schema=["symbol", "field", "period_end", "known_at", "value"], orient="row")


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


# -- Qlib's binary store ------------------------------------------------------------------------------------------


def qlib(root: Path) -> Unpacked:
    """Read a Qlib store. Its adjusted prices divided by ``factor`` are those of the day; every change of the
    factor becomes a split of that ratio (dividends are in it too), so that total returns are kept."""
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
            told = frame.select("symbol", ex_date="date", kind=pl.lit("split"), value=pl.Series(ratio))
            actions.append(told.filter(pl.Series(np.isfinite(ratio) & (np.abs(ratio - 1.0) > 1e-4))))
    if not frames:
        raise UserError(f"{root}/features holds no bars", hint="download the data with Qlib first")
    members = [
        (path.stem.upper(), *line.split("\t")[:3])
        for path in sorted((root / "instruments").glob("*.txt"))
        if path.stem != "all"
        for line in _lines(path)
    ]
    spelled = [(name, _spelled(symbol), start, end) for name, symbol, start, end in members]
    return Unpacked(
        bars=pl.concat(frames),
        sides={
            "actions": pl.concat(actions),
            "memberships": pl.DataFrame(spelled, schema=["index", "symbol", "start", "end"], orient="row"),
        },
        calendar="XSHG" if any(re.match(r"(?i)s[hz]\d{6}$", name) for _, name, *_ in members) else None,
    )


def _qlib_symbol(folder: Path, days: Sequence[str]) -> pl.DataFrame | None:
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
            # Prices of the day have two decimals; the store's single precision does not.
            columns[name] = np.asarray(np.round(columns[name] / factor, 2), dtype=np.float64)
    if "volume" in columns:
        columns["volume"] = np.asarray(np.round(columns["volume"] * factor), dtype=np.float64)
    columns.setdefault("factor", factor)
    table = pl.DataFrame({"date": list(days), **columns, "symbol": [_spelled(folder.name)] * len(days)})
    return table.filter(pl.col("close").is_not_nan() & (pl.col("close") > 0))


def _spelled(symbol: str) -> str:
    """Return ``SH600519`` as ``600519.SH``; other symbols in capitals."""
    found = re.fullmatch(r"(?i)(sh|sz|bj)(\d{6})", symbol.strip())
    return f"{found[2]}.{found[1].upper()}" if found else symbol.strip().upper()


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line] if path.is_file() else []


# -- akshare's daily files, and one wide table --------------------------------------------------------------------

_CHINESE = dict(zip("日期 开盘 最高 最低 收盘 成交量 成交额".split(), ("date", *FIELDS), strict=True))


def akshare_daily(root: Path) -> Unpacked:
    """Read akshare's ``stock_zh_a_hist`` as saved: one CSV per symbol, Chinese columns, volume in lots of 100."""
    frames = []
    for file in sorted(root.glob("*.csv")):
        code = ashare_code(file.stem.split("_")[0])
        if code is None:
            continue
        table = pl.read_csv(file, infer_schema_length=2_000)
        named = {name: _CHINESE[name] for name in table.columns if name in _CHINESE}
        frames.append(_bars(table.rename(named) if named else table, code, file))
    if not frames:
        raise UserError(f"{root} has no file named after an A-share code", hint="name files like 600519.csv")
    sides = {}
    names = root / "names.csv"
    if names.is_file():
        sides["instruments"] = pl.read_csv(names, infer_schema=False)
    bars = pl.concat(frames, how="diagonal_relaxed")
    return Unpacked(bars=bars, sides=sides, calendar="XSHG", currency="CNY", volume_unit=100.0)


def wide(root: Path) -> Unpacked:
    """Read one table with a row per day and a column per symbol: closing prices."""
    sides = set(_side_files(root).values())
    tables = [root] if root.is_file() else sorted([*root.glob("*.csv"), *root.glob("*.parquet")])
    files = [path for path in tables if path not in sides]
    if len(files) != 1:
        raise UserError(f"{root} holds {len(files)} tables", hint="give the one wide file itself")
    table = pl.read_parquet(files[0]) if files[0].suffix == ".parquet" else pl.read_csv(files[0])
    day, *symbols = table.columns
    # A symbol may be called "close", or "symbol" itself.
    long = table.rename({day: "\0date"}).unpivot(
        symbols, index="\0date", variable_name="\0symbol", value_name="\0close"
    )
    bars = long.rename({"\0date": "date", "\0symbol": "symbol", "\0close": "close"}).with_columns(
        pl.col("date").cast(pl.String).str.slice(0, 10), pl.col("close").cast(pl.Float64, strict=False)
    )
    return Unpacked(bars=bars.drop_nulls("close"))


LAYOUTS: dict[str, Callable[[Path], Unpacked]] = {
    "stockbench": stockbench,
    "qlib": qlib,
    "akshare-daily": akshare_daily,
    "per-day": lambda root: Unpacked(bars=_daily_files(root)),
    "wide": wide,
}
"""By the name of ``--layout``."""


def guess_layout(root: Path) -> str | None:
    """Return the layout that a folder plainly has, None where the ordinary import is the one to try."""
    if (root / "calendars" / "day.txt").is_file() and (root / "features").is_dir():
        return "qlib"
    if any((path / "parquet").is_dir() and (path / "cache").is_dir() for path in (root, root / "storage")):
        return "stockbench"
    return "per-day" if root.is_dir() and any((path / "day").is_dir() for path in root.iterdir()) else None
