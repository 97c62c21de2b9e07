"""JSON files that hold their own hash, so that a changed byte anywhere in them is seen when they are read.

A file says ``"own_sha256": "..."``; the hash is that of the file with 64 zeros in its place. It guards against
damage and careless edits. Whoever rewrites a file on purpose can compute it again: what must not be rewritten has
its hash somewhere else.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.secrets import clean_bytes

FIELD = "own_sha256"
_BLANK = b"0" * 64
_PLACE = re.compile(rb'(?m)^  "own_sha256": "([0-9a-f]{64})"')

S = TypeVar("S", bound=msgspec.Struct)


def with_own_hash(value: S) -> tuple[S, bytes]:
    """Return a struct with its field ``own_sha256`` set, and its indented JSON without configured secrets."""
    blank = msgspec.structs.replace(value, own_sha256=_BLANK.decode())
    content = clean_bytes(msgspec.json.format(msgspec.json.encode(blank, order="sorted"), indent=2)) + b"\n"
    found = sha256_bytes(content)
    whole = _PLACE.sub(f'  "{FIELD}": "{found}"'.encode(), content, count=1)
    return msgspec.structs.replace(value, own_sha256=found), whole


def holds_own_hash(content: bytes) -> bool:
    """Say whether the bytes of a file are those that its own hash was taken of; False for one without a hash."""
    place = _PLACE.search(content)
    if place is None:
        return False
    blank = content[: place.start(1)] + _BLANK + content[place.end(1) :]
    return sha256_bytes(blank).encode() == place[1]
