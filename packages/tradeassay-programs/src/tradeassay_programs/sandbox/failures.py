"""Classify why a job returned no result.

The host's verdicts and the child's claims have different types. A :data:`HostVerdict` rests on
evidence that untrusted code cannot forge: the child's exit status, the kernel's reports of refused
calls, a clock, a byte count, or a parser that ran before the code. A :class:`ChildClaim` is the
child's unverified report. A false claim can only hurt the child. The claim's text is sanitised
before display: control characters and terminal escapes are removed, and long texts are cut.

:func:`classify_outcome` is pure: the same facts give the same verdict. The order of the facts is:
the parser's findings, actions of the kernel or the host against the child, refused calls, whether
the child's bytes are valid columns, and finally the child's claim.
"""

import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

import msgspec

from tradeassay.core.printable import printable
from tradeassay_programs.sandbox.codec import Array, Caps, ClaimHead, ClaimKind, CodecError, decode
from tradeassay_programs.sandbox.kernel import Family
from tradeassay_programs.sandbox.strategy import Parsed

Stage = Literal["parse", "run"]
"""The step that a child process reached: parsing the source, or running the code."""


class RefusedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that the kernel refused and reported, even if the code caught the error.

    ``detail`` is the requested path, address family, signal or program, if known. ``count`` is the
    number of times that the call was refused.
    """

    family: Family
    call: str
    detail: str = ""
    count: int = 1

    @property
    def text(self) -> str:
        times = f" x{self.count}" if self.count > 1 else ""
        return f"{self.family}: {self.call}({self.detail}){times}"


class _Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A failure with a one-line text, formatted from the template ``says`` and the fields."""

    says: ClassVar[str]

    @property
    def text(self) -> str:
        return self.says.format(self)


class SyntaxFault(msgspec.Struct, frozen=True, tag="syntax", kw_only=True):
    """The source does not compile."""

    message: str
    line: int | None = None

    @property
    def text(self) -> str:
        return (
            f"syntax error{f' in line {self.line}' if self.line is not None else ''}: "
            f"{self.message}"
        )


class ForbiddenImport(msgspec.Struct, frozen=True, tag="forbidden_import", kw_only=True):
    """The source imports a module that is not on the list of allowed modules."""

    module: str
    line: int | None = None

    @property
    def text(self) -> str:
        return (
            "forbidden import of "
            f"'{self.module}'{f' in line {self.line}' if self.line is not None else ''}"
        )


class CpuTimeout(_Verdict, frozen=True, tag="cpu_timeout", kw_only=True):
    """The kernel ended the child, which had used more processor time than allowed."""

    says = "used {0.used_s:.2f} s of processor time, {0.limit_s:g} s are allowed"

    limit_s: float
    used_s: float


class WallTimeout(_Verdict, frozen=True, tag="wall_timeout", kw_only=True):
    """The host ended the child because it ran too long by the clock."""

    says = "not done after {0.limit_s:g} s"

    limit_s: float


class OutputLimit(msgspec.Struct, frozen=True, tag="output_limit", kw_only=True):
    """The host ended the child because it exceeded an output limit.

    The limits apply to the result, the log, the answers, refused calls, and file calls.
    """

    stream: Literal["result", "log", "answers", "refused calls", "file calls"]
    limit: int

    @property
    def text(self) -> str:
        unit = "bytes" if self.stream in ("result", "log", "answers") else "calls"
        return f"{self.stream}: more than {self.limit} {unit}"


class OomKilled(_Verdict, frozen=True, tag="oom_killed", kw_only=True):
    """The kernel's out-of-memory killer ended the child."""

    says = "killed for lack of memory at {0.peak_mb:.0f} MB"

    peak_mb: float


class Crashed(msgspec.Struct, frozen=True, tag="crashed", kw_only=True):
    """The child ended by a signal, or with an exit code and no result.

    ``stage`` is the step that the child reached.
    """

    stage: Stage
    signal: str | None = None
    exit_code: int | None = None

    @property
    def text(self) -> str:
        return f"crashed in stage '{self.stage}': {self.signal or f'exit code {self.exit_code}'}"


class _Refused(_Verdict, frozen=True, kw_only=True):
    says = "refused {0.attempt.text}"

    attempt: RefusedCall


class NetworkAttempt(_Refused, frozen=True, tag="network_attempt", kw_only=True):
    """The code tried to use a network or a socket."""


class FileAttempt(_Refused, frozen=True, tag="file_attempt", kw_only=True):
    """The code tried to read or change a file outside its scratch folder."""


class ProcessAttempt(_Refused, frozen=True, tag="process_attempt", kw_only=True):
    """The code tried to start, signal or inspect a process or thread."""


class PrivilegedAttempt(_Refused, frozen=True, tag="privileged_attempt", kw_only=True):
    """The code tried a call for administrators only, or a way around its limits."""


