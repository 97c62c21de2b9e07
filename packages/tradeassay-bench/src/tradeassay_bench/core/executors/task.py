"""Provide the common parts of all executors: tasks, results, the in-process executor, thread
limits.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, Self

import msgspec

ExecutorName = Literal["local", "inline", "ray"]
EXECUTORS: tuple[ExecutorName, ...] = ("local", "inline", "ray")
Tick = Callable[[int], None]
"""Called by a task with the number of sessions completed since the last call."""
Stopping = Callable[[], bool]
"""Called by a task between two steps. True stops the task and keeps its files on disk."""
Entry = Callable[[bytes, Tick, Stopping], bytes]


class Task(msgspec.Struct, frozen=True):
    """One unit of work."""

    key: str
    payload: bytes


class TaskResult(msgspec.Struct, frozen=True):
    """The result of the task ``key``."""

    key: str
    payload: bytes


class Lost(msgspec.Struct, frozen=True):
    """A task whose process died. ``reason`` describes the cause in one line."""

    key: str
    reason: str


class TaskExecutor(Protocol):
    """Performs tasks.

    Use it as a context manager. Leaving the block stops running tasks and frees all resources.
    :meth:`perform` raises an error of a task with its type.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def perform(
        self, tasks: Sequence[Task], tick: Callable[[str, int], None]
    ) -> Iterator[TaskResult | Lost]:
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

    def perform(
        self, tasks: Sequence[Task], tick: Callable[[str, int], None]
    ) -> Iterator[TaskResult | Lost]:
        for task in tasks:
            yield TaskResult(
                task.key, self._entry(task.payload, partial(tick, task.key), lambda: False)
            )


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_entry(entry: str) -> Entry:
    module, _, name = entry.partition(":")
    function: Entry = getattr(importlib.import_module(module), name)
    return function


# The last bits of a matrix product depend on the number of threads. Results that do not depend on
# the number of workers therefore need a fixed number of threads. Worker processes read it from
# their environment before a library is loaded. In the caller's own process the libraries that are
# already loaded have to be switched at run time.
_POOLS = (
    "OPENBLAS_NUM",
    "OMP_NUM",
    "MKL_NUM",
    "BLIS_NUM",
    "VECLIB_MAXIMUM",
    "NUMBA_NUM",
    "POLARS_MAX",
)
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
    """Limit linear algebra to one thread in the ``with`` block, then restore the thread count."""
    import numpy as np  # the library must be loaded before it can be configured

    if Path("/proc/self/maps").exists():
        maps = Path("/proc/self/maps").read_text().splitlines()
        loaded = sorted({line.split(maxsplit=5)[-1].strip() for line in maps})
    else:
        package = Path(np.__file__).parent
        folders = (package / ".dylibs", package.parent / "numpy.libs")
        loaded = []
        for place in folders:
            loaded += [str(path) for path in sorted(place.glob("*"))]
    switches = []
    for path in filter(_LIBRARY.search, loaded):
        try:
            library = ctypes.CDLL(path)
        except OSError:  # mapped, but later replaced or deleted on disk
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
