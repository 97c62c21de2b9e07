"""The caller's own process: one task after the other, nothing to start, easy to debug."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tradeassay.runs.executors.base import Done, Lost, Task, load_entry
from tradeassay.runs.executors.one_thread import one_thread


class InProcess:
    """Performs tasks where it is called. Ctrl-C reaches the task as an exception."""

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

    def perform(self, tasks: Sequence[Task], tick: Callable[[str, int], None]) -> Iterator[Done | Lost]:
        """Yield a result per task, in the order given."""
        for task in tasks:
            yield Done(task.key, self._entry(task.payload, _ticker(task.key, tick), _never))


def _ticker(key: str, tick: Callable[[str, int], None]) -> Callable[[int], None]:
    def pass_on(sessions: int) -> None:
        tick(key, sessions)

    return pass_on


def _never() -> bool:
    return False
