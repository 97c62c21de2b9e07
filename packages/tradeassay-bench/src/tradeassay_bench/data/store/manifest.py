"""Define the manifest of a snapshot: its metadata, shapes, and hashes of files and content.

The content hash covers the values of a panel. It does not depend on the library version that wrote
the files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tradeassay.core.errors import UNDECODABLE, DataError, UserError
from tradeassay.core.files import data_home
from tradeassay.core.hashing import canonical_json
from tradeassay_bench.core.files import holds_own_hash, with_own_hash
from tradeassay_bench.core.view import (
    FIELDS,
    Board,
    CorporateAction,
    Fundamental,
    Instrument,
    NewsItem,
)
from tradeassay_bench.data.doctor import AcceptedFaults
from tradeassay_bench.data.source import Listing, Membership, Panel, PanelFacts

FORMAT = "tradeassay-snapshot"
FORMAT_VERSION = 1
MANIFEST_FILE = "manifest.json"


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Size and SHA-256 of one file of a snapshot."""

    bytes: int
    sha256: str


class Shapes(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of sessions, instruments and records in a snapshot."""

    sessions: int
    instruments: int
    minutes: int = 0
    minute_symbols: int = 0
    indices: int = 0
    actions: int = 0
    memberships: int = 0
    fundamentals: int = 0
    news: int = 0


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The identity of a snapshot.

    ``sha256`` covers the content: numbers, records and the metadata that changes their meaning. It
    excludes the name, the time of writing and the library version. Equal data therefore has the
    same hash on every machine. ``own_sha256`` is the hash of the manifest file itself. Stores
    written by earlier versions do not have it.
    """

    format: str
    format_version: int
    package_version: str
    name: str
    sha256: str
    facts: PanelFacts
    shapes: Shapes
    first_session: str
    last_session: str
    faults: AcceptedFaults
    files: dict[str, FileEntry]
    own_sha256: str = ""


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Write ``manifest.json`` into a folder. Return the manifest with the hash of that file."""
    written, content = with_own_hash(manifest)
    (folder / MANIFEST_FILE).write_bytes(content)
    return written


def read_manifest(folder: Path) -> Manifest:
    """Return a snapshot's manifest.

    Raises :class:`DataError` if the manifest is missing, altered or in a different format.
    """
    path = folder / MANIFEST_FILE
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise DataError(f"{path} is a folder", hint="get or import the data again") from None
    except (FileNotFoundError, NotADirectoryError):
        named = "name a data set (tradeassay data list) or a folder that contains one"
        if not folder.exists():
            raise DataError(f"{folder} does not exist", hint=named) from None
        problem = f"{folder} is not a snapshot: it has no {MANIFEST_FILE}"
        raise DataError(problem, hint="get or import it again") from None
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format != FORMAT:
            raise DataError(f"{path} is not a snapshot manifest", hint="give a snapshot's folder")
        if head.format_version != FORMAT_VERSION:
            problem = (
                f"{path} has format {head.format_version}, this version reads {FORMAT_VERSION}"
            )
            raise DataError(problem, hint="get or import the data again")
        manifest = msgspec.json.decode(content, type=Manifest)
    except UNDECODABLE as error:
        raise DataError(
            f"{path} is damaged: {error}", hint="get or import the data again"
        ) from error
    if manifest.own_sha256 and not holds_own_hash(content):
        raise DataError(
            f"{path} was altered after it was written", hint="get or import the data again"
        )
    return manifest


class _Head(msgspec.Struct):
    format: str | int = ""  # a number in the manifest of a run
    format_version: int = 0


_SCHEME = "tradeassay-content-1"
_ABSENT = -1


def content_sha256(panel: Panel, records: Mapping[str, pa.Table] | None = None) -> str:
    """Return the SHA-256 of a panel's numbers, records and metadata.

    The panel's name, query and time of retrieval are excluded.
    """
    digest = hashlib.sha256()
    facts = msgspec.structs.replace(panel.facts, query="", retrieved_at=None)
    _add(digest, "head", canonical_json({"scheme": _SCHEME, "facts": facts}))
    _add_table(digest, "listings", listings_table(panel.listings))
    _add_array(digest, "sessions", panel.sessions.astype("datetime64[D]").astype(np.int64))
    _add_array(digest, "open_time", panel.open_time)
    _add_array(digest, "close_time", panel.close_time)
    for name in FIELDS:
        _add_array(digest, name, panel.bars[name])
    _add_array(digest, "suspended", panel.suspended.astype(np.uint8))
    for index in sorted(panel.indices):
        _add_array(digest, f"index {index}", panel.indices[index])
    if panel.minutes is not None:
        _add(digest, "minute symbols", canonical_json(panel.minutes.symbols))
        _add_array(digest, "minute close_time", panel.minutes.close_time)
        for name in FIELDS:
            _add_array(digest, f"minute {name}", panel.minutes.bars[name])
    for label, table in (records or record_tables(panel)).items():
        _add_table(digest, label, table)
    return digest.hexdigest()


def _add(digest: Any, label: str, content: bytes | memoryview) -> None:
    digest.update(f"{label}:{len(content)}\n".encode())
    digest.update(content)


def _add_array(digest: Any, label: str, values: np.ndarray[Any, Any]) -> None:
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    digest.update(f"{label}:{little.dtype.str}:{little.shape}\n".encode())
    digest.update(little.data.cast("B") if little.size else b"")


def _add_table(digest: Any, label: str, table: pa.Table) -> None:
    """Add the typed values of a table's columns to a digest."""
    # Columns are typed, so that an int instead of a float does not change the hash. The hash covers
    # values rather than buffers, so that it does not depend on the library's memory layout.
    for name in table.column_names:
        pieces = table.column(name)
        # Joining a single chunk would copy it. Joining no chunks, as in an empty column, would load
        # pandas.
        column = pieces.chunk(0) if pieces.num_chunks == 1 else arrow_column([], pieces.type)
        if pieces.num_chunks > 1:
            column = pieces.combine_chunks()
        where = f"{label}.{name}"
        if pa.types.is_list(column.type):
            _add_array(digest, f"{where} ends", plain(column.offsets).astype(np.int64))
            # Equal to flatten() if no list is missing. flatten() would load ten megabytes of
            # pyarrow.
            first, last = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
            column = (
                column.flatten() if column.null_count else column.values.slice(first, last - first)
            )
        if pa.types.is_string(column.type) and len(column) and not column.null_count:
            ends = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset :][
                : len(column) + 1
            ]
            _add_array(digest, f"{where} lengths", np.diff(ends).astype(np.int64))
            _add(digest, where, memoryview(column.buffers()[2] or b"")[ends[0] : ends[-1]])
        elif pa.types.is_string(column.type):
            encoded = [None if text is None else text.encode() for text in column.to_pylist()]
            lengths = [_ABSENT if text is None else len(text) for text in encoded]
            _add_array(digest, f"{where} lengths", np.array(lengths, dtype=np.int64))
            _add(digest, where, b"".join(text or b"" for text in encoded))
        else:
            _add_array(digest, where, plain(column))


