"""From a folder of bars, and the files beside them, to a panel, with what was guessed and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.orders import LARGEST_PRICE, LEAST_PRICE
from tradeassay.core.time import DAY, Instant
from tradeassay.core.view import (
    FIELDS,
    Board,
    CorporateAction,
    Days,
    Field,
    Floats,
    Fundamental,
    Instrument,
    Ints,
    NewsItem,
)
from tradeassay.data.doctor import diagnose_panel, told_once
from tradeassay.data.names import ashare_code
from tradeassay.data.source import Listing, Membership, MinutePanel, Panel, PanelFacts, action_known_at
from tradeassay.data.store.write import normalised
from tradeassay.data.tables.bars import (
    CURRENCY,
    SIDE_TABLES,
    BarGrid,
    BarTiming,
    LongBars,
    complete,
    daily_grid,
    default_instrument,
    fill_prices,
    listings_of,
    minute_grid,
    read_bars,
    session_times,
    timing,
)
from tradeassay.data.tables.cells import (
    RawTable,
    is_table,
    other_than_file,
    read_stamps,
    read_table,
    stem_of,
)
from tradeassay.data.tables.faults import DataFault, Severity
from tradeassay.data.tables.files import FilesConfig, ImportReport

NO_MEMBERSHIP = "no dated index membership: the universe is whoever is in the files"
Row = Mapping[str, str]
_SYMBOL = "ticker code ts_code 代码 股票代码"
_FACTS = "board name kind sector currency expiry root lot step tick multiplier".split()
_COLUMNS: dict[str, tuple[str, dict[str, str]]] = {
    "actions": (
        "symbol ex_date",
        {"symbol": _SYMBOL, "ex_date": "date exdate ex-date 除权除息日", "kind": "type action"}
        | {"value": "ratio amount", "split": "split_ratio splits", "dividend": "dividends cash"}
        | {"known_at": "announced_at declared_at"},
    ),
    "memberships": (
        "symbol start",
        {"index": "index_name universe", "symbol": _SYMBOL, "start": "from in_date added date"}
        | {"end": "to out_date removed"},
    ),
    "news": (
        "published_at title",
        {"published_at": "published publisheddate datetime time date", "title": "headline"}
        | {"symbols": "symbol tickers ticker", "body": "text content summary", "source": "site publisher"}
        | {"url": "link", "id": ""},
    ),
    "fundamentals": (
        "symbol field period_end known_at value",
        {"symbol": _SYMBOL, "field": "name item", "period_end": "period report_date", "value": ""}
        | {"known_at": "announced_at published_at ann_date filed"},
    ),
    "indices": (
        "date index close",
        {"date": "session day 日期", "index": "symbol name code", "close": "level value 收盘"},
    ),
    "instruments": (
        "symbol",
        {"symbol": _SYMBOL, "listed": "list_date listed_on ipo_date", "delisted": "delist_date"}
        | dict.fromkeys(_FACTS, ""),
    ),
}
"""By side file: the columns it needs, and every column it may have with its other names."""
_TEXT = ("name", "kind", "sector", "currency", "expiry", "root")
_FIGURES = ("lot", "step", "tick", "multiplier")


class _Axis:
    """What side files are matched with: the symbols and the sessions of the bars."""

    def __init__(self, symbols: tuple[str, ...], sessions: Days, open_time: Ints) -> None:
        self.sessions, self.open_time = sessions, open_time
        self._symbols = frozenset(symbols)
        self._codes = {code: symbol for symbol in symbols if (code := ashare_code(symbol)) is not None}

    def symbol(self, spelled: str) -> str | None:
        if spelled in self._symbols:
            return spelled
        code = ashare_code(spelled)
        return None if code is None else self._codes.get(code)


class _Reader:
    """One side file, with errors that name file, line and column. ``cells`` are its columns by role, an empty cell
    being an empty string; ``faults`` rows that are left out or changed, ``notes`` sentences about the file."""

    def __init__(self, kind: str, path: Path, axis: _Axis) -> None:
        self.path, self.axis = path, axis
        self.faults: list[DataFault] = []
        self.notes: list[str] = []
        self.table: RawTable = read_table(path, path.name)
        if self.table.faults:
            raise UserError(str(self.table.faults[0]), hint="fix the line")
        needed, known = _COLUMNS[kind]
        have = {name.strip().lower(): name for name in self.table.columns}
        self.columns: dict[str, str] = {}
        for role, names in known.items():
            found = next((have[name] for name in (role, *names.split()) if name in have), None)
            if found is not None:
                self.columns[role] = found
        missing = [role for role in needed.split() if role not in self.columns]
        if missing:
            problem = f"{path.name}: no column {' and '.join(missing)} among {', '.join(self.table.columns)}"
            raise UserError(problem, hint=f"it needs {', '.join(needed.split())}")
        self.cells: dict[str, list[str]] = {}
        for role, name in self.columns.items():
            texts = self.table.columns[name].cast(pa.string()).fill_null("").to_pylist()
            self.cells[role] = [text.strip() for text in texts]

    def rows(self) -> Iterator[tuple[int, int, Row, str]]:
        """Yield (index, line, cells, symbol) of the rows whose symbol the bars have; others are noted."""
        for index, line in enumerate(self.table.rows.tolist()):
            row = {role: cells[index] for role, cells in self.cells.items()}
            symbol = self.axis.symbol(row["symbol"])
            if symbol is None:
                self.unknown(line, row["symbol"])
            else:
                yield index, line, row, symbol

    def wrong(self, line: int, what: str) -> UserError:
        return UserError(f"{self.table.file}:{line}: {what}", hint="fix the line")

    def days(self, role: str, *, optional: bool = False) -> list[str]:
        """Return a column as ISO days; an ``optional`` one may be missing or have empty cells."""
        if optional and role not in self.columns:
            return [""] * len(self.table.rows)
        stamps, _ = read_stamps(self.table, self.columns[role])
        days: list[str] = (stamps.local // DAY).astype("datetime64[D]").astype(str).tolist()
        for index in np.flatnonzero(~stamps.good).tolist():
            cell, days[index] = self.cells[role][index], ""
            if cell or not optional:
                raise self.wrong(int(self.table.rows[index]), f"{role} '{cell}' is not a date")
        return days

    def instants(self, role: str) -> list[Instant | None]:
        """Return a column as instants. A date without a time counts from its end (24:00 UTC): what was known "on"
        a day is safe to use after it. A time without a zone is refused."""
        stamps, _ = read_stamps(self.table, self.columns[role])
        result: list[Instant | None] = []
        for index, line in enumerate(self.table.rows.tolist()):
            local, cell = int(stamps.local[index]), self.cells[role][index]
            if not stamps.good[index]:
                if cell:
                    self.fault(line, "undated record", f"{role} '{cell}' is not a time stamp")
                result.append(None)
            elif bool(stamps.zoned[index]):
                result.append(local - int(stamps.offset[index]))
            elif local % DAY == 0:
                result.append(local + DAY)
            else:
                raise self.wrong(line, f"{role} has a time but no zone; write e.g. 2025-03-03T14:30:00Z")
        return result

    def fault(self, line: int, check: str, reason: str, severity: Severity = "error") -> None:
        found = DataFault(check=check, file=self.table.file, row=line, reason=reason, severity=severity)
        self.faults.append(found)

    def unknown(self, line: int, what: str) -> None:
        """Note a row about something that the bars do not have."""
        self.fault(line, "unknown symbol or day", f"{what} is not in the bars; the row is left out", "warning")

    def number(self, line: int, role: str, cell: str) -> float:
        value = _number(cell)
        if value is None:
            raise self.wrong(line, f"{role} '{cell}' is not a number")
        return value


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def _actions(reader: _Reader) -> tuple[CorporateAction, ...]:
    axis, name = reader.axis, reader.path.name
    if not {"value", "split", "dividend"} & set(reader.columns):
        raise UserError(f"{name}: no column value, split or dividend", hint="give kind and value, or either")
    days = reader.days("ex_date")
    known = reader.instants("known_at") if "known_at" in reader.columns else None
    undated = {fault.row for fault in reader.faults}
    result: list[CorporateAction] = []
    nothing = unannounced = 0
    for index, line, row, symbol in reader.rows():
        if line in undated:
            continue
        place = int(np.searchsorted(axis.sessions, np.datetime64(days[index], "D")))
        latest = action_known_at(int(axis.open_time[min(place, axis.sessions.size - 1)]))
        announced = None if known is None else known[index]
        unannounced += known is not None and announced is None
        at = latest if announced is None else announced
        if at > latest and place < axis.sessions.size:
            reason = f"{symbol} is announced after its ex-date {days[index]} and taken as known on it"
            reader.fault(line, "late action", reason, "warning")
            at = latest
        kinds: list[tuple[Any, str]] = [(kind, row[kind]) for kind in ("split", "dividend") if row.get(kind)]
        if row.get("kind") or row.get("value"):
            kinds = [(row.get("kind", "").lower(), row.get("value", ""))]
        for kind, cell in kinds:
            if kind not in ("split", "dividend"):
                raise reader.wrong(line, f"kind '{kind}' is neither split nor dividend")
            value = _number(cell)
            if value == (0.0 if kind == "dividend" else 1.0):
                nothing += 1
            elif value is None or not LEAST_PRICE <= value <= LARGEST_PRICE:
                reason = f"{kind} '{cell}' of {symbol} on {days[index]} is not a positive number; it is left out"
                reader.fault(line, "bad action", reason)
            else:
                told: dict[str, Any] = {"symbol": symbol, "ex_date": days[index], "known_at": at}
                result.append(CorporateAction(kind=kind, value=value, **told))
    if nothing:
        reader.notes.append(f"{nothing:,} entries of {name} say that nothing happens (dividend 0, split 1)")
    if unannounced:
        reader.notes.append(f"{unannounced:,} rows of {name} have no known_at and count as known on their ex-date")
    return tuple(result)


def _memberships(reader: _Reader) -> tuple[Membership, ...]:
    starts, ends = reader.days("start"), reader.days("end", optional=True)
    return tuple(
        Membership(index=row.get("index") or "INDEX", symbol=symbol, start=starts[at], end=ends[at] or None)
        for at, _, row, symbol in reader.rows()
    )


def _news(reader: _Reader) -> tuple[NewsItem, ...]:
    result: dict[str, NewsItem] = {}
    published = reader.instants("published_at")
    columns = reader.cells.items()
    for index, line in enumerate(reader.table.rows.tolist()):
        moment, row = published[index], {role: cells[index] for role, cells in columns}
        if moment is None:
            if not row["published_at"]:
                reader.fault(line, "undated record", f"'{row['title'][:40]}' has no published_at")
            continue
        spelled = row.get("symbols", "").replace(";", " ").replace("|", " ").replace(",", " ").split()
        symbols = tuple(dict.fromkeys(reader.axis.symbol(name) or name for name in spelled))
        content = f"{moment}\x1f{row['title']}\x1f{row.get('url', '')}\x1f{' '.join(symbols)}"
        name = row.get("id") or sha256_bytes(content.encode())[:16]
        if name in result and not row.get("id"):
            reader.fault(line, "repeated news", f"'{row['title'][:40]}' is repeated and left out", "warning")
            continue
        texts = {role: row.get(role, "") for role in ("title", "body", "source", "url")}
        result[name] = NewsItem(id=name, published_at=moment, symbols=symbols, **texts)
    return tuple(result.values())


def _fundamentals(reader: _Reader) -> tuple[Fundamental, ...]:
    periods, known = reader.days("period_end"), reader.instants("known_at")
    result: list[Fundamental] = []
    empty = 0
    for index, line, row, symbol in reader.rows():
        at, what = known[index], f"{row['field']} of {row['symbol']}"
        if at is None:
            if not row["known_at"]:
                reason = f"{what} has no known_at, without which nobody may see it; it is left out"
                reader.fault(line, "undated record", reason)
        elif not row["value"]:
            empty += 1
        elif (value := _number(row["value"])) is None or not isfinite(value):
            reader.fault(line, "bad figure", f"{what}: '{row['value']}' is not a number; left out")
        else:
            told: dict[str, Any] = {"symbol": symbol, "field": row["field"], "period_end": periods[index]}
            result.append(Fundamental(known_at=at, value=value, **told))
    if empty:
        reader.notes.append(f"{empty:,} rows of {reader.path.name} have no value and are left out")
    return tuple(result)


def _indices(reader: _Reader) -> dict[str, Floats]:
    sessions, days = reader.axis.sessions, np.array(reader.days("date"), dtype="datetime64[D]")
    place = np.searchsorted(sessions, days).tolist()
    result: dict[str, Floats] = {}
    for index, line in enumerate(reader.table.rows.tolist()):
        at, name = place[index], reader.cells["index"][index]
        if at >= sessions.size or sessions[at] != days[index]:
            reader.unknown(line, f"{name} on {days[index]}")
        else:
            levels = result.setdefault(name, np.full(sessions.size, np.nan))
            levels[at] = reader.number(line, "close", reader.cells["close"][index])
    return result


_SIDES: dict[str, Callable[[_Reader], Any]] = {
    "actions": _actions,
    "memberships": _memberships,
    "news": _news,
    "fundamentals": _fundamentals,
    "indices": _indices,
}


def _instruments(path: Path, default: Callable[[str], Instrument], axis: _Axis) -> dict[str, Listing]:
    """Read an instruments file: facts and listing days by symbol; what it leaves out comes from the default."""
    reader = _Reader("instruments", path, axis)
    listed, delisted = reader.days("listed", optional=True), reader.days("delisted", optional=True)
    result: dict[str, Listing] = {}
    for index, line, row, symbol in reader.rows():
        facts: dict[str, Any] = {name: row[name] for name in _TEXT if row.get(name)}
        facts |= {name: reader.number(line, name, row[name]) for name in _FIGURES if row.get(name)}
        if row.get("board"):
            if row["board"] not in tuple(Board):
                raise reader.wrong(line, f"board '{row['board']}' is not one of {', '.join(Board)}")
            facts["board"] = Board(row["board"])
        instrument = msgspec.structs.replace(default(symbol), **facts)
        result[symbol] = Listing(instrument=instrument, listed=listed[index], delisted=delisted[index] or None)
    return result


@dataclass(frozen=True, slots=True)
class Imported:
    """A panel, the faults of its rows, the guesses, and a map from faults of content to files and lines."""

    panel: Panel
    faults: tuple[DataFault, ...]
    report: ImportReport
    locate: Callable[[DataFault], DataFault]

    def diagnose(self) -> tuple[DataFault, ...]:
        """Return everything wrong, located in the files, errors first."""
        found = [*self.faults, *map(self.locate, diagnose_panel(normalised(self.panel)))]
        return tuple(sorted(found, key=lambda fault: fault.severity))


def read_files(config: FilesConfig) -> Imported:
    """Read a folder or file of bars and the side files beside it; what is wrong in rows comes back as faults."""
    root = Path(config.path).expanduser()
    bar_files, side_files, unread = _tables(root, config.beside)
    bars, faults = read_bars(bar_files, root, config)
    when, found = timing(bars, config)
    faults += unread + found
    minutes: MinutePanel | None = None
    if when.close_time is not None:
        grid, minutes, found = minute_grid(bars, when)
        values = dict(minutes.bars)
        fill_prices(values, bars)
        minutes = replace(minutes, bars=values)
    else:
        grid, found = daily_grid(bars, when)
    faults += found
    grid, biases = complete(grid, bars, when.calendar, config)
    opens, closes = session_times(when.calendar, grid.sessions)
    axis = _Axis(grid.symbols, grid.sessions, opens)
    known = {}
    if "instruments" in side_files:
        default = partial(default_instrument, calendar=when.calendar, config=config)
        known = _instruments(side_files["instruments"], default, axis)
    listings, inferred = listings_of(grid, when.calendar, config, known)
    readers = {kind: _Reader(kind, side_files[kind], axis) for kind in _SIDES if kind in side_files}
    sides = {kind: _SIDES[kind](reader) for kind, reader in readers.items()}
    found = [fault for reader in readers.values() for fault in reader.faults]
    faults += found
    told = [note for reader in readers.values() for note in reader.notes] + told_once(found)
    biases += inferred
    facts = PanelFacts(
        kind="real",
        source="files",
        query=root.name,
        currency=config.currency or CURRENCY[when.calendar],
        calendar=when.calendar,
        adjusted="total" if config.prices == "adjusted" else config.adjusted,
        biases=(*config.biases, *biases, *(() if sides.get("memberships") else (NO_MEMBERSHIP,))),
        licence=config.licence,
        minutes_per_bar=when.minutes_per_bar,
    )
    name = config.name or stem_of(root)
    panel = panel_of_grid(name, facts, grid, listings, (opens, closes), minutes=minutes, **sides)
    faults += _units(panel, bars, root, config)
    notes = biases + told + _unknown_unit(bars, when, config)
    report = _report(bars, when, panel, side_files, notes)
    return Imported(panel, tuple(faults), report, _locator(panel.name, bars, grid, when, root))


def panel_of_grid(
    name: str, facts: PanelFacts, grid: BarGrid, listings: Sequence[Listing], times: tuple[Ints, Ints], **more: Any
) -> Panel:
    """Return a panel with columns sorted by first bar, as a panel must be. Takes the bars out of the grid."""
    order = sorted(range(len(listings)), key=lambda i: (listings[i].listed, grid.symbols[i]))
    bars: dict[Field, Floats] = {}
    for field in FIELDS:  # one by one, as all fields twice would be most of a large import's memory
        taken = grid.bars.pop(field)
        bars[field] = taken if order == list(range(len(order))) else taken[:, order]
    return Panel(
        name=name,
        facts=facts,
        listings=tuple(listings[i] for i in order),
        sessions=grid.sessions,
        open_time=times[0],
        close_time=times[1],
        bars=bars,
        suspended=grid.suspended[:, order],
        **more,
    )


def _tables(root: Path, beside: str | None) -> tuple[list[Path], dict[str, Path], list[DataFault]]:
    """Return the files of bars, the side files by kind, and faults for what is named like a table and is none."""
    bars: list[Path] = []
    sides: dict[str, Path] = {}
    unread = []
    if beside is not None:
        folder = Path(beside).expanduser()
        if not folder.is_dir():
            raise UserError(f"{folder} does not exist", hint="point to a folder with side files")
        named = ((stem_of(path).lower(), path) for path in sorted(folder.iterdir()) if is_table(path))
        sides = {SIDE_TABLES[stem]: path for stem, path in named if stem in SIDE_TABLES}
        if not sides:
            raise UserError(f"{folder} has no side file", hint=f"one of {', '.join(SIDE_TABLES)}")
    if root.is_file():
        if not is_table(root):
            problem = f"{root.name} is not a CSV, .xlsx or Parquet file"
            raise UserError(problem, hint="point to a folder or such a file")
        return [root], sides, []
    if not root.is_dir():
        what = other_than_file(root)
        said = f"is {what}, not a file" if what else "does not exist"
        raise UserError(f"{root} {said}", hint="point to a folder or file with bars")
    for path in sorted(root.rglob("*")):
        if path.is_dir() or not is_table(path) or path.name.startswith((".", "_")):
            continue
        stem = stem_of(path).lower()
        if what := other_than_file(path):
            label = str(path.relative_to(root))
            unread.append(DataFault(check="not a file", file=label, row=None, reason=f"{what}: it was not read"))
        elif stem in SIDE_TABLES:
            sides[SIDE_TABLES[stem]] = path
        else:
            bars.append(path)
    if not bars:
        raise UserError(f"{root} has no CSV or Parquet file with bars", hint="point to a folder that has some")
    return bars, sides, unread


_UNITS = {
    (100.0, 1.0): "volume counts lots of 100",
    (100.0, 1_000.0): "volume counts lots of 100 and amount thousands",
    (100.0, 10_000.0): "volume counts lots of 100 and amount ten thousands",
    (1.0, 1_000.0): "amount counts thousands",
    (1.0, 10_000.0): "amount counts ten thousands",
}
"""What vendors of A-shares count in: factors of volume and amount (akshare has the first, tushare the second)."""
_FITS = 0.9
"""The share of bars whose average price must lie inside the bar for a unit to be right."""
_CLOSE_ENOUGH = 0.01
"""How far outside its bar an average price may lie, relatively: a vendor rounds amounts."""


def _units(panel: Panel, bars: LongBars, root: Path, config: FilesConfig) -> list[DataFault]:
    """Find volumes and amounts in another unit: the average price, amount / volume, lies inside the day's bar."""
    if "amount" in bars.absent or "volume" in bars.absent:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        average = panel.bars["amount"] / panel.bars["volume"]
        ratio = average / panel.bars["close"]
    traded = np.isfinite(ratio) & (ratio > 0)
    middle = float(np.median(ratio[traded])) if traded.any() else 1.0
    if 0.5 < middle < 2:
        return []
    asked = config.volume_unit is not None or config.amount_unit is not None
    found = None
    if panel.facts.calendar == "XSHG" and not asked:
        low, high = (panel.bars[name][traded] for name in ("low", "high"))
        for (volume, amount), words in _UNITS.items():
            price = average[traded] * amount / volume
            inside = (price >= low * (1 - _CLOSE_ENOUGH)) & (price <= high * (1 + _CLOSE_ENOUGH))
            if found is None and inside.mean() >= _FITS:
                factors = f"-p volume_unit={volume:g}" + (f" -p amount_unit={amount:g}" if amount != 1 else "")
                found = f"{words}, by the average price: import it with {factors} (volume_unit=1 keeps it)"
    reason = f"amount is about {middle:.3g} times volume x close: "
    reason += found or "volume may count lots or amount thousands (say so with -p volume_unit=100)"
    severity: Severity = "warning" if found is None else "error"
    return [DataFault(check="volume unit", file=root.name, row=None, reason=reason, severity=severity)]


