"""Read a folder of bar files and their side files into a panel, and report guesses and faults."""

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

from tradeassay.core.arrays import Days, Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.tables.cells import is_table, other_than_file, stem_of
from tradeassay.tables.faults import DataFault, Severity
from tradeassay_bench.core.orders import LARGEST_PRICE, LEAST_PRICE
from tradeassay_bench.core.time import DAY, Instant
from tradeassay_bench.core.view import (
    FIELDS,
    Board,
    CorporateAction,
    Field,
    Fundamental,
    Instrument,
    NewsItem,
)
from tradeassay_bench.data.doctor import diagnose_panel, faults_by_file
from tradeassay_bench.data.names import ashare_code
from tradeassay_bench.data.source import (
    Listing,
    Membership,
    MinutePanel,
    Panel,
    PanelFacts,
    action_known_at,
)
from tradeassay_bench.data.store.write import normalised
from tradeassay_bench.data.tables.bars import (
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
from tradeassay_bench.data.tables.files import FilesConfig, ImportReport
from tradeassay_bench.data.tables.typed import RawTable, read_stamps, read_table

NO_MEMBERSHIP = "no dated index membership: the universe is whoever is in the files"
"""A bias of a panel. Biases are part of a dataset's hash, so their wording must not change."""
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
        | {
            "symbols": "symbol tickers ticker",
            "body": "text content summary",
            "source": "site publisher",
        }
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
"""For each kind of side file: the required columns, and all columns with alternative names."""
_TEXT = ("name", "kind", "sector", "currency", "expiry", "root")
_FIGURES = ("lot", "step", "tick", "multiplier")


class _Axis:
    """The symbols and sessions of the bars, with which the rows of side files are matched."""

    def __init__(self, symbols: tuple[str, ...], sessions: Days, open_time: Ints) -> None:
        self.sessions, self.open_time = sessions, open_time
        self._symbols = frozenset(symbols)
        self._codes = {
            code: symbol for symbol in symbols if (code := ashare_code(symbol)) is not None
        }

    def symbol(self, text: str) -> str | None:
        """Return the bars' symbol for a symbol in any spelling, or None if there is none."""
        if text in self._symbols:
            return text
        code = ashare_code(text)
        return None if code is None else self._codes.get(code)


class _Reader:
    """Read one side file. Its errors name file, line and column.

    ``cells`` contains the columns by role, with empty strings for empty cells. ``faults`` contains
    the rows that were skipped or changed. ``notes`` are sentences about the file.
    """

    def __init__(self, kind: str, path: Path, axis: _Axis) -> None:
        self.path, self.axis = path, axis
        self.faults: list[DataFault] = []
        self.notes: list[str] = []
        self.table: RawTable = read_table(path, path.name)
        if self.table.faults:
            raise UserError(str(self.table.faults[0]), hint="fix the line")
        needed, known = _COLUMNS[kind]
        by_lower_name = {name.strip().lower(): name for name in self.table.columns}
        self.columns: dict[str, str] = {}
        for role, names in known.items():
            for name in (role, *names.split()):
                if name in by_lower_name:
                    self.columns[role] = by_lower_name[name]
                    break
        missing = [role for role in needed.split() if role not in self.columns]
        if missing:
            problem = (
                f"{path.name}: no column {' and '.join(missing)} among "
                f"{', '.join(self.table.columns)}"
            )
            raise UserError(problem, hint=f"it needs {', '.join(needed.split())}")
        self.cells: dict[str, list[str]] = {}
        for role, name in self.columns.items():
            texts = self.table.columns[name].cast(pa.string()).fill_null("").to_pylist()
            self.cells[role] = [text.strip() for text in texts]

    def rows(self) -> Iterator[tuple[int, int, Row, str]]:
        """Yield (index, line, cells, symbol) of each row whose symbol is in the bars.

        Every other row becomes a fault.
        """
        for index, line in enumerate(self.table.rows.tolist()):
            row = {role: cells[index] for role, cells in self.cells.items()}
            symbol = self.axis.symbol(row["symbol"])
            if symbol is None:
                self.unknown(line, row["symbol"])
            else:
                yield index, line, row, symbol

    def error(self, line: int, problem: str) -> UserError:
        """Return the error for a line that cannot be read."""
        return UserError(f"{self.table.file}:{line}: {problem}", hint="fix the line")

    def days(self, role: str, *, optional: bool = False) -> list[str]:
        """Return a column as ISO days.

        An ``optional`` column may be missing or have empty cells, which become empty strings.
        """
        if optional and role not in self.columns:
            return [""] * len(self.table.rows)
        stamps, _ = read_stamps(self.table, self.columns[role])
        days: list[str] = (stamps.local // DAY).astype("datetime64[D]").astype(str).tolist()
        for index in np.flatnonzero(~stamps.good).tolist():
            cell, days[index] = self.cells[role][index], ""
            if cell or not optional:
                raise self.error(int(self.table.rows[index]), f"{role} '{cell}' is not a date")
        return days

    def instants(self, role: str) -> list[Instant | None]:
        """Return a column as instants.

        A date without a time means the end of the day, 24:00 UTC, because information about a day
        is only certain to be known after that day. Raises :class:`UserError` for a time without a
        zone.
        """
        stamps, _ = read_stamps(self.table, self.columns[role])
        result: list[Instant | None] = []
        for index, line in enumerate(self.table.rows.tolist()):
            local, cell = int(stamps.local[index]), self.cells[role][index]
            if not stamps.good[index]:
                if cell:
                    self.fault(line, "undated record", f"{role} '{cell}' is not a timestamp")
                result.append(None)
            elif bool(stamps.zoned[index]):
                result.append(local - int(stamps.offset[index]))
            elif local % DAY == 0:
                result.append(local + DAY)
            else:
                raise self.error(
                    line, f"{role} has a time but no zone; write e.g. 2025-03-03T14:30:00Z"
                )
        return result

    def fault(self, line: int, check: str, reason: str, severity: Severity = "error") -> None:
        """Record a fault of a line."""
        fault = DataFault(
            check=check, file=self.table.file, row=line, reason=reason, severity=severity
        )
        self.faults.append(fault)

    def unknown(self, line: int, name: str) -> None:
        """Record a fault for a row whose symbol or day is not in the bars."""
        reason = f"{name} is not in the bars; the row is left out"
        self.fault(line, "unknown symbol or day", reason, "warning")

    def number(self, line: int, role: str, cell: str) -> float:
        """Return a cell as a number. Raises :class:`UserError` with the line for any other text."""
        value = _number(cell)
        if value is None:
            raise self.error(line, f"expected a number for {role}, got '{cell}'")
        return value


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None


def _actions(reader: _Reader) -> tuple[CorporateAction, ...]:
    """Return the corporate actions of a side file.

    A row may contain a split, a dividend or both. Actions without effect are skipped with a note.
    """
    axis, name = reader.axis, reader.path.name
    if not {"value", "split", "dividend"} & set(reader.columns):
        raise UserError(
            f"{name}: no column value, split or dividend",
            hint="add kind and value, or either split or dividend",
        )
    days = reader.days("ex_date")
    known = reader.instants("known_at") if "known_at" in reader.columns else None
    undated = {fault.row for fault in reader.faults}
    result: list[CorporateAction] = []
    without_effect = 0
    unannounced = 0
    for index, line, row, symbol in reader.rows():
        if line in undated:
            continue
        place = int(np.searchsorted(axis.sessions, np.datetime64(days[index], "D")))
        latest = action_known_at(int(axis.open_time[min(place, axis.sessions.size - 1)]))
        announced = None if known is None else known[index]
        unannounced += known is not None and announced is None
        at = latest if announced is None else announced
        if at > latest and place < axis.sessions.size:
            reason = (
                f"{symbol} is announced after its ex-date {days[index]} and taken as known on it"
            )
            reader.fault(line, "late action", reason, "warning")
            at = latest
        kinds: list[tuple[Any, str]] = [
            (kind, row[kind]) for kind in ("split", "dividend") if row.get(kind)
        ]
        if row.get("kind") or row.get("value"):
            kinds = [(row.get("kind", "").lower(), row.get("value", ""))]
        for kind, cell in kinds:
            if kind not in ("split", "dividend"):
                raise reader.error(line, f"expected split or dividend, got kind '{kind}'")
            value = _number(cell)
            if value == (0.0 if kind == "dividend" else 1.0):
                without_effect += 1
            elif value is None or not LEAST_PRICE <= value <= LARGEST_PRICE:
                reason = (
                    f"{kind} '{cell}' of {symbol} on {days[index]} is not a positive number; "
                    "it is left out"
                )
                reader.fault(line, "bad action", reason)
            else:
                action = CorporateAction(
                    kind=kind, value=value, symbol=symbol, ex_date=days[index], known_at=at
                )
                result.append(action)
    if without_effect:
        reader.notes.append(
            f"{without_effect:,} entries of {name} have no effect (dividend 0, split 1)"
        )
    if unannounced:
        reader.notes.append(
            f"{unannounced:,} rows of {name} have no known_at and count as known on their ex-date"
        )
    return tuple(result)


def _memberships(reader: _Reader) -> tuple[Membership, ...]:
    """Return the dated memberships of a side file."""
    starts, ends = reader.days("start"), reader.days("end", optional=True)
    memberships = []
    for index, _, row, symbol in reader.rows():
        membership = Membership(
            index=row.get("index") or "INDEX",
            symbol=symbol,
            start=starts[index],
            end=ends[index] or None,
        )
        memberships.append(membership)
    return tuple(memberships)


def _news(reader: _Reader) -> tuple[NewsItem, ...]:
    """Return the news items of a side file. Repeated and undated items become faults."""
    result: dict[str, NewsItem] = {}
    published = reader.instants("published_at")
    columns = reader.cells.items()
    for index, line in enumerate(reader.table.rows.tolist()):
        moment, row = published[index], {role: cells[index] for role, cells in columns}
        if moment is None:
            if not row["published_at"]:
                reader.fault(line, "undated record", f"'{row['title'][:40]}' has no published_at")
            continue
        names = row.get("symbols", "").replace(";", " ").replace("|", " ").replace(",", " ").split()
        symbols = tuple(dict.fromkeys(reader.axis.symbol(name) or name for name in names))
        # An item without an id is identified by its content.
        content = f"{moment}\x1f{row['title']}\x1f{row.get('url', '')}\x1f{' '.join(symbols)}"
        name = row.get("id") or sha256_bytes(content.encode())[:16]
        if name in result and not row.get("id"):
            reader.fault(
                line, "repeated news", f"'{row['title'][:40]}' is repeated and left out", "warning"
            )
            continue
        texts = {role: row.get(role, "") for role in ("title", "body", "source", "url")}
        result[name] = NewsItem(id=name, published_at=moment, symbols=symbols, **texts)
    return tuple(result.values())


def _fundamentals(reader: _Reader) -> tuple[Fundamental, ...]:
    """Return the fundamentals of a side file. Figures without a date or number become faults."""
    periods, known = reader.days("period_end"), reader.instants("known_at")
    result: list[Fundamental] = []
    empty = 0
    for index, line, row, symbol in reader.rows():
        known_at, label = known[index], f"{row['field']} of {row['symbol']}"
        if known_at is None:
            if not row["known_at"]:
                reason = f"{label} has no known_at and cannot be shown at any time; it is left out"
                reader.fault(line, "undated record", reason)
        elif not row["value"]:
            empty += 1
        elif (value := _number(row["value"])) is None or not isfinite(value):
            reader.fault(line, "bad figure", f"{label}: '{row['value']}' is not a number; left out")
        else:
            figure = Fundamental(
                known_at=known_at,
                value=value,
                symbol=symbol,
                field=row["field"],
                period_end=periods[index],
            )
            result.append(figure)
    if empty:
        reader.notes.append(f"{empty:,} rows of {reader.path.name} have no value and are left out")
    return tuple(result)


def _indices(reader: _Reader) -> dict[str, Floats]:
    """Return the closing levels of a side file by index, one per session."""
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


def _instruments(
    path: Path, default: Callable[[str], Instrument], axis: _Axis
) -> dict[str, Listing]:
    """Return instruments and their listing days by symbol from an instruments file.

    Fields missing in the file are taken from ``default``.
    """
    reader = _Reader("instruments", path, axis)
    listed, delisted = reader.days("listed", optional=True), reader.days("delisted", optional=True)
    result: dict[str, Listing] = {}
    for index, line, row, symbol in reader.rows():
        facts: dict[str, Any] = {name: row[name] for name in _TEXT if row.get(name)}
        facts |= {name: reader.number(line, name, row[name]) for name in _FIGURES if row.get(name)}
        if row.get("board"):
            if row["board"] not in tuple(Board):
                raise reader.error(line, f"board '{row['board']}' is not one of {', '.join(Board)}")
            facts["board"] = Board(row["board"])
        instrument = msgspec.structs.replace(default(symbol), **facts)
        result[symbol] = Listing(
            instrument=instrument, listed=listed[index], delisted=delisted[index] or None
        )
    return result


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported panel with its report and the faults of individual rows.

    ``locate`` maps a fault of the panel to the file and line of its bar.
    """

    panel: Panel
    faults: tuple[DataFault, ...]
    report: ImportReport
    locate: Callable[[DataFault], DataFault]

    def diagnose(self) -> tuple[DataFault, ...]:
        """Return all faults of the rows and of the panel, located in the files, errors first."""
        panel_faults = map(self.locate, diagnose_panel(normalised(self.panel)))
        return tuple(sorted([*self.faults, *panel_faults], key=lambda fault: fault.severity))


def read_files(config: FilesConfig) -> Imported:
    """Return the panel of a folder or file of bars and its side files, with a report.

    Faults of rows are returned with the panel. Raises :class:`UserError` for unreadable files.
    """
    root = Path(config.path).expanduser()
    bar_files, side_files, unread = _tables(root, config.beside)
    bars, faults = read_bars(bar_files, root, config)
    when, timing_faults = timing(bars, config)
    faults += unread + timing_faults
    minutes: MinutePanel | None = None
    if when.close_time is not None:
        grid, minutes, grid_faults = minute_grid(bars, when)
        values = dict(minutes.bars)
        fill_prices(values, bars)
        minutes = replace(minutes, bars=values)
    else:
        grid, grid_faults = daily_grid(bars, when)
    faults += grid_faults
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
    side_faults: list[DataFault] = []
    side_notes: list[str] = []
    for reader in readers.values():
        side_faults += reader.faults
        side_notes += reader.notes
    faults += side_faults
    side_notes += faults_by_file(side_faults)
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
    notes = biases + side_notes + _unknown_unit(bars, when, config)
    report = _report(bars, when, panel, side_files, notes)
    return Imported(panel, tuple(faults), report, _locator(panel.name, bars, grid, when, root))


def panel_of_grid(
    name: str,
    facts: PanelFacts,
    grid: BarGrid,
    listings: Sequence[Listing],
    times: tuple[Ints, Ints],
    **more: Any,
) -> Panel:
    """Return the panel of a grid, with columns sorted by (listed, symbol).

    The bars are moved out of the grid to save memory.
    """
    order = sorted(range(len(listings)), key=lambda i: (listings[i].listed, grid.symbols[i]))
    bars: dict[Field, Floats] = {}
    for field in FIELDS:
        # Moved field by field. A second copy of all fields would double the memory.
        values = grid.bars.pop(field)
        bars[field] = values if order == list(range(len(order))) else values[:, order]
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
    """Return the bar files, the side files by kind, and faults for entries that are not files.

    ``beside`` is another folder with side files, or None.
    """
    bars: list[Path] = []
    sides: dict[str, Path] = {}
    unread = []
    if beside is not None:
        folder = Path(beside).expanduser()
        if not folder.is_dir():
            raise UserError(f"{folder} does not exist", hint="give a folder with side files")
        for path in sorted(folder.iterdir()):
            stem = stem_of(path).lower()
            if is_table(path) and stem in SIDE_TABLES:
                sides[SIDE_TABLES[stem]] = path
        if not sides:
            raise UserError(f"{folder} has no side file", hint=f"one of {', '.join(SIDE_TABLES)}")
    if root.is_file():
        if not is_table(root):
            problem = f"{root.name} is not a CSV, .xlsx or Parquet file"
            raise UserError(problem, hint="give a folder or such a file")
        return [root], sides, []
    if not root.is_dir():
        kind = other_than_file(root)
        problem = f"is {kind}, not a file" if kind else "does not exist"
        raise UserError(f"{root} {problem}", hint="give a folder or file with bars")
    for path in sorted(root.rglob("*")):
        if path.is_dir() or not is_table(path) or path.name.startswith((".", "_")):
            continue
        stem = stem_of(path).lower()
        if kind := other_than_file(path):
            label = str(path.relative_to(root))
            reason = f"{kind}: it was not read"
            unread.append(DataFault(check="not a file", file=label, row=None, reason=reason))
        elif stem in SIDE_TABLES:
            sides[SIDE_TABLES[stem]] = path
        else:
            bars.append(path)
    if not bars:
        raise UserError(
            f"{root} has no CSV or Parquet file with bars", hint="give a folder with such files"
        )
    return bars, sides, unread


_UNITS = {
    (100.0, 1.0): "volume counts lots of 100",
    (100.0, 1_000.0): "volume counts lots of 100 and amount thousands",
    (100.0, 10_000.0): "volume counts lots of 100 and amount ten thousands",
    (1.0, 1_000.0): "amount counts thousands",
    (1.0, 10_000.0): "amount counts ten thousands",
}
"""Units used by vendors of A-shares, as factors of (volume, amount). akshare uses the first,
tushare the second.
"""
_FITS = 0.9
"""Minimum share of bars whose average price must be inside the bar for a unit to fit."""
_CLOSE_ENOUGH = 0.01
"""Largest relative distance of an average price from its bar that counts as inside, because vendors
round amounts.
"""


def _units(panel: Panel, bars: LongBars, root: Path, config: FilesConfig) -> list[DataFault]:
    """Return a list with a fault if volumes or amounts seem to be in a different unit.

    In the right unit the average price, amount / volume, is inside the day's bar.
    """
    if "amount" in bars.absent or "volume" in bars.absent:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        average = panel.bars["amount"] / panel.bars["volume"]
        ratio = average / panel.bars["close"]
    traded = np.isfinite(ratio) & (ratio > 0)
    middle = float(np.median(ratio[traded])) if traded.any() else 1.0
    if 0.5 < middle < 2:
        return []
    unit_is_given = config.volume_unit is not None or config.amount_unit is not None
    fitting_unit = None
    if panel.facts.calendar == "XSHG" and not unit_is_given:
        low, high = panel.bars["low"][traded], panel.bars["high"][traded]
        for (volume, amount), description in _UNITS.items():
            price = average[traded] * amount / volume
            inside = (price >= low * (1 - _CLOSE_ENOUGH)) & (price <= high * (1 + _CLOSE_ENOUGH))
            if inside.mean() >= _FITS:
                options = f"-p volume_unit={volume:g}"
                if amount != 1:
                    options += f" -p amount_unit={amount:g}"
                fitting_unit = (
                    f"{description}, by the average price: "
                    f"import it with {options} (volume_unit=1 keeps it)"
                )
                break
    reason = f"amount is about {middle:.3g} times volume x close: "
    reason += fitting_unit or (
        "volume may count lots or amount thousands (in that case, add -p volume_unit=100)"
    )
    severity: Severity = "warning" if fitting_unit is None else "error"
    return [
        DataFault(check="volume unit", file=root.name, row=None, reason=reason, severity=severity)
    ]


def _unknown_unit(bars: LongBars, when: BarTiming, config: FilesConfig) -> list[str]:
    """Return a list with a note if the unit of A-share volumes (shares or lots) is unknown."""
    known = config.volume_unit is not None or "volume" in bars.absent or "amount" in bars.present
    if known or when.calendar != "XSHG":
        return []
    return [
        "volume is read as shares, unverified without amounts (lots of 100: -p volume_unit=100)"
    ]


def _report(
    bars: LongBars, when: BarTiming, panel: Panel, side_files: dict[str, Path], notes: list[str]
) -> ImportReport:
    """Return the report on an import."""
    frequency = "daily"
    if when.close_time is not None:
        edge = f"stamped at the {when.stamps} of the bar"
        frequency = f"{when.minutes_per_bar} minutes, {edge}; converted to daily bars"
    if bars.adj_close is not None:
        notes.append("the files have adjusted closes; use them with -p prices=adjusted")
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
    """Return a function that adds a bar's file and line to a fault of the panel, if known."""
    column = {symbol: index for index, symbol in enumerate(grid.symbols)}
    # The closure references only these arrays, so that the bars are freed before the snapshot is
    # written.
    origin, sessions = grid.origin, grid.sessions
    files, file, line = bars.files, bars.file, bars.row
    intraday = None if when.close_time is None else (when.close_time, bars.stamps.good, bars.symbol)

    @cache  # most imports have no fault to locate
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
            origins = origin[rows()[fault.session]]
            origins = origins[column[fault.symbol]] if fault.symbol else origins[origins >= 0]
            at = int(np.min(origins, initial=np.iinfo(np.int32).max)) if np.size(origins) else -1
        if at < 0:
            return msgspec.structs.replace(
                fault, file=fault.file.replace(f"{name}/", f"{root.name}/", 1), row=None
            )
        return msgspec.structs.replace(fault, file=files[file[at]], row=int(line[at]))

    return locate
