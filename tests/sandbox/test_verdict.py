import signal
from typing import Any

import numpy as np
import pytest

from tradeassay.sandbox import (
    BadResult,
    ChildClaim,
    CpuTimeout,
    Crashed,
    Failure,
    FileAttempt,
    ForbiddenImport,
    NetworkAttempt,
    OomKilled,
    OutputLimit,
    PrivilegedAttempt,
    ProcessAttempt,
    RefusedCall,
    SyntaxFault,
    WallTimeout,
    decided_by_host,
    failures,
    kind_of,
)
from tradeassay.sandbox.codec import Caps, ClaimHead, encode, encode_claim
from tradeassay.sandbox.failures import ChildFacts, judge
from tradeassay.sandbox.strategy import ImportFound, Parsed

GOOD = b"".join(encode({"a": [1.0]}))
NET = RefusedCall(family="network", call="socket", detail="AF_INET")
FILE = RefusedCall(family="file", call="openat", detail="read /etc/passwd")
FORK = RefusedCall(family="process", call="clone")
MEMFD = RefusedCall(family="memory", call="memfd_create")


def facts(**change: Any) -> ChildFacts:
    usual: dict[str, Any] = {
        "status": 0,
        "cpu_s": 0.1,
        "peak_mb": 100.0,
        "cpu_limit_s": 5,
        "caps": Caps(),
        "parsed": Parsed(),
        "fail_on": frozenset({"network", "process", "memory", "privileged"}),
        "result": GOOD,
    }
    return ChildFacts(**(usual | change))


def claim(kind: Any, error: str, message: str = "m") -> bytes:
    return encode_claim(ClaimHead(kind, error, message))


CASES: list[tuple[str, ChildFacts, Failure]] = [
    ("syntax", facts(parsed=Parsed(syntax="bad", line=3), result=b""), SyntaxFault(message="bad", line=3)),
    (
        "import",
        facts(parsed=Parsed(forbidden=ImportFound("socket", 2)), result=b""),
        ForbiddenImport(module="socket", line=2),
    ),
    ("wall", facts(status=9, stopped=WallTimeout(limit_s=2.0)), WallTimeout(limit_s=2.0)),
    ("output", facts(status=9, stopped=OutputLimit(stream="log", limit=10)), OutputLimit(stream="log", limit=10)),
    ("cpu by signal", facts(status=signal.SIGXCPU, cpu_s=5.0), CpuTimeout(limit_s=5, used_s=5.0)),
    ("cpu by kill", facts(status=9, cpu_s=6.0), CpuTimeout(limit_s=5, used_s=6.0)),
    ("oom", facts(status=9, out_of_memory=True), OomKilled(peak_mb=100.0)),
    ("killed by somebody", facts(status=9), Crashed(stage="run", signal="SIGKILL")),
    ("segfault", facts(status=11), Crashed(stage="run", signal="SIGSEGV")),
    ("realtime signal", facts(status=40), Crashed(stage="run", signal="signal 40")),
    ("parser crash", facts(status=11, parsed=None), Crashed(stage="parse", signal="SIGSEGV")),
    ("exit code", facts(status=3 << 8), Crashed(stage="run", exit_code=3)),
    ("silent end before parsing", facts(parsed=None), Crashed(stage="parse", exit_code=0)),
    ("no result", facts(result=b""), BadResult(reason="no result")),
    ("garbage", facts(result=b"garbage!"), BadResult(reason="no well-formed prefix")),
    ("swallowed network", facts(attempts=(NET,)), NetworkAttempt(attempt=NET)),
    ("swallowed process", facts(attempts=(FILE, FORK)), ProcessAttempt(attempt=FORK)),
    ("swallowed memory", facts(attempts=(MEMFD,)), PrivilegedAttempt(attempt=MEMFD)),
    (
        "a refused file that ended it",
        facts(attempts=(FILE,), result=claim("exception", "PermissionError")),
        FileAttempt(attempt=FILE),
    ),
    (
        "a refused file beside a bug",
        facts(attempts=(FILE,), result=claim("exception", "KeyError")),
        ChildClaim(kind="exception", error="KeyError", message="m"),
    ),
    (
        "claim",
        facts(result=claim("memory", "MemoryError")),
        ChildClaim(kind="memory", error="MemoryError", message="m"),
    ),
    (
        "a timeout outranks an attempt",
        facts(attempts=(NET,), stopped=WallTimeout(limit_s=1.0), status=9),
        WallTimeout(limit_s=1.0),
    ),
]