class BadResult(_Verdict, frozen=True, tag="bad_result", kw_only=True):
    """The child's result is missing, malformed or over a cap."""

    says = "bad result: {0.reason}"

    reason: str


class SupervisorFault(_Verdict, frozen=True, tag="supervisor_fault", kw_only=True):
    """The host could no longer supervise the child, so the child was ended."""

    says = "ended because the host could not supervise it: {0.reason}"

    reason: str


HostVerdict = (
    SyntaxFault
    | ForbiddenImport
    | CpuTimeout
    | WallTimeout
    | OutputLimit
    | OomKilled
    | Crashed
    | NetworkAttempt
    | FileAttempt
    | ProcessAttempt
    | PrivilegedAttempt
    | BadResult
    | SupervisorFault
)
"""A verdict decided by the host or the kernel."""


_HOST_FOLDER = re.compile(r"/[^\s'\"():,]*/(?=(?:site-packages|python3\.\d+)/)")
"""The folders of installed packages. They differ by machine and are removed from texts for models.
"""


class ChildClaim(_Verdict, frozen=True, tag="child_claim", kw_only=True):
    """The child's own explanation of a missing result. It is not verified.

    ``kind`` is one of:

    - ``exception``: the code raised an exception.
    - ``memory``: the code exceeded its memory limit.
    - ``import``: a module was missing or refused while the code ran.
    - ``no_entry``: the code has no entry function.
    - ``unreturnable``: the code returned a value that no column can hold.
    - ``exit``: the code called ``exit``.
    """

    says = "the code says: {0.error}: {0.message}"

    kind: ClaimKind
    error: str
    message: str
    trace: str = ""

    @property
    def line(self) -> int | None:
        """The last line number of the strategy's code in the traceback, or None."""
        found = None
        for part in self.trace.split('File "strategy.py", line ')[1:]:
            digits = part[: len(part) - len(part.lstrip("0123456789"))]
            found = int(digits) if 0 < len(digits) <= _MOST_DIGITS else found
        return found


_MOST_DIGITS: Final = 9
"""Maximum number of digits read from a line number, because the traceback is untrusted."""

Failure = HostVerdict | ChildClaim


def decided_by_host(failure: Failure) -> bool:
    """Return whether a failure is a verdict by the host, not a claim by the child."""
    return not isinstance(failure, ChildClaim)


def kind_of(failure: Failure) -> str:
    """Return the short name of a failure for counting, e.g. ``cpu_timeout``."""
    if isinstance(failure, ChildClaim):
        return f"claimed_{failure.kind}"
    return str(failure.__struct_config__.tag)


Stopped = WallTimeout | OutputLimit | SupervisorFault
"""The host's reasons for ending a child."""

_CPU_SLACK_S: Final = (
    0.05  # The kernel sums in ticks, and may act just before the sum reaches the limit.
)

