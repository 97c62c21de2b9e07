"""Decide the calls that the call filter reports to the host.

For each waiting call, the host identifies the target, decides the call, and records it.

A refusal here is always safe. Permitting a call does not bypass Landlock, the private root or the
limits, which still apply. A child has one thread and shares no writable memory, so the path that
the host reads is the path that the kernel uses.

The code chooses every byte that is read here, and the child waits while the host decides. The
number of steps of a decision is therefore bounded by the kernel's longest path.
"""

import errno
import os
import posixpath
import re
from socket import AddressFamily, SocketKind
from typing import Final

import msgspec

from tradeassay.core.printable import printable
from tradeassay_programs.sandbox import kernel, seccomp
from tradeassay_programs.sandbox.failures import RefusedCall
from tradeassay_programs.sandbox.kernel import MISSING, STAT, WATCHED, family_of, name_of
from tradeassay_programs.sandbox.namespaces import SCRATCH
from tradeassay_programs.sandbox.seccomp import Notice

_MAX_PATH: Final = 4096
_MAX_KINDS: Final = 64
"""Number of refused calls recorded with details. Later calls are counted by name only."""
_OTHERS: Final = "others"
_AT_FDCWD: Final = 0xFFFFFF9C
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CLONE_THREAD: Final = 0x10000

_RELATIVE_TO_DESCRIPTOR: Final = frozenset(
    "openat mkdirat unlinkat renameat renameat2 readlinkat newfstatat statx faccessat "
    "faccessat2".split()
)
_SECOND_PATH: Final[dict[str, int]] = {"rename": 1, "renameat": 3, "renameat2": 3}
_CHANGES: Final = WATCHED - {"open", "openat", "readlink", "readlinkat"}
"""Calls allowed only within the child's own folder.

With ``chdir`` among them, a relative name is always in that folder.
"""

UNREMARKABLE: Final[frozenset[str]] = frozenset(
    {
        "/etc/localtime",
        "/etc/ld.so.cache",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/possible",
    }
)
"""Files that libc opens on its own. They are refused, but do not count as attempts of the code."""

