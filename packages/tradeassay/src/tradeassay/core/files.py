"""Files that are either whole or absent and have one writer at a time, however a process dies."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from tradeassay.core.arguments import path_from
from tradeassay.core.errors import RunError, UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.secrets import without_secrets

# Where tradeassay keeps things on this machine.


def data_home(home: Path | str | None = None) -> Path:
    """Return the root of everything tradeassay keeps; it need not exist yet. Raises :class:`UserError` where there
    can be none, because a file is there."""
    configured = os.environ.get("TRADEASSAY_HOME")
    if home is not None:
        root = path_from("home", home)
    else:
        root = Path(configured) if configured else Path.home() / ".local" / "share" / "tradeassay"
    there = next(place for place in (root, *root.absolute().parents) if os.path.exists(place))
    if not there.is_dir():
        by = "home" if home is not None else "TRADEASSAY_HOME"
        raise UserError(
            f"{by} cannot be {root}: {there} is a file", hint="name a folder; it need not exist"
        )
    return root


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Give an error of the system that names no file (a full disk, mostly) the name of the one in hand."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


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
    """Return whether a file of this name is what desktops and version control leave in any folder."""
    return name in _LITTER or name.startswith("._")


def write_atomic(path: Path, content: bytes) -> None:
    """Replace ``path`` with ``content``: a reader sees the old file or the new one, never a part. A link stays and
    what it leads to is replaced; a device or a pipe (``/dev/stdout``) is written to, since a file in its place
    would be missed by the whole machine. Configured secrets are not written."""
    if path.exists() and not path.is_file() and not path.is_dir():
        with naming(path), path.open("wb") as file:
            file.write(without_secrets(content))
        return
    path = path.resolve() if path.is_symlink() else path
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming(path):
            with temporary.open("wb") as file:
                file.write(without_secrets(content))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_path(path.parent)


def append_durably(descriptor: int, content: bytes, path: Path) -> None:
    """Write all of ``content`` to the open file ``path``; it survives a crash once this returns."""
    left = memoryview(content)
    with naming(path):
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove what :func:`write_atomic` left in a folder when its process was killed."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def sync_path(path: Path) -> None:
    """Wait until the disk holds a file's content, or a folder's list of names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def take_lock(
    descriptor: int, what: str, *, patience: float = 0.0, holder: str = "another process"
) -> None:
    """Lock an open file; raises :class:`RunError` when another process holds it for ``patience`` seconds."""
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


# JSON files that hold their own hash, so that a changed byte anywhere in them is seen when they are read.

_FIELD = "own_sha256"
_BLANK = b"0" * 64
_PLACE = re.compile(rb'(?m)^  "own_sha256": "([0-9a-f]{64})"')

_S = TypeVar("_S", bound=msgspec.Struct)


def with_own_hash(value: _S) -> tuple[_S, bytes]:
    """Return a struct with its field ``own_sha256`` set, and its indented JSON without configured secrets."""
    blank = msgspec.structs.replace(value, own_sha256=_BLANK.decode())
    content = (
        without_secrets(msgspec.json.format(msgspec.json.encode(blank, order="sorted"), indent=2))
        + b"\n"
    )
    found = sha256_bytes(content)
    whole = _PLACE.sub(f'  "{_FIELD}": "{found}"'.encode(), content, count=1)
    return msgspec.structs.replace(value, own_sha256=found), whole


def holds_own_hash(content: bytes) -> bool:
    """Say whether the bytes of a file are those that its own hash was taken of; False for one without a hash."""
    place = _PLACE.search(content)
    if place is None:
        return False
    blank = content[: place.start(1)] + _BLANK + content[place.end(1) :]
    return sha256_bytes(blank).encode() == place[1]
