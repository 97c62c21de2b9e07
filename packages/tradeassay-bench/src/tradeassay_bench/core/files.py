"""Read and write files of runs: durable logs, locks, files with their own hash, and file names."""

from __future__ import annotations

import fcntl
import os
import re
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from tradeassay.core.files import naming
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.core.secrets import without_secrets
from tradeassay_bench.core.errors import RunError

NAME_LENGTH = 80
"""Maximum length of a file name, in characters."""


def safe_name(text: str) -> str:
    """Return ``text`` as part of a file name.

    A text that is not a valid name is simplified and ends with a hash.
    """
    clean = re.sub(r"[^A-Za-z0-9.=+_-]", "-", text)
    clean = re.sub(r"__+", "_", clean).strip("._-")
    if clean == text and len(clean) <= NAME_LENGTH:
        return clean
    return f"{clean[: NAME_LENGTH - 9].strip('._-') or 'x'}-{sha256_of(text)[:8]}"


_LITTER = frozenset(
    (
        ".DS_Store",
        ".directory",
        ".gitattributes",
        ".gitignore",
        ".gitkeep",
        "Thumbs.db",
        "desktop.ini",
    )
)


def is_litter(name: str) -> bool:
    """Return whether desktops or version control create files of this name in any folder."""
    return name in _LITTER or name.startswith("._")


def append_durably(descriptor: int, content: bytes, path: Path) -> None:
    """Append ``content`` to the open file ``path`` and return once it would survive a crash."""
    left = memoryview(content)
    with naming(path):
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove the temporary files that :func:`write_atomic` leaves when its process is killed."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def take_lock(
    descriptor: int, what: str, *, patience: float = 0.0, holder: str = "another process"
) -> None:
    """Lock an open file.

    Raises :class:`RunError` if another process holds the lock for ``patience`` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                hint = "wait until it ends, stop it, or use another name"
                raise RunError(f"{what} is being written by {holder}", hint=hint) from None
        time.sleep(0.02)


# JSON files that contain their own hash, so that reading detects any changed byte.

_FIELD = "own_sha256"
_BLANK = b"0" * 64
_PLACE = re.compile(rb'(?m)^  "own_sha256": "([0-9a-f]{64})"')

_S = TypeVar("_S", bound=msgspec.Struct)


def with_own_hash(value: _S) -> tuple[_S, bytes]:
    """Return a struct with its field ``own_sha256`` set, and its indented JSON.

    Configured secrets are removed from the JSON.
    """
    blank = msgspec.structs.replace(value, own_sha256=_BLANK.decode())
    content = (
        without_secrets(msgspec.json.format(msgspec.json.encode(blank, order="sorted"), indent=2))
        + b"\n"
    )
    found = sha256_bytes(content)
    whole = _PLACE.sub(f'  "{_FIELD}": "{found}"'.encode(), content, count=1)
    return msgspec.structs.replace(value, own_sha256=found), whole


def holds_own_hash(content: bytes) -> bool:
    """Return whether a file's content matches the hash that it contains.

    Return False for a file without a hash.
    """
    place = _PLACE.search(content)
    if place is None:
        return False
    blank = content[: place.start(1)] + _BLANK + content[place.end(1) :]
    return sha256_bytes(blank).encode() == place[1]
