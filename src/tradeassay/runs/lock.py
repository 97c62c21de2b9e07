"""One writer per file. The kernel drops a lock when its holder dies, however it dies."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import TracebackType

import msgspec

from tradeassay.core.files import take_lock


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a run's lock, for the message that a second process gets."""

    pid: int
    host: str


class RunLock:
    """The lock of a run, held while a ``with`` block runs.

    The file stays behind with the name of its last holder. Only the kernel's lock counts, so that what a dead
    process left is no obstacle. Raises :class:`RunError` when a living process holds it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> RunLock:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            take_lock(self._descriptor, str(self._path.parent), holder=_name(os.pread(self._descriptor, 4096, 0)))
        except BaseException:
            os.close(self._descriptor)
            raise
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, msgspec.json.encode(Holder(pid=os.getpid(), host=socket.gethostname())), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def _name(content: bytes) -> str:
    try:
        holder = msgspec.json.decode(content, type=Holder)
    except msgspec.DecodeError:
        return "another process"
    return f"process {holder.pid} on {holder.host}"
