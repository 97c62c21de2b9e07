"""Landlock: what a child may open. Read-only interpreter and libraries, a read-write scratch folder, nothing else.

Rights that a kernel does not know yet are left out; what Landlock does not cover (chmod, utime, truncate by name,
UDP) is refused by seccomp.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable
from typing import Final

from tradeassay.sandbox import kernel

_VERSION_QUERY: Final = 1
_RULE_PATH_BENEATH: Final = 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_DIR, _MAKE_REG = 1 << 7, 1 << 8
_ALL_OF_ABI_1: Final = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_TCP_BIND_CONNECT: Final = 3
_SCOPE_ABSTRACT_SOCKET_SIGNAL: Final = 3

READ: Final = _READ_FILE | _READ_DIR
LIST: Final = _READ_DIR
READ_WRITE: Final = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _TRUNCATE
_OF_A_FILE: Final = _WRITE_FILE | _READ_FILE | _TRUNCATE


def abi() -> int:
    try:
        return kernel.syscall("landlock_create_ruleset", None, 0, _VERSION_QUERY)
    except OSError:
        return 0


def handled_rights(version: int) -> int:
    """Return every file right that this version can take away."""
    rights = _ALL_OF_ABI_1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        if version >= since:
            rights |= right
    return rights


def ruleset_attributes(version: int) -> bytes:
    """Return ``struct landlock_ruleset_attr`` sized for this version: files, TCP, abstract sockets, signals."""
    words = [handled_rights(version)]
    if version >= 4:
        words.append(_TCP_BIND_CONNECT)
    if version >= 6:
        words.append(_SCOPE_ABSTRACT_SOCKET_SIGNAL)
    return struct.pack(f"={len(words)}Q", *words)


def restrict(version: int, rules: Iterable[tuple[int, int]]) -> None:
    """Remove every right except ``rules`` (descriptor of a path, rights beneath it), irrevocably."""
    attributes = ruleset_attributes(version)
    ruleset = kernel.syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    handled = handled_rights(version)
    for descriptor, rights in rules:
        kept = rights & handled
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            kept &= _OF_A_FILE
        packed = struct.pack("=Qi", kept, descriptor)
        kernel.syscall("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, packed, 0)
    kernel.syscall("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)
