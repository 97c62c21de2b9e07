"""Trusted reference code, run inside the host's own process. There is NO isolation here: only for code we ship."""

from __future__ import annotations

import contextlib
import io
import os
import random
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from tradeassay.core.errors import SandboxError
from tradeassay.sandbox.codec import CodecError, decode, encode
from tradeassay.sandbox.failures import BadResult, Failure, SyntaxFault, claim
from tradeassay.sandbox.job import Job, JobResult, JobUsage
from tradeassay.sandbox.strategy import Unreturnable, claim_of, fix_seeds, parse, run_code
from tradeassay.sandbox.tier import IN_PROCESS, Tier


class TrustedCodeInProcess:
    """Runs reference solutions of this project without any wall: no limits, no isolation, full access.

    Refuses every job that is not marked ``trust="reference"``. Results say ``trusted-in-process`` as their
    tier. Not thread-safe: a job borrows the process's global random state and standard output while it runs.
    """

    @property
    def tier(self) -> Tier:
        return IN_PROCESS

    def run(self, job: Job) -> JobResult:
        if job.trust != "reference":
            raise SandboxError(
                "only code marked trust='reference' may run inside the host's process",
                hint="run it in the sandbox",
            )
        if job.feed is not None:
            raise SandboxError(
                "a fed job needs a child of its own",
                hint="run it in the sandbox, or trusted strategies with tradeassay.code.streaming.stream",
            )
        started, before = time.monotonic(), time.process_time()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), _borrowed_randomness(job.seed):
            outcome = _outcome(job)
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

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        for job in jobs:
            yield self.run(job)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def __enter__(self) -> TrustedCodeInProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _outcome(job: Job) -> dict[str, Any] | Failure:
    code, parsed = parse(job.source, None)
    if code is None:
        return SyntaxFault(message=parsed.syntax, line=parsed.line)
    columns = decode(b"".join(encode(job.columns)), job.limits.caps())
    assert isinstance(columns, dict)
    try:
        returned = run_code(code, job.call, columns, None)
        try:
            message = b"".join(encode(returned))
        except (TypeError, ValueError) as error:
            raise Unreturnable(str(error)) from error
    except Exception as error:
        return claim(claim_of(error))
    try:
        decoded = decode(message, job.limits.caps())
    except CodecError as error:
        return BadResult(reason=str(error))
    assert isinstance(decoded, dict)
    return decoded


@contextlib.contextmanager
def _borrowed_randomness(seed: int) -> Iterator[None]:
    """Give the code the same randomness it has in a child, and the host its own back."""
    numpy: Any = sys.modules["numpy"]
    drawing: Any = random  # its private name _urandom is where secrets and numpy draw from
    kept = (random.getstate(), numpy.random.get_state(), os.urandom, drawing._urandom)
    system: Any = os
    getrandom = getattr(os, "getrandom", None)
    fix_seeds(seed)
    try:
        yield
    finally:
        random.setstate(kept[0])
        numpy.random.set_state(kept[1])
        os.urandom = kept[2]
        if getrandom is not None:
            system.getrandom = getrandom
        drawing._urandom = kept[3]
        sys.modules.pop("strategy", None)
