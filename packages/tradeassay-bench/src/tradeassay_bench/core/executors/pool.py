"""Run tasks in worker processes on this machine: a standard pool with retries and progress."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any, Self

import msgspec

from tradeassay.core.screen import clean_log, clean_screen
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors.task import (
    ONE_THREAD,
    Entry,
    Lost,
    Task,
    TaskResult,
    load_entry,
)

GRACE = 5.0
"""Seconds that a worker may take to end after its parent stopped it or died."""
_TICK_EVERY = 0.1
_READY, _FAILED = 0, -1
"""Sent instead of a number of sessions when a worker has started, or failed to start."""
_DIED = "its process died (out of memory, or a crash in compiled code)"
# On Linux a server process imports everything once and forks workers, which share its memory. On
# other systems forking a loaded interpreter is not safe, so every worker starts separately.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"


class LocalProcesses:
    """Runs ``workers`` processes, each performing one task at a time.

    Ctrl-C reaches only the parent, which then closes a pipe. Workers detect the closed pipe between
    two steps and end. They also end if the parent is killed. Before the first task the workers
    import ``modules``, which register a user's own agents. A task whose worker died is repeated
    once, alone. A caller's script needs no ``__main__`` guard.
    """

    def __init__(self, entry: str, workers: int, modules: Sequence[str] = ()) -> None:
        self._entry, self._workers, self._modules = entry, workers, tuple(modules)
        self._pool: _Pool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def perform(
        self, tasks: Sequence[Task], tick: Callable[[str, int], None]
    ) -> Iterator[TaskResult | Lost]:
        waiting = deque(tasks)
        flying: dict[Future[_Done], Task] = {}
        try:
            while waiting or flying:
                if self._pool is None:
                    self._pool = _Pool(self._entry, self._workers, self._modules)
                # At most one task per worker, so that few tasks are suspects if the pool breaks.
                while waiting and len(flying) < self._workers:
                    task = waiting.popleft()
                    flying[self._pool.submit(task)] = task
                ready, _ = wait(flying, timeout=_TICK_EVERY, return_when=FIRST_COMPLETED)
                self._pool.read_ticks(tick)
                if any(isinstance(future.exception(), BrokenProcessPool) for future in ready):
                    # The standard pool ends all workers if one dies, and does not report whose task
                    # it was.
                    self._pool.close(died=True)
                    self._pool = None
                    ready = set(flying)
                for future in ready:
                    task = flying.pop(future)
                    if not isinstance(future.exception(), BrokenProcessPool):
                        yield future.result().of(task, tick)
                        continue
                    alone = _Pool(self._entry, 1, self._modules)
                    died = False
                    try:
                        again = alone.submit(task)
                        while not wait([again], timeout=_TICK_EVERY).done:
                            alone.read_ticks(tick)
                        alone.read_ticks(tick)
                        died = isinstance(again.exception(), BrokenProcessPool)
                        yield Lost(task.key, _DIED) if died else again.result().of(task, tick)
                    finally:
                        alone.close(died=died)
        finally:
            if flying:  # the caller stopped iterating early
                self.__exit__(None, None, None)


class _Done(msgspec.Struct, frozen=True):
    """The message of a worker: a result with the sessions not yet counted, or a pickled error.

    ``trace`` is the traceback of the error.
    """

    payload: bytes = b""
    sessions: int = 0
    error: bytes | None = None
    trace: str = ""

    def of(self, task: Task, tick: Callable[[str, int], None]) -> TaskResult:
        """Return the result of a task. Raises the worker's error with its type."""
        if self.sessions:
            tick(task.key, self.sessions)
        if self.error is None:
            return TaskResult(task.key, self.payload)
        error: BaseException = pickle.loads(self.error)  # sent by our own child process
        error.add_note(f"in a worker process, task {task.key}:\n{self.trace}")
        raise error


