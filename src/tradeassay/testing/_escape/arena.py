"""The targets: a secret, files, sockets, a victim process and future prices, all made for the occasion."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FORGED_PNL: Final = 1e9
VISIBLE: Final = 64
_ROWS: Final = 4096
_VARIABLE: Final = "TRADEASSAY_ESCAPE_SECRET"
_VICTIM: Final = "import sys, time; sys.stdout.write('up'); sys.stdout.flush(); time.sleep(120)"


@contextlib.contextmanager
def secret_in_environment() -> Iterator[str]:
    """Put a fresh secret into this process's environment, where careless harnesses keep their keys."""
    secret = "s3cret-" + secrets.token_hex(8)
    os.environ[_VARIABLE] = secret
    try:
        yield secret
    finally:
        del os.environ[_VARIABLE]


class Arena:
    """Owns the targets of one run of one attack; use as a context manager. It never touches the user's
    files.
    """

    def __init__(self, secret: str, *, victim: bool) -> None:
        self.secret = secret
        self._wants_victim = victim
        self._victim: subprocess.Popen[bytes] | None = None
        self._abstract_name = "escape-" + secrets.token_hex(8)
        self._stack = contextlib.ExitStack()
        # One odd price per run, far away from the visible ones, marks the future.
        self.future_price = 5000.0 + secrets.randbelow(10**6) / 1000
        self.prices = [100.0 + 0.25 * (row % 8) for row in range(VISIBLE)] + [self.future_price] * (
            _ROWS - VISIBLE
        )

    def __enter__(self) -> Arena:
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="escape-")))
        self.folder.chmod(0o777)
        (self.folder / "secret.txt").write_text(self.secret)
        (self.folder / "helper.py").write_text("CLEAN = True\n")
        self.home = self.folder / "home"
        self.home.mkdir()
        for path in (self.folder / "secret.txt", self.folder / "helper.py", self.home):
            path.chmod(0o777)
            os.utime(path, (1_000_000_000, 1_000_000_000))
        self._tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._udp = self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._unix = self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.folder / "unix.sock"))
        self._abstract = self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + self._abstract_name)
        (self.folder / "unix.sock").chmod(0o777)
        self._kept = ctypes.create_string_buffer(self.secret.encode())
        if self._wants_victim:
            self._victim = self._start_victim()
        self._before = self._state()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def targets(self) -> dict[str, str | int]:
        """Return what an attack is told: where to knock, never the secret itself."""
        return {
            "folder": str(self.folder),
            "secret": str(self.folder / "secret.txt"),
            "port": self._tcp.getsockname()[1],
            "udp": self._udp.getsockname()[1],
            "unix": str(self.folder / "unix.sock"),
            "abstract": self._abstract_name,
            "victim": self._victim.pid if self._victim is not None else 0,
            "host": os.getpid(),
            "address": ctypes.addressof(self._kept),
            "length": len(self.secret),
        }

    def heard(self) -> bool:
        """Return whether a message reached one of the sockets."""
        for listener in (self._udp, self._unix, self._abstract):
            with contextlib.suppress(BlockingIOError):
                listener.recv(4096)
                return True
        with contextlib.suppress(BlockingIOError):
            connection, _ = self._tcp.accept()
            connection.close()
            return True
        return False

    def changed(self) -> bool:
        """Return whether the target folder, or any file in it, is not as it was."""
        return self._state() != self._before

    def wait_for_change(self, seconds: float) -> None:
        """Wait until something changes, up to a limit."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.changed():
            time.sleep(0.02)

    def victim_gone(self) -> bool:
        """Return whether the victim process has ended."""
        if self._victim is None:
            return False
        try:
            self._victim.wait(0.2)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _listen(self, family: int, kind: int, address: tuple[str, int] | str) -> socket.socket:
        listener = self._stack.enter_context(socket.socket(family, kind))
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        return listener

    def _start_victim(self) -> subprocess.Popen[bytes]:
        victim = self._stack.enter_context(
            subprocess.Popen([sys.executable, "-I", "-S", "-c", _VICTIM], stdout=subprocess.PIPE)
        )
        self._stack.callback(victim.kill)
        assert victim.stdout is not None
        victim.stdout.read(2)
        return victim

    def _state(self) -> list[tuple[str, int, int, int, bytes]]:
        """Return names, modes, sizes, times and contents of everything but the control's own home."""
        state = []
        for path in sorted(self.folder.iterdir()):
            facts = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            modified = facts.st_mtime_ns if path.is_file() else 0
            state.append((path.name, facts.st_mode, facts.st_nlink, modified, content))
        return state
