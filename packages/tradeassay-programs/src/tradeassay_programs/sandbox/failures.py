"""Why a job gave no result, and how the host decides it.

What the host decided and what the child merely claims are different types. A :data:`HostVerdict` rests on
something untrusted code cannot forge: the kernel's exit status, its reports of refused calls, a clock, a byte
count, or a parser that ran before any of the code did. A :class:`ChildClaim` is the child's own word; believing
it can only hurt the child. Its text is made safe to show first: no control characters, no terminal escapes,
no endless lines.

:func:`judge` is pure: the same facts give the same verdict. Their order matters. What the kernel or the host
did to the child comes first; then refused calls, whatever the child says; then whether its bytes are columns at
all; its own words come last.
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
"""How far a child got: our parser, or the code itself."""


class RefusedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call the kernel refused and reported, whether or not the code swallowed the error. ``detail`` is the path,
    address family, signal or program asked for, when it is known. ``count`` adds up repeats.
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
    """A failure in one line: ``says``, with its fields filled in."""

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
        return f"syntax error{f' in line {self.line}' if self.line is not None else ''}: {self.message}"


class ForbiddenImport(msgspec.Struct, frozen=True, tag="forbidden_import", kw_only=True):
    """The source imports a module that is not on the list."""

    module: str
    line: int | None = None

    @property
    def text(self) -> str:
        return f"forbidden import of '{self.module}'{f' in line {self.line}' if self.line is not None else ''}"


class CpuTimeout(_Verdict, frozen=True, tag="cpu_timeout", kw_only=True):
    """The kernel ended it for using more processor time than allowed."""

    says = "used {0.used_s:.2f} s of processor time, {0.limit_s:g} s are allowed"

    limit_s: float
    used_s: float


class WallTimeout(_Verdict, frozen=True, tag="wall_timeout", kw_only=True):
    """The host ended it for taking too long by the clock."""

    says = "not done after {0.limit_s:g} s"

    limit_s: float


class OutputLimit(msgspec.Struct, frozen=True, tag="output_limit", kw_only=True):
    """The host ended it for writing or asking too much: result, log, answers, refused calls, or file calls."""

    stream: Literal["result", "log", "answers", "refused calls", "file calls"]
    limit: int

    @property
    def text(self) -> str:
        unit = "bytes" if self.stream in ("result", "log", "answers") else "calls"
        return f"{self.stream}: more than {self.limit} {unit}"


class OomKilled(_Verdict, frozen=True, tag="oom_killed", kw_only=True):
    """The kernel's out-of-memory killer ended it."""

    says = "killed for lack of memory at {0.peak_mb:.0f} MB"

    peak_mb: float


class Crashed(msgspec.Struct, frozen=True, tag="crashed", kw_only=True):
    """It ended with a signal or an exit code instead of a result. ``stage`` is how far it got."""

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
    """It tried to reach a network or a socket."""


class FileAttempt(_Refused, frozen=True, tag="file_attempt", kw_only=True):
    """It tried to read or change a file that is not its own."""


class ProcessAttempt(_Refused, frozen=True, tag="process_attempt", kw_only=True):
    """It tried to start, signal or inspect a process or thread."""


class PrivilegedAttempt(_Refused, frozen=True, tag="privileged_attempt", kw_only=True):
    """It tried something that only an administrator needs, or a way around its limits."""


class BadResult(_Verdict, frozen=True, tag="bad_result", kw_only=True):
    """What it sent back is missing, malformed or over a cap."""

    says = "bad result: {0.reason}"

    reason: str


class SupervisorFault(_Verdict, frozen=True, tag="supervisor_fault", kw_only=True):
    """The host could not go on supervising it, so it was ended."""

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
"""Decided by the host or the kernel."""


_HOST_FOLDER = re.compile(r"/[^\s'\"():,]*/(?=(?:site-packages|python3\.\d+)/)")
"""Where this machine keeps its packages: no business of a model's, and another text on every machine."""