@pytest.mark.parametrize(("seen", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_facts_give_one_verdict(seen, expected):
    assert judge(seen) == expected


def test_a_call_of_another_machine_type_is_an_attempt_and_a_swallowed_file_attempt_is_none():
    assert isinstance(judge(facts(status=signal.SIGSYS)), PrivilegedAttempt)
    columns = judge(facts(attempts=(FILE,)))
    assert isinstance(columns, dict)
    np.testing.assert_array_equal(columns["a"], [1.0])


def test_a_childs_words_cannot_write_to_a_terminal():
    verdict = judge(facts(result=claim("exception", "E\x1b[2J", "line\n\x1b]0;x\x07")))
    assert isinstance(verdict, ChildClaim)
    assert verdict.error == "E?[2J"
    assert verdict.message == "line\n?]0;x?"


def test_every_failure_has_a_name_and_one_line():
    names = set()
    for _, seen, _ in CASES:
        verdict = judge(seen)
        assert not isinstance(verdict, dict)
        assert "\n" not in verdict.text
        assert decided_by_host(verdict) == (not isinstance(verdict, ChildClaim))
        names.add(kind_of(verdict))
    assert {"syntax", "forbidden_import", "cpu_timeout", "wall_timeout", "output_limit", "oom_killed"} <= names
    assert {"crashed", "network_attempt", "file_attempt", "process_attempt", "bad_result"} <= names
    assert {"claimed_exception", "claimed_memory", "privileged_attempt"} <= names


def test_a_message_does_not_tell_where_the_host_keeps_its_packages():
    words = "cannot import name 'ta' from 'talib' (/home/me/.venv/lib/python3.11/site-packages/talib/__init__.py)"
    said = failures.claim(ClaimHead("exception", "ImportError", words)).message
    assert said == "cannot import name 'ta' from 'talib' (site-packages/talib/__init__.py)"


LONG = "S" + "o" * 60
"""A name that Python 3.11 cuts at its fiftieth letter."""

IN_3_11 = [
    ("max([])", "ValueError: max() iterable argument is empty", "ValueError: max() arg is an empty sequence"),
    ("min(())", "ValueError: min() iterable argument is empty", "ValueError: min() arg is an empty sequence"),
    ("1.0 % 0", "ZeroDivisionError: float modulo by zero", "ZeroDivisionError: float modulo"),
    ("{}[1:2]", "KeyError: slice(1, 2, None)", "TypeError: unhashable type: 'slice'"),
    (
        "object().x = 1",
        "AttributeError: 'object' object has no attribute 'x' and no __dict__ for setting new attributes",
        "AttributeError: 'object' object has no attribute 'x'",
    ),
    (
        f"class {LONG}: pass\n{LONG}().close",
        f"AttributeError: '{LONG}' object has no attribute 'close'",
        f"AttributeError: '{LONG[:50]}' object has no attribute 'close'",
    ),
    (
        "sorted([1], kye=1)",
        "TypeError: sort() got an unexpected keyword argument 'kye'",
        "TypeError: 'kye' is an invalid keyword argument for sort()",
    ),
    (
        "print(foo=1)",
        "TypeError: print() got an unexpected keyword argument 'foo'",
        "TypeError: 'foo' is an invalid keyword argument for print()",
    ),
    (
        "str(b'a', 'ascii', 'strict', 1)",
        "TypeError: str expected at most 3 arguments, got 4",
        "TypeError: str() takes at most 3 arguments (4 given)",
    ),
    (
        "from collections import Mapping",
        "ImportError: cannot import name 'Mapping' from 'collections' (/lib/python3.13/collections/__init__.py)",
        "ImportError: cannot import name 'Mapping' from 'collections' (python3.11/collections/__init__.py)",
    ),
    (
        "",
        "ImportError: cannot import name 'sqr' from 'math' (/opt/lib/python3.12/math.cpython-312-x86_64.so)",
        "ImportError: cannot import name 'sqr' from 'math' (python3.11/math.cpython-311-x86_64.so)",
    ),
]
"""A program, how Python 3.12 or 3.13 words its error, and how Python 3.11 does. Where a library's file lies is
this machine's affair, so the last one is not run."""


def told(text: str) -> str:
    error, _, message = text.partition(": ")
    said = failures.claim(ClaimHead("exception", error, message))
    return f"{said.error}: {said.message}"


@pytest.mark.parametrize(("program", "later", "in_3_11"), IN_3_11)
def test_an_error_is_worded_as_in_python_3_11_whatever_runs_the_program(program, later, in_3_11):
    assert told(later) == in_3_11
    assert told(in_3_11) == in_3_11
    if program:  # and this interpreter, whichever it is, is understood
        with pytest.raises(Exception) as raised:  # which one depends on the interpreter
            exec(program, {"__name__": "strategy"})
        assert told(f"{raised.type.__name__}: {raised.value}") == in_3_11


@pytest.mark.parametrize(
    "words",
    [
        "ValueError: the list that max() iterable argument is empty of",
        "RuntimeError: max() iterable argument is empty",
        "KeyError: 'slice(1, 2, None) of AAPL'",
        "KeyError: 'close'",
        "AttributeError: 'Lines' object has no attribute 'close'",
        "AttributeError: module 'talib' has no attribute 'SMAA'",
        "TypeError: next() got an unexpected keyword argument 'self'",
        "ZeroDivisionError: float division by zero",
        "ImportError: needs python3.12",
    ],
)
def test_a_programs_own_words_stay_as_they_are(words):
    assert told(words) == words


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (facts(), ""),
        (facts(status=9), "machine"),
        (facts(status=9, stopped=WallTimeout(limit_s=2.0)), ""),
        (facts(status=9, cpu_s=6.0), ""),
        (facts(status=9, out_of_memory=True, base_mb=60.0, memory_mb=1024), "machine"),
        (facts(status=9, out_of_memory=True, peak_mb=600.0, base_mb=60.0, memory_mb=1024), ""),
        (facts(status=7), ""),
        (facts(status=11, parsed=None), "once"),
        (facts(status=70 << 8, parsed=None), "machine"),
        (facts(status=3 << 8), ""),
        (facts(result=b""), ""),
        (facts(parsed=Parsed(syntax="MemoryError: "), result=b""), "once"),
        (facts(parsed=Parsed(syntax="bad"), result=b""), ""),
        (facts(result=claim("memory", "MemoryError")), ""),
        (facts(result=claim("exception", "OSError", "[Errno 5] Input/output error")), ""),
        (facts(result=claim("exception", "ValueError", "5")), ""),
        (facts(status=signal.SIGXCPU, cpu_s=5.0), ""),
    ],
)
def test_whether_an_end_shows_a_fault_of_the_code(found, expected):
    assert failures.doubt(found, judge(found)) == expected