_REFUSAL_ERRORS: Final = frozenset({"PermissionError", "OSError"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFacts:
    """The facts that the host knows about an ended child.

    ``stopped`` is the host's reason for killing the child, if the host killed it. ``base_mb`` is
    the memory at the fork. ``memory_mb`` is the additional memory that is allowed.
    ``fail_on`` are the families of refused calls that fail the job.
    """

    status: int
    cpu_s: float
    peak_mb: float
    cpu_limit_s: float
    caps: Caps
    parsed: Parsed | None = None
    stopped: Stopped | None = None
    out_of_memory: bool = False
    base_mb: float = 0.0
    memory_mb: int = 0
    attempts: Sequence[RefusedCall] = ()
    fail_on: frozenset[Family] = frozenset()
    result: bytes | bytearray = field(default=b"", repr=False)


def classify_outcome(facts: ChildFacts) -> dict[str, Array] | Failure:
    """Return the columns that an ended child returned, or the reason why there are none.

    The order of the checks is described at the top of this module.
    """
    parsed = facts.parsed
    if parsed is not None and parsed.forbidden is not None:
        return ForbiddenImport(
            module=printable(parsed.forbidden.module[:200]), line=parsed.forbidden.line
        )
    if parsed is not None and parsed.syntax:
        return SyntaxFault(message=printable(parsed.syntax[:500]), line=parsed.line)
    if facts.stopped is not None:
        return facts.stopped
    stage: Stage = "parse" if parsed is None else "run"
    if os.WIFSIGNALED(facts.status):
        number = os.WTERMSIG(facts.status)
        out_of_time = facts.cpu_s >= facts.cpu_limit_s - _CPU_SLACK_S
        if number == signal.SIGXCPU or (number == signal.SIGKILL and out_of_time):
            return CpuTimeout(limit_s=facts.cpu_limit_s, used_s=facts.cpu_s)
        if number == signal.SIGKILL and facts.out_of_memory:
            return OomKilled(peak_mb=facts.peak_mb)
        if number == signal.SIGSYS:
            call = RefusedCall(family="privileged", call="system call of another machine type")
            return PrivilegedAttempt(attempt=call)
        known = number in {int(one) for one in signal.Signals}
        return Crashed(
            stage=stage, signal=signal.Signals(number).name if known else f"signal {number}"
        )
    code = os.waitstatus_to_exitcode(facts.status)
    if code != 0 or parsed is None:
        return Crashed(stage=stage, exit_code=code)
    # The child ended normally. Refused calls take precedence over its claim.
    grave = next((attempt for attempt in facts.attempts if attempt.family in facts.fail_on), None)
    if grave is not None:
        return attempt_verdict(grave)
    try:
        message = decode(facts.result, facts.caps)
    except CodecError as error:
        return BadResult(reason=str(error))
    if not isinstance(message, ClaimHead):
        return message
    # A refused call together with the child's report of a missing permission is a finding. It is
    # more than a claim.
    if facts.attempts and message.error in _REFUSAL_ERRORS:
        return attempt_verdict(facts.attempts[-1])
    return claim(message)


Attribution = Literal["", "machine", "once"]
"""The cause to which an outcome is attributed.

An empty string is the code. ``machine`` is the machine. ``once`` is the machine the first time, and
the code if a second run ends the same way.
"""

_ITS_OWN: Final = frozenset(
    "SIGABRT SIGSEGV SIGBUS SIGILL SIGFPE SIGTRAP SIGPIPE SIGXFSZ SIGALRM SIGVTALRM SIGPROF".split()
)
"""Signals with which code can end its own process."""


def attribute_outcome(facts: ChildFacts, outcome: dict[str, Array] | Failure) -> Attribution:
    """Return whether an outcome is attributed to the code or to the machine.

    Once the code has started, every outcome that the code can cause is attributed to the code. It
    gets no second run, because the first child could pass information to the second.
    """
    if isinstance(outcome, dict) or facts.stopped is not None:
        return ""
    if isinstance(outcome, OomKilled):
        return "" if 2 * (facts.peak_mb - facts.base_mb) >= facts.memory_mb else "machine"
    if isinstance(outcome, Crashed):
        if outcome.signal in _ITS_OWN:
            return "once" if outcome.stage == "parse" else ""
        return "machine" if outcome.signal or outcome.stage == "parse" else ""
    return (
        "once"
        if isinstance(outcome, SyntaxFault) and outcome.message.startswith("MemoryError")
        else ""
    )


def claim(head: ClaimHead) -> ChildClaim:
    """Return a child's claim with sanitised texts.

    Messages of other Python versions are changed to the wording of Python 3.11.
    """
    error, trace = printable(head.error[:200]), printable(head.trace[:16000], kept="\n\t")
    message = _HOST_FOLDER.sub("", printable(head.message[:4000], kept="\n\t"))
    for name, pattern, said in _AS_IN_3_11:
        if error == name:
            message = pattern.sub(said, message)
    if error == "KeyError" and _A_SLICE.fullmatch(message):
        error, message = "TypeError", "unhashable type: 'slice'"
    return ChildClaim(kind=head.kind, error=error, message=message, trace=trace)


_AS_IN_3_11: Final = tuple(
    (error, re.compile(pattern), said)
    for error, pattern, said in (
        (
            "AttributeError",
            r"^'(\w{50})\w+' object has no attribute ",
            r"'\1' object has no attribute ",
        ),
        ("AttributeError", r" and no __dict__ for setting new attributes$", ""),
        (
            "ValueError",
            r"^(max|min)\(\) iterable argument is empty$",
            r"\1() arg is an empty sequence",
        ),
        ("ZeroDivisionError", r"^float modulo by zero$", "float modulo"),
        (
            "TypeError",
            r"^(sort|print)\(\) got an unexpected keyword argument ('\w+')$",
            r"\2 is an invalid keyword argument for \1()",
        ),
        (
            "TypeError",
            r"^str expected at most 3 arguments, got (\d+)$",
            r"str() takes at most 3 arguments (\1 given)",
        ),
        ("ImportError", r"\(python3\.\d+/", "(python3.11/"),
        ("ImportError", r"\.cpython-3\d+-", ".cpython-311-"),
    )
)
"""Messages that later interpreters word differently: error, pattern and replacement.

They make a model see the same text with every interpreter.
"""
_A_SLICE: Final = re.compile(r"slice\([^()]*\)")
"""Since Python 3.12, a slice used as a mapping key raises KeyError instead of TypeError."""


_ATTEMPTS: Final[dict[str, type[NetworkAttempt | ProcessAttempt | FileAttempt]]] = {
    "network": NetworkAttempt,
    "process": ProcessAttempt,
    "file": FileAttempt,
}


def attempt_verdict(attempt: RefusedCall) -> HostVerdict:
    """Return the verdict for a refused call, by the call's family."""
    return _ATTEMPTS.get(attempt.family, PrivilegedAttempt)(attempt=attempt)
