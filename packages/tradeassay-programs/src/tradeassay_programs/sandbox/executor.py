"""Open executors by name: a pool of sandboxes, one sandbox per Ray worker, or this process.

Ray's processes are trusted. On each machine, untrusted code runs in a child of a local zygote. Code
that runs in this process has NO isolation, so only sources that the project ships may run there.
"""

import contextlib
import io
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal, cast

import msgspec

from tradeassay.core.errors import SandboxError, UserError, require
from tradeassay_programs.sandbox.codec import CodecError, decode, encode
from tradeassay_programs.sandbox.failures import (
    BadResult,
    CpuTimeout,
    Failure,
    SyntaxFault,
    WallTimeout,
    claim,
)
from tradeassay_programs.sandbox.job import Job, JobExecutor, JobResult, JobUsage
from tradeassay_programs.sandbox.sandbox import Sandbox, SandboxPool
from tradeassay_programs.sandbox.sandbox_config import SandboxConfig
from tradeassay_programs.sandbox.strategy import claim_of, fix_seeds, parse, run_encoded
from tradeassay_programs.sandbox.tier import IN_PROCESS, Tier


class TrustedCodeInProcess(JobExecutor):
    """Runs reference solutions of this project in this process, without limits or isolation.

    It refuses every job that is not marked ``trust="reference"``. The tier of its results is
    ``trusted-in-process``. It is not thread-safe: while a job runs, it uses the process's global
    random state and standard output.
    """

    @property
    def tier(self) -> Tier:
        """The tier that has no isolation."""
        return IN_PROCESS

    def run(self, job: Job) -> JobResult:
        """Run a trusted job.

        Raises :class:`SandboxError` for a job that is not marked as reference code or that has a
        feed.
        """
        if job.trust != "reference":
            hint = "run it in the sandbox"
            raise SandboxError(
                "only code marked trust='reference' may run inside the host's process", hint=hint
            )
        if job.feed is not None:
            raise SandboxError("a fed job needs a separate child", hint="run it in the sandbox")
        started, cpu_started = time.monotonic(), time.process_time()
        printed, outcome = io.StringIO(), None
        # The code gets the same random state as in a child. The host's random state is restored
        # afterwards.
        numpy = cast(Any, sys.modules["numpy"])
        system = cast(Any, sys.modules["os"])
        random = cast(Any, sys.modules["random"])
        random_state, numpy_state = random.getstate(), numpy.random.get_state()
        sources = [(system, "urandom"), (system, "getrandom"), (random, "_urandom")]
        originals = [
            (owner, name, getattr(owner, name)) for owner, name in sources if hasattr(owner, name)
        ]
        fix_seeds(job.seed)
        try:
            with contextlib.redirect_stdout(printed):
                outcome = _outcome(job)
        finally:
            random.setstate(random_state)
            numpy.random.set_state(numpy_state)
            for owner, name, source in originals:
                setattr(owner, name, source)
            sys.modules.pop("strategy", None)
        # Linux counts in kilobytes, macOS in bytes.
        unit = 1024 if sys.platform == "linux" else 1 << 20
        usage = JobUsage(
            cpu_s=time.process_time() - cpu_started,
            wall_s=time.monotonic() - started,
            peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit,
        )
        return JobResult(
            source=job.sha256,
            tier=IN_PROCESS,
            usage=usage,
            columns=outcome if isinstance(outcome, dict) else None,
            failure=None if isinstance(outcome, dict) else outcome,
            log=printed.getvalue().encode("utf-8", "replace"),
        )

    def close(self) -> None:
        """Do nothing, because this executor has no separate process."""


def _outcome(job: Job) -> dict[str, Any] | Failure:
    """Run a job in this process, and return its columns or its failure."""
    code, parsed = parse(job.source, None)
    if code is None:
        return SyntaxFault(message=parsed.syntax, line=parsed.line)
    columns = decode(b"".join(encode(job.columns)), job.limits.caps())
    assert isinstance(columns, dict)
    try:
        message = b"".join(run_encoded(code, job.call, columns, None))
    except Exception as error:
        return claim(claim_of(error))
    try:
        decoded = decode(message, job.limits.caps())
    except CodecError as error:
        return BadResult(reason=str(error))
    assert isinstance(decoded, dict)
    return decoded