def numbers(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return a numeric or date array as an Arrow array without copying contiguous values."""
    if values.dtype.kind == "M":
        values = values.astype("datetime64[D]").astype(np.int32)
        kind = pa.date32()
    else:
        kind = pa.from_numpy_dtype(values.dtype)
    flat = np.ascontiguousarray(values).reshape(-1)
    return pa.Array.from_buffers(kind, flat.size, [None, pa.py_buffer(flat)])


def texts(values: Sequence[str | None]) -> pa.StringArray:
    """Return an Arrow array of texts, with nulls for None."""
    encoded = [b"" if value is None else value.encode() for value in values]
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    offsets = _offsets([len(value) for value in encoded])
    data = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(
        len(encoded), pa.py_buffer(offsets), data, bitmap, int((~valid).sum())
    )


def arrow_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return texts(values)
    if pa.types.is_list(kind):
        flat = texts(list(chain.from_iterable(value for value in values)))
        return pa.ListArray.from_arrays(numbers(_offsets([len(value) for value in values])), flat)
    return numbers(np.array(values, dtype=kind.to_pandas_dtype()))


def plain(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return the values of an Arrow array as a numpy array without a copy."""
    kind = values.type
    dtype = np.dtype(np.int32) if pa.types.is_date32(kind) else np.dtype(kind.to_pandas_dtype())
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.empty(0, dtype=dtype)
    return np.frombuffer(
        buffer, dtype=dtype, count=len(values), offset=values.offset * dtype.itemsize
    )


def days(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return an Arrow array of dates as read-only numpy days."""
    result = plain(values).astype(np.int64).astype("datetime64[D]")
    result.setflags(write=False)
    return result


def _offsets(lengths: list[int]) -> np.ndarray[Any, np.dtype[np.int32]]:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise OverflowError("more than 2 GiB of text in one column")
    return offsets.astype(np.int32)


_INSTRUMENT_FIELDS = tuple(
    "symbol name kind board sector currency lot step tick multiplier expiry root".split()
)

_TYPES = dict.fromkeys(("lot", "step", "tick", "multiplier", "value"), pa.float64())
_TYPES |= {"known_at": pa.int64(), "published_at": pa.int64(), "symbols": pa.list_(pa.string())}
"""The types of record columns other than text."""
_KINDS: dict[str, tuple[Callable[..., Any], str]] = {
    "actions": (CorporateAction, "known_at ex_date symbol kind value"),
    "memberships": (Membership, "start index symbol end"),
    "fundamentals": (Fundamental, "known_at symbol field period_end value"),
    "news": (NewsItem, "published_at id symbols title body source url"),
}


def _schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, _TYPES.get(name, pa.string())) for name in names])


LISTINGS = _schema((*_INSTRUMENT_FIELDS, "listed", "delisted"))
RECORDS: dict[str, pa.Schema] = {
    kind: _schema(names.split()) for kind, (_, names) in _KINDS.items()
}
"""The schemas of a panel's record tables by attribute. The first columns define the row order."""


def sorted_records(panel: Panel) -> dict[str, Any]:
    """Return a panel's dated records by kind.

    Records are sorted by the time at which they became known, then by content.
    """

    def order(record: Any, names: Sequence[str]) -> list[Any]:
        values = (getattr(record, name) for name in names)
        return ["" if value is None else value for value in values]

    return {
        kind: tuple(sorted(getattr(panel, kind), key=partial(order, names=schema.names)))
        for kind, schema in RECORDS.items()
    }


def build_record(kind: str, row: Mapping[str, Any]) -> Any:
    """Return the record of a kind from the cells of a table row."""
    many = {"symbols": tuple(row["symbols"])} if "symbols" in row else {}
    return _KINDS[kind][0](**{**row, **many})


def record_tables(panel: Panel) -> dict[str, pa.Table]:
    return {
        kind: _table(
            {name: [getattr(one, name) for one in getattr(panel, kind)] for name in schema.names},
            schema,
        )
        for kind, schema in RECORDS.items()
    }


def _table(values: Mapping[str, list[Any]], schema: pa.Schema) -> pa.Table:
    return pa.table(
        [arrow_column(values[name], schema.field(name).type) for name in schema.names],
        schema=schema,
    )


def listings_table(listings: Sequence[Listing]) -> pa.Table:
    columns = {
        name: [getattr(entry.instrument, name) for entry in listings] for name in _INSTRUMENT_FIELDS
    }
    columns["board"] = [str(board) for board in columns["board"]]
    columns["listed"] = [entry.listed for entry in listings]
    columns["delisted"] = [entry.delisted for entry in listings]
    return _table(columns, LISTINGS)


def read_listings(table: pa.Table) -> tuple[Listing, ...]:
    result = []
    for row in table.to_pylist():
        facts = {name: row[name] for name in _INSTRUMENT_FIELDS}
        facts["board"] = Board(facts["board"])
        result.append(
            Listing(instrument=Instrument(**facts), listed=row["listed"], delisted=row["delisted"])
        )
    return tuple(result)


def matrix_column(values: np.ndarray[Any, Any]) -> pa.FixedSizeListArray:
    """Return a (sessions, columns) array as one Arrow column with contiguous values."""
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype == np.bool_:
        flat = flat.view(np.uint8)
    return pa.FixedSizeListArray.from_arrays(numbers(flat), values.shape[1])


def matrix(lists: pa.FixedSizeListArray, rows: int) -> np.ndarray[Any, Any]:
    """Return the first ``rows`` rows of a list column as a two-dimensional array."""
    width = lists.type.list_size
    values: np.ndarray[Any, Any] = plain(lists.values)
    return values[lists.offset * width : (lists.offset + rows) * width].reshape(rows, width)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


def store_folder(home: Path | str | None = None) -> Path:
    return data_home(home) / "store"


def snapshot_folder(name: str, home: Path | str | None = None) -> Path:
    """Return the folder of a stored dataset. Raises :class:`UserError` for an invalid name."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"'{name}' is not a dataset name", hint="use letters, digits, '.', '-' and '_'"
        )
    return store_folder(home) / name
