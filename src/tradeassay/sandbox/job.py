"""A job (untrusted source, the rows it may see, how much it may use), what came of it, and whatever runs jobs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

import msgspec
from numpy.typing import NDArray

from tradeassay.core.errors import SandboxError, UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.sandbox.codec import Caps
from tradeassay.sandbox.failures import Failure, RefusedCall
from tradeassay.sandbox.feed import FrameFeed
from tradeassay.sandbox.kernel import Family
from tradeassay.sandbox.strategy import Scalar, StrategyCall
from tradeassay.sandbox.tier import Tier


class JobLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one job may use. Exceeding any of them ends the job, and the result says which. ``cpu_s`` is counted by
    the kernel in whole seconds. ``memory_mb`` is address space on top of what the preloaded libraries already
    have. ``scratch_mb``/``scratch_files`` bound the private folder, ``log_kb`` what is printed. ``attempts`` is
    how many refused calls are recorded before the job is ended, ``file_calls`` how many calls that name a path it
    may make.
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
                raise UserError(f"limit '{name}' must be more than 0", hint="leave it out to take the default")

    def caps(self) -> Caps:
        return Caps(columns=self.columns, rows=self.rows, total=self.result_mb << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of one piece of code.

    ``columns`` are the rows it may see and no others: one-dimensional float, int, bool, datetime64 or str
    arrays. The code's ``entry`` function is called with them, as ``pass_as`` says: ``columns`` (dict of
    read-only arrays), ``frame`` (one pandas frame, indexed by the column ``time`` if there is one) or
    ``frames`` (dict of frames, column ``AAPL/close`` goes to frame ``AAPL``), and with ``params`` as keywords.
    It returns a mapping of columns, a frame, a series or an array: *decisions*, never results.

    ``harness`` names a function ``module:function`` of a preloaded module to be called instead, with the loaded
    module, the columns and the params. It runs inside the child, so it is trusted no more than the code itself.

    ``feed`` gives a harness further rows one at a time, each once it has answered the one before (see
    :mod:`tradeassay.sandbox.feed`); the answers come with the result. No child holds a fed row before its turn.

    ``fail_on`` lists the kinds of refused calls that fail a job even when it went on and returned something.
    ``guard_imports`` refuses modules that are not on the list (a courtesy to honest code; the kernel is the wall).
    ``trust`` is ``reference`` only for code that the project itself ships.
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
            hint = "name one in Job.harness, or pass all rows as columns"
            raise UserError("only a harness can be fed", hint=hint)
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed {self.seed} is outside 0 .. 2**32 - 1")

    @property
    def call(self) -> StrategyCall:
        return StrategyCall(entry=self.entry, params=dict(self.params), pass_as=self.pass_as, harness=self.harness)

    @property
    def sha256(self) -> str:
        return sha256_bytes(self.source.encode("utf-8", "surrogatepass"))


class ChildOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is told about a job, besides source and rows. Goes through sealed memory, past the zygote."""

    call: StrategyCall
    limits: JobLimits
    seed: int
    guard_imports: bool


class JobUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What a job used: processor and clock seconds, and the peak of its resident memory (libraries included)."""

    cpu_s: float
    wall_s: float
    peak_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """Either ``columns`` or a ``failure``, never both. ``attempts`` are the refused calls the kernel reported,
    even if the job went on and returned something. ``answers`` are what a fed job said to each frame it got, even
    if it failed later. ``log`` (what the code printed) and ``files`` (what it left in its scratch folder) are kept
    for a reader and never trusted. ``tier`` says which walls stood around it, ``source`` is the SHA-256 of the
    code. ``retried`` is how an earlier try ended that says nothing about the code; empty when the first counted.
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
        return self.failure is None

    def need(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns; raises :class:`SandboxError` with the failure's text when there are none."""
        if self.columns is None:
            assert self.failure is not None
            raise SandboxError(f"the job failed: {self.failure.text}")
        return self.columns


class JobExecutor(Protocol):
    """Runs jobs. A bad job is a result; only a broken executor raises (SandboxError)."""

    @property
    def tier(self) -> Tier: ...

    def run(self, job: Job) -> JobResult: ...

    def map(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        for job in jobs:
            yield self.run(job)

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
