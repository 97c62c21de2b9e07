"""Where tasks are performed: this process, processes on this machine, or a Ray cluster. All give the same bytes.

Executors know nothing about episodes. A task is bytes with a key; ``entry`` names the function that performs
it (``package.module:function``), called as ``function(payload, tick, stopping) -> bytes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Literal, Self

from tradeassay.core.errors import UserError
from tradeassay.core.executors.one_thread import one_thread
from tradeassay.core.executors.task import (
    Entry,
    Lost,
    Stopping,
    Task,
    TaskExecutor,
    TaskResult,
    Tick,
    cores,
    load_entry,
)

ExecutorName = Literal["local", "inline", "ray"]
__all__ = (
    "EXECUTORS",
    "Entry",
    "ExecutorName",
    "InProcess",
    "Lost",
    "Stopping",
    "Task",
    "TaskExecutor",
    "TaskResult",
    "Tick",
    "cores",
    "load_entry",
    "make_executor",
)

EXECUTORS: tuple[ExecutorName, ...] = ("local", "inline", "ray")


def make_executor(
    name: ExecutorName, *, entry: str, workers: int | None = None, modules: Sequence[str] = ()
) -> TaskExecutor:
    """Return an executor; ``workers`` defaults to the cores (of the cluster, for Ray), and one local worker is
    this process itself.

    Raises :class:`UserError` for an unknown name.
    """
    if name not in EXECUTORS:
        raise UserError(f"no executor '{name}'", hint=f"choose one of {', '.join(EXECUTORS)}")
    if name == "ray":
        from tradeassay.core.executors.ray import RayExecutor

        return RayExecutor(entry, workers, modules)
    count = cores() if workers is None else workers
    if name == "inline" or count == 1:
        return InProcess(entry)
    from tradeassay.core.executors.local import LocalProcesses

    return LocalProcesses(entry, count, modules)


class InProcess:
    """Performs tasks in the calling process. Ctrl-C reaches the task as an exception."""

    def __init__(self, entry: str) -> None:
        self._entry = load_entry(entry)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(one_thread())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def perform(self, tasks: Sequence[Task], tick: Callable[[str, int], None]) -> Iterator[TaskResult | Lost]:
        """Yield one result per task, in the order given."""
        for task in tasks:
            yield TaskResult(task.key, self._entry(task.payload, partial(tick, task.key), _never))


def _never() -> bool:
    return False
