"""Run tasks in this process, in processes on this machine, or on a Ray cluster.

All three executors return the same bytes.

Executors are independent of episodes. A task is bytes with a key. ``entry`` names the function that
performs it (``package.module:function``), called as ``function(payload, tick, stopping) -> bytes``.
:class:`Spread` is the simpler form: it maps a function over independent items.
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

    ``workers`` defaults to the number of cores (of the cluster, for Ray). A single local worker
    runs in this process. Raises :class:`UserError` for an unknown name or fewer than one worker.
    """
    if name not in EXECUTORS:
        raise UserError(f"unknown executor '{name}'", hint=f"choose one of {', '.join(EXECUTORS)}")
    if workers is not None and not (isinstance(workers, SupportsIndex) and workers >= 1):
        raise UserError(f"expected 1 or more workers, got {workers!r}", hint="set workers")
    if name == "ray":
        from tradeassay_bench.core.executors.ray import RayExecutor

        return RayExecutor(entry, workers, modules)
    count = cores() if workers is None else workers
    if name == "inline" or count == 1:
        return InProcess(entry)
    from tradeassay_bench.core.executors.pool import LocalProcesses

    return LocalProcesses(entry, count, modules)


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The place where items are computed: this process, local processes or a cluster.

    The results are the same everywhere. ``inline`` uses this process, one item after the other.
    ``local`` uses processes of this machine. ``ray`` uses a cluster whose nodes share the same
    folders. ``workers`` defaults to the number of cores (of the cluster, for Ray). Every worker
    first imports ``modules``, which register a user's own agents.
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
        """Return the function's results for all pieces, in the order of the pieces.

        ``done`` is called with the place and the result of each piece as soon as the result is
        ready. Except with ``inline``, function and pieces are pickled. The function must then be
        defined at module level, or be a ``functools.partial`` of such a function. An exception of a
        piece is raised with its type. Raises :class:`RunError` if the processes that compute a
        piece die repeatedly.
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
            hint = "free some memory, or use the inline executor to see the error"
            raise RunError(
                f"{len(pieces) - len(made)} of {len(pieces)} tasks were lost: {lost}", hint=hint
            )
        return [made[place] for place in range(len(pieces))]


HERE = Spread()
"""Computes all items in this process."""
PIECES = "tradeassay_bench.core.executors:perform_piece"
"""Entry that computes one pickled ``(function, piece)``."""


def perform_piece(payload: bytes, tick: Tick, stopping: Stopping) -> bytes:
    function, piece = pickle.loads(payload)
    return pickle.dumps(function(piece))
