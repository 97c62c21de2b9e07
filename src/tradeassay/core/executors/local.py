"""Processes on this machine: the default."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

import msgspec

from tradeassay.core.errors import RunError, UserError
from tradeassay.core.executors import worker
from tradeassay.core.executors.one_thread import ENVIRONMENT
from tradeassay.core.executors.task import Lost, Task, TaskResult
from tradeassay.core.executors.worker import GRACE, Orders

_DIED = "the process playing it died (out of memory, or a crash in compiled code)"


class LocalProcesses:
    """``workers`` processes, each performing one task at a time.

    They run in a session of their own, so that Ctrl-C on the terminal reaches the parent alone; it
    then closes their connections, and they end between two steps. ``modules``, those that register a user's own
    agents, are imported by the workers before the first task. A caller's script needs no ``__main__`` guard.
    """

    def __init__(self, entry: str, workers: int, modules: Sequence[str] = ()) -> None:
        if workers < 1:
            raise UserError(f"{workers} workers cannot do anything", hint="ask for 1 or more")
        self._entry = entry
        self._workers = workers
        self._modules = tuple(modules)
        self._forks = sys.platform == "linux"
        self._control: socket.socket | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: set[socket.socket] = set()
        self._ready: set[socket.socket] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()
        if self._control is not None:
            self._control.close()
            self._control = None
        for process in self._processes:
            try:
                process.wait(GRACE + 3.0)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._processes.clear()

    def perform(self, tasks: Sequence[Task], tick: Callable[[str, int], None]) -> Iterator[TaskResult | Lost]:
        """Yield one result per task, in order of completion."""
        busy: dict[socket.socket, Task] = {}
        try:
            yield from self._performed(deque(tasks), busy, tick)
        finally:
            for connection in busy:  # somebody left early: a late result must not be taken for the next task's
                self._forget(connection)

    def _performed(
        self, waiting: deque[Task], busy: dict[socket.socket, Task], tick: Callable[[str, int], None]
    ) -> Iterator[TaskResult | Lost]:
        with selectors.DefaultSelector() as selector:
            idle = [self._connection(n) for n in range(min(self._workers, len(waiting)))]
            while waiting or busy:
                while waiting and idle:
                    connection = idle.pop()
                    busy[connection] = waiting.popleft()
                    selector.register(connection, selectors.EVENT_READ)
                    self._give(connection, busy[connection])
                for key, _ in selector.select():
                    connection = key.fileobj  # type: ignore[assignment]  # only sockets are registered
                    message = worker.receive(connection)
                    if isinstance(message, worker.Ready):
                        self._ready.add(connection)
                        continue
                    if isinstance(message, worker.Ticked):
                        tick(message.key, message.sessions)
                        continue
                    selector.unregister(connection)
                    task = busy.pop(connection)
                    if isinstance(message, worker.Raised):
                        raise worker.rebuild(message)
                    if isinstance(message, worker.Result):
                        idle.append(connection)
                        yield TaskResult(task.key, message.payload)
                        continue
                    if connection not in self._ready:
                        raise _cannot_start()
                    self._forget(connection)
                    yield Lost(task.key, _DIED)
                    if waiting and not idle:
                        idle.append(self._start())

    def _give(self, connection: socket.socket, task: Task) -> None:
        try:
            worker.send(connection, worker.Work(task.key, task.payload))
        except OSError:
            return  # the worker is gone; reading from it will tell

    def _connection(self, number: int) -> socket.socket:
        alive = list(self._connections)
        return alive[number] if number < len(alive) else self._start()

    def _forget(self, connection: socket.socket) -> None:
        self._connections.discard(connection)
        self._ready.discard(connection)
        connection.close()

    def _start(self) -> socket.socket:
        """Start one more worker and return the parent's end of its connection."""
        ours, theirs = socket.socketpair()
        with theirs:
            if not self._forks:
                self._launch(theirs)
            else:
                if self._control is None:
                    self._control, far = socket.socketpair()
                    with far:
                        self._launch(far)
                try:
                    socket.send_fds(self._control, [b"w"], [theirs.fileno()])
                except OSError as error:
                    ours.close()
                    raise _cannot_start() from error
        self._connections.add(ours)
        return ours

    def _launch(self, far: socket.socket) -> None:
        orders = Orders(self._entry, self._modules, far.fileno(), self._forks)
        path = os.pathsep.join(part or os.getcwd() for part in sys.path)
        self._processes.append(
            subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "tradeassay.core.executors.worker",
                    msgspec.json.encode(orders).decode(),
                ],
                pass_fds=(far.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path},
            )
        )


def _cannot_start() -> RunError:
    return RunError("worker processes cannot be started", hint="see the error above, or use workers=1")
