"""From a folder of files to a panel, with what was guessed and what is wrong, each with file and line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import FIELDS, Field, Floats
from tradeassay.data.doctor import diagnose_panel
from tradeassay.data.fault import DataFault, told_once
from tradeassay.data.panel import MinutePanel, Panel, PanelFacts
from tradeassay.data.store.write import normalised
from tradeassay.data.tables import grid as grids
from tradeassay.data.tables.bars import SIDE_TABLES, BarTiming, LongBars, read_bars, session_times, timing
from tradeassay.data.tables.cells import Stamps, is_table, other_than_file, stem_of
from tradeassay.data.tables.columns import FilesConfig, ImportReport
from tradeassay.data.tables.sides import Axis, SideTables, read_instruments, read_sides

Locate = Callable[[DataFault], DataFault]


@dataclass(frozen=True, slots=True)
class Imported:
    """A panel, the faults of its rows, the guesses, and a map from faults of content to files and lines."""

    panel: Panel
    faults: tuple[DataFault, ...]
    report: ImportReport
    locate: Locate

    def diagnose(self) -> tuple[DataFault, ...]:
        """Return everything wrong, located in the files, errors first."""
        found = [*self.faults, *map(self.locate, diagnose_panel(normalised(self.panel)))]
        return tuple(sorted(found, key=lambda fault: fault.severity))


def read_files(config: FilesConfig) -> Imported:
    """Read a folder or file of bars and the side files beside it; what is wrong in rows comes back as faults."""
    root = Path(config.path).expanduser()
    bar_files, side_files, unread = _tables(root)
    if config.beside is not None:
        side_files = {**_side_tables(Path(config.beside).expanduser()), **side_files}
    bars, faults = read_bars(bar_files, root, config)
    faults += unread
    when, found = timing(bars, config)
    faults += found
    minutes: MinutePanel | None = None
    if when.frequency == "1m":
        grid, minutes, found = grids.minute_grid(bars, when)
        values = dict(minutes.bars)
        grids.fill_prices(values, bars)
        minutes = replace(minutes, bars=values)
    else:
        grid, found = grids.daily_grid(bars, when)
    faults += found
    grid, notes = grids.complete(grid, bars, when.calendar, config)
    opens, closes = session_times(when.calendar, grid.sessions)
    axis = Axis(grid.symbols, grid.sessions, opens)
    known = {}
    if "instruments" in side_files:
        known = read_instruments(
            side_files["instruments"], lambda symbol: grids.default_instrument(symbol, when.calendar, config), axis
        )
    listings, inferred = grids.listings_of(grid, when.calendar, config, known)
    sides = read_sides(side_files, axis)
    faults += sides.faults
    notes += inferred
    order = sorted(range(len(listings)), key=lambda i: (listings[i].listed, grid.symbols[i]))
    panel = Panel(
        name=config.name or stem_of(root),
        facts=_facts(config, when, sides, notes, root),
        listings=tuple(listings[i] for i in order),
        sessions=grid.sessions,
        open_time=opens,
        close_time=closes,
        # Taken out of the grid one by one, as all fields twice would be most of the memory of a large import.
        bars={field: _take(grid.bars, field, order) for field in FIELDS},
        suspended=grid.suspended[:, order],
        minutes=minutes,
        actions=sides.actions,
        memberships=sides.memberships,
        indices=sides.indices,
        fundamentals=sides.fundamentals,
        news=sides.news,
    )
    faults += _volume_unit(panel, bars, root)
    report = _report(bars, when, panel, sides, side_files, notes)
    if when.close_time is None:
        # Only where a bar came from is needed from here on; the rest would stay in memory during the writing.
        none = np.empty(0, dtype=np.int64)
        stamps = Stamps(none, none, none > 0, none > 0, bars.stamps.spelling)
        bars = replace(
            bars, stamps=stamps, symbol=none.astype(np.int32), halted=none > 0, values={}, adj_close=None
        )
        when = replace(when, day=none.astype("datetime64[D]"))
    return Imported(panel, tuple(faults), report, _locator(panel.name, bars, grid, when, root))


def _take(values: dict[Field, Floats], field: Field, order: list[int]) -> Floats:
    taken = values.pop(field)
    return taken if order == list(range(len(order))) else taken[:, order]


def _tables(root: Path) -> tuple[list[Path], dict[str, Path], list[DataFault]]:
    if root.is_file():
        if not is_table(root):
            raise UserError(
                f"{root.name} is not a CSV, .xlsx or Parquet file", hint="point to a folder or such a file"
            )
        return [root], {}, []
    if (what := other_than_file(root)) and not root.is_dir():
        raise UserError(f"{root} is {what}, not a file", hint="save the table as a file")
    if not root.is_dir():
        raise UserError(f"{root} does not exist", hint="point to a folder or file with bars")
    bars, sides, unread = [], {}, []
    for path in sorted(root.rglob("*")):
        if path.is_dir() or not is_table(path) or path.name.startswith((".", "_")):
            continue
        stem = stem_of(path).lower()
        if what := other_than_file(path):
            label = str(path.relative_to(root))
            unread.append(DataFault(check="not a file", file=label, row=None, reason=f"{what}: it was not read"))
        elif stem in SIDE_TABLES:
            sides["memberships" if stem == "membership" else stem] = path
        else:
            bars.append(path)
    if not bars:
        raise UserError(f"{root} has no CSV or Parquet file with bars", hint="point to a folder that has some")
    return bars, sides, unread


def _side_tables(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise UserError(f"{folder} does not exist", hint="point to a folder with side files")
    found = {stem_of(path).lower(): path for path in sorted(folder.iterdir()) if is_table(path)}
    sides = {stem: path for stem, path in found.items() if stem in SIDE_TABLES}
    if not sides:
        raise UserError(f"{folder} has no side file", hint=f"one of {', '.join(SIDE_TABLES)}")
    return {"memberships" if stem == "membership" else stem: path for stem, path in sides.items()}


def _facts(config: FilesConfig, when: BarTiming, sides: SideTables, notes: list[str], root: Path) -> PanelFacts:
    biases = [*config.biases, *notes]
    if not sides.memberships:
        biases.append("no dated index membership: the universe is whoever is in the files")
    adjusted = "total" if config.prices == "adjusted" else config.adjusted
    return PanelFacts(
        kind="real",
        source="files",
        query=root.name,
        currency=config.currency or grids.CURRENCY[when.calendar],
        calendar=when.calendar,
        adjusted=adjusted,
        biases=tuple(biases),
        licence=config.licence,
        minutes_per_bar=when.minutes_per_bar,
    )


def _volume_unit(panel: Panel, bars: LongBars, root: Path) -> list[DataFault]:
    """Warn when traded amount and volume suggest that volume counts lots."""
    if "amount" in bars.absent or "volume" in bars.absent:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = panel.bars["amount"] / (panel.bars["volume"] * panel.bars["close"])
    ratio = ratio[np.isfinite(ratio) & (ratio > 0)]
    middle = float(np.median(ratio)) if ratio.size else 1.0
    if 0.5 < middle < 2:
        return []
    return [
        DataFault(
            check="volume unit",
            file=root.name,
            row=None,
            reason=f"amount is about {middle:.3g} times volume x close: volume may count lots or amount thousands "
            "(say so with -o volume_unit=100)",
            severity="warning",
        )
    ]


def _report(
    bars: LongBars, when: BarTiming, panel: Panel, sides: SideTables, side_files: dict[str, Path], notes: list[str]
) -> ImportReport:
    if when.frequency == "1m":
        frequency = (
            f"{when.minutes_per_bar} minutes, stamped at the {when.stamps} of the bar; daily bars made of them"
        )
    else:
        frequency = "daily"
    skipped = [*sides.notes, *told_once(sides.faults)]
    if bars.adj_close is not None:
        skipped.append("adjusted closes are there; ask for them with -o prices=adjusted")
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
        notes=tuple(notes + skipped),
    )


def _locator(name: str, bars: LongBars, grid: grids.BarGrid, when: BarTiming, root: Path) -> Locate:
    origin, sessions = grid.origin, grid.sessions
    column = {symbol: index for index, symbol in enumerate(grid.symbols)}
    days: dict[str, int] = {}
    minute_rows: dict[tuple[int, int], int] = {}

    def long_row(fault: DataFault) -> int | None:
        if when.close_time is not None:
            if not fault.file.endswith("/minutes") or fault.row is None or not fault.symbol:
                return None
            if not minute_rows:
                times = np.unique(when.close_time[bars.stamps.good])
                rows = np.searchsorted(times, when.close_time).tolist()
                minute_rows.update(
                    {
                        (row, int(symbol)): at
                        for at, (row, symbol) in enumerate(zip(rows, bars.symbol, strict=True))
                    }
                )
            return minute_rows.get((fault.row - 1, bars.symbols.index(fault.symbol)))
        if not fault.session or not fault.file.endswith("/bars"):
            return None
        if not days:
            days.update({str(day): index for index, day in enumerate(sessions)})
        row = days.get(fault.session)
        if row is None:
            return None
        if fault.symbol:
            at = int(origin[row, column[fault.symbol]])
        else:
            there = origin[row][origin[row] >= 0]
            at = int(there.min()) if there.size else -1
        return at if at >= 0 else None

    def locate(fault: DataFault) -> DataFault:
        at = long_row(fault)
        if at is not None:
            return msgspec.structs.replace(fault, file=bars.files[bars.file[at]], row=int(bars.row[at]))
        return msgspec.structs.replace(fault, file=fault.file.replace(f"{name}/", f"{root.name}/", 1), row=None)

    return locate