def _unknown_unit(bars: LongBars, when: BarTiming, config: FilesConfig) -> list[str]:
    """Say that A-shares without amounts do not show whether their volume counts shares or lots."""
    known = config.volume_unit is not None or "volume" in bars.absent or "amount" in bars.present
    if known or when.calendar != "XSHG":
        return []
    return ["volume is taken as shares: without amounts nobody can tell (lots of 100: -p volume_unit=100)"]


def _report(
    bars: LongBars, when: BarTiming, panel: Panel, side_files: dict[str, Path], notes: list[str]
) -> ImportReport:
    frequency = "daily"
    if when.close_time is not None:
        edge = f"stamped at the {when.stamps} of the bar"
        frequency = f"{when.minutes_per_bar} minutes, {edge}; daily bars made of them"
    if bars.adj_close is not None:
        notes.append("adjusted closes are there; ask for them with -p prices=adjusted")
    return ImportReport(
        files=len(bars.files),
        rows=int(bars.row.size),
        symbols=len(bars.symbols),
        first=str(panel.sessions[0]),
        last=str(panel.sessions[-1]),
        columns=bars.columns,
        dates=bars.stamps.spelling,
        frequency=frequency,
        calendar=when.calendar,
        timezone=when.timezone,
        side_files=tuple(path.name for path in side_files.values()),
        notes=tuple(notes),
    )


