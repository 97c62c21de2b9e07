"""The few Linux calls that Python does not wrap. Each raises an OSError that names the call."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct
from typing import Final

from tradeassay.sandbox.syscalls import number

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18

_MNT_DETACH: Final = 2
_AT_FDCWD: Final = -100
_MOUNT_ATTR_RDONLY_NOSUID: Final = 0x1 | 0x2
_MOUNT_ATTR_NODEV: Final = 0x4
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_MADV_COLLAPSE: Final = 25
_CAPABILITY_V3: Final = 0x20080522


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _argument(value: int | bytes | None) -> object:
    # ctypes would pass a bare int as 32 bits.
    return ctypes.c_long(value) if isinstance(value, int) else value


def syscall(name: str, *arguments: int | bytes | None) -> int:
    """Make the call ``name``; raises OSError with its errno."""
    libc = _libc()
    result = libc.syscall(ctypes.c_long(number(platform.machine(), name)), *(_argument(a) for a in arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return int(result)


def collapse(address: int, length: int) -> None:
    """Put a span of this process's memory into pages of 2 MB; its bytes stay the same."""
    syscall("madvise", address, length, _MADV_COLLAPSE)


def unshare(flags: int) -> None:
    syscall("unshare", flags)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    syscall("mount", words[0], words[1], words[2], flags, words[3])


def make_read_only(target: str, *, allow_devices: bool = False) -> None:
    attributes = _MOUNT_ATTR_RDONLY_NOSUID | (0 if allow_devices else _MOUNT_ATTR_NODEV)
    packed = struct.pack("=QQQQ", attributes, 0, 0, 0)
    syscall("mount_setattr", _AT_FDCWD, os.fsencode(target), 0, packed, len(packed))


def enter_root(folder: str) -> None:
    """Make ``folder`` (a mount) the root of this mount namespace and detach the old one."""
    os.chdir(folder)
    syscall("pivot_root", b".", b".")
    syscall("umount2", b".", _MNT_DETACH)
    os.chdir("/")


def die_with_parent() -> None:
    """Ask for SIGKILL when the parent ends. Must be asked again after the user id changes."""
    syscall("prctl", _PR_SET_PDEATHSIG, 9, 0, 0, 0)


def no_new_privileges() -> None:
    syscall("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def drop_capabilities() -> None:
    syscall("capset", struct.pack("=Ii", _CAPABILITY_V3, 0), bytes(24))
