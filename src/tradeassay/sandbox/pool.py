"""Many jobs at a time on this machine: one zygote, N children."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from tradeassay.core.errors import SandboxError, UserError
from tradeassay.sandbox.config import SandboxConfig
from tradeassay.sandbox.job import Job
from tradeassay.sandbox.result import JobResult
from tradeassay.sandbox.sandbox import Sandbox
from tradeassay.sandbox.tier import Tier


class SandboxPool:
    """Runs up to ``workers`` children at once. Raises :class:`SandboxRefused` like :class:`Sandbox`.

    Memory adds up: ``workers`` times ``Limits.memory_mb`` should fit the machine.
    """

    def __init__(self, config: SandboxConfig | None = None, *, workers: int = 1) -> None:
        if workers < 1:
            raise UserError(f"{workers} workers cannot run anything", mend="give 1 or more")
        self.workers = workers
        self._sandbox = Sandbox(config)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")

    @property
    def tier(self) -> Tier:
        """The walls that jobs run behind."""
        return self._sandbox.tier

    def run(self, job: Job) -> JobResult:
        """Run one job and wait for it."""
        return self.submit(job).result()

    def submit(self, job: Job) -> Future[JobResult]:
        """Run one job as soon as a worker is free; raises SandboxError after :meth:`close`."""
        try:
            return self._threads.submit(self._sandbox.run, job)
        except RuntimeError as error:
            raise SandboxError("the sandbox is closed", mend="open a new one") from error

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Run jobs in parallel; results come in their order. Jobs are drawn as workers get free, not all at
        once.
        """
        waiting: deque[Future[JobResult]] = deque()
        try:
            for job in jobs:
                waiting.append(self.submit(job))
                if len(waiting) > 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """Wait for jobs under way, drop those that wait, end the zygote. May be called twice."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._sandbox.close()

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
