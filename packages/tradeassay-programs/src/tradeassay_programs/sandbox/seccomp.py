"""Build the seccomp filter as a classic BPF program, install it in a child, and answer its reports.

The program is built from call names, for one machine and one process. It is a flat list of pairs of
a call and its answer. This makes it readable, and a twenty-line interpreter in the tests checks it
call by call. Kernels cache the always-allowed calls in a bitmap, so the program's length costs
nothing.
"""

import ctypes
import errno
import fcntl
import struct
from collections.abc import Iterable
from typing import Final

import msgspec

from tradeassay_programs.sandbox import kernel
from tradeassay_programs.sandbox.kernel import (
    ALLOWED,
    ALLOWED_INT,
    AUDIT_ARCH,
    MISSING,
    QUIET,
    SIGABRT,
    STAT,
    SYSCALLS,
    WATCHED,
    number,
)

RET_ALLOW: Final = 0x7FFF0000
RET_KILL: Final = 0x80000000
RET_NOTIFY: Final = 0x7FC00000
RET_ERRNO: Final = 0x00050000

_LOAD, _JEQ, _JGE, _RETURN = 0x20, 0x15, 0x35, 0x06
_NR, _ARCH, _ARGS = 0, 4, 16
_X32_BIT: Final = 0x40000000


ANY_PID: Final = 0x7FFFFFF0
"""Placeholder for a child's process id in a program that is built before the child exists."""


