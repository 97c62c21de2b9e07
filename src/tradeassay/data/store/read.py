"""Open the Arrow files of a snapshot: memory-mapped, checked cheaply, refused with the file's name when wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from tradeassay.core.errors import DataError
from tradeassay.core.hashing import sha256_file
from tradeassay.core.view import FIELDS
from tradeassay.data.panel import MinutePanel, Panel
from tradeassay.data.store import tables
from tradeassay.data.store.arrays import column, days, plain
from tradeassay.data.store.content import content_sha256
from tradeassay.data.store.manifest import Manifest, read_manifest

AGAIN = "get or import the data again"


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raise :class:`DataError` naming the first file that is missing or has another size than recorded."""
    for name, entry in manifest.files.items():
        path = folder / name
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise DataError(f"{path} is missing from snapshot '{manifest.name}'", mend=AGAIN) from None
        if size != entry.bytes:
            raise DataError(f"{path} has {size} bytes, its manifest says {entry.bytes}", mend=AGAIN)


def verify_snapshot(folder: Path) -> Manifest:
    """Re-hash every file and the content; raises :class:`DataError` naming what was altered."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    for name, entry in manifest.files.items():
        found = sha256_file(folder / name)
        if found != entry.sha256:
            raise DataError(
                f"{folder / name} was altered: sha256 {found[:12]}, its manifest says {entry.sha256[:12]}",
                mend=AGAIN,
            )
    content = content_sha256(read_panel(folder))
    if content != manifest.sha256:
        raise DataError(f"{folder}: the content hash is {content[:12]}, not {manifest.sha256[:12]}", mend=AGAIN)
    return manifest


def open_table(path: Path) -> pa.Table:
    """Return a memory-mapped table of one batch; raises :class:`DataError` when it is no Arrow file."""
    try:
        with pa.memory_map(str(path), "r") as source:
            return pa.ipc.open_file(source).read_all()
    except FileNotFoundError:
        raise DataError(f"{path} is missing", mend=AGAIN) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is damaged: {error}", mend=AGAIN) from error


def one_chunk(table: pa.Table, name: str) -> pa.Array:
    """Return a column that was written as one piece (an empty one may have no piece at all)."""
    pieces = table.column(name)
    return pieces.chunk(0) if pieces.num_chunks else column([], pieces.type)


def integers(table: pa.Table, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return an integer column as a read-only array without copying."""
    values: np.ndarray[tuple[int], np.dtype[np.int64]] = plain(one_chunk(table, name))
    return values


def read_panel(folder: Path) -> Panel:
    """Return a snapshot as the panel it was written from. It knows the future: for use inside ``data`` only."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    bars = open_table(folder / "bars.arrow")
    rows = bars.num_rows
    indices = open_table(folder / "indices.arrow")
    return Panel(
        name=manifest.name,
        facts=manifest.facts,
        listings=tables.read_listings(open_table(folder / "listings.arrow")),
        sessions=days(one_chunk(bars, "session")),
        open_time=integers(bars, "open_time"),
        close_time=integers(bars, "close_time"),
        bars={name: tables.matrix(one_chunk(bars, name), rows) for name in FIELDS},
        suspended=tables.matrix(one_chunk(bars, "suspended"), rows).view(np.bool_),
        minutes=read_minutes(folder, manifest),
        actions=tuple(map(tables.read_action, open_table(folder / "actions.arrow").to_pylist())),
        memberships=tables.read_memberships(open_table(folder / "memberships.arrow")),
        indices={name: plain(one_chunk(indices, name)) for name in indices.column_names if name != "session"},
        fundamentals=tuple(map(tables.read_fundamental, open_table(folder / "fundamentals.arrow").to_pylist())),
        news=tuple(map(tables.read_news_item, open_table(folder / "news.arrow").to_pylist())),
    )


def read_minutes(folder: Path, manifest: Manifest) -> MinutePanel | None:
    """Return a snapshot's minute bars as (rows, symbols) arrays, or None when it has none."""
    if "minutes.arrow" not in manifest.files:
        return None
    table = open_table(folder / "minutes.arrow")
    symbols = tuple(name.rsplit("/", 1)[0] for name in table.column_names[1 :: len(FIELDS)])
    columns = {
        name: np.column_stack([plain(one_chunk(table, f"{symbol}/{name}")) for symbol in symbols])
        for name in FIELDS
    }
    return MinutePanel(symbols, integers(table, "close_time"), columns)
