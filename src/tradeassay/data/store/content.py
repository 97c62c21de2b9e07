"""The hash of what a panel says, whatever library version wrote the files."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import numpy as np

from tradeassay.core.hashing import canonical_json
from tradeassay.core.view import FIELDS
from tradeassay.data.panel import Panel
from tradeassay.data.store import tables

_SCHEME = "tradeassay-content-1"


def content_sha256(panel: Panel) -> str:
    """Return the SHA-256 of a panel's numbers, records and facts.

    Left out are the name, ``query`` and ``retrieved_at``: they say how the data was got, not what it is.
    """
    digest = hashlib.sha256()
    facts = msgspec.structs.replace(panel.facts, query="", retrieved_at=None)
    _add(digest, "head", canonical_json({"scheme": _SCHEME, "facts": facts}))
    _add(digest, "listings", canonical_json(tables.listings_table(panel.listings).to_pylist()))
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
    # Through a typed table, so that a numpy scalar or an int for a float does not change the hash.
    for table, schema in tables.RECORDS.items():
        _add(digest, table, canonical_json(tables.records_table(getattr(panel, table), schema).to_pylist()))
    return digest.hexdigest()


def _add(digest: Any, label: str, content: bytes) -> None:
    digest.update(f"{label}:{len(content)}\n".encode())
    digest.update(content)


def _add_array(digest: Any, label: str, values: np.ndarray[Any, Any]) -> None:
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    digest.update(f"{label}:{little.dtype.str}:{little.shape}\n".encode())
    digest.update(little.data.cast("B") if little.size else b"")