class _Pool:
    """A standard pool and two pipes.

    Closing ``stop`` ends the workers. ``ticks`` transfers their session counts.
    """

    def __init__(self, entry: str, workers: int, modules: tuple[str, ...]) -> None:
        context = multiprocessing.get_context(METHOD)
        self._stop_read, self._stop = context.Pipe(duplex=False)
        self._ticks, self._ticks_write = context.Pipe(duplex=False)
        self._ready, self._failure = False, "see the error above"
        forkserver.set_forkserver_preload([entry.partition(":")[0]])
        # An existing server, as in a notebook, has the environment of its start.
        setting = (entry, modules, dict(os.environ), self._stop_read, self._ticks_write)
        self._executor = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_begin, initargs=setting
        )

    def submit(self, task: Task) -> Future[_Done]:
        try:
            with _starting():
                return self._executor.submit(_perform, task.key, task.payload)
        except BrokenProcessPool as error:  # a worker died while it was idle
            broken: Future[_Done] = Future()
            broken.set_exception(error)
            return broken

    def read_ticks(self, tick: Callable[[str, int], None]) -> None:
        while self._ticks.poll():
            key, sessions = self._ticks.recv()
            if sessions > 0:
                tick(key, sessions)
            elif sessions == _READY:
                self._ready = True
            else:
                self._failure = key

    def close(self, *, died: bool = False) -> None:
        """End the workers.

        Raises :class:`RunError` if a worker died before any worker was ready, because worker
        processes then cannot be started.
        """
        self._stop.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        if died:
            self.read_ticks(lambda key, sessions: None)
        for end in (self._stop_read, self._ticks, self._ticks_write):
            end.close()
        if died and not self._ready:
            raise RunError(
                f"worker processes cannot be started: {self._failure}", hint="use workers=1"
            )


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Start processes in a ``with`` block with one thread for linear algebra.

    The processes do not receive Ctrl-C and do not run the caller's script. A Ctrl-C inside the
    block is delivered at its end, because a pool whose start was interrupted would not wait for its
    workers. The workers inherit the signal mask. The mask alone is not enough in a process with
    other threads, such as a progress display, so a handler is also installed.
    """
    main, before = sys.modules["__main__"], dict(os.environ)
    sys.modules["__main__"] = ModuleType(
        "__main__"
    )  # otherwise every worker would run a script that has no guard
    os.environ.update(ONE_THREAD, PYTHONSAFEPATH="1")
    mask, heard, usual = (
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}),
        list[Any](),
        None,
    )
    if threading.current_thread() is threading.main_thread():
        usual = signal.signal(signal.SIGINT, lambda *told: heard.append(told))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if usual is not None:
            signal.signal(signal.SIGINT, usual)
        sys.modules["__main__"] = main
        os.environ.clear()
        os.environ.update(before)
    if heard and callable(usual):
        usual(*heard[0])


class _Worker(msgspec.Struct):
    """The state of a worker process between tasks."""

    entry: Entry
    ticks: Connection
    stopping: threading.Event
    screen: contextlib.ExitStack


_worker: _Worker


def _begin(
    entry: str,
    modules: tuple[str, ...],
    environ: dict[str, str],
    stop: Connection,
    ticks: Connection,
) -> None:
    """Initialise a worker process: settings, output, modules and the entry."""
    global _worker
    os.setsid()
    os.environ.clear()
    os.environ.update(environ, **ONE_THREAD)
    # Output of an agent must not be mixed with the results on stdout.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    screen = contextlib.ExitStack()
    screen.enter_context(clean_screen())
    screen.enter_context(clean_log())
    try:
        for module in modules:
            importlib.import_module(module)
        _worker = _Worker(load_entry(entry), ticks, threading.Event(), screen)
    except Exception as error:
        ticks.send((f"{type(error).__name__}: {error}"[:1000], _FAILED))
        raise
    threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()
    ticks.send(("", _READY))


def _end_with_parent(stop: Connection) -> None:
    stop.poll(
        None
    )  # No data is ever sent. This call returns when the other end is closed, whatever the cause.
    _worker.stopping.set()
    time.sleep(GRACE)
    os._exit(75)


def _perform(key: str, payload: bytes) -> _Done:
    """Return the result of a task, or its error in a form that can be pickled."""
    counted, last = 0, time.monotonic()

    def tick(sessions: int) -> None:
        nonlocal counted, last
        counted += sessions
        if time.monotonic() - last >= _TICK_EVERY:
            with contextlib.suppress(OSError):  # The worker detects the end of the parent in a
                # different place.
                # A short message is written to a pipe completely or not at all, so workers share it
                # without a lock.
                _worker.ticks.send((key, counted))
            counted, last = 0, time.monotonic()

    try:
        done = _Done(_worker.entry(payload, tick, _worker.stopping.is_set), counted)
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        try:
            packed = pickle.dumps(error)
            pickle.loads(packed)
        except Exception:  # an error that cannot be pickled is replaced by its description
            packed = pickle.dumps(RunError(f"{type(error).__name__}: {error}"))
        done = _Done(error=packed, trace=trace)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(0)  # the receiver has ended
    return done
