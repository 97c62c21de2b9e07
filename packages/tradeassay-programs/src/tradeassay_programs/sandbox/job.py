"""Define jobs, their limits, their results and the protocol of executors.

A job is one run of untrusted code on given rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

import msgspec
from numpy.typing import NDArray

from tradeassay.core.errors import SandboxError, UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay_programs.sandbox.codec import Caps
from tradeassay_programs.sandbox.failures import Failure, RefusedCall
from tradeassay_programs.sandbox.feed import FrameFeed
from tradeassay_programs.sandbox.kernel import Family
from tradeassay_programs.sandbox.strategy import Scalar, StrategyCall
from tradeassay_programs.sandbox.tier import Tier


class JobLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one job. A job that exceeds a limit ends, and its result names the limit.

    - The kernel counts ``cpu_s`` in whole seconds.
    - ``memory_mb`` is address space on top of the preloaded libraries.
    - ``scratch_mb`` and ``scratch_files`` bound the private folder, and ``log_kb`` the printed
      output.
    - ``attempts`` is the number of refused calls that are recorded before the job ends.
    - ``file_calls`` is the maximum number of system calls with a path.
    """

    cpu_s: int = 10
    wall_s: float = 20.0
    memory_mb: int = 1024
    scratch_mb: int = 16
    scratch_files: int = 256
    log_kb: int = 4096
    result_mb: int = 64
    rows: int = 5_000_000
    columns: int = 256
    attempts: int = 200
    file_calls: int = 20_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) <= 0:
                raise UserError(
                    f"limit '{name}' must be more than 0", hint="leave it out to take the default"
                )

    def caps(self) -> Caps:
        """Return the limits on the columns of a result."""
        return Caps(columns=self.columns, rows=self.rows, total=self.result_mb << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of untrusted code.

    ``columns`` are the only rows that the code may see: one-dimensional float, int, bool,
    datetime64 or str arrays. The code's ``entry`` function is called with them and with ``params``
    as keywords. ``pass_as`` selects the form:

    - ``columns``: a dict of read-only arrays.
    - ``frame``: one pandas frame, indexed by the column ``time`` if present.
    - ``frames``: a dict of frames. Column ``AAPL/close`` belongs to frame ``AAPL``.

    The function returns a mapping of columns, a frame, a series or an array: *decisions*, never
    results.

    ``harness`` names a function ``module:function`` of a preloaded module. It is called instead of
    the entry function, with the loaded module, the columns and the params. It runs inside the
    child, so it is trusted no more than the code itself.

    ``feed`` sends further rows to a harness one at a time. Each row is sent after the answer to the
    previous row (see :mod:`tradeassay_programs.sandbox.feed`). The answers are part of the result.
    No child has a row before it is due.

    ``fail_on`` lists the kinds of refused calls that fail a job even if it continued and returned
    columns. ``guard_imports`` refuses modules that are not on the list. This only helps honest
    code, because the kernel does the isolation. ``trust`` is ``reference`` only for code that the
    project ships.
    """

    source: str
    entry: str = "run"
    columns: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Scalar] = field(default_factory=dict)
    limits: JobLimits = field(default_factory=JobLimits)
    seed: int = 0
    pass_as: Literal["columns", "frame", "frames"] = "frame"
    harness: str = ""
    feed: FrameFeed | None = None
    guard_imports: bool = True
    fail_on: frozenset[Family] = frozenset({"network", "process", "memory", "privileged"})
    trust: Literal["untrusted", "reference"] = "untrusted"

    def __post_init__(self) -> None:
        if not self.harness and not self.entry.isidentifier():
            hint = "give the name of a function in the source"
            raise UserError(f"'{self.entry}' is not a function name", hint=hint)
        if self.harness and self.harness.count(":") != 1:
            raise UserError(f"harness '{self.harness}' is not 'module:function'")
        if self.feed is not None and not self.harness:
            hint = "name a harness in Job.harness, or pass all rows as columns"
            raise UserError("a feed needs a harness", hint=hint)
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed must be 0 to 2**32 - 1, got {self.seed}")

    @property
    def call(self) -> StrategyCall:
        """The description of how the child calls the code."""
        return StrategyCall(
            entry=self.entry, params=dict(self.params), pass_as=self.pass_as, harness=self.harness
        )

    @property
    def sha256(self) -> str:
        """The SHA-256 of the source."""
        return sha256_bytes(self.source.encode("utf-8", "surrogatepass"))


class ChildOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a job that the child receives in addition to source and rows.

    It is sent to the child in sealed memory, so the zygote never sees it.
    """

    call: StrategyCall
    limits: JobLimits
    seed: int
    guard_imports: bool


class JobUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The processor seconds, clock seconds and peak memory (with libraries) that a job used."""

    cpu_s: float
    wall_s: float
    peak_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of a job: either ``columns`` or a ``failure``, never both.

    - ``source`` is the SHA-256 of the code, and ``tier`` the isolation of the run.
    - ``attempts`` are the refused calls that the kernel reported, even if the job continued and
      returned columns.
    - ``answers`` are a fed job's answers to each frame, even if it failed later.
    - ``log`` is the printed output, and ``files`` are the files left in the scratch folder. Both
      are kept for readers and never trusted.
    - ``retried`` describes how an earlier try ended for reasons outside the code. It is empty if
      the first try was valid.
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
        """Whether the job returned columns."""
        return self.failure is None

    def need(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns. Raises :class:`SandboxError` with the failure's text if there are
        none.
        """
        if self.columns is None:
            assert self.failure is not None
            raise SandboxError(f"the job failed: {self.failure.text}")
        return self.columns


class JobExecutor(Protocol):
    """Runs jobs.

    A failing job is returned as a result. Only a broken executor raises :class:`SandboxError`.
    """

    @property
    def tier(self) -> Tier:
        """The isolation of the jobs."""
        ...

    def run(self, job: Job) -> JobResult:
        """Run one job and return its result."""
        ...

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """Run jobs and yield their results in order."""
        for job in jobs:
            yield self.run(job)

    def close(self) -> None:
        """End the processes of the executor."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