class ChildClaim(_Verdict, frozen=True, tag="child_claim", kw_only=True):
    """The child's own account of why it has no result. Nothing checks it. ``kind``: it raised (``exception``),
    exceeded its memory limit (``memory``), lacked or was refused a module while running (``import``), has no entry
    function (``no_entry``), returned something no column can hold (``unreturnable``), or called ``exit``.
    """

    says = "the code says: {0.error}: {0.message}"

    kind: ClaimKind
    error: str
    message: str
    trace: str = ""

    @property
    def line(self) -> int | None:
        """The last line of the code itself that its traceback names, if it names one."""
        found = None
        for part in self.trace.split('File "strategy.py", line ')[1:]:
            digits = part[: len(part) - len(part.lstrip("0123456789"))]
            found = int(digits) if 0 < len(digits) <= _MOST_DIGITS else found
        return found


_MOST_DIGITS: Final = 9
"""Digits of a line's number that are read: a traceback is the child's word like everything else."""

Failure = HostVerdict | ChildClaim


def decided_by_host(failure: Failure) -> bool:
    return not isinstance(failure, ChildClaim)


def kind_of(failure: Failure) -> str:
    """Return the short name under which failures are counted, e.g. ``cpu_timeout`` or ``claimed_exception``."""
    if isinstance(failure, ChildClaim):
        return f"claimed_{failure.kind}"
    return str(failure.__struct_config__.tag)


Stopped = WallTimeout | OutputLimit | SupervisorFault
"""The host's own reasons for ending a child."""

_CPU_SLACK_S: Final = (
    0.05  # the kernel sums in ticks, and may act just before the reported sum reaches the limit
)

_REFUSAL_ERRORS: Final = frozenset({"PermissionError", "OSError"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFacts:
    """What the host knows about an ended child. ``stopped`` is the host's own reason for killing it, if it did.
    ``base_mb`` is what it had when it was forked, ``memory_mb`` what it may take on top of that.
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


def judge(facts: ChildFacts) -> dict[str, Array] | Failure:
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
    # It ended normally: refused calls come next, whatever it says, and its own words last.
    grave = next((attempt for attempt in facts.attempts if attempt.family in facts.fail_on), None)
    if grave is not None:
        return attempt_verdict(grave)
    try:
        message = decode(facts.result, facts.caps)
    except CodecError as error:
        return BadResult(reason=str(error))
    if not isinstance(message, ClaimHead):
        return message
    # A refused call plus the child's own word that permission was missing is a finding, not a claim.
    if facts.attempts and message.error in _REFUSAL_ERRORS:
        return attempt_verdict(facts.attempts[-1])
    return claim(message)


Doubt = Literal["", "machine", "once"]
"""Whether an end shows a fault of the code: yes, never, or only if it ends like that again."""

_ITS_OWN: Final = frozenset(
    "SIGABRT SIGSEGV SIGBUS SIGILL SIGFPE SIGTRAP SIGPIPE SIGXFSZ SIGALRM SIGVTALRM SIGPROF".split()
)
"""Signals by which code can end itself."""


def doubt(facts: ChildFacts, outcome: dict[str, Array] | Failure) -> Doubt:
    """Return how far an outcome can be put down to the code rather than to the machine. What the code can bring
    about itself is its own once it has begun: a second child could be told what the first one saw.
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
    """Return a child's words, made safe to show, and the interpreter's words in them as Python 3.11 has them."""
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
"""What later interpreters word differently: a model is told the same, whatever runs its program."""
_A_SLICE: Final = re.compile(r"slice\([^()]*\)")
"""From 3.12 on a slice can be looked up in a mapping, where it is not found."""


_ATTEMPTS: Final[dict[str, type[NetworkAttempt | ProcessAttempt | FileAttempt]]] = {
    "network": NetworkAttempt,
    "process": ProcessAttempt,
    "file": FileAttempt,
}


def attempt_verdict(attempt: RefusedCall) -> HostVerdict:
    return _ATTEMPTS.get(attempt.family, PrivilegedAttempt)(attempt=attempt)
