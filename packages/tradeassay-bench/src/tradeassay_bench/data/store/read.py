"""Verify and memory-map the Arrow files of a snapshot.

A file is decoded only after its hash has been compared with the recorded one. Arrow trusts the
offsets in a file, so a single changed byte can crash the process. Each file is hashed once per
process. Dated records are read lazily. Errors name the file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from tradeassay.core.arrays import Bools, Days, Floats, Ints
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.hashing import sha256_file
from tradeassay_bench.core.time import Instant
from tradeassay_bench.core.view import (
    FIELDS,
    Adjustment,
    CorporateAction,
    Field,
    Fundamental,
    Instrument,
    NewsItem,
)
from tradeassay_bench.data.source import MinutePanel, Panel, ex_rows
from tradeassay_bench.data.store.manifest import (
    MANIFEST_FILE,
    RECORDS,
    FileEntry,
    Manifest,
    arrow_column,
    build_record,
    content_sha256,
    days,
    matrix,
    plain,
    read_listings,
    read_manifest,
)

FETCH_AGAIN = "get or import the data again"


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raise :class:`DataError` if a file is missing or has the wrong size. The error names the
    file.
    """
    for name, entry in manifest.files.items():
        path = folder / name
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise DataError(
                f"{path} is missing from snapshot '{manifest.name}'", hint=FETCH_AGAIN
            ) from None
        if size != entry.bytes:
            raise DataError(f"{path} has {size} bytes, expected {entry.bytes}", hint=FETCH_AGAIN)


_HASHED: dict[tuple[str, int, int, int, int], str] = {}
"""Hashes computed in this process, keyed by the state of the file (see :func:`_state`)."""
_WHOLE: set[tuple[tuple[str, int, int, int, int], ...]] = set()
"""Snapshots verified in this process, as the states of their manifest and files."""


def _state(path: Path) -> tuple[str, int, int, int, int]:
    """Return path, inode, size and both times. New content changes at least one of them."""
    facts = path.stat()
    return str(path), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def check_hash(path: Path, entry: FileEntry) -> None:
    """Raise :class:`DataError` if a file is missing or its hash differs from the manifest's."""
    try:
        key = _state(path)
        sha256 = _HASHED.get(key) or sha256_file(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing", hint=FETCH_AGAIN) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", hint=FETCH_AGAIN) from error
    if sha256 != entry.sha256:
        problem = f"{path} was altered: sha256 {sha256[:12]}, expected {entry.sha256[:12]}"
        raise DataError(problem, hint=FETCH_AGAIN)
    _HASHED[key] = sha256


def verify_snapshot(folder: Path, *, again: bool = True) -> Manifest:
    """Hash every file and the content of a snapshot, and return its manifest.

    Without ``again``, a snapshot that was verified before and has not changed is not hashed again.
    Raises :class:`DataError` for a missing or altered file.
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
        raise DataError(
            f"{folder}: the content hash is {content[:12]}, expected {manifest.sha256[:12]}",
            hint=FETCH_AGAIN,
        )
    _WHOLE.add(whole)
    return manifest


def open_table(folder: Path, manifest: Manifest, name: str) -> pa.Table:
    """Return a table as one memory-mapped batch, after a check of its hash.

    Raises :class:`DataError` if the file is missing, altered or damaged.
    """
    path, entry = folder / name, manifest.files.get(name)
    if entry is None:
        raise DataError(f"{folder}: the manifest does not list {name}", hint=FETCH_AGAIN)
    check_hash(path, entry)
    try:
        with pa.memory_map(str(path), "r") as source:
            table = pa.ipc.open_file(source).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is damaged: {error}", hint=FETCH_AGAIN) from error
    if table.num_columns and table.column(0).num_chunks > 1:
        raise DataError(f"{path} has several batches, expected one", hint=FETCH_AGAIN)
    return table


def one_chunk(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array. An empty column may have no chunk."""
    pieces = table.column(name)
    return pieces.chunk(0) if pieces.num_chunks else arrow_column([], pieces.type)


