"""Open the Arrow files of a snapshot: hashed, then memory-mapped; refused by the file's name when wrong.

Nothing is decoded before its hash is known to be the recorded one: Arrow trusts the offsets in a file, and one
changed byte can end the process with a signal. A file is hashed once per process.

Dated records are read lazily: a binary search over the time they became known, then only the rows asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from tradeassay.core.errors import DataError
from tradeassay.core.hashing import sha256_file
from tradeassay.core.time import Instant
from tradeassay.core.view import FIELDS, Ints
from tradeassay.data.panel import MinutePanel, Panel
from tradeassay.data.store import tables
from tradeassay.data.store.manifest import MANIFEST_FILE, FileEntry, Manifest, content_sha256, read_manifest
from tradeassay.data.store.tables import column, days, plain

AGAIN = "get or import the data again"


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raise :class:`DataError` naming the first file that is missing or whose size is not the recorded one."""
    for name, entry in manifest.files.items():
        path = folder / name
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise DataError(f"{path} is missing from snapshot '{manifest.name}'", hint=AGAIN) from None
        if size != entry.bytes:
            raise DataError(f"{path} has {size} bytes, its manifest says {entry.bytes}", hint=AGAIN)


_HASHED: dict[tuple[str, int, int, int, int], str] = {}
"""Hashes taken in this process, by path and by what changes with the content: inode, size and both times."""
_WHOLE: set[tuple[tuple[str, int, int, int, int], ...]] = set()
"""Snapshots whose content hash was computed in this process: the state of the manifest and of every file."""


def _state(path: Path) -> tuple[str, int, int, int, int]:
    facts = path.stat()
    return str(path), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def check_hash(path: Path, entry: FileEntry) -> None:
    """Raise :class:`DataError` unless a file is there and has the recorded hash."""
    try:
        key = _state(path)
        found = _HASHED.get(key) or sha256_file(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing", hint=AGAIN) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", hint=AGAIN) from error
    if found != entry.sha256:
        raise DataError(
            f"{path} was altered: sha256 {found[:12]}, its manifest says {entry.sha256[:12]}", hint=AGAIN
        )
    _HASHED[key] = found


def verify_snapshot(folder: Path, *, again: bool = True) -> Manifest:
    """Re-hash every file and the content; raises :class:`DataError` naming what was altered.

    Without ``again``, nothing is done for files that this process has verified and that did not change since.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    whole = tuple(_state(folder / name) for name in (MANIFEST_FILE, *manifest.files))
    if not again and whole in _WHOLE:
        return manifest
    if again:
        _HASHED.clear()
    for name, entry in manifest.files.items():
        check_hash(folder / name, entry)
    content = content_sha256(_grids(folder, manifest), _records(folder, manifest))
    if content != manifest.sha256:
        raise DataError(f"{folder}: the content hash is {content[:12]}, not {manifest.sha256[:12]}", hint=AGAIN)
    _WHOLE.add(whole)
    return manifest


def open_table(folder: Path, manifest: Manifest, name: str) -> pa.Table:
    """Return a memory-mapped table of one batch; raises :class:`DataError` when it is not the recorded one."""
    path, entry = folder / name, manifest.files.get(name)
    if entry is None:
        raise DataError(f"{folder}: its manifest lists no {name}", hint=AGAIN)
    check_hash(path, entry)
    try:
        with pa.memory_map(str(path), "r") as source:
            table = pa.ipc.open_file(source).read_all()
    except FileNotFoundError:
        raise DataError(f"{path} is missing", hint=AGAIN) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is damaged: {error}", hint=AGAIN) from error
    if table.num_columns and table.column(0).num_chunks > 1:
        raise DataError(f"{path} holds several batches, of which only one would be read", hint=AGAIN)
    return table


def one_chunk(table: pa.Table, name: str) -> pa.Array:
    """Return a column that was written as one chunk (an empty one may have no chunk at all)."""
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
    records = {name: open_table(folder, manifest, f"{name}.arrow") for name in tables.RECORDS}
    return replace(
        _grids(folder, manifest),
        actions=tuple(map(tables.read_action, records["actions"].to_pylist())),
        memberships=tables.read_memberships(records["memberships"]),
        fundamentals=tuple(map(tables.read_fundamental, records["fundamentals"].to_pylist())),
        news=tuple(map(tables.read_news_item, records["news"].to_pylist())),
    )


def _grids(folder: Path, manifest: Manifest) -> Panel:
    """Return a snapshot's panel without its dated records."""
    bars = open_table(folder, manifest, "bars.arrow")
    rows = bars.num_rows
    indices = open_table(folder, manifest, "indices.arrow")
    return Panel(
        name=manifest.name,
        facts=manifest.facts,
        listings=tables.read_listings(open_table(folder, manifest, "listings.arrow")),
        sessions=days(one_chunk(bars, "session")),
        open_time=integers(bars, "open_time"),
        close_time=integers(bars, "close_time"),
        bars={name: tables.matrix(one_chunk(bars, name), rows) for name in FIELDS},
        suspended=tables.matrix(one_chunk(bars, "suspended"), rows).view(np.bool_),
        minutes=read_minutes(folder, manifest),
        actions=(),
        memberships=(),
        indices={name: plain(one_chunk(indices, name)) for name in indices.column_names if name != "session"},
        fundamentals=(),
        news=(),
    )


