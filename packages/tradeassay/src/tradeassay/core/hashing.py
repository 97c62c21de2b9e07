"""Content hashes. Equal content has an equal hash on every machine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec


def sha256_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def canonical_json(value: Any) -> bytes:
    """Encode a struct or a plain value as JSON with sorted keys. Equal values give equal bytes."""
    return msgspec.json.encode(value, order="sorted")


def sha256_of(value: Any) -> str:
    return sha256_bytes(canonical_json(value))
