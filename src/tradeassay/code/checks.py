"""Checks of a program: one question each, answered by one finding, and findings written for build servers.

A check whose failure keeps later ones from being asked is a *stage*, one that only counts is a *gate*; which of
the two it is follows from what the others need. A check that was not asked, or that could not be decided, is
neither passed nor failed: :attr:`Finding.holds` is then None, and the reason says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar
from xml.sax.saxutils import escape, quoteattr

import msgspec

from tradeassay.core.printable import printable

Status = Literal["passed", "failed", "not_reached", "not_scored", "not_run"]
Measures = dict[str, float | int | str | None]

_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class Exhibit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of evidence: a ``code`` to count by, a ``line`` of ``file``, a ``bar`` of the data ``where``."""

    code: str
    text: str
    file: Literal["strategy.py", "strategy_card.json"] = "strategy.py"
    line: int | None = None
    bar: int | None = None
    where: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a check found. ``reason`` is one line, never empty unless it passed. ``not_reached`` and ``not_run``:
    it was not asked, because an earlier check failed or because something that it needs was not there.
    ``not_scored``: it was asked, and nobody could tell. ``error_class`` is a short name to count by
    (``SyntaxError``, ``cpu_timeout``); ``claimed`` says that it rests on the program's own word. ``evidence`` is
    what convicts, ``advice`` is what a reader should look at, ``measures`` are its numbers.
    """

    name: str = ""
    status: Status
    reason: str = ""
    error_class: str = ""
    line: int | None = None
    claimed: bool = False
    evidence: tuple[Exhibit, ...] = ()
    # Not ``dict`` itself: a record would then omit the numbers of a gate that has none.
    measures: Measures = msgspec.field(default_factory=lambda: {})
    advice: tuple[Exhibit, ...] = ()

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    @property
    def failed(self) -> bool:
        return self.status == "failed"

    @property
    def holds(self) -> bool | None:
        """Passed or failed; None where it was not asked or could not be decided."""
        return self.passed if self.passed or self.failed else None

    def named(self, name: str) -> Finding:
        return msgspec.structs.replace(self, name=name)


PASSED: Final = Finding(status="passed")


def failed(reason: str, error_class: str = "", *, line: int | None = None, claimed: bool = False) -> Finding:
    return Finding(status="failed", reason=reason, error_class=error_class, line=line, claimed=claimed)


def convicted(evidence: Sequence[Exhibit], measures: Measures | None = None) -> Finding:
    """Return a failure whose reason is its first piece of evidence."""
    found = tuple(evidence)
    return Finding(status="failed", reason=found[0].text, evidence=found, measures=measures or {})


def passed(reason: str = "", measures: Measures | None = None) -> Finding:
    return Finding(status="passed", reason=reason, measures=measures or {})


def not_scored(reason: str) -> Finding:
    return Finding(status="not_scored", reason=reason)


def not_reached(after: str) -> Finding:
    return Finding(status="not_reached", reason=after)


def not_run(reason: str) -> Finding:
    return Finding(status="not_run", reason=reason)


_Subject = TypeVar("_Subject")


@dataclass(frozen=True, slots=True)
class Check(Generic[_Subject]):
    """One question. ``needs``: checks that must not have failed, and the reason given when they did."""

    name: str
    question: str
    ask: Callable[[_Subject], Finding]
    needs: Mapping[str, str] = field(default_factory=dict)


def run_checks(
    checks: Sequence[Check[_Subject]], subject: _Subject, unasked: Callable[[str], Finding] = not_reached
) -> dict[str, Finding]:
    """Ask one check after another; one whose needs are not met is answered by ``unasked`` with the reason."""
    found: dict[str, Finding] = {}
    closed: set[str] = set()
    for check in checks:
        why = next((why for name, why in check.needs.items() if name in closed), None)
        found[check.name] = check.ask(subject) if why is None else unasked(why)
        if why is not None or found[check.name].failed:
            closed.add(check.name)
    return found


def to_junit(findings: Sequence[Finding], *, suite: str, case: str, cpu_s: float) -> str:
    """Return findings as JUnit XML: one test suite with a test case for each; what was not asked is skipped."""
    failures, skipped = sum(one.failed for one in findings), sum(one.holds is None for one in findings)
    counts = f'failures="{failures}" errors="0" skipped="{skipped}" time="{cpu_s:.3f}"'
    lines = [f"<testsuite name={quoteattr(suite)} tests={quoteattr(str(len(findings)))} {counts}>"]
    for finding in findings:
        start = f"<testcase classname={quoteattr(case)} name={quoteattr(finding.name)}"
        reason = quoteattr(printable(finding.reason, kept="\n\t"))
        if finding.passed:
            lines.append(f"{start}/>")
        elif finding.holds is None:
            lines.append(f"{start}><skipped message={reason}/></testcase>")
        else:
            places = (f"{one.file}:{one.line}: " if one.line is not None else "" for one in finding.evidence)
            said = (f"{place}{one.code}: {one.text}" for place, one in zip(places, finding.evidence, strict=True))
            body = "\n".join(escape(printable(line, kept="\n\t")) for line in said)
            lines.append(f"{start}><failure message={reason}>{body}</failure></testcase>")
    inside = "\n".join(lines)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{inside}\n</testsuite>\n</testsuites>\n'


def to_sarif(findings: Sequence[Finding], *, questions: Mapping[str, str], properties: Mapping[str, str]) -> str:
    """Return findings as SARIF 2.1.0: failures as errors, advice and what was not asked as notes."""
    results: list[dict[str, Any]] = []
    for finding in findings:
        shown: tuple[Exhibit, ...] = ()
        if finding.failed:
            claim = Exhibit(code=finding.error_class, text=finding.reason, line=finding.line)
            shown = finding.evidence or (claim,)
        elif finding.holds is None:
            shown = (Exhibit(code="not_run", text=f"not run: {finding.reason}"),)
        for place, one in enumerate((*shown, *finding.advice)):
            where = {"artifactLocation": {"uri": one.file}, "region": {"startLine": one.line or 1}}
            told = {
                "ruleId": finding.name,
                "level": "error" if finding.failed and place < len(shown) else "note",
                "message": {"text": f"{one.code}: {one.text}"},
                "locations": [{"physicalLocation": where}],
            }
            results.append(told)
    rules = [{"id": name, "shortDescription": {"text": question}} for name, question in questions.items()]
    tool = {"driver": {"name": "tradeassay", "rules": rules}}
    run = {"tool": tool, "results": results, "properties": properties}
    document = {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


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
    "cut-off",
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
cut-off | Cut off by the token limit | | the answer reached the limit of tokens before its program was complete
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
    mixed = name in ("TypeError", "AttributeError", "ValueError")
    if mixed and _LINE.search(words) and "no attribute" not in words:
        return "line-object"
    if name == "AttributeError":
        return "type-or-none" if "NoneType" in words else "missing-attribute"
    if name == "TypeError":
        return "wrong-api-params" if _WRONG_CALL.search(words) else "type-or-none"
    return "other-runtime"
