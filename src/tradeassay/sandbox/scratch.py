"""Reading what a child left in its scratch folder, after it is gone. Nothing in there is believed."""

from __future__ import annotations

import os
import stat
from typing import Final

_MAX_FILES: Final = 64


def collect(folder: int, cap: int) -> dict[str, bytes]:
    """Return the plain files at the top of ``folder`` (a descriptor), by name, at most ``cap`` bytes and 64 files.

    Links, devices and folders are left alone; a name that is no text is left out.
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
