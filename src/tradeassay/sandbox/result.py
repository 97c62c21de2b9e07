"""What came of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from numpy.typing import NDArray

from tradeassay.core.errors import SandboxError
from tradeassay.sandbox.failures import Failure, RefusedCall
from tradeassay.sandbox.tier import Tier


class JobUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a job used: processor and clock seconds, and the peak of its resident memory (libraries included)."""

    cpu_s: float
    wall_s: float
    peak_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """Either ``columns`` or a ``failure``, never both.

    ``attempts`` are the refused calls the kernel reported, even if the job went on and returned something.
    ``answers`` are what a fed job said to each frame it got, even if it failed later.
    ``log`` (what the code printed) and ``files`` (what it left in its scratch folder) are kept for a reader and
    never trusted. ``tier`` says which walls stood around it, ``source`` is the SHA-256 of the code. ``retried`` is
    how an earlier try ended that says nothing about the code; empty when the first counted.
    """

    source: str
    tier: Tier
    usage: JobUsage
    columns: Mapping[str, NDArray[Any]] | None = None
    failure: Failure | None = None
    attempts: tuple[RefusedCall, ...] = ()
    answers: tuple[bytes, ...] = ()
    log: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    retried: str = ""

    def __post_init__(self) -> None:
        if (self.columns is None) == (self.failure is None):
            raise ValueError("a job's result has either columns or a failure")

    @property
    def ok(self) -> bool:
        """Whether there are columns."""
        return self.failure is None

    def need(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns; raises :class:`SandboxError` with the failure's text when there are none."""
        if self.columns is None:
            assert self.failure is not None
            raise SandboxError(f"the job failed: {self.failure.text}")
        return self.columns