_SHARED_LIBRARY: Final = re.compile(r"\.so(\.[0-9]+)*$")
"""Pattern for the end of a shared library's file name.

Only file names are searched. With a folder in the pattern, a path with a thousand ``/lib/`` would
be searched a thousand times.
"""


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The paths that a child can reach.

    - ``readable`` folders are readable with all their content.
    - ``listable`` folders can be listed but not read.
    - ``home`` is the child's own folder.
    - ``searched`` folders are searched by the importer. They are not readable, and looking there
      does not count as an attempt.
    - ``known`` contains every existing path below them. No other name reaches the kernel, which
      would cache it.
    """

    readable: frozenset[str]
    listable: frozenset[str] = frozenset()
    searched: frozenset[str] = frozenset()
    home: str = SCRATCH
    known: frozenset[str] = frozenset()


class ChildWatch:
    """Answers one child's reports and records them."""

    def __init__(self, machine: str, reach: Reach) -> None:
        self._machine = machine
        self._reach = reach
        self._deepest = max((path.count("/") for path in reach.readable), default=0)
        self._seen: dict[tuple[str, str], RefusedCall] = {}
        self.memory: int | None = None
        self.process = -1
        self.folder = -1
        self.refused = 0
        self.file_calls = 0

    @property
    def attempts(self) -> tuple[RefusedCall, ...]:
        return tuple(self._seen.values())

    def answer(self, listener: int) -> None:
        """Read, decide and record one report."""
        notice = seccomp.receive(listener)
        if notice is None:
            return
        name = name_of(self._machine, notice.nr)
        if name in WATCHED or name in STAT:
            self._answer_path(listener, notice, name)
            return
        self._record(name, self._detail(name, notice))
        code = MISSING.get(name, errno.EAGAIN if name == "clone" else errno.EPERM)
        seccomp.refuse(listener, notice, code)

    def _answer_path(self, listener: int, notice: Notice, name: str) -> None:
        self.file_calls += 1
        opens = name in ("open", "openat")
        writes = name in _CHANGES or (
            opens and bool(notice.arguments[2 if name == "openat" else 1] & _WRITES)
        )
        paths = [self._path(notice, 1 if name in _RELATIVE_TO_DESCRIPTOR else 0)]
        if name in _SECOND_PATH:
            paths.append(self._path(notice, _SECOND_PATH[name]))
        outside = next((path for path in paths if not self._inside(path, writes=writes)), None)
        if outside is None:
            if self._nowhere(name, notice, paths[0]):
                seccomp.refuse(listener, notice, errno.ENOENT)
            else:
                seccomp.let_go_on(listener, notice)
            return
        own = (
            outside in UNREMARKABLE
            or outside in self._reach.searched
            or _is_shared_library(outside)
        )
        if name not in STAT and (writes or not own):
            self._record(name, f"{'write' if writes else 'read'} {outside}")
        seccomp.refuse(listener, notice, errno.ENOENT if name in STAT else errno.EACCES)

    def _path(self, notice: Notice, position: int) -> str:
        """Return the path in an argument.

        A path relative to a descriptor stays relative. The descriptor was opened under these rules.
        """
        path = self._text(notice.arguments[position])
        if path.startswith("/"):
            return _without_detours(path)
        relative_to_cwd = position == 0 or notice.arguments[position - 1] & 0xFFFFFFFF == _AT_FDCWD
        if relative_to_cwd and path:
            return _without_detours(posixpath.join(self._reach.home, path))
        return path

    def _nowhere(self, name: str, notice: Notice, path: str) -> bool:
        """Return whether a name does not exist, or is relative to a folder outside the child's."""
        if path.startswith("/"):
            own = path == SCRATCH or path.startswith(SCRATCH + "/")
            return bool(self._reach.known) and not own and path not in self._reach.known
        if not path or name not in _RELATIVE_TO_DESCRIPTOR or self._reach.home != SCRATCH:
            return False
        try:
            there = kernel.syscall("pidfd_getfd", self.process, _signed(notice.arguments[0]), 0)
        except OSError:
            return True
        try:
            return os.fstat(there).st_dev != os.fstat(self.folder).st_dev
        finally:
            os.close(there)

    def _inside(self, path: str, *, writes: bool) -> bool:
        if not path.startswith("/"):
            return ".." not in path.split("/")
        if path == SCRATCH or path.startswith(SCRATCH + "/"):
            return True
        if writes:
            return path == "/dev/null"
        if path in self._reach.listable:
            return True
        # No readable folder can be deeper than the deepest readable folder.
        parts = path.split("/", self._deepest + 1)
        above = ("/".join(parts[:length]) for length in range(2, self._deepest + 2))
        return any(folder in self._reach.readable for folder in above)

    def _detail(self, name: str, notice: Notice) -> str:
        first, second, third = notice.arguments[:3]
        if name in ("socket", "socketpair"):
            families, kinds = (
                {int(one): one.name for one in known} for known in (AddressFamily, SocketKind)
            )
            kind = second & 0xF
            return f"{families.get(first, f'family {first}')}, {kinds.get(kind, f'kind {kind}')}"
        if name in (
            "execve",
            "memfd_create",
            "truncate",
            "chmod",
            "symlink",
            "link",
            "mknod",
            "chown",
            "lchown",
        ):
            return self._text(first)
        if name in (
            "fchmodat",
            "fchownat",
            "linkat",
            "execveat",
            "symlinkat",
            "utimensat",
            "mknodat",
            "openat2",
        ):
            return self._text(first if name == "symlinkat" else second)
        if name in ("flock", "fcntl"):
            return f"descriptor {_signed(first)}"
        if name in ("kill", "tkill", "tgkill"):
            return f"pid {_signed(first)}, signal {third if name == 'tgkill' else second}"
        if name == "clone":
            return "a thread" if first & _CLONE_THREAD else "a process"
        return ""

    def _text(self, address: int) -> str:
        if self.memory is None or address == 0:
            return ""
        try:
            raw = os.pread(self.memory, _MAX_PATH, address)
        except (OSError, OverflowError):
            return ""
        return raw.partition(b"\0")[0].decode("utf-8", "replace")

    def _record(self, name: str, detail: str) -> None:
        self.refused += 1
        detail = printable(detail[:200])
        if (name, detail) not in self._seen and len(self._seen) >= _MAX_KINDS:
            # The code chooses the details, so they are unbounded. The set of calls is bounded, so
            # every call is counted.
            detail = _OTHERS
        known = self._seen.get((name, detail))
        count = known.count + 1 if known else 1
        self._seen[name, detail] = RefusedCall(
            family=family_of(name), call=name, detail=detail, count=count
        )


def _without_detours(path: str) -> str:
    """Return an absolute path without ``.``, ``..`` and repeated slashes.

    ``normpath`` keeps two slashes at the start, as POSIX requires. On Linux they equal one slash.
    """
    return "/" + posixpath.normpath(path).lstrip("/")


def _is_shared_library(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    in_library_folder = "/lib/" in f"{folder}/" or "/lib64/" in f"{folder}/"
    return in_library_folder and _SHARED_LIBRARY.search(name) is not None


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
