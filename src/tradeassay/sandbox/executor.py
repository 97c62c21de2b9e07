"""Executors by name: the sandbox's pool, a sandbox per Ray worker, and this process for sources that we ship.

Ray's own processes are trusted; on each machine untrusted code runs in a child of a local zygote. In this process
there is NO isolation.
"""

import contextlib
import io
import resource
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal, cast

import msgspec

from tradeassay.core.errors import SandboxError, UserError, require
from tradeassay.sandbox.codec import CodecError, decode, encode
from tradeassay.sandbox.failures import BadResult, Failure, SyntaxFault, claim
from tradeassay.sandbox.job import Job, JobExecutor, JobResult, JobUsage
from tradeassay.sandbox.sandbox import Sandbox, SandboxPool
from tradeassay.sandbox.sandbox_config import SandboxConfig
from tradeassay.sandbox.strategy import claim_of, fix_seeds, parse, run_encoded
from tradeassay.sandbox.tier import IN_PROCESS, Tier


class TrustedCodeInProcess(JobExecutor):
    """Runs reference solutions of this project without any wall: no limits, no isolation, full access. Refuses
    every job that is not marked ``trust="reference"``. Results say ``trusted-in-process`` as their tier. Not
    thread-safe: a job borrows the process's global random state and standard output while it runs.
    """

    @property
    def tier(self) -> Tier:
        return IN_PROCESS

    def run(self, job: Job) -> JobResult:
        if job.trust != "reference":
            hint = "run it in the sandbox"
            raise SandboxError("only code marked trust='reference' may run inside the host's process", hint=hint)
        if job.feed is not None:
            hint = "run it in the sandbox, or trusted strategies with tradeassay.code.streaming.stream"
            raise SandboxError("a fed job needs a child of its own", hint=hint)
        started, before = time.monotonic(), time.process_time()
        printed, outcome = io.StringIO(), None
        # The code gets the randomness that it has in a child, and the host its own back.
        numpy, system, drawing = (cast(Any, sys.modules[name]) for name in ("numpy", "os", "random"))
        kept = (drawing.getstate(), numpy.random.get_state())
        sources = [(system, "urandom"), (system, "getrandom"), (drawing, "_urandom")]
        own = [(owner, name, getattr(owner, name)) for owner, name in sources if hasattr(owner, name)]
        fix_seeds(job.seed)
        try:
            with contextlib.redirect_stdout(printed):
                outcome = _outcome(job)
        finally:
            drawing.setstate(kept[0])
            numpy.random.set_state(kept[1])
            for owner, name, source in own:
                setattr(owner, name, source)
            sys.modules.pop("strategy", None)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1 << 20)
        used = JobUsage(cpu_s=time.process_time() - before, wall_s=time.monotonic() - started, peak_mb=peak)
        return JobResult(
            source=job.sha256,
            tier=IN_PROCESS,
            usage=used,
            columns=outcome if isinstance(outcome, dict) else None,
            failure=None if isinstance(outcome, dict) else outcome,
            log=printed.getvalue().encode("utf-8", "replace"),
        )

    def close(self) -> None:
        """Do nothing: there is nothing to end."""


def _outcome(job: Job) -> dict[str, Any] | Failure:
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
    """Runs jobs on ``workers`` Ray actors, each with a sandbox of its own. Joins the cluster that ``ray.init()``
    finds, or starts a local one (which :meth:`close` then ends). Raises MissingExtra without Ray, and SandboxError
    when a machine of the cluster cannot contain untrusted code.
    """

    def __init__(self, config: SandboxConfig | None = None, *, workers: int) -> None:
        if workers < 1:
            raise UserError(f"{workers} workers cannot run anything", hint="give 1 or more")
        self._ray = cast(Any, require("ray", "ray"))
        self._started = not self._ray.is_initialized()
        if self._started:
            self._ray.init(include_dashboard=False, log_to_driver=False)
        actor = self._ray.remote(num_cpus=1)(Sandbox)
        self._actors: list[Any] = [actor.remote(config) for _ in range(workers)]
        self._next = 0
        try:
            self._tiers: list[Tier] = self._get([one.walls.remote() for one in self._actors])
        except SandboxError:
            self.close()
            raise

    @property
    def tier(self) -> Tier:
        return min(self._tiers, key=lambda tier: (tier.level == "strong", len(tier.walls)))

    def run(self, job: Job) -> JobResult:
        result: JobResult = self._get(self._submit(job))
        return result

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        waiting: deque[Any] = deque()
        for job in jobs:
            waiting.append(self._submit(job))
            if len(waiting) > 2 * len(self._actors):
                yield self._get(waiting.popleft())
        while waiting:
            yield self._get(waiting.popleft())

    def close(self) -> None:
        if not self._ray.is_initialized():
            return
        for actor in self._actors:
            try:
                self._ray.get(actor.close.remote(), timeout=30)
            except self._ray.exceptions.RayError:
                pass  # a lost worker takes its zygote with it
            self._ray.kill(actor)
        self._actors = []
        if self._started:
            self._ray.shutdown()

    def _submit(self, job: Job) -> Any:
        if not self._actors:
            raise SandboxError("the sandbox is closed", hint="open a new one")
        self._next = (self._next + 1) % len(self._actors)
        if job.feed is not None:  # what it would be stopped by stays here
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
            raise SandboxError(f"a Ray worker was lost: {error}", hint="look at the cluster's logs") from error


def open_executor(
    kind: Literal["sandbox", "ray", "trusted-in-process"] = "sandbox",
    *,
    config: SandboxConfig | None = None,
    workers: int = 1,
) -> JobExecutor:
    if workers < 1:
        raise UserError(f"{workers} workers cannot run anything", hint="give 1 or more")
    if kind == "sandbox":
        return SandboxPool(config, workers=workers)
    if kind == "ray":
        return RaySandboxPool(config, workers=workers)
    if kind == "trusted-in-process":
        return TrustedCodeInProcess()
    raise UserError(f"no executor '{kind}'", hint="known: sandbox, ray, trusted-in-process")
