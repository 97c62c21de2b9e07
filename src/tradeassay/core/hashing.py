"""Content hashes. Equal content, equal hash, on any machine."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec


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
