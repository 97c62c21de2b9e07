"""Why programs fail: the classes of the paper's Table 6, found in our records, and those that the paper lacks.

The paper's harness trusts what the program says about itself. Here the classes of errors inside the program
rest on its own word too (there is no other), while time-outs, refused calls, missing trades, look-ahead and
tricks are findings of the host.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from tradeassay.code.checks import Finding

FailureClass = Literal[
    "signals-never-activate",
    "line-object",
    "missing-attribute",
    "wrong-api-params",
    "does-not-match",
    "type-or-none",
    "other-runtime",
    "syntax-at-runtime",
    "index-out-of-range",
    "compilation",
    "timeout",
    "no-code",
    "look-ahead",
    "trick",
    "forbidden",
    "resources",
]


class FailureInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A class of failure. ``paper`` is its name in Table 6, empty for a class of ours."""

    id: FailureClass
    title: str
    paper: str
    description: str


_TABLE: Final = """
signals-never-activate | Signals never activate | Signal conditions do not activate on data
    | runs to the end and opens no trade
line-object | Line object in place of a value | __bool__ / Line object errors
    | a Backtrader line is used as a number, a truth value or (by TA-Lib) an array without being read
missing-attribute | Missing attribute or method | Missing attribute/method
    | asks for something that the API does not have
wrong-api-params | Wrong API parameters | Wrong API params | calls with arguments that do not fit
does-not-match | Does not match the task | Strategy doesn’t match task
    | trades, but a judge found that it is another strategy
type-or-none | Type or None | Type/NoneType errors | operates on None or on types that do not fit
other-runtime | Other error while running | Other runtime errors | any other exception or crash
syntax-at-runtime | Syntax error while running | Syntax errors (runtime)
    | a syntax error of code that the program compiles itself
index-out-of-range | Index out of range | Index out of range | reads data before there is any
compilation | Does not compile | Compilation error | a syntax error, or not exactly one strategy
timeout | Time-out | Execution timeout | used more time than it may
no-code | No code or a reasoning loop | | the answer holds no program
look-ahead | Looks ahead | | a decision was seen to depend on later bars
trick | Trick | | tried to have something else scored than its orders
forbidden | Forbidden import or call | | a module or system call that a strategy may not use
resources | Too much memory or output | | went beyond a limit on memory, result or log
"""
FAILURES: Final[tuple[FailureInfo, ...]] = tuple(
    msgspec.convert(dict(zip(("id", "title", "paper", "description"), fields, strict=True)), FailureInfo)
    for line in _TABLE.replace("\n    |", " |").strip().splitlines()
    if (fields := [field.strip() for field in line.split("|")])
)
"""All classes: the paper's in the order of its table, then ours."""


_LINE = re.compile(
    r"__bool__|\bLine(s|Own|Buffer|Series|Root|Multiple|Single|Num|sOperation|OwnOperation)|LineBuffer|Lines_"
)
_WRONG_CALL = re.compile(
    r"unexpected keyword argument|required (positional|keyword-only) argument|positional arguments? but|"
    r"takes (no|at (most|least)|exactly|from|\d+)|got multiple values|is an invalid keyword argument"
)
_BY_CODE: Final[dict[str, FailureClass]] = {
    "cpu_timeout": "timeout",
    "wall_timeout": "timeout",
    "forbidden_import": "forbidden",
    "network_attempt": "forbidden",
    "file_attempt": "forbidden",
    "process_attempt": "forbidden",
    "privileged_attempt": "forbidden",
    "oom_killed": "resources",
    "output_limit": "resources",
    "MemoryError": "resources",
    "SyntaxError": "syntax-at-runtime",
    "IndentationError": "syntax-at-runtime",
    "syntax": "syntax-at-runtime",
    "IndexError": "index-out-of-range",
    "ImportError": "forbidden",
    "ModuleNotFoundError": "forbidden",
}


def classify_run(result: Finding) -> FailureClass:
    name, words = result.error_class, result.reason
    if name in _BY_CODE:
        return _BY_CODE[name]
    if (
        name in ("TypeError", "AttributeError", "ValueError")
        and _LINE.search(words)
        and "no attribute" not in words
    ):
        return "line-object"
    if name == "AttributeError":
        return "type-or-none" if "NoneType" in words else "missing-attribute"
    if name == "TypeError":
        return "wrong-api-params" if _WRONG_CALL.search(words) else "type-or-none"
    return "other-runtime"
