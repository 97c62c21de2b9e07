"""Bytes that nobody can change any more: how source and rows reach a child."""

from __future__ import annotations

import fcntl
import os
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
