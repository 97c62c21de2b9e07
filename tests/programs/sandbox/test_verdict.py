import signal
from typing import Any

import numpy as np
import pytest

from tradeassay_programs.sandbox import (
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
from tradeassay_programs.sandbox.codec import Caps, ClaimHead, encode, encode_claim
from tradeassay_programs.sandbox.failures import ChildFacts, classify_outcome
from tradeassay_programs.sandbox.strategy import ImportFound, Parsed

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


def claimed(kind: Any, error: str) -> ChildClaim:
    return ChildClaim(kind=kind, error=error, message="m")


WALL = WallTimeout(limit_s=2.0)
FULL = OutputLimit(stream="log", limit=10)
FORBIDDEN = Parsed(forbidden=ImportFound("socket", 2))
KEY_ERROR, DENIED = claim("exception", "KeyError"), claim("exception", "PermissionError")

CASES: dict[str, tuple[ChildFacts, Failure]] = {
    "syntax": (
        facts(parsed=Parsed(syntax="bad", line=3), result=b""),
        SyntaxFault(message="bad", line=3),
    ),
    "import": (facts(parsed=FORBIDDEN, result=b""), ForbiddenImport(module="socket", line=2)),
    "wall": (facts(status=9, stopped=WALL), WALL),
    "output": (facts(status=9, stopped=FULL), FULL),
    "cpu by signal": (facts(status=signal.SIGXCPU, cpu_s=5.0), CpuTimeout(limit_s=5, used_s=5.0)),
    "cpu by kill": (facts(status=9, cpu_s=6.0), CpuTimeout(limit_s=5, used_s=6.0)),
    "oom": (facts(status=9, out_of_memory=True), OomKilled(peak_mb=100.0)),
    "killed by somebody": (facts(status=9), Crashed(stage="run", signal="SIGKILL")),
    "segfault": (facts(status=11), Crashed(stage="run", signal="SIGSEGV")),
    "realtime signal": (facts(status=40), Crashed(stage="run", signal="signal 40")),
    "parser crash": (facts(status=11, parsed=None), Crashed(stage="parse", signal="SIGSEGV")),
    "exit code": (facts(status=3 << 8), Crashed(stage="run", exit_code=3)),
    "silent end before parsing": (facts(parsed=None), Crashed(stage="parse", exit_code=0)),
    "no result": (facts(result=b""), BadResult(reason="no result")),
    "garbage": (facts(result=b"garbage!"), BadResult(reason="no well-formed prefix")),
    "swallowed network": (facts(attempts=(NET,)), NetworkAttempt(attempt=NET)),
    "swallowed process": (facts(attempts=(FILE, FORK)), ProcessAttempt(attempt=FORK)),
    "swallowed memory": (facts(attempts=(MEMFD,)), PrivilegedAttempt(attempt=MEMFD)),
    "a refused file that ended it": (
        facts(attempts=(FILE,), result=DENIED),
        FileAttempt(attempt=FILE),
    ),
    "a refused file beside a bug": (
        facts(attempts=(FILE,), result=KEY_ERROR),
        claimed("exception", "KeyError"),
    ),
    "claim": (facts(result=claim("memory", "MemoryError")), claimed("memory", "MemoryError")),
    "a timeout outranks an attempt": (facts(attempts=(NET,), stopped=WALL, status=9), WALL),
}


@pytest.mark.parametrize("case", CASES)
def test_facts_give_one_verdict_which_has_a_name_and_one_line(case):
    seen, expected = CASES[case]
    verdict = classify_outcome(seen)
    assert verdict == expected and "\n" not in expected.text
    assert decided_by_host(expected) == (not isinstance(expected, ChildClaim))


def test_verdicts_are_counted_by_name():
    assert {kind_of(expected) for _, expected in CASES.values()} == set(
        """syntax forbidden_import cpu_timeout wall_timeout output_limit oom_killed crashed network_attempt
        file_attempt process_attempt privileged_attempt bad_result claimed_exception claimed_memory""".split()
    )


def test_a_call_of_another_machine_type_is_an_attempt_and_a_swallowed_file_attempt_is_none():
    assert isinstance(classify_outcome(facts(status=signal.SIGSYS)), PrivilegedAttempt)
    columns = classify_outcome(facts(attempts=(FILE,)))
    assert isinstance(columns, dict)
    np.testing.assert_array_equal(columns["a"], [1.0])


def test_a_childs_words_cannot_write_to_a_terminal():
    verdict = classify_outcome(facts(result=claim("exception", "E\x1b[2J", "line\n\x1b]0;x\x07")))
    assert isinstance(verdict, ChildClaim)
    assert verdict.error == "E?[2J"
    assert verdict.message == "line\n?]0;x?"


def test_a_message_does_not_tell_where_the_host_keeps_its_packages():
    words = (
        "cannot import name 'ta' from 'talib' "
        "(/home/me/.venv/lib/python3.11/site-packages/talib/__init__.py)"
    )
    said = failures.claim(ClaimHead("exception", "ImportError", words)).message
    assert said == "cannot import name 'ta' from 'talib' (site-packages/talib/__init__.py)"


LONG = "S" + "o" * 60
"""A name that Python 3.11 cuts at its fiftieth letter."""
NO_CLOSE = "object has no attribute 'close'"
NO_X = "AttributeError: 'object' object has no attribute 'x'"
SORT, PRINT = (
    f"TypeError: {name}() got an unexpected keyword argument" for name in ("sort", "print")
)
INVALID = "is an invalid keyword argument for"
NO_MAPPING = "ImportError: cannot import name 'Mapping' from 'collections'"
NO_SQR = "ImportError: cannot import name 'sqr' from 'math'"
IN_3_11 = {
    "max([])": (
        "ValueError: max() iterable argument is empty",
        "ValueError: max() arg is an empty sequence",
    ),
    "min(())": (
        "ValueError: min() iterable argument is empty",
        "ValueError: min() arg is an empty sequence",
    ),
    "1.0 % 0": ("ZeroDivisionError: float modulo by zero", "ZeroDivisionError: float modulo"),
    "{}[1:2]": ("KeyError: slice(1, 2, None)", "TypeError: unhashable type: 'slice'"),
    "object().x = 1": (f"{NO_X} and no __dict__ for setting new attributes", NO_X),
    f"class {LONG}: pass\n{LONG}().close": (
        f"AttributeError: '{LONG}' {NO_CLOSE}",
        f"AttributeError: '{LONG[:50]}' {NO_CLOSE}",
    ),
    "sorted([1], kye=1)": (f"{SORT} 'kye'", f"TypeError: 'kye' {INVALID} sort()"),
    "print(foo=1)": (f"{PRINT} 'foo'", f"TypeError: 'foo' {INVALID} print()"),
    "str(b'a', 'ascii', 'strict', 1)": (
        "TypeError: str expected at most 3 arguments, got 4",
        "TypeError: str() takes at most 3 arguments (4 given)",
    ),
    "from collections import Mapping": (
        f"{NO_MAPPING} (/lib/python3.13/collections/__init__.py)",
        f"{NO_MAPPING} (python3.11/collections/__init__.py)",
    ),
    "": (
        f"{NO_SQR} (/opt/lib/python3.12/math.cpython-312-x86_64.so)",
        f"{NO_SQR} (python3.11/math.cpython-311-x86_64.so)",
    ),
}
"""By program, how Python 3.12 or 3.13 words its error, and how Python 3.11 does.

Where a library's file lies is this machine's affair, so the last one is not run.
"""


def told(text: str) -> str:
    error, _, message = text.partition(": ")
    said = failures.claim(ClaimHead("exception", error, message))
    return f"{said.error}: {said.message}"


@pytest.mark.parametrize("program", IN_3_11)
def test_an_error_is_worded_as_in_python_3_11_whatever_runs_the_program(program):
    later, in_3_11 = IN_3_11[program]
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
    assert failures.attribute_outcome(found, classify_outcome(found)) == expected
