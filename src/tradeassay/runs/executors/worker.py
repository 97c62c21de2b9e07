"""The worker side of local processes: ``python -m tradeassay.runs.executors.worker``.

On Linux one process imports everything and then forks a worker whenever the parent hands it a socket: imports
and compiled code are paid for once and their memory is shared. Elsewhere, where forking a loaded
interpreter is not safe, every worker is a process of its own.

A worker whose parent is gone (closed socket, whatever the cause) ends by itself: between two steps if the task
asks, after a grace period otherwise.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import queue
import signal
import socket
import sys
import threading
import time
from typing import NoReturn

import msgspec

from tradeassay.core.screen import clean_screen
from tradeassay.runs.executors import wire
from tradeassay.runs.executors.base import Entry, load_entry

GRACE = 5.0
"""Seconds that a worker may take to end after its parent is gone."""
_TICK_EVERY = 0.1


class Orders(msgspec.Struct, frozen=True):
    """What a worker process is told when it starts: the function to call, and modules to import first."""

    entry: str
    modules: tuple[str, ...]
    descriptor: int
    forks: bool


def main(text: str) -> None:
    """Start as the forking process or as a single worker."""
    # What an agent prints must not end up among the results on stdout.
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with clean_screen():
        _serve(text)


def _serve(text: str) -> None:
    orders = msgspec.json.decode(text, type=Orders)
    control = socket.socket(fileno=orders.descriptor)
    for module in orders.modules:
        importlib.import_module(module)
    entry = load_entry(orders.entry)
    if orders.forks:
        _fork_on_demand(control, entry)
    else:
        _Worker(control, entry).loop()


def _fork_on_demand(control: socket.socket, entry: Entry) -> None:
    gc.collect()
    gc.freeze()  # untouched objects stay on pages shared by all workers
    children: set[int] = set()
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            break
        connection = socket.socket(fileno=descriptors[0])
        child = os.fork()
        if child == 0:
            control.close()
            _Worker(connection, entry).loop()
        connection.close()
        children.add(child)
        children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
    deadline = time.monotonic() + GRACE + 1.0
    while children and time.monotonic() < deadline:
        children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
        time.sleep(0.005)
    for pid in children:
        os.kill(pid, signal.SIGKILL)


class _Worker:
    """Performs one task after the other; a second thread waits for messages and notices the parent's end."""

    def __init__(self, connection: socket.socket, entry: Entry) -> None:
        self._connection = connection
        self._entry = entry
        self._todo: queue.SimpleQueue[wire.Work | None] = queue.SimpleQueue()
        self._parent_gone = threading.Event()

    def loop(self) -> NoReturn:
        """Serve until the parent closes the connection, then end the process."""
        status = 0
        try:
            wire.send(self._connection, wire.Ready())
            threading.Thread(target=self._listen, daemon=True).start()
            while (work := self._todo.get()) is not None:
                self._perform(work)
        except BaseException as error:
            # A closed connection is the parent's end as well, also before the listening thread could notice it.
            gone = self._parent_gone.is_set() or isinstance(error, BrokenPipeError | ConnectionResetError)
            status = 0 if isinstance(error, OSError) and gone else 70
            if status:
                sys.excepthook(type(error), error, error.__traceback__)
        finally:
            sys.stderr.flush()
            # Not sys.exit: what the forking process registered to run at its end is not ours to run.
            os._exit(status)

    def _listen(self) -> None:
        while isinstance(message := wire.receive(self._connection), wire.Work):
            self._todo.put(message)
        self._parent_gone.set()
        self._todo.put(None)
        time.sleep(GRACE)
        os._exit(75)

    def _perform(self, work: wire.Work) -> None:
        ticker = _Ticker(self._connection, work.key)
        try:
            payload = self._entry(work.payload, ticker, self._parent_gone.is_set)
        except Exception as error:
            wire.send(self._connection, wire.raised(work.key, error))
            return
        ticker.flush()
        wire.send(self._connection, wire.Result(work.key, payload))


class _Ticker:
    """Gathers ticks so that a fast episode does not spend its time talking."""

    def __init__(self, connection: socket.socket, key: str) -> None:
        self._connection = connection
        self._key = key
        self._sessions = 0
        self._last = time.monotonic()

    def __call__(self, sessions: int) -> None:
        """Count; send now and then."""
        self._sessions += sessions
        if time.monotonic() - self._last >= _TICK_EVERY:
            self.flush()

    def flush(self) -> None:
        """Send what was gathered. A parent that is gone is noticed elsewhere and is no trouble of the task's."""
        if self._sessions:
            with contextlib.suppress(OSError):
                wire.send(self._connection, wire.Ticked(self._key, self._sessions))
        self._sessions = 0
        self._last = time.monotonic()


if __name__ == "__main__":
    # Through the package's own name, so that there is one copy of this module.
    from tradeassay.runs.executors.worker import main as start

    start(sys.argv[1])
