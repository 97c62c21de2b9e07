"""What a snapshot says about itself: facts, shapes, and the hash of every file and of the whole.

The content hash covers what a panel says, whatever library version wrote the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tradeassay.core.errors import UNDECODABLE, DataError
from tradeassay.core.hashing import canonical_json, holds_own_hash, sha256_file, with_own_hash
from tradeassay.core.view import FIELDS
from tradeassay.data.fault import AcceptedFaults
from tradeassay.data.panel import Panel, PanelFacts
from tradeassay.data.store import tables
from tradeassay.data.store.tables import plain

FORMAT = "tradeassay-snapshot"
FORMAT_VERSION = 1
MANIFEST_FILE = "manifest.json"


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Size and SHA-256 of one file of a snapshot."""

    bytes: int
    sha256: str


def file_entry(path: Path) -> FileEntry:
    """Return the entry of a file as it is now."""
    return FileEntry(bytes=path.stat().st_size, sha256=sha256_file(path))


class Shapes(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is of everything."""

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

    ``sha256`` covers the content (numbers, records and the facts that change their meaning), but neither the
    name nor when, how and with which library version it was written: equal data, equal hash, anywhere.
    ``own_sha256`` is the hash of the manifest file itself; stores of earlier versions have none.
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
    """Write ``manifest.json`` into a folder, indented for people; return the manifest with its own hash."""
    written, content = with_own_hash(manifest)
    (folder / MANIFEST_FILE).write_bytes(content)
    return written


def read_manifest(folder: Path) -> Manifest:
    """Read a snapshot's manifest; raises :class:`DataError` when there is none, or it is altered or not ours."""
    path = folder / MANIFEST_FILE
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise DataError(f"{path} is a folder", hint="get or import the data again") from None
    except (FileNotFoundError, NotADirectoryError):
        if not folder.exists():
            raise DataError(
                f"{folder} does not exist", hint="name a data set (tradeassay data list) or a folder that has one"
            ) from None
        raise DataError(
            f"{folder} is not a snapshot: it has no {MANIFEST_FILE}", hint="get or import it again"
        ) from None
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format != FORMAT:
            raise DataError(f"{path} is not a snapshot manifest", hint="point to a snapshot's folder")
        if head.format_version != FORMAT_VERSION:
            raise DataError(
                f"{path} has format {head.format_version}, this version reads {FORMAT_VERSION}",
                hint="get or import the data again",
            )
        manifest = msgspec.json.decode(content, type=Manifest)
    except UNDECODABLE as error:
        raise DataError(f"{path} is damaged: {error}", hint="get or import the data again") from error
    if manifest.own_sha256 and not holds_own_hash(content):
        raise DataError(f"{path} was altered after it was written", hint="get or import the data again")
    return manifest


class _Head(msgspec.Struct):
    format: str = ""
    format_version: int = 0


_SCHEME = "tradeassay-content-1"
_ABSENT = -1


def content_sha256(panel: Panel, records: Mapping[str, pa.Table] | None = None) -> str:
    """Return the SHA-256 of a panel's numbers, records and facts.

    ``records`` are the panel's record tables where they have been made already. The name, ``query`` and
    ``retrieved_at`` are left out: they say how the data was obtained, not what it is.
    """
    digest = hashlib.sha256()
    facts = msgspec.structs.replace(panel.facts, query="", retrieved_at=None)
    _add(digest, "head", canonical_json({"scheme": _SCHEME, "facts": facts}))
    _add_table(digest, "listings", tables.listings_table(panel.listings))
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
    for label, table in (records or tables.record_tables(panel)).items():
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
    # Typed columns, so that a numpy scalar or an int for a float does not change the hash; and values rather than
    # buffers, so that a library's way of laying them out does not either.
    for name in table.column_names:
        pieces = table.column(name)
        # Joining one chunk would copy it, and joining none (an empty column of a file) would load pandas.
        column = pieces.chunk(0) if pieces.num_chunks == 1 else tables.column([], pieces.type)
        if pieces.num_chunks > 1:
            column = pieces.combine_chunks()
        where = f"{label}.{name}"
        if pa.types.is_list(column.type):
            _add_array(digest, f"{where} ends", plain(column.offsets).astype(np.int64))
            # What flatten() returns where no list is missing; that would load ten megabytes of pyarrow.
            first, last = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
            column = column.flatten() if column.null_count else column.values.slice(first, last - first)
        if pa.types.is_string(column.type) and len(column) and not column.null_count:
            ends = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset :][: len(column) + 1]
            _add_array(digest, f"{where} lengths", np.diff(ends).astype(np.int64))
            _add(digest, where, memoryview(column.buffers()[2] or b"")[ends[0] : ends[-1]])
        elif pa.types.is_string(column.type):
            encoded = [None if text is None else text.encode() for text in column.to_pylist()]
            lengths = [_ABSENT if text is None else len(text) for text in encoded]
            _add_array(digest, f"{where} lengths", np.array(lengths, dtype=np.int64))
            _add(digest, where, b"".join(text or b"" for text in encoded))
        else:
            _add_array(digest, where, plain(column))
