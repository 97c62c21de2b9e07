"""The same jobs on many machines: one sandbox per Ray worker. Needs the extra ``ray``, which is imported on use.

Ray's own processes are trusted and stay outside; on each machine untrusted code runs in a child of a local zygote.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import msgspec

from tradeassay.core.errors import SandboxError, UserError, require
from tradeassay.sandbox.job import Job, JobResult
from tradeassay.sandbox.sandbox import Sandbox
from tradeassay.sandbox.sandbox_config import SandboxConfig
from tradeassay.sandbox.tier import Tier


class RaySandboxPool:
    """Runs jobs on ``workers`` Ray actors, each with a sandbox of its own.

    Joins the cluster that ``ray.init()`` finds, or starts a local one (which :meth:`close` then ends). Raises
    MissingExtra without Ray, and SandboxError when a machine of the cluster cannot contain untrusted code.
    """

    def __init__(self, config: SandboxConfig | None = None, *, workers: int = 1) -> None:
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

    def __enter__(self) -> RaySandboxPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
