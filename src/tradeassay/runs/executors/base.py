"""What an executor is: something that performs tasks somewhere and hands back their results as they end.

Executors know nothing about episodes. A task is bytes with a key; ``entry`` names the function that performs
it (``package.module:function``), called as ``function(payload, tick, stopping) -> bytes``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

Tick = Callable[[int], None]
"""Called by a task with the number of sessions it has played since the last call."""
Stopping = Callable[[], bool]
"""Asked by a task between two steps; True means: end now, what is on disk stays."""
Entry = Callable[[bytes, Tick, Stopping], bytes]


class Task(msgspec.Struct, frozen=True):
    """Something to do."""

    key: str
    payload: bytes


class Done(msgspec.Struct, frozen=True):
    """A task's result."""

    key: str
    payload: bytes


class Lost(msgspec.Struct, frozen=True):
    """A task whose process died under it; ``reason`` says so in one line."""

    key: str
    reason: str


class Executor(Protocol):
    """Performs tasks. Used as a context manager: leaving it stops what still runs and frees everything.

    An error that a task raises comes out of :meth:`perform`, with its type.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def perform(self, tasks: Sequence[Task], tick: Callable[[str, int], None]) -> Iterator[Done | Lost]:
        """Yield a result per task, in the order in which they end."""
        ...


def load_entry(entry: str) -> Entry:
    """Import the function that an entry names."""
    module, _, name = entry.partition(":")
    function: Entry = getattr(importlib.import_module(module), name)
    return function
