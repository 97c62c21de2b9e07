"""The hash of what a panel says, whatever library version wrote the files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tradeassay.core.hashing import canonical_json
from tradeassay.core.view import FIELDS
from tradeassay.data.panel import Panel
from tradeassay.data.store import tables
from tradeassay.data.store.arrays import plain

_SCHEME = "tradeassay-content-1"
_ABSENT = -1


def content_sha256(panel: Panel, records: Mapping[str, pa.Table] | None = None) -> str:
    """Return the SHA-256 of a panel's numbers, records and facts.

    ``records`` are the panel's record tables where they have been made already. Left out are the name, ``query``
    and ``retrieved_at``: they say how the data was got, not what it is.
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


def _add(digest: Any, label: str, content: bytes) -> None:
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
        column = table.column(name).combine_chunks()
        where = f"{label}.{name}"
        if pa.types.is_list(column.type):
            _add_array(digest, f"{where} ends", plain(column.offsets).astype(np.int64))
            column = column.flatten()
        if pa.types.is_string(column.type):
            encoded = [None if text is None else text.encode() for text in column.to_pylist()]
            lengths = [_ABSENT if text is None else len(text) for text in encoded]
            _add_array(digest, f"{where} lengths", np.array(lengths, dtype=np.int64))
            _add(digest, where, b"".join(text or b"" for text in encoded))
        else:
            _add_array(digest, where, plain(column))
