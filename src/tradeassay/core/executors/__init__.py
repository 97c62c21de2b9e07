"""Where work is done: this process, processes on this machine, or a Ray cluster. All give the same bytes.

Executors know nothing about episodes. A task is bytes with a key; ``entry`` names the function that performs
it (``package.module:function``), called as ``function(payload, tick, stopping) -> bytes``. :class:`Spread` is the
simpler form: a function over many independent pieces.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, Self, TypeVar

import msgspec

from tradeassay.core.errors import RunError, UserError

ExecutorName = Literal["local", "inline", "ray"]
EXECUTORS: tuple[ExecutorName, ...] = ("local", "inline", "ray")
Tick = Callable[[int], None]
"""Called by a task with the number of sessions it has played since the last call."""
Stopping = Callable[[], bool]
"""Asked by a task between two steps; True means stop now and keep what is on disk."""
Entry = Callable[[bytes, Tick, Stopping], bytes]


class Task(msgspec.Struct, frozen=True):
    """One unit of work."""

    key: str
    payload: bytes


class TaskResult(msgspec.Struct, frozen=True):
    """A task's result."""

    key: str
    payload: bytes


class Lost(msgspec.Struct, frozen=True):
    """A task whose process died; ``reason`` says how, in one line."""

    key: str
    reason: str


class TaskExecutor(Protocol):
    """Performs tasks. Used as a context manager: leaving it stops what still runs and frees everything.

    An error raised by a task is raised by :meth:`perform`, with its type.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def perform(self, tasks: Sequence[Task], tick: Callable[[str, int], None]) -> Iterator[TaskResult | Lost]:
        """Yield one result per task, in order of completion."""


class InProcess:
    """Performs tasks in the calling process. Ctrl-C reaches the task as an exception."""

    def __init__(self, entry: str) -> None:
        self._entry = load_entry(entry)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(one_thread())
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def perform(self, tasks: Sequence[Task], tick: Callable[[str, int], None]) -> Iterator[TaskResult | Lost]:
        for task in tasks:
            yield TaskResult(task.key, self._entry(task.payload, partial(tick, task.key), lambda: False))


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_entry(entry: str) -> Entry:
    module, _, name = entry.partition(":")
    function: Entry = getattr(importlib.import_module(module), name)
    return function


# The last bits of a matrix product depend on how many threads share it, so "different worker counts, same bytes"
# needs a fixed number. Worker processes get it through their environment, before a library is loaded; in the
# caller's own process the loaded libraries have to be switched at run time.
_POOLS = ("OPENBLAS_NUM", "OMP_NUM", "MKL_NUM", "BLIS_NUM", "VECLIB_MAXIMUM", "NUMBA_NUM", "POLARS_MAX")
ONE_THREAD = {f"{pool}_THREADS": "1" for pool in _POOLS}
_LIBRARY = re.compile(r"(openblas|mkl_rt|blis)[^/]*\.(so|dylib)[^/]*$")
# (getter, setter) as named in the builds of numpy, scipy and Linux distributions.
_SWITCHES = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra use one thread inside the ``with`` block, then as many as before."""
    import numpy as np  # the library must be loaded before it can be configured

    if Path("/proc/self/maps").exists():
        maps = Path("/proc/self/maps").read_text().splitlines()
        loaded = sorted({line.split(maxsplit=5)[-1].strip() for line in maps})
    else:
        package = Path(np.__file__).parent
        folders = (package / ".dylibs", package.parent / "numpy.libs")
        loaded = [str(path) for folder in folders for path in sorted(folder.glob("*"))]
    switches = []
    for path in filter(_LIBRARY.search, loaded):
        try:
            library = ctypes.CDLL(path)
        except OSError:  # mapped, but since replaced or deleted on disk
            continue
        names = next(((get, set_) for get, set_ in _SWITCHES if hasattr(library, get)), None)
        if names is not None and hasattr(library, names[1]):
            switches.append((getattr(library, names[0])(), getattr(library, names[1])))
    for _, setter in switches:
        setter(1)
    try:
        yield
    finally:
        for before, setter in switches:
            setter(before)


P = TypeVar("P")
R = TypeVar("R")


def make_executor(
    name: ExecutorName, *, entry: str, workers: int | None = None, modules: Sequence[str] = ()
) -> TaskExecutor:
    """Return an executor; ``workers`` defaults to the cores (of the cluster, for Ray), and one local worker is
    this process itself.

    Raises :class:`UserError` for an unknown name or less than one worker.
    """
    if name not in EXECUTORS:
        raise UserError(f"no executor '{name}'", hint=f"choose one of {', '.join(EXECUTORS)}")
    if workers is not None and workers < 1:
        raise UserError(f"{workers} workers cannot do anything", hint="ask for 1 or more")
    if name == "ray":
        from tradeassay.core.executors.ray import RayExecutor

        return RayExecutor(entry, workers, modules)
    count = cores() if workers is None else workers
    if name == "inline" or count == 1:
        return InProcess(entry)
    from tradeassay.core.executors.pool import LocalProcesses

    return LocalProcesses(entry, count, modules)


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Where pieces are worked on; the results are the same everywhere.

    ``inline`` is this process, one piece after the other; ``local`` are processes of this machine; ``ray`` is a
    cluster whose nodes see the same folders. ``workers`` defaults to the cores, of the cluster for Ray. Every
    worker imports ``modules`` first: those that register a user's own agents.
    """

    executor: ExecutorName = "inline"
    workers: int | None = None
    modules: tuple[str, ...] = ()

    def map(
        self, function: Callable[[P], R], pieces: Sequence[P], *, done: Callable[[int, R], None] | None = None
    ) -> list[R]:
        """Return what a function makes of every piece, in their order; ``done`` hears of each as it is ready.

        Unless they stay in this process, function and pieces are pickled: the function is a module's own, or a
        ``functools.partial`` of one. An error of a piece is raised with its type. Raises :class:`RunError` when
        the processes working on a piece died again and again.
        """
        if not pieces:
            return []
        made: dict[int, R] = {}
        if self.executor == "inline":
            for place, piece in enumerate(pieces):
                made[place] = function(piece)
                if done is not None:
                    done(place, made[place])
            return list(made.values())
        lost = ""
        with make_executor(self.executor, entry=PIECES, workers=self.workers, modules=self.modules) as pool:
            tasks = [Task(str(place), pickle.dumps((function, one))) for place, one in enumerate(pieces)]
            for result in pool.perform(tasks, lambda key, count: None):
                if isinstance(result, Lost):
                    lost = result.reason
                    continue
                place = int(result.key)
                made[place] = pickle.loads(result.payload)
                if done is not None:
                    done(place, made[place])
        if lost:
            raise RunError(
                f"{len(pieces) - len(made)} of {len(pieces)} pieces were lost: {lost}",
                hint="free some memory, or use the executor inline to see the error",
            )
        return [made[place] for place in range(len(pieces))]


HERE = Spread()
"""In this process."""
PIECES = "tradeassay.core.executors:perform_piece"
"""The entry that works on one pickled ``(function, piece)``."""


def perform_piece(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    function, piece = pickle.loads(payload)
    return pickle.dumps(function(piece))
