"""Bytes that pass between host and child: sealed memory on the way in, the scratch folder on the way out."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable
from typing import Final

_F_ADD_SEALS: Final = 1033
_SEAL_SEAL_SHRINK_GROW_WRITE: Final = 0x1 | 0x2 | 0x4 | 0x8


def seal(parts: Iterable[bytes], name: str) -> int:
    """Return a descriptor of sealed memory that holds ``parts`` one after the other."""
    descriptor = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    try:
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[os.write(descriptor, view) :]
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _SEAL_SEAL_SHRINK_GROW_WRITE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_MAX_FILES: Final = 64


def collect(folder: int, cap: int) -> dict[str, bytes]:
    """Return the plain files at the top of ``folder`` (a descriptor), by name, at most ``cap`` bytes and 64 files.

    Links, devices and folders are left alone; a name that is not text is left out.
    """
    found: dict[str, bytes] = {}
    for name in sorted(os.listdir(folder))[:_MAX_FILES]:
        content = _read(folder, name, cap)
        if content is not None and name.isprintable():
            found[name] = content
            cap -= len(content)
    return found


def _read(folder: int, name: str, cap: int) -> bytes | None:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > cap:
            return None
        return os.pread(descriptor, facts.st_size, 0)
    finally:
        os.close(descriptor)
