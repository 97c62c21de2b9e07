"""From what the host saw of a child to what came of its job. Pure: the same facts give the same verdict.

The order matters. What the kernel or the host did to the child comes first; then refused calls, whatever the child
says; then whether its bytes are columns at all; its own words come last.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tradeassay.sandbox.codec import Array, Caps, ClaimHead, CodecError, decode
from tradeassay.sandbox.failures import (
    Attempt,
    BadResult,
    ChildClaim,
    CpuTimeout,
    Crashed,
    Failure,
    FileAttempt,
    ForbiddenImport,
    HostVerdict,
    NetworkAttempt,
    OomKilled,
    OutputLimit,
    PrivilegedAttempt,
    ProcessAttempt,
    Stage,
    SyntaxFault,
    WallTimeout,
    plain_line,
    plain_lines,
)
from tradeassay.sandbox.strategy import Parsed
from tradeassay.sandbox.syscalls import Family

_CPU_SLACK_S: Final = 0.05  # the kernel sums in ticks, and may act just before the reported sum reaches the limit

_REFUSAL_ERRORS: Final = frozenset({"PermissionError", "OSError"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the host knows of an ended child. ``stopped`` is the host's own reason for killing it, if it did."""

    status: int
    cpu_s: float
    peak_mb: float
    cpu_limit_s: float
    caps: Caps
    parsed: Parsed | None = None
    stopped: WallTimeout | OutputLimit | None = None
    out_of_memory: bool = False
    attempts: Sequence[Attempt] = ()
    fail_on: frozenset[Family] = frozenset()
    result: bytes | bytearray = field(default=b"", repr=False)


def judge(facts: Facts) -> dict[str, Array] | Failure:
    """Return the child's columns, or why there are none."""
    ended = _how_it_ended(facts)
    if ended is not None:
        return ended
    grave = next((attempt for attempt in facts.attempts if attempt.family in facts.fail_on), None)
    if grave is not None:
        return attempt_verdict(grave)
    try:
        message = decode(facts.result, facts.caps)
    except CodecError as error:
        return BadResult(reason=str(error))
    if not isinstance(message, ClaimHead):
        return message
    # A refused call together with the child's own word that permission was missing is a finding, not a claim.
    if facts.attempts and message.error in _REFUSAL_ERRORS:
        return attempt_verdict(facts.attempts[-1])
    return claim(message)


def claim(head: ClaimHead) -> ChildClaim:
    """Return a child's words, fit to be shown."""
    return ChildClaim(
        kind=head.kind,
        error=plain_line(head.error, 200),
        message=plain_lines(head.message, 4000),
        trace=plain_lines(head.trace, 16000),
    )


def attempt_verdict(attempt: Attempt) -> HostVerdict:
    """Return the verdict that names a refused call."""
    if attempt.family == "network":
        return NetworkAttempt(attempt=attempt)
    if attempt.family == "process":
        return ProcessAttempt(attempt=attempt)
    if attempt.family == "file":
        return FileAttempt(attempt=attempt)
    return PrivilegedAttempt(attempt=attempt)


def _how_it_ended(facts: Facts) -> HostVerdict | None:
    """Return the verdict that needs no look at the result, or None when the child ended in good order."""
    if facts.parsed is not None:
        if facts.parsed.forbidden is not None:
            found = facts.parsed.forbidden
            return ForbiddenImport(module=plain_line(found.module, 200), line=found.line)
        if facts.parsed.syntax:
            return SyntaxFault(message=plain_line(facts.parsed.syntax, 500), line=facts.parsed.line)
    if facts.stopped is not None:
        return facts.stopped
    stage: Stage = "parse" if facts.parsed is None else "run"
    if os.WIFSIGNALED(facts.status):
        return _by_signal(facts, os.WTERMSIG(facts.status), stage)
    code = os.waitstatus_to_exitcode(facts.status)
    if code != 0 or facts.parsed is None:
        return Crashed(stage=stage, exit_code=code)
    return None


def _by_signal(facts: Facts, number: int, stage: Stage) -> HostVerdict:
    out_of_time = facts.cpu_s >= facts.cpu_limit_s - _CPU_SLACK_S
    if number == signal.SIGXCPU or (number == signal.SIGKILL and out_of_time):
        return CpuTimeout(limit_s=facts.cpu_limit_s, used_s=facts.cpu_s)
    if number == signal.SIGKILL and facts.out_of_memory:
        return OomKilled(peak_mb=facts.peak_mb)
    if number == signal.SIGSYS:
        call = Attempt(family="privileged", call="system call of another machine type")
        return PrivilegedAttempt(attempt=call)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return Crashed(stage=stage, signal=name)
