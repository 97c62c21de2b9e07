"""Files that are either whole or absent and have one writer at a time, however a process dies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from tradeassay.core.errors import RunError
from tradeassay.core.secrets import clean_bytes


def write_atomic(path: Path, content: bytes) -> None:
    """Replace ``path`` with ``content``: a reader sees the old file or the new one, never a part.

    Configured secrets are not written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(clean_bytes(content))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def append_durably(descriptor: int, content: bytes) -> None:
    """Write all of ``content`` to an open file; it survives a crash once this returns."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove what :func:`write_atomic` left in a folder when its process was killed."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names inside a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def take_lock(descriptor: int, what: str, *, patience: float = 0.0, holder: str = "another process") -> None:
    """Lock an open file; raises :class:`RunError` when another process holds it for ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise RunError(
                    f"{what} is being written by {holder}", mend="wait until it ends, stop it, or use another slug"
                ) from None
        time.sleep(0.02)
