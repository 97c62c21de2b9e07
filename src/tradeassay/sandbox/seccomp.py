"""Seccomp: install the filter in the child, and answer its reports in the host."""

from __future__ import annotations

import ctypes
import fcntl
import struct
from typing import Final

import msgspec

from tradeassay.sandbox import kernel

_SET_MODE_FILTER, _GET_ACTION_AVAILABLE = 1, 2
_NEW_LISTENER: Final = 8
_IOCTL_RECEIVE: Final = 0xC0502100
_IOCTL_SEND: Final = 0xC0182101
_CONTINUE: Final = 1
_NOTICE: Final = struct.Struct("=QIIiIQ6Q")
_ANSWER: Final = struct.Struct("=QqiI")


class Notice(msgspec.Struct, frozen=True):
    """One call that waits for the host's answer: its ticket, number and six raw arguments."""

    ticket: int
    nr: int
    arguments: tuple[int, ...]


def has_action(action: int) -> bool:
    """Return whether the kernel knows a filter action (an ``RET_`` constant of :mod:`bpf`)."""
    try:
        kernel.syscall("seccomp", _GET_ACTION_AVAILABLE, 0, struct.pack("=I", action))
    except OSError:
        return False
    return True


def install(program: bytes, *, listener: bool) -> int:
    """Put the filter on this process for good; returns the listener's descriptor (0 without one). Raises
    OSError.
    """
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    return kernel.syscall("seccomp", _SET_MODE_FILTER, _NEW_LISTENER if listener else 0, header)


def receive(listener: int) -> Notice | None:
    """Return the next report, or None when the caller died while it waited."""
    packet = bytearray(_NOTICE.size)
    try:
        fcntl.ioctl(listener, _IOCTL_RECEIVE, packet)
    except OSError:
        return None
    ticket, _pid, _flags, nr, _arch, _pointer, *arguments = _NOTICE.unpack(packet)
    return Notice(ticket, nr, tuple(arguments))


def refuse(listener: int, notice: Notice, code: int) -> None:
    """Make the call fail with errno ``code``."""
    _send(listener, _ANSWER.pack(notice.ticket, 0, -code, 0))


def let_go_on(listener: int, notice: Notice) -> None:
    """Let the kernel decide the call by its other rules (Landlock, permissions, limits)."""
    _send(listener, _ANSWER.pack(notice.ticket, 0, 0, _CONTINUE))


def _send(listener: int, packet: bytes) -> None:
    try:
        fcntl.ioctl(listener, _IOCTL_SEND, bytearray(packet))
    except OSError:
        return  # the caller was killed meanwhile: nobody waits for the answer
