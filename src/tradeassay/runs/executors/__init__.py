"""Where tasks are performed: this process, processes on this machine, or a Ray cluster. Same bytes from all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from tradeassay.core.errors import UserError
from tradeassay.runs.executors.base import Done, Executor, Lost, Task

ExecutorName = Literal["local", "inline", "ray"]
EXECUTORS: tuple[ExecutorName, ...] = ("local", "inline", "ray")

__all__ = ["EXECUTORS", "Done", "Executor", "ExecutorName", "Lost", "Task", "cores", "make_executor"]


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_executor(
    name: ExecutorName, *, entry: str, workers: int | None = None, modules: Sequence[str] = ()
) -> Executor:
    """Return an executor; ``workers`` defaults to the cores, and one local worker is this process itself.

    Raises :class:`UserError` for an unknown name.
    """
    if name not in EXECUTORS:
        raise UserError(f"no executor '{name}'", mend=f"choose one of {', '.join(EXECUTORS)}")
    count = cores() if workers is None else workers
    if name == "ray":
        from tradeassay.runs.executors.ray import RayExecutor

        return RayExecutor(entry, count, modules)
    if name == "inline" or count == 1:
        from tradeassay.runs.executors.in_process import InProcess

        return InProcess(entry)
    from tradeassay.runs.executors.local import LocalProcesses

    return LocalProcesses(entry, count, modules)
