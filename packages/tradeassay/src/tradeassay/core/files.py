"""Atomic writes. A file is either complete or absent, even if the process is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tradeassay.core.arguments import path_from
from tradeassay.core.errors import UserError
from tradeassay.core.secrets import without_secrets

# Environment variable with tradeassay's folder on this machine.


def data_home(home: Path | str | None = None) -> Path:
    """Return the root folder of all files that tradeassay stores. The folder need not exist yet.

    Raises :class:`UserError` if a file blocks its path.
    """
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
    """Add this path to an OSError that names no file, such as "disk full"."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def write_atomic(path: Path, content: bytes) -> None:
    """Replace ``path`` with ``content``. A reader sees the old file or the new file, never a part.

    If ``path`` is a link, its target is replaced. A device or a pipe such as ``/dev/stdout`` is
    written to, because the whole machine would miss a replaced device. Configured secrets are
    removed.
    """
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


def sync_path(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