class RaySandboxPool(JobExecutor):
    """Runs jobs on ``workers`` Ray actors, each with a separate sandbox.

    It joins the cluster that ``ray.init()`` finds, or starts a local cluster, which :meth:`close`
    ends. Raises MissingExtra if Ray is not installed, and SandboxError if a machine of the cluster
    cannot contain untrusted code.
    """

    def __init__(self, config: SandboxConfig | None = None, *, workers: int) -> None:
        if workers < 1:
            raise UserError(f"workers must be 1 or more, got {workers}", hint="leave it out for 1")
        self._ray = cast(Any, require("ray", "ray"))
        self._started = not self._ray.is_initialized()
        if self._started:
            self._ray.init(include_dashboard=False, log_to_driver=False)
        actor_class = self._ray.remote(num_cpus=1)(Sandbox)
        self._actors: list[Any] = [actor_class.remote(config) for _ in range(workers)]
        self._next = 0
        tiers = [actor.isolation_tier.remote() for actor in self._actors]
        try:
            self._tiers: list[Tier] = self._get(tiers)
        except SandboxError:
            self.close()
            raise

    @property
    def tier(self) -> Tier:
        """The weakest isolation among all machines."""
        return min(self._tiers, key=lambda tier: (tier.level == "strong", len(tier.isolation)))

    def run(self, job: Job) -> JobResult:
        """Run one job on one of the actors."""
        result: JobResult = self._get(self._submit(job))
        return result

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Run jobs on all actors and yield their results in order.

        Only a few jobs wait at a time.
        """
        waiting: deque[Any] = deque()
        for job in jobs:
            waiting.append(self._submit(job))
            if len(waiting) > 2 * len(self._actors):
                yield self._get(waiting.popleft())
        while waiting:
            yield self._get(waiting.popleft())

    def close(self) -> None:
        """End the actors, and the cluster if this pool started it."""
        if not self._ray.is_initialized():
            return
        for actor in self._actors:
            try:
                self._ray.get(actor.close.remote(), timeout=30)
            except self._ray.exceptions.RayError:
                pass  # A lost worker's zygote ends with it.
            self._ray.kill(actor)
        self._actors = []
        if self._started:
            self._ray.shutdown()

    def _submit(self, job: Job) -> Any:
        if not self._actors:
            raise SandboxError("the sandbox is closed", hint="open a new one")
        self._next = (self._next + 1) % len(self._actors)
        if job.feed is not None:
            # The function that could stop the feed cannot be sent to another machine.
            job = replace(job, feed=msgspec.structs.replace(job.feed, until=None))
        return self._actors[self._next].run.remote(job)

    def _get(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause()
            if isinstance(cause, SandboxError):
                raise SandboxError(cause.message, hint=cause.hint) from None
            raise SandboxError(f"a Ray worker failed: {cause}") from error
        except self._ray.exceptions.RayError as error:
            raise SandboxError(
                f"a Ray worker was lost: {error}", hint="look at the cluster's logs"
            ) from error


class TimeoutTeller(JobExecutor):
    """Passes jobs to another executor, and calls ``on_timeout`` for each job that timed out."""

    def __init__(self, executor: JobExecutor, on_timeout: Callable[[], None]) -> None:
        self._executor, self._on_timeout = executor, on_timeout

    @property
    def tier(self) -> Tier:
        """The tier of the other executor."""
        return self._executor.tier

    def run(self, job: Job) -> JobResult:
        """Run one job."""
        return self._check(self._executor.run(job))

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Run jobs and yield their results in order."""
        return map(self._check, self._executor.map(jobs))

    def _check(self, result: JobResult) -> JobResult:
        if isinstance(result.failure, WallTimeout | CpuTimeout):
            self._on_timeout()
        return result

    def close(self) -> None:
        """Close the other executor."""
        self._executor.close()


def open_executor(
    kind: Literal["sandbox", "ray", "trusted-in-process"] = "sandbox",
    *,
    config: SandboxConfig | None = None,
    workers: int = 1,
) -> JobExecutor:
    """Return an open executor of a kind.

    ``workers`` is the number of jobs that run at the same time. Raises :class:`UserError` for an
    unknown kind, and SandboxRefused if this machine cannot contain untrusted code.
    """
    if workers < 1:
        raise UserError(f"workers must be 1 or more, got {workers}", hint="leave it out for 1")
    if kind == "sandbox":
        return SandboxPool(config, workers=workers)
    if kind == "ray":
        return RaySandboxPool(config, workers=workers)
    if kind == "trusted-in-process":
        return TrustedCodeInProcess()
    raise UserError(
        f"unknown executor '{kind}'", hint="known executors: sandbox, ray, trusted-in-process"
    )
