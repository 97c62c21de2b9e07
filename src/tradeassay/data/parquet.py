"""Parquet at the edges: a snapshot as a folder of plain tables for other tools, and back again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from tradeassay.core.errors import UNDECODABLE, DataError, UserError
from tradeassay.core.files import holds_own_hash, whole_folder, with_own_hash
from tradeassay.core.view import FIELDS, Days, Field, Floats, Ints
from tradeassay.data.panel import MinutePanel, Panel, PanelFacts
from tradeassay.data.store.manifest import (
    RECORDS,
    FileEntry,
    Manifest,
    file_entry,
    indices_table,
    listings_table,
    made_records,
    read_listings,
    record_tables,
)
from tradeassay.data.store.read import check_hash, read_panel
from tradeassay.data.store.write import write_snapshot

FACTS_FILE = "facts.json"
AGAIN = "export the snapshot again"


class _Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    facts: PanelFacts
    files: dict[str, FileEntry] = {}
    own_sha256: str = ""


def export_parquet(snapshot: Path, folder: Path) -> tuple[Path, ...]:
    """Write a snapshot as Parquet into a new folder. It holds everything: :func:`import_parquet` gives back a
    snapshot with the same content hash.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty", hint="choose another folder")
    panel = read_panel(snapshot)
    with whole_folder(folder) as place:
        _export(panel, place)
    return tuple(sorted(folder.iterdir()))


def _export(panel: Panel, folder: Path) -> None:
    written = {
        "sessions": _sessions_table(panel),
        "bars": _long(panel.sessions, panel.symbols, panel.bars, {"suspended": panel.suspended}),
        "listings": listings_table(panel.listings),
        "indices": indices_table(panel.sessions, panel.indices),
    }
    written |= record_tables(panel)
    if panel.minutes is not None:
        minutes = panel.minutes
        written["minutes"] = _long(minutes.close_time, minutes.symbols, minutes.bars, {}, "close_time")
    files: dict[str, FileEntry] = {}
    for name, table in written.items():
        path = folder / f"{name}.parquet"
        pa.parquet.write_table(table, path, compression="zstd")
        files[path.name] = file_entry(path)
    (folder / FACTS_FILE).write_bytes(with_own_hash(_Facts(name=panel.name, facts=panel.facts, files=files))[1])


def import_parquet(folder: Path, snapshot: Path, *, allow_faults: bool = False) -> Manifest:
    """Write a snapshot from a folder of :func:`export_parquet`; raises :class:`DataError` naming a wrong file."""
    facts = _facts(folder)
    for name, entry in facts.files.items():
        check_hash(folder / name, entry)
    try:
        panel = _panel(folder, facts)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise DataError(f"{folder} does not hold an exported snapshot: {error}", hint=AGAIN) from error
    return write_snapshot(panel, snapshot, allow_faults=allow_faults)


def _facts(folder: Path) -> _Facts:
    path = folder / FACTS_FILE
    try:
        content = path.read_bytes()
        facts = msgspec.json.decode(content, type=_Facts)
    except FileNotFoundError:
        raise DataError(f"{folder} has no {FACTS_FILE}", hint="import it as plain files instead") from None
    except UNDECODABLE as error:
        raise DataError(f"{path} is damaged: {error}", hint=AGAIN) from error
    if not facts.files:
        raise DataError(f"{path} holds no hashes: it was exported by an earlier version", hint=AGAIN)
    if not holds_own_hash(content):
        raise DataError(f"{path} was altered after it was written", hint=AGAIN)
    return facts


def _panel(folder: Path, facts: _Facts) -> Panel:
    sessions = _read(folder, "sessions")
    days = sessions.column("session").to_numpy().astype("datetime64[D]")
    listings = read_listings(_read(folder, "listings"))
    symbols = tuple(entry.instrument.symbol for entry in listings)
    bars = _read(folder, "bars")
    indices = _read(folder, "indices")
    return Panel(
        name=facts.name,
        facts=facts.facts,
        listings=listings,
        sessions=days,
        open_time=sessions.column("open_time").to_numpy(),
        close_time=sessions.column("close_time").to_numpy(),
        bars=_grid(bars, days.size, len(symbols)),
        suspended=np.asarray(bars.column("suspended").to_numpy(), dtype=np.bool_).reshape(days.size, len(symbols)),
        minutes=_minutes(folder),
        indices={name: indices.column(name).to_numpy() for name in indices.column_names if name != "session"},
        **made_records({kind: _read(folder, kind) for kind in RECORDS}),
    )


def _sessions_table(panel: Panel) -> pa.Table:
    return pa.table(
        {
            "session": pa.array(panel.sessions, type=pa.date32()),
            "open_time": pa.array(panel.open_time),
            "close_time": pa.array(panel.close_time),
        }
    )


def _long(
    rows: Days | Ints, symbols: tuple[str, ...], bars: Any, flags: dict[str, Any], label: str = "session"
) -> pa.Table:
    columns: dict[str, Any] = {
        label: pa.array(np.repeat(rows, len(symbols))),
        "symbol": pa.DictionaryArray.from_arrays(
            pa.array(np.tile(np.arange(len(symbols), dtype=np.int32), rows.size)), pa.array(symbols)
        ),
    }
    columns |= {field: pa.array(np.ascontiguousarray(bars[field]).reshape(-1)) for field in FIELDS}
    columns |= {name: pa.array(values.reshape(-1)) for name, values in flags.items()}
    return pa.table(columns)


def _read(folder: Path, name: str) -> pa.Table:
    path = folder / f"{name}.parquet"
    try:
        return pa.parquet.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing", hint=AGAIN) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is damaged: {error}", hint=AGAIN) from error


def _grid(table: pa.Table, rows: int, columns: int) -> dict[Field, Floats]:
    if table.num_rows != rows * columns:
        raise DataError(f"bars.parquet has {table.num_rows} rows, not {rows} sessions x {columns} symbols")
    return {field: table.column(field).to_numpy().reshape(rows, columns) for field in FIELDS}


def _minutes(folder: Path) -> MinutePanel | None:
    if not (folder / "minutes.parquet").exists():
        return None
    table = _read(folder, "minutes")
    symbols = tuple(dict.fromkeys(table.column("symbol").to_pylist()))
    rows = table.num_rows // max(1, len(symbols))
    times = table.column("close_time").to_numpy()[:: max(1, len(symbols))]
    return MinutePanel(symbols, times, _grid(table, rows, len(symbols)))
