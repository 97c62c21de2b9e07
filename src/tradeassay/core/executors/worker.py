"""The worker side of local processes (``python -m tradeassay.core.executors.worker``), and how it talks.

Parent and worker send each other length-prefixed messages over a socket pair.

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
import pickle
import queue
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from typing import NoReturn

import msgspec

from tradeassay.core.errors import RunError
from tradeassay.core.executors.task import Entry, load_entry
from tradeassay.core.screen import clean_log, clean_screen

GRACE = 5.0
"""Seconds a worker may take to exit after its parent is gone."""
_TICK_EVERY = 0.1
_HEAD = struct.Struct("<I")


class Work(msgspec.Struct, frozen=True, tag="work"):
    """Parent to worker: do this."""

    key: str
    payload: bytes


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Worker to parent: everything is imported. A worker that dies before this could not start at all."""


class Ticked(msgspec.Struct, frozen=True, tag="ticked"):
    """Worker to parent: more sessions were played."""

    key: str
    sessions: int


class Result(msgspec.Struct, frozen=True, tag="result"):
    """Worker to parent: done."""

    key: str
    payload: bytes


class Raised(msgspec.Struct, frozen=True, tag="raised"):
    """Worker to parent: the task raised. ``error`` is pickled; the worker is our own child."""

    key: str
    error: bytes
    trace: str


Message = Work | Ready | Ticked | Result | Raised
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def send(connection: socket.socket, message: Message) -> None:
    """Send one message whole; raises ``OSError`` when the other end is gone."""
    content = _ENCODER.encode(message)
    connection.sendall(_HEAD.pack(len(content)) + content)


def receive(connection: socket.socket) -> Message | None:
    """Wait for one message; None when the other end is gone."""
    head = _exactly(connection, _HEAD.size)
    content = None if head is None else _exactly(connection, _HEAD.unpack(head)[0])
    return None if content is None else _DECODER.decode(content)


def raised(key: str, error: BaseException) -> Raised:
    """Pack an error so that it can be raised again elsewhere."""
    trace = "".join(traceback.format_exception(error))
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)
    except Exception:  # an error that cannot be pickled is described in words
        packed = pickle.dumps(RunError(f"{type(error).__name__}: {error}"))
    return Raised(key, packed, trace)


def rebuild(message: Raised) -> BaseException:
    """Unpack what :func:`raised` packed, with the worker's traceback as a note."""
    error: BaseException = pickle.loads(message.error)
    error.add_note(f"in a worker process, task {message.key}:\n{message.trace}")
    return error


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        try:
            part = connection.recv(min(count, 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class Orders(msgspec.Struct, frozen=True):
    """What a worker process is told when it starts: the function to call, and modules to import first."""

    entry: str
    modules: tuple[str, ...]
    descriptor: int
    forks: bool


def main(text: str) -> None:
    """Start as the forking process or as a single worker."""
    # What an agent prints must not end up among the results on stdout. Python's stdout would keep it in a buffer,
    # and a worker ends by os._exit, which discards buffers; stderr holds nothing back.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with clean_screen(), clean_log():
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
    """Performs one task after another; a second thread waits for messages and notices the parent's exit."""

    def __init__(self, connection: socket.socket, entry: Entry) -> None:
        self._connection = connection
        self._entry = entry
        self._todo: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._parent_gone = threading.Event()

    def loop(self) -> NoReturn:
        """Serve until the parent closes the connection, then end the process."""
        status = 0
        try:
            send(self._connection, Ready())
            threading.Thread(target=self._listen, daemon=True).start()
            while (work := self._todo.get()) is not None:
                self._perform(work)
        except BaseException as error:
            # A closed connection also means that the parent is gone, even before the listening thread notices.
            gone = self._parent_gone.is_set() or isinstance(error, BrokenPipeError | ConnectionResetError)
            status = 0 if isinstance(error, OSError) and gone else 70
            if status:
                sys.excepthook(type(error), error, error.__traceback__)
        finally:
            sys.stderr.flush()
            # Not sys.exit: the exit handlers of the forking process are not ours to run.
            os._exit(status)

    def _listen(self) -> None:
        while isinstance(message := receive(self._connection), Work):
            self._todo.put(message)
        self._parent_gone.set()
        self._todo.put(None)
        time.sleep(GRACE)
        os._exit(75)

    def _perform(self, work: Work) -> None:
        ticker = _Ticker(self._connection, work.key)
        try:
            payload = self._entry(work.payload, ticker, self._parent_gone.is_set)
        except Exception as error:
            send(self._connection, raised(work.key, error))
            return
        ticker.flush()
        send(self._connection, Result(work.key, payload))


class _Ticker:
    """Gathers ticks so that a fast episode does not spend its time talking."""

    def __init__(self, connection: socket.socket, key: str) -> None:
        self._connection = connection
        self._key = key
        self._sessions = 0
        self._last = time.monotonic()

    def __call__(self, sessions: int) -> None:
        """Count, and send now and then."""
        self._sessions += sessions
        if time.monotonic() - self._last >= _TICK_EVERY:
            self.flush()

    def flush(self) -> None:
        """Send what was gathered. That the parent is gone is noticed elsewhere and is not the task's concern."""
        if self._sessions:
            with contextlib.suppress(OSError):
                send(self._connection, Ticked(self._key, self._sessions))
        self._sessions = 0
        self._last = time.monotonic()


if __name__ == "__main__":
    # Through the package's own name, so that there is one copy of this module.
    from tradeassay.core.executors.worker import main as start

    start(sys.argv[1])
