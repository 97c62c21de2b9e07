"""Run tasks on many machines through Ray (extra ``ray``).

Every node must see the run's folder and the data store under the same paths (shared storage),
because journals are written on the node that runs the episode. :meth:`RayExecutor.perform` may be
called from several threads at once.
"""

from __future__ import annotations

import importlib
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from tradeassay.core.errors import require
from tradeassay.core.files import data_home
from tradeassay_bench.core.executors.task import (
    ONE_THREAD,
    Lost,
    Task,
    TaskResult,
    cores,
    load_entry,
    one_thread,
)

TRIES = 4
"""Maximum number of submissions of a task. A dying node is not the task's fault, so a task whose
process died is submitted again.
"""


class RayExecutor:
    """Runs Ray tasks, at most ``workers`` at a time (default: the cluster's cores).

    A cluster that is already connected is used and left running. Otherwise the cluster in
    ``RAY_ADDRESS`` is joined. Without that variable a small cluster is started on this machine. If
    the node or process of a task dies, the task is submitted again, up to ``TRIES`` times in total.
    Raises :class:`~tradeassay.core.errors.MissingExtra` if Ray is not installed.
    """

    def __init__(self, entry: str, workers: int | None = None, modules: Sequence[str] = ()) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ray: Any = require("ray", "ray")
        self._entry, self._workers = entry, workers
        self._modules = tuple(modules)
        self._started = False
        self.lost = 0

    def __enter__(self) -> Self:
        if not self._ray.is_initialized():
            address = os.environ.get("RAY_ADDRESS")
            options: dict[str, Any] = {}
            if not address:
                options = {"num_cpus": self._workers or cores(), "include_dashboard": False}
            self._ray.init(address=address, log_to_driver=False, logging_level="ERROR", **options)
            self._started = True
        return self

    def __exit__(self, *exc: object) -> None:
        if self._started:
            self._ray.shutdown()
            self._started = False

    def perform(
        self, tasks: Sequence[Task], tick: Callable[[str, int], None]
    ) -> Iterator[TaskResult | Lost]:
        ray = self._ray
        # A node has its own environment, so the settings are sent with the task.
        environment = {**ONE_THREAD, "TRADEASSAY_HOME": str(data_home().absolute())}
        remote = ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": environment})(
            _perform
        )
        waiting = deque(tasks)
        flying: dict[Any, Task] = {}
        lost: Counter[str] = Counter()
        try:
            while waiting or flying:
                while waiting and len(flying) < self.most():
                    task = waiting.popleft()
                    flying[remote.remote(self._entry, self._modules, task.payload)] = task
                ready, _ = ray.wait(list(flying), num_returns=1)
                for reference in ready:
                    task = flying.pop(reference)
                    try:
                        payload, sessions = ray.get(reference)
                    except ray.exceptions.RayTaskError as error:
                        raise (error.cause or error) from None
                    except ray.exceptions.RayError as error:
                        lost[task.key] += 1
                        self.lost += 1
                        if lost[task.key] < TRIES:
                            waiting.append(task)
                        else:
                            reason = f"its Ray task was lost {TRIES} times ({type(error).__name__})"
                            yield Lost(task.key, reason)
                        continue
                    tick(task.key, sessions)
                    yield TaskResult(task.key, payload)
        finally:
            for reference in flying:
                ray.cancel(reference, force=True)

    def most(self) -> int:
        """Return the maximum number of concurrent tasks: ``workers``, or the cluster's current
        cores.
        """
        return self._workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))


def _perform(entry: str, modules: tuple[str, ...], payload: bytes) -> tuple[bytes, int]:
    """Perform a task on a node. Return its result and its number of sessions."""
    for module in modules:
        importlib.import_module(module)
    played = 0

    def tick(sessions: int) -> None:
        nonlocal played
        played += sessions

    with one_thread():
        result = load_entry(entry)(payload, tick, lambda: False)
    return result, played