def _records(folder: Path, manifest: Manifest) -> dict[str, pa.Table]:
    """Return a snapshot's dated records as they are stored, for their hash; none is made into an object."""
    found = {}
    for name, schema in tables.RECORDS.items():
        table = found[name] = open_table(folder, manifest, f"{name}.arrow")
        gaps = any(table.column(one.name).null_count for one in schema if not pa.types.is_string(one.type))
        if table.schema != schema or gaps:
            raise DataError(f"{folder / name}.arrow does not hold the columns of its kind", hint=AGAIN)
    return found


def read_minutes(folder: Path, manifest: Manifest) -> MinutePanel | None:
    """Return a snapshot's minute bars as (rows, symbols) arrays, or None when it has none."""
    if "minutes.arrow" not in manifest.files:
        return None
    table = open_table(folder, manifest, "minutes.arrow")
    symbols = tuple(name.rsplit("/", 1)[0] for name in table.column_names[1 :: len(FIELDS)])
    columns = {
        name: np.column_stack([plain(one_chunk(table, f"{symbol}/{name}")) for symbol in symbols])
        for name in FIELDS
    }
    return MinutePanel(symbols, integers(table, "close_time"), columns)


T = TypeVar("T")
_NO_ROWS: list[int] = []


class TimedTable(Generic[T]):
    """Records in the order they became known. The file is opened on first use, records are made on demand."""

    def __init__(
        self, load: Callable[[], pa.Table], time_column: str, make: Callable[[dict[str, Any]], T], symbols: str
    ) -> None:
        self._load = load
        self._time_column = time_column
        self._make = make
        self._symbols = symbols
        self._table: pa.Table | None = None
        self._times: Ints = np.empty(0, dtype=np.int64)
        self._by_symbol: dict[str, list[int]] | None = None
        self._columns: dict[str, pa.Array] = {}
        self.record = lru_cache(maxsize=16_384)(self._record)

    def __len__(self) -> int:
        self._open()
        return int(self._times.size)

    def up_to(self, clock: Instant) -> int:
        """Return how many records were known at ``clock``."""
        self._open()
        return int(np.searchsorted(self._times, clock, side="right"))

    def between(self, since: Instant, clock: Instant) -> range:
        """Return the rows of the records that became known in (since, clock]."""
        return range(self.up_to(since), self.up_to(clock))

    def of_symbol(self, symbol: str, rows: range) -> list[int]:
        """Return the rows inside ``rows`` that are about one symbol, oldest first."""
        mine = self._index().get(symbol, _NO_ROWS)
        return mine[bisect_left(mine, rows.start) : bisect_left(mine, rows.stop)]

    def of_symbols(self, symbols: Iterable[str], rows: range) -> list[int]:
        """Return the rows inside ``rows`` that are about any of the symbols, oldest first, each once."""
        found: set[int] = set()
        for symbol in symbols:
            found.update(self.of_symbol(symbol, rows))
        return sorted(found)

    def count_of_symbol(self, symbol: str, stop: int) -> int:
        """Return how many of the first ``stop`` records are about one symbol."""
        return bisect_right(self._index().get(symbol, _NO_ROWS), stop - 1)

    def _record(self, row: int) -> T:
        self._open()
        return self._make({name: column[row].as_py() for name, column in self._columns.items()})

    def _open(self) -> None:
        if self._table is None:
            self._table = self._load()
            self._times = integers(self._table, self._time_column)
            self._columns = {name: one_chunk(self._table, name) for name in self._table.column_names}

    def _index(self) -> dict[str, list[int]]:
        if self._by_symbol is None:
            self._open()
            column = self._columns[self._symbols]
            if pa.types.is_list(column.type):
                owners = np.repeat(np.arange(len(column)), np.diff(plain(column.offsets)))
                names = column.flatten().to_pylist()
            else:
                owners, names = np.arange(len(column)), column.to_pylist()
            index: dict[str, list[int]] = {}
            for name, row in zip(names, owners.tolist(), strict=True):
                index.setdefault(name, []).append(row)
            self._by_symbol = index
        return self._by_symbol
