"""The one interface for running jobs, whatever runs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

from tradeassay.core.errors import UserError
from tradeassay.sandbox.job import Job
from tradeassay.sandbox.result import JobResult
from tradeassay.sandbox.sandbox_config import SandboxConfig
from tradeassay.sandbox.tier import Tier


class JobExecutor(Protocol):
    """Runs jobs. A bad job is a result; only a broken executor raises (SandboxError)."""

    @property
    def tier(self) -> Tier:
        """The walls that jobs run behind."""
        ...

    def run(self, job: Job) -> JobResult:
        """Run one job and wait for it."""
        ...

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Run many jobs, in parallel where possible; results come in the order of the jobs."""
        ...

    def close(self) -> None:
        """End everything it started. May be called twice."""
        ...

    def __enter__(self) -> JobExecutor: ...

    def __exit__(self, *_: object) -> None: ...


def open_executor(
    kind: Literal["sandbox", "ray", "trusted-in-process"] = "sandbox",
    *,
    config: SandboxConfig | None = None,
    workers: int = 1,
) -> JobExecutor:
    """Return an executor by name; raises SandboxRefused where walls are missing, MissingExtra without Ray."""
    if workers < 1:
        raise UserError(f"{workers} workers cannot run anything", hint="give 1 or more")
    if kind == "sandbox":
        from tradeassay.sandbox.sandbox import SandboxPool

        return SandboxPool(config, workers=workers)
    if kind == "ray":
        from tradeassay.sandbox.on_ray import RaySandboxPool

        return RaySandboxPool(config, workers=workers)
    if kind == "trusted-in-process":
        from tradeassay.sandbox.trusted import TrustedCodeInProcess

        return TrustedCodeInProcess()
    raise UserError(f"no executor '{kind}'", hint="known: sandbox, ray, trusted-in-process")