def _locator(
    name: str, bars: LongBars, grid: BarGrid, when: BarTiming, root: Path
) -> Callable[[DataFault], DataFault]:
    """Return a map from a fault of the panel to the same fault with the file and line of its bar, where known."""
    column = {symbol: index for index, symbol in enumerate(grid.symbols)}
    # Only where a bar came from: the rest would stay in memory during the writing.
    origin, sessions, files, file, line = grid.origin, grid.sessions, bars.files, bars.file, bars.row
    intraday = None if when.close_time is None else (when.close_time, bars.stamps.good, bars.symbol)

    @cache  # most imports have no fault to look up
    def rows() -> dict[Any, int]:
        if intraday is None:
            return {str(day): index for index, day in enumerate(sessions)}
        close_time, good, symbol = intraday
        times = np.unique(close_time[good])
        keys = zip(np.searchsorted(times, close_time).tolist(), symbol.tolist(), strict=True)
        return {key: at for at, key in enumerate(keys)}

    def locate(fault: DataFault) -> DataFault:
        at = -1
        if intraday is not None:
            if fault.file.endswith("/minutes") and fault.row is not None and fault.symbol:
                at = rows().get((fault.row - 1, column[fault.symbol]), -1)
        elif fault.file.endswith("/bars") and fault.session in rows():
            there = origin[rows()[fault.session]]
            there = there[column[fault.symbol]] if fault.symbol else there[there >= 0]
            at = int(np.min(there, initial=np.iinfo(np.int32).max)) if np.size(there) else -1
        if at < 0:
            return msgspec.structs.replace(
                fault, file=fault.file.replace(f"{name}/", f"{root.name}/", 1), row=None
            )
        return msgspec.structs.replace(fault, file=files[file[at]], row=int(line[at]))

    return locate