class _Program:
    """Instructions of a filter.

    The first instructions kill calls of another machine type. Jumps skip only the next few
    instructions.
    """

    def __init__(self, machine: str) -> None:
        self._code: list[bytes] = []
        self.emit(_LOAD, _ARCH)
        self.emit(_JEQ, AUDIT_ARCH[machine], 1, 0)
        self.emit(_RETURN, RET_KILL)
        self.emit(_LOAD, _NR)
        if machine == "x86_64":
            self.emit(_JGE, _X32_BIT, 0, 1)
            self.emit(_RETURN, RET_KILL)

    def emit(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._code.append(struct.pack("=HBBI", code, if_true, if_false, value))

    def answer(self, nr: int, action: int) -> None:
        """Add the rule "call ``nr`` gets ``action``".

        The accumulator holds the call number before and after.
        """
        self.emit(_JEQ, nr, 0, 1)
        self.emit(_RETURN, action)

    def allow_if(self, nr: int, tests: list[tuple[int, int]]) -> None:
        """Allow call ``nr`` if every 32-bit word at an offset has its value.

        Otherwise the next rule applies.
        """
        self.emit(_JEQ, nr, 0, 2 * len(tests) + 2)
        for position, (offset, value) in enumerate(tests):
            self.emit(_LOAD, offset)
            self.emit(_JEQ, value & 0xFFFFFFFF, 0, 2 * (len(tests) - position - 1) + 1)
        self.emit(_RETURN, RET_ALLOW)
        self.emit(_LOAD, _NR)

    def bytes(self) -> bytes:
        return b"".join(self._code)


def _low(argument: int) -> int:
    return _ARGS + 8 * argument  # Both machines are little-endian, so the low word is first.


def for_process(program: bytes, pid: int) -> bytes:
    """Return a program built for ``ANY_PID`` as the program of process ``pid``."""
    before, mark, after = program.partition(struct.pack("=I", ANY_PID))
    assert mark
    return before + struct.pack("=I", pid) + after


def build(machine: str, pid: int = ANY_PID, *, notify: bool = True) -> bytes:
    """Return a child's program as packed ``struct sock_filter``.

    Raises KeyError for an unknown machine.

    ``pid`` is the child's process id as the child sees it, because the child may abort itself.
    Without ``notify`` (the kernel offers no listener), refused calls fail with EPERM and are not
    reported. Calls that name a path are then left to the kernel's other rules.
    """
    known = SYSCALLS[machine]
    refuse = RET_NOTIFY if notify else RET_ERRNO | errno.EPERM
    program = _Program(machine)
    for name in sorted(ALLOWED & known.keys()):
        program.answer(known[name], RET_ALLOW)
    for name in (*sorted(STAT & known.keys()), *sorted(WATCHED & known.keys())):
        program.answer(known[name], RET_NOTIFY if notify else RET_ALLOW)
    for name, (argument, values) in sorted(ALLOWED_INT.items()):
        for value in values:
            program.allow_if(number(machine, name), [(_low(argument), value)])
    # The child may abort() itself, and read its own limits but not set them: pid is 0 and both
    # halves of the pointer are zero.
    program.allow_if(number(machine, "tgkill"), [(_low(0), pid), (_low(2), SIGABRT)])
    program.allow_if(number(machine, "prlimit64"), [(_low(0), 0), (_low(2), 0), (_low(2) + 4, 0)])
    for name, code in sorted(QUIET.items()):
        if name in known:
            program.answer(known[name], RET_ERRNO | code)
    if not notify:
        for name, code in sorted(MISSING.items()):
            program.answer(number(machine, name), RET_ERRNO | code)
        program.answer(number(machine, "clone"), RET_ERRNO | errno.EAGAIN)
    program.emit(_RETURN, refuse)
    return program.bytes()


def refusing(machine: str, calls: Iterable[str], code: int) -> bytes:
    """Return a program that refuses ``calls`` with error ``code`` and allows all other calls."""
    program, known = _Program(machine), SYSCALLS[machine]
    for name in calls:
        if name in known:
            program.answer(known[name], RET_ERRNO | code)
    program.emit(_RETURN, RET_ALLOW)
    return program.bytes()


_SET_MODE_FILTER, _GET_ACTION_AVAILABLE = 1, 2
_NEW_LISTENER: Final = 8
_IOCTL_RECEIVE: Final = 0xC0502100
_IOCTL_SEND: Final = 0xC0182101
_CONTINUE: Final = 1
_NOTICE: Final = struct.Struct("=QIIiIQ6Q")
_ANSWER: Final = struct.Struct("=QqiI")


class Notice(msgspec.Struct, frozen=True):
    """A call that waits for the host's answer: its ticket, number and six raw arguments."""

    ticket: int
    nr: int
    arguments: tuple[int, ...]


def has_action(action: int) -> bool:
    """Return whether the kernel supports a filter action (one of the ``RET_`` constants)."""
    try:
        kernel.syscall("seccomp", _GET_ACTION_AVAILABLE, 0, struct.pack("=I", action))
    except OSError:
        return False
    return True


def install(program: bytes, *, listener: bool) -> int:
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    return kernel.syscall("seccomp", _SET_MODE_FILTER, _NEW_LISTENER if listener else 0, header)


def receive(listener: int) -> Notice | None:
    """Return the next report, or None if the caller died while waiting."""
    packet = bytearray(_NOTICE.size)
    try:
        fcntl.ioctl(listener, _IOCTL_RECEIVE, packet)
    except OSError:
        return None
    ticket, _pid, _flags, nr, _arch, _pointer, *arguments = _NOTICE.unpack(packet)
    return Notice(ticket, nr, tuple(arguments))


def refuse(listener: int, notice: Notice, code: int) -> None:
    _send(listener, _ANSWER.pack(notice.ticket, 0, -code, 0))


def let_go_on(listener: int, notice: Notice) -> None:
    """Permit the call, subject to the kernel's other rules (Landlock, permissions, limits)."""
    _send(listener, _ANSWER.pack(notice.ticket, 0, 0, _CONTINUE))


def _send(listener: int, packet: bytes) -> None:
    try:
        fcntl.ioctl(listener, _IOCTL_SEND, bytearray(packet))
    except OSError:
        return  # The caller was killed in the meantime, so no process waits for the answer.
