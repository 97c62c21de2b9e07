"""Content hashes. Equal content, equal hash, on any machine."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tradeassay.core.secrets import clean_bytes


def sha256_bytes(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def canonical_json(value: Any) -> bytes:
    """Encode a struct or plain value with sorted keys, so that equal values give equal bytes."""
    return msgspec.json.encode(value, order="sorted")


def sha256_of(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return sha256_bytes(canonical_json(value))


NAME_LENGTH = 80


def safe_name(text: str) -> str:
    """Return ``text`` as part of a file name: unchanged when it can be, else readable with a hash at its end."""
    clean = re.sub(r"[^A-Za-z0-9.=+_-]", "-", text)
    clean = re.sub(r"__+", "_", clean).strip("._-")
    if clean == text and len(clean) <= NAME_LENGTH:
        return clean
    return f"{clean[: NAME_LENGTH - 9].strip('._-') or 'x'}-{sha256_of(text)[:8]}"


# JSON files that hold their own hash, so that a changed byte anywhere in them is seen when they are read.

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