def integers(table: pa.Table, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    values: np.ndarray[tuple[int], np.dtype[np.int64]] = plain(one_chunk(table, name))
    return values


def read_panel(folder: Path) -> Panel:
    """Return the panel from which a snapshot was written.

    A panel contains the future. Never show it to an agent.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    records: dict[str, Any] = {}
    for kind in RECORDS:
        rows = open_table(folder, manifest, f"{kind}.arrow").to_pylist()
        records[kind] = tuple(build_record(kind, row) for row in rows)
    return replace(_grids(folder, manifest), **records)


def _grids(folder: Path, manifest: Manifest) -> Panel:
    """Return a snapshot's panel without its dated records."""
    bars = open_table(folder, manifest, "bars.arrow")
    rows = bars.num_rows
    indices = open_table(folder, manifest, "indices.arrow")
    minutes = None
    if "minutes.arrow" in manifest.files:
        table = open_table(folder, manifest, "minutes.arrow")
        symbols = tuple(name.rsplit("/", 1)[0] for name in table.column_names[1 :: len(FIELDS)])
        columns = {
            name: np.column_stack(
                [plain(one_chunk(table, f"{symbol}/{name}")) for symbol in symbols]
            )
            for name in FIELDS
        }
        minutes = MinutePanel(symbols, integers(table, "close_time"), columns)
    return Panel(
        name=manifest.name,
        facts=manifest.facts,
        listings=read_listings(open_table(folder, manifest, "listings.arrow")),
        sessions=days(one_chunk(bars, "session")),
        open_time=integers(bars, "open_time"),
        close_time=integers(bars, "close_time"),
        bars={name: matrix(one_chunk(bars, name), rows) for name in FIELDS},
        suspended=matrix(one_chunk(bars, "suspended"), rows).view(np.bool_),
        minutes=minutes,
        indices={
            name: plain(one_chunk(indices, name))
            for name in indices.column_names
            if name != "session"
        },
    )


def _records(folder: Path, manifest: Manifest) -> dict[str, pa.Table]:
    """Return the tables of a snapshot's dated records, for hashing. No record object is created."""
    tables = {}
    for name, schema in RECORDS.items():
        table = open_table(folder, manifest, f"{name}.arrow")
        required = [column.name for column in schema if not pa.types.is_string(column.type)]
        has_gaps = any(table.column(column).null_count for column in required)
        if table.schema != schema or has_gaps:
            raise DataError(
                f"{folder / name}.arrow does not have the columns of its kind", hint=FETCH_AGAIN
            )
        tables[name] = table
    return tables


T = TypeVar("T")
_NO_ROWS: list[int] = []


class TimedTable(Generic[T]):
    """Dated records, ordered by the time at which they became known.

    The file is opened on first use, and record objects are created on demand.
    """

    def __init__(
        self, load: Callable[[], pa.Table], time_column: str, kind: str, symbols: str
    ) -> None:
        self._load, self._time_column, self._kind, self._symbols = load, time_column, kind, symbols
        self.record = lru_cache(maxsize=16_384)(self._record)

    @cached_property
    def _columns(self) -> dict[str, pa.Array]:
        table = self._load()
        return {name: one_chunk(table, name) for name in table.column_names}

    @cached_property
    def _times(self) -> Ints:
        return plain(self._columns[self._time_column])

    @cached_property
    def _by_symbol(self) -> dict[str, list[int]]:
        column = self._columns[self._symbols]
        if pa.types.is_list(column.type):
            owners = np.repeat(np.arange(len(column)), np.diff(plain(column.offsets)))
            names = column.flatten().to_pylist()
        else:
            owners, names = np.arange(len(column)), column.to_pylist()
        index: dict[str, list[int]] = {}
        for name, row in zip(names, owners.tolist(), strict=True):
            index.setdefault(name, []).append(row)
        return index

    def __len__(self) -> int:
        return int(self._times.size)

    def up_to(self, clock: Instant) -> int:
        """Return the number of records known at an instant."""
        return int(np.searchsorted(self._times, clock, side="right"))

    def of_symbol(self, symbol: str, rows: range) -> list[int]:
        """Return the rows about a symbol among the given rows."""
        matching = self._by_symbol.get(symbol, _NO_ROWS)
        return matching[bisect_left(matching, rows.start) : bisect_left(matching, rows.stop)]

    def count_of_symbol(self, symbol: str, stop: int) -> int:
        """Return the number of records about one symbol among the first ``stop`` records."""
        return bisect_right(self._by_symbol.get(symbol, _NO_ROWS), stop - 1)

    def _record(self, row: int) -> T:
        record: T = build_record(
            self._kind, {name: cells[row].as_py() for name, cells in self._columns.items()}
        )
        return record


NOT_DELISTED = 1 << 40
"""Row number that stands for "not delisted within the data"."""
SPECIAL = "ST"
"""The membership name for stocks under special treatment."""


class History:
    """The arrays and tables of one snapshot, including the future. Views read from it."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        bars = self._table("bars.arrow")
        shapes = manifest.shapes
        if bars.num_rows != shapes.sessions:
            raise DataError(
                f"{folder / 'bars.arrow'} has {bars.num_rows} sessions, expected {shapes.sessions}"
            )
        self.sessions: Days = days(one_chunk(bars, "session"))
        self.open_times: list[int] = integers(bars, "open_time").tolist()
        self.close_times: list[int] = integers(bars, "close_time").tolist()
        self.fields: dict[Field, Floats] = {name: self._matrix(bars, name) for name in FIELDS}
        self.prev_close: Floats = self._matrix(bars, "prev_close")
        self.suspended: Bools = self._matrix(bars, "suspended").view(np.bool_)
        self.trading: Bools = self._matrix(bars, "trading").view(np.bool_)
        listings = read_listings(self._table("listings.arrow"))
        self.every_instrument: tuple[Instrument, ...] = tuple(
            entry.instrument for entry in listings
        )
        self.every_symbol = tuple(item.symbol for item in self.every_instrument)
        self.column_of = {symbol: index for index, symbol in enumerate(self.every_symbol)}
        listed = np.array([entry.listed for entry in listings], dtype="datetime64[D]")
        self.listed_rows: Ints = np.searchsorted(self.sessions, listed, side="left").astype(
            np.int64
        )
        self.listed_rows.flags.writeable = False
        self.visible: list[int] = np.searchsorted(listed, self.sessions, side="right").tolist()
        last = np.array(
            [entry.delisted or "9999-12-31" for entry in listings], dtype="datetime64[D]"
        )
        after = np.searchsorted(self.sessions, last, side="right").astype(np.int64)
        self.last_rows: Ints = np.where(after < self.sessions.size, after - 1, NOT_DELISTED)
        self._gone_order = sorted(self.last_rows[self.last_rows < NOT_DELISTED].tolist())
        self._load_adjustment(bars)
        self._load_indices()
        self._minutes: pa.Table | None = None
        self.news: TimedTable[NewsItem] = TimedTable(
            partial(self._table, "news.arrow"), "published_at", "news", "symbols"
        )
        self.fundamentals: TimedTable[Fundamental] = TimedTable(
            partial(self._table, "fundamentals.arrow"), "known_at", "fundamentals", "symbol"
        )
        # Cached, because users of a view compare these tuples by identity to reuse derived tables.
        self.symbols = lru_cache(maxsize=None)(self._symbols)
        self.instruments = lru_cache(maxsize=None)(self._instruments)
        self.gone = lru_cache(maxsize=None)(self._gone)
        self.known_figures = lru_cache(maxsize=4096)(self._known_figures)
        self.members = lru_cache(maxsize=1024)(self._members)
        self.minute_bars = lru_cache(maxsize=256)(self._minute_bars)

    def _table(self, name: str) -> pa.Table:
        return open_table(self.folder, self.manifest, name)

    def _matrix(self, table: pa.Table, name: str) -> np.ndarray[Any, Any]:
        result = matrix(one_chunk(table, name), table.num_rows)
        if result.shape[1] != self.manifest.shapes.instruments:
            raise DataError(f"{self.folder / 'bars.arrow'}: {name} has {result.shape[1]} columns")
        return result

    # -- instruments --

    def special_at(self, row: int, visible: int) -> Bools | None:
        """Return a mask of the first ``visible`` instruments that are under special treatment.

        Return None if the data has no information about special treatment.
        """
        if SPECIAL not in self._spells:
            return None
        names = set(self.members_at(SPECIAL, row)) if row >= self._changes[SPECIAL][0] else set()
        special = np.array(
            [symbol in names for symbol in self.every_symbol[:visible]], dtype=np.bool_
        )
        special.flags.writeable = False
        return special

    def _symbols(self, visible: int) -> tuple[str, ...]:
        return self.every_symbol[:visible]

    def _instruments(self, visible: int) -> tuple[Instrument, ...]:
        return self.every_instrument[:visible]

    def gone_by(self, row: int) -> tuple[str, ...]:
        """Return the symbols whose last session was before row ``row``."""
        return self.gone(bisect_right(self._gone_order, row - 1))

    def _gone(self, count: int) -> tuple[str, ...]:
        columns = (
            np.flatnonzero(self.last_rows <= self._gone_order[count - 1]).tolist() if count else ()
        )
        return tuple(self.every_symbol[column] for column in columns)

    # -- adjustment --

    def _load_adjustment(self, bars: pa.Table) -> None:
        """Load the corporate actions and the adjustment factors."""
        self.actions: tuple[CorporateAction, ...] = tuple(
            build_record("actions", row) for row in self._table("actions.arrow").to_pylist()
        )
        self.action_times: list[int] = [action.known_at for action in self.actions]
        names = bars.column_names
        self._split = self._matrix(bars, "split_factor") if "split_factor" in names else None
        self._total = self._matrix(bars, "total_factor") if "total_factor" in names else None
        live = self.manifest.facts.live_actions
        events = []
        self._by_row: dict[int, tuple[CorporateAction, ...]] = {}
        for row, action in zip(
            ex_rows(self.actions, self.sessions).tolist(), self.actions, strict=True
        ):
            if action.kind in live and 0 <= row < self.sessions.size:
                events.append((row, self.column_of[action.symbol], action.kind, action))
        events.sort(key=lambda event: event[:3])
        for row, _, _, action in events:
            self._by_row[row] = (*self._by_row.get(row, ()), action)
        splits = [event for event in events if event[2] == "split"]
        self._total_rows = [event[0] for event in events]
        self._total_columns = [event[1] for event in events]
        self._split_rows = [event[0] for event in splits]
        self._split_columns = [event[1] for event in splits]

    def actions_of(self, row: int) -> tuple[CorporateAction, ...]:
        """Return the actions that take effect in a session.

        They are sorted by column, with a dividend before a split.
        """
        return self._by_row.get(row, ())

    def adjusted(
        self, window: Floats, field: Field, adjust: Adjustment, start: int, row: int
    ) -> Floats:
        """Return ``window`` adjusted to the shares of session ``row``.

        ``window`` starts at session ``start``. If no action took effect in between, it is returned
        without a copy. Raises :class:`UserError` for an unknown adjustment.
        """
        if adjust == "total" and field != "volume":
            rows, columns, factor = self._total_rows, self._total_columns, self._total
        elif adjust in ("split", "total"):
            rows, columns, factor = self._split_rows, self._split_columns, self._split
        else:
            raise UserError(f"unknown adjustment '{adjust}'", hint="use none, split or total")
        if factor is None or field == "amount":
            return window
        low, high = bisect_right(rows, start), bisect_right(rows, row)
        if low >= high:
            return window
        touched = sorted({column for column in columns[low:high] if column < window.shape[1]})
        if not touched or not window.shape[0]:
            return window
        then, now = factor[start : start + window.shape[0], touched], factor[row, touched]
        result = window.copy()
        result[:, touched] *= (now / then) if field == "volume" else (then / now)
        result.setflags(write=False)
        return result

    # -- indices --

    def _load_indices(self) -> None:
        """Load the levels and the dated members of the indices."""
        table = self._table("indices.arrow")
        self.levels: dict[str, Floats] = {
            name: plain(one_chunk(table, name)) for name in table.column_names if name != "session"
        }
        self._spells: dict[str, list[tuple[int, int, int]]] = {}
        for row in self._table("memberships.arrow").to_pylist():
            entry = build_record("memberships", row)
            first = int(
                np.searchsorted(self.sessions, np.datetime64(entry.start, "D"), side="left")
            )
            last = np.datetime64(entry.end or "9999-12-31", "D")
            after = int(np.searchsorted(self.sessions, last, side="right"))
            column = self.column_of[entry.symbol]
            first = max(first, int(self.listed_rows[column]))
            if first < after:
                self._spells.setdefault(entry.index, []).append((first, after, column))
        # The rows at which the membership of an index changes. Between two of them it is constant.
        self._changes: dict[str, list[int]] = {}
        for index, spells in self._spells.items():
            edges = {first for first, _, _ in spells} | {after for _, after, _ in spells}
            self._changes[index] = sorted(edges)

    def name_of(self, index: str) -> str:
        """Return the name of an index in this dataset, see :func:`main_index`."""
        return main_index(index, {**self.levels, **self._changes})

    def members_at(self, index: str, row: int) -> tuple[str, ...]:
        """Return an index's members in a session, in column order.

        An index that has levels but no memberships has no members. Raises :class:`DataError` for an
        index that is unknown in that session.
        """
        index = main_index(index, self._changes)
        stretch = bisect_right(self._changes.get(index, _NOTHING), row)
        if stretch == 0:
            if main_index(index, self.levels) in self.levels:
                return ()
            raise self.no_index(index, row)
        return self.members(index, stretch)

    def _members(self, index: str, stretch: int) -> tuple[str, ...]:
        row = self._changes[index][stretch - 1]
        columns = sorted(
            {column for first, after, column in self._spells[index] if first <= row < after}
        )
        return tuple(self.every_symbol[column] for column in columns)

    def no_index(self, index: str, row: int) -> DataError:
        """Return the error for an unknown index. Its hint lists the indices known in a session."""
        known = sorted(
            {*self.levels, *(name for name, edges in self._changes.items() if edges[0] <= row)}
        )
        without = "this data has no index: use index='none', universe='all' to run without one"
        hint = f"known: {', '.join(known)}" if known else without
        return DataError(f"no index '{index}' is known", hint=hint)

    # -- figures and minutes --

    def _known_figures(self, symbol: str, count: int) -> tuple[Fundamental, ...]:
        rows = self.fundamentals.of_symbol(symbol, range(len(self.fundamentals)))[:count]
        return tuple(self.fundamentals.record(row) for row in rows)

    def _minute_bars(self, symbol: str) -> tuple[Ints, dict[Field, Floats]] | None:
        """Return the closing instants and fields of a symbol's minute bars, or None."""
        if self._minutes is None and "minutes.arrow" in self.manifest.files:
            self._minutes = self._table("minutes.arrow")
        table = self._minutes
        if table is None or f"{symbol}/close" not in table.column_names:
            return None
        times = integers(table, "close_time")
        columns: dict[Field, Floats] = {
            name: plain(one_chunk(table, f"{symbol}/{name}")) for name in FIELDS
        }
        present = ~np.isnan(columns["close"])
        if not present.all():
            times, columns = (
                times[present],
                {name: values[present] for name, values in columns.items()},
            )
        for values in (times, *columns.values()):
            values.setflags(write=False)
        return times, columns


_NOTHING: list[int] = []
MAIN_INDEX = "IDX"
"""The benchmarks' name for the main index of any dataset."""
CSI300 = frozenset(
    ("csi300", "hs300", "000300", "000300.sh", "sh000300", "sh.000300", "399300.sz", "沪深300")
)
"""Vendors' names of the CSI 300, in lower case."""


def main_index(index: str, known: Collection[str]) -> str:
    """Return the dataset's name of an index.

    :data:`MAIN_INDEX` is replaced by the only index in ``known``, or by the CSI 300 if there are
    several. Any other name is returned unchanged.
    """
    if index in known or index != MAIN_INDEX:
        return index
    names = sorted(name for name in known if name != SPECIAL)
    if len(names) == 1:
        return names[0]
    return next((name for name in names if name.casefold() in CSI300), index)
