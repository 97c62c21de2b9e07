"""Run tasks in this process, in processes on this machine, or on a Ray cluster.

All three give the same bytes.

Executors know nothing about episodes. A task is bytes with a key. ``entry`` names the function that
performs it (``package.module:function``), called as ``function(payload, tick, stopping) -> bytes``.
:class:`Spread` is the simpler form: a function over many independent pieces.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import SupportsIndex, TypeVar

import msgspec

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors.task import (
    EXECUTORS,
    ExecutorName,
    InProcess,
    Lost,
    Stopping,
    Task,
    TaskExecutor,
    Tick,
    cores,
)

P = TypeVar("P")
R = TypeVar("R")


def make_executor(
    name: ExecutorName, *, entry: str, workers: int | None = None, modules: Sequence[str] = ()
) -> TaskExecutor:
    """Return an executor.

    ``workers`` defaults to the cores (of the cluster, for Ray), and one local worker is this
    process itself. Raises :class:`UserError` for an unknown name or less than one worker.
    """
    if name not in EXECUTORS:
        raise UserError(f"unknown executor '{name}'", hint=f"choose one of {', '.join(EXECUTORS)}")
    if workers is not None and not (isinstance(workers, SupportsIndex) and workers >= 1):
        raise UserError(f"expected 1 or more workers, got {workers!r}", hint="ask for 1 or more")
    if name == "ray":
        from tradeassay_bench.core.executors.ray import RayExecutor

        return RayExecutor(entry, workers, modules)
    count = cores() if workers is None else workers
    if name == "inline" or count == 1:
        return InProcess(entry)
    from tradeassay_bench.core.executors.pool import LocalProcesses

    return LocalProcesses(entry, count, modules)


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Where pieces are worked on.

    The results are the same everywhere. ``inline`` is this process, one piece after the other;
    ``local`` are processes of this machine; ``ray`` is a cluster whose nodes see the same folders.
    ``workers`` defaults to the cores, of the cluster for Ray. Every worker imports ``modules``
    first: those that register a user's own agents.
    """

    executor: ExecutorName = "inline"
    workers: int | None = None
    modules: tuple[str, ...] = ()

    def map(
        self,
        function: Callable[[P], R],
        pieces: Sequence[P],
        *,
        done: Callable[[int, R], None] | None = None,
    ) -> list[R]:
        """Return what a function makes of every piece, in their order.

        ``done`` hears of each as it is ready. Unless they stay in this process, function and pieces
        are pickled: the function is a module's own, or a ``functools.partial`` of one. An error of
        a piece is raised with its type. Raises :class:`RunError` when the processes working on a
        piece died again and again.
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
        with make_executor(
            self.executor, entry=PIECES, workers=self.workers, modules=self.modules
        ) as pool:
            tasks = [
                Task(str(place), pickle.dumps((function, one))) for place, one in enumerate(pieces)
            ]
            for result in pool.perform(tasks, lambda key, count: None):
                if isinstance(result, Lost):
                    lost = result.reason
                    continue
                place = int(result.key)
                made[place] = pickle.loads(result.payload)
                if done is not None:
                    done(place, made[place])
        if lost:
            hint = "free some memory, or use the executor inline to see the error"
            raise RunError(
                f"{len(pieces) - len(made)} of {len(pieces)} pieces were lost: {lost}", hint=hint
            )
        return [made[place] for place in range(len(pieces))]


HERE = Spread()
"""In this process."""
PIECES = "tradeassay_bench.core.executors:perform_piece"
"""The entry that works on one pickled ``(function, piece)``."""


def perform_piece(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    function, piece = pickle.loads(payload)
    return pickle.dumps(function(piece))
