"""Many independent pieces of work: in this process, in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from tradeassay.core.errors import RunError
from tradeassay.core.executors import ExecutorName, Lost, Stopping, Task, Tick, make_executor

P = TypeVar("P")
R = TypeVar("R")

ENTRY = "tradeassay.core.executors.spread:perform"


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
        """Return what a function makes of every piece, in their order; ``done`` is told of each as it is ready.

        Unless they stay in this process, function and pieces are pickled: the function is a module's own, or a
        ``functools.partial`` of one. An error of a piece is raised with its type. Raises :class:`RunError` when
        the processes working on a piece died again and again.
        """
        if not pieces:
            return []
        if self.executor == "inline":
            found = []
            for place, piece in enumerate(pieces):
                found.append(function(piece))
                if done is not None:
                    done(place, found[-1])
            return found
        made: dict[int, R] = {}
        # Most deaths are accidents, so that whatever was lost is tried once more; Ray has done so itself.
        attempts = 1 if self.executor == "ray" else 2
        with make_executor(self.executor, entry=ENTRY, workers=self.workers, modules=self.modules) as pool:
            waiting, lost = [Task(str(at), pickle.dumps((function, one))) for at, one in enumerate(pieces)], ""
            for _ in range(attempts):
                for result in pool.perform(waiting, lambda key, count: None):
                    if isinstance(result, Lost):
                        lost = result.reason
                        continue
                    place = int(result.key)
                    made[place] = pickle.loads(result.payload)
                    if done is not None:
                        done(place, made[place])
                waiting = [task for task in waiting if int(task.key) not in made]
        if waiting:
            raise RunError(
                f"{len(waiting)} of {len(pieces)} pieces were lost: {lost}",
                hint="free some memory, or use the executor inline to see the error",
            )
        return [made[place] for place in range(len(pieces))]


HERE = Spread()
"""In this process."""


def perform(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    """Work on one piece; what the executors call."""
    function, piece = pickle.loads(payload)
    return pickle.dumps(function(piece))
