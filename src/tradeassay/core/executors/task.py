"""What an executor performs: bytes with a key, and the function that takes them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def perform(self, tasks: Sequence[Task], tick: Callable[[str, int], None]) -> Iterator[TaskResult | Lost]:
        """Yield one result per task, in order of completion."""
        ...


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_entry(entry: str) -> Entry:
    """Import the function that an entry names."""
    module, _, name = entry.partition(":")
    function: Entry = getattr(importlib.import_module(module), name)
    return function
