"""A sandbox: one zygote and the jobs it runs, one at a time or many. Safe to share between threads."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from tradeassay.core.errors import SandboxError, UserError
from tradeassay.sandbox.failures import Doubt, RefusedCall, attempt_verdict
from tradeassay.sandbox.job import Job, JobResult
from tradeassay.sandbox.sandbox_config import SandboxConfig
from tradeassay.sandbox.supervise import Supervisor, WallsDown, ZygoteLost
from tradeassay.sandbox.tier import Tier, ask_kernel, refusal
from tradeassay.sandbox.zygote_process import ZygoteProcess


class Sandbox:
    """Runs untrusted code, one fresh child per job. Starting costs a second or two, a job some milliseconds.

    Raises :class:`SandboxRefused` when this machine cannot contain untrusted code, or not at the level that the
    config asks for. Close it, or use it as a context manager; a forgotten one is closed with the interpreter.
    """

    def __init__(self, config: SandboxConfig | None = None) -> None:
        self.config = config or SandboxConfig()
        refused = refusal(ask_kernel())
        if refused is not None:
            raise refused
        self._line = _ZygoteLine(self.config)
        self._end = weakref.finalize(self, self._line.close)

    @property
    def tier(self) -> Tier:
        return self._line.current().tier

    def walls(self) -> Tier:
        """Return :attr:`tier`; for callers that can only call methods."""
        return self.tier

    @property
    def absent(self) -> tuple[str, ...]:
        return self._line.current().hello.absent

    @property
    def modules(self) -> frozenset[str]:
        return self._line.current().modules

    def run(self, job: Job) -> JobResult:
        """Run one job in its own child. A bad job is a result, not an error. An end that may be the machine's
        doing (:func:`~tradeassay.sandbox.failures.doubt`) is tried once more, unless the child had tried
        something that fails a job, or answered a row of its feed: its second child could be told what its first
        one saw.
        """
        zygote, seen = self._line.current(), tuple[RefusedCall, ...]()
        try:
            first, doubted = _run_on(zygote, job)
        except ZygoteLost as error:
            zygote, said = self._line.replace(zygote), error.message
        except WallsDown as error:
            said = error.message
        else:
            if first.failure is None or not doubted:
                return first
            grave = next((call for call in first.attempts if call.family in job.fail_on), None)
            if grave is not None:  # what the kernel refused stays refused, however the child ended
                return replace(first, failure=attempt_verdict(grave))
            if first.answers:
                if doubted == "machine":
                    raise _not_fed_twice(first.failure.text)
                return first
            said, seen = first.failure.text, first.attempts
        second, doubted = _run_on(zygote, job)
        if second.failure is not None and doubted == "machine":
            raise SandboxError(
                f"a program could not be judged: {second.failure.text}, and before that: {said}",
                hint="the machine lacks memory, or something kills processes: use fewer workers, then resume",
            )
        seen = tuple(call for call in seen if call not in second.attempts)
        return replace(second, retried=said, attempts=(*seen, *second.attempts))

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        for job in jobs:
            yield self.run(job)

    def close(self) -> None:
        self._end()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run_on(zygote: ZygoteProcess, job: Job) -> tuple[JobResult, Doubt]:
    if job.pass_as != "columns" and not job.harness and "pandas" not in zygote.modules:
        raise UserError(
            "this sandbox has no pandas, so rows cannot be passed as a frame",
            hint="pip install 'tradeassay[code]', keep pandas in SandboxConfig.preload, or use pass_as='columns'",
        )
    with Supervisor(job, zygote.tier, zygote.reach) as supervisor:
        try:
            return supervisor.run(zygote.socket)
        except ZygoteLost as error:
            if supervisor.fed:
                raise _not_fed_twice(error.message) from error
            raise


def _not_fed_twice(why: str) -> SandboxError:
    return SandboxError(
        f"a program could not be judged: {why}, and it is never fed the same rows twice",
        hint="the machine lacks memory, or something kills processes: use fewer workers, then resume",
    )


class _ZygoteLine:
    """One zygote after another: a lost one is followed by a new one."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._zygote: ZygoteProcess | None = ZygoteProcess(config)

    def current(self) -> ZygoteProcess:
        zygote = self._zygote
        if zygote is None:
            raise SandboxError("the sandbox is closed", hint="open a new one")
        if os.getpid() != self._owner:
            raise SandboxError("a sandbox cannot be used in a forked process", hint="open one in each process")
        return zygote

    def replace(self, lost: ZygoteProcess) -> ZygoteProcess:
        """Start a successor of ``lost``, unless another thread has done so already."""
        with self._lock:
            if self.current() is lost:
                lost.close()
                self._zygote = ZygoteProcess(self._config)
            return self.current()

    def close(self) -> None:
        with self._lock:
            zygote, self._zygote = self._zygote, None
            if zygote is not None:
                zygote.close()


class SandboxPool:
    """Runs up to ``workers`` children at once. Raises :class:`SandboxRefused` like :class:`Sandbox`.

    Memory adds up: ``workers`` times ``Limits.memory_mb`` should fit the machine.
    """

    def __init__(self, config: SandboxConfig | None = None, *, workers: int = 1) -> None:
        if workers < 1:
            raise UserError(f"{workers} workers cannot run anything", hint="give 1 or more")
        self.workers = workers
        self._sandbox = Sandbox(config)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")

    @property
    def tier(self) -> Tier:
        return self._sandbox.tier

    @property
    def modules(self) -> frozenset[str]:
        return self._sandbox.modules

    def run(self, job: Job) -> JobResult:
        return self.submit(job).result()

    def submit(self, job: Job) -> Future[JobResult]:
        """Run one job as soon as a worker is free; raises SandboxError after :meth:`close`."""
        try:
            return self._threads.submit(self._sandbox.run, job)
        except RuntimeError as error:
            closed = "shutdown" in str(error)
            what, hint = (
                ("the sandbox is closed", "open a new one") if closed else (str(error), "use fewer workers")
            )
            raise SandboxError(what, hint=hint) from error

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
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
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._sandbox.close()

    def __enter__(self) -> SandboxPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
