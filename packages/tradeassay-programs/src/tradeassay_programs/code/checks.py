"""Run checks of a program, and write their findings in the formats of build servers.

A check asks one question and returns one :class:`Finding`. Later checks may need a check: they do
not run if it failed. A check that did not run, or that could not decide, neither passed nor failed.
Its :attr:`Finding.holds` is None, and ``reason`` states why.

The checks of :mod:`tradeassay_programs.code.evaluation` are called *stages*, and the checks of
:mod:`tradeassay_programs.code.gates` are called *gates*.
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
    """One piece of evidence.

    ``code`` is a short name for counting. ``line`` is a line number of ``file``. ``bar`` is the
    number of a bar, and ``where`` names the data set of that bar.
    """

    code: str
    text: str
    file: Literal["strategy.py", "strategy_card.json"] = "strategy.py"
    line: int | None = None
    bar: int | None = None
    where: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one check.

    ``reason`` is one line. It is empty only for a check that passed. A status that is neither
    ``passed`` nor ``failed`` is one of:

    - ``not_reached``: the check did not run because an earlier check failed.
    - ``not_run``: the check did not run because a prerequisite is missing.
    - ``not_scored``: the check ran and could not decide.

    ``error_class`` is a short name for counting (``SyntaxError``, ``cpu_timeout``). ``claimed``
    marks a failure that rests on the program's report alone. ``evidence`` supports a failure,
    ``advice`` lists places to review, and ``measures`` contains the numbers of the check.
    """

    name: str = ""
    status: Status
    reason: str = ""
    error_class: str = ""
    line: int | None = None
    claimed: bool = False
    evidence: tuple[Exhibit, ...] = ()
    # With ``dict`` as the factory, msgspec would omit an empty dict from the record.
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
        """True if the check passed, False if it failed, None if it did not run or decide."""
        if self.passed or self.failed:
            return self.passed
        return None

    def named(self, name: str) -> Finding:
        """Return a copy of this finding with the name of its check."""
        return msgspec.structs.replace(self, name=name)


PASSED: Final = Finding(status="passed")


def failed(
    reason: str, error_class: str = "", *, line: int | None = None, claimed: bool = False
) -> Finding:
    """Return the finding of a check that failed."""
    return Finding(
        status="failed", reason=reason, error_class=error_class, line=line, claimed=claimed
    )


def convicted(evidence: Sequence[Exhibit], measures: Measures | None = None) -> Finding:
    """Return a failed finding with evidence. Its reason is the text of the first exhibit."""
    exhibits = tuple(evidence)
    return Finding(
        status="failed", reason=exhibits[0].text, evidence=exhibits, measures=measures or {}
    )


def passed(reason: str = "", measures: Measures | None = None) -> Finding:
    """Return the finding of a check that passed, with an optional remark."""
    return Finding(status="passed", reason=reason, measures=measures or {})


def not_scored(reason: str) -> Finding:
    """Return the finding of a check that could not decide."""
    return Finding(status="not_scored", reason=reason)


def not_reached(reason: str) -> Finding:
    """Return the finding of a check that did not run because an earlier check failed."""
    return Finding(status="not_reached", reason=reason)


def not_run(reason: str) -> Finding:
    """Return the finding of a check that did not run because a prerequisite is missing."""
    return Finding(status="not_run", reason=reason)


_Subject = TypeVar("_Subject")


@dataclass(frozen=True, slots=True)
class Check(Generic[_Subject]):
    """One question about a subject, answered by the function ``ask``.

    ``needs`` maps the name of each earlier check that must not have failed to the reason to report
    if it did.
    """

    name: str
    question: str
    ask: Callable[[_Subject], Finding]
    needs: Mapping[str, str] = field(default_factory=dict)


def run_checks(
    checks: Sequence[Check[_Subject]],
    subject: _Subject,
    skip: Callable[[str], Finding] = not_reached,
) -> dict[str, Finding]:
    """Run checks in order and return their findings by name.

    A check does not run if a check that it needs failed or was skipped. ``skip`` then makes the
    finding of the skipped check from the reason.
    """
    findings: dict[str, Finding] = {}
    unmet: set[str] = set()
    for check in checks:
        reason = next((reason for name, reason in check.needs.items() if name in unmet), None)
        finding = check.ask(subject) if reason is None else skip(reason)
        findings[check.name] = finding
        # A check that was skipped also stops the checks that need it.
        if reason is not None or finding.failed:
            unmet.add(check.name)
    return findings


def to_junit(findings: Sequence[Finding], *, suite: str, case: str, cpu_s: float) -> str:
    """Return findings as JUnit XML: one test suite with one test case per finding.

    A check that did not run or could not decide becomes a skipped test case. ``cpu_s`` is the
    processor time in seconds.
    """
    failures = sum(finding.failed for finding in findings)
    skipped = sum(finding.holds is None for finding in findings)
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
            details = []
            for exhibit in finding.evidence:
                place = f"{exhibit.file}:{exhibit.line}: " if exhibit.line is not None else ""
                details.append(f"{place}{exhibit.code}: {exhibit.text}")
            body = "\n".join(escape(printable(line, kept="\n\t")) for line in details)
            lines.append(f"{start}><failure message={reason}>{body}</failure></testcase>")
    suites = "\n".join(lines)
    return (
        '<?xml version="1.0" '
        f'encoding="UTF-8"?>\n<testsuites>\n{suites}\n</testsuite>\n</testsuites>\n'
    )


def to_sarif(
    findings: Sequence[Finding], *, questions: Mapping[str, str], properties: Mapping[str, str]
) -> str:
    """Return findings as a SARIF 2.1.0 document.

    Failures become errors. Advice, and checks that did not run or could not decide, become notes.
    ``questions`` maps the name of each check to its question.
    """
    results: list[dict[str, Any]] = []
    for finding in findings:
        exhibits: tuple[Exhibit, ...] = ()
        if finding.failed:
            claim = Exhibit(code=finding.error_class, text=finding.reason, line=finding.line)
            exhibits = finding.evidence or (claim,)
        elif finding.holds is None:
            exhibits = (Exhibit(code="not_run", text=f"not run: {finding.reason}"),)
        for number, exhibit in enumerate((*exhibits, *finding.advice)):
            location = {
                "artifactLocation": {"uri": exhibit.file},
                "region": {"startLine": exhibit.line or 1},
            }
            result = {
                "ruleId": finding.name,
                "level": "error" if finding.failed and number < len(exhibits) else "note",
                "message": {"text": f"{exhibit.code}: {exhibit.text}"},
                "locations": [{"physicalLocation": location}],
            }
            results.append(result)
    rules = [
        {"id": name, "shortDescription": {"text": question}} for name, question in questions.items()
    ]
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
    """A class of failure.

    ``paper`` is the name of the class in Table 6 of QuantCode-Bench. It is empty for a class that
    this project added.
    """

    id: FailureClass
    title: str
    paper: str
    description: str


_TABLE: Final = """
signals-never-activate | Signals never activate | Signal conditions do not activate on data
    | runs to the end and opens no trade
line-object | Line object in place of a value | __bool__ / Line object errors
    | a Backtrader line is used as a number, a truth value or (by TA-Lib) an array, unread
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
cut-off | Cut off by the token limit |
    | the answer reached the limit of tokens before its program was complete
look-ahead | Looks ahead | | a decision was seen to depend on later bars
trick | Trick | | tried to have something else scored than its orders
forbidden | Forbidden import or call | | a module or system call that a strategy may not use
resources | Too much memory or output | | went beyond a limit on memory, result or log
"""
FAILURES: Final[tuple[FailureInfo, ...]] = tuple(
    msgspec.convert(
        dict(zip(("id", "title", "paper", "description"), fields, strict=True)), FailureInfo
    )
    for line in _TABLE.replace("\n    |", " |").strip().splitlines()
    if (fields := [field.strip() for field in line.split("|")])
)
"""All classes of failure: the paper's classes in the order of its table, then added classes."""


_LINE = re.compile(
    r"__bool__|\bLine(s|Own|Buffer|Series|Root|Multiple|Single|Num|sOperation|OwnOperation)|LineBuffer|Lines_"
)
_WRONG_CALL = re.compile(
    r"unexpected keyword argument|required (positional|keyword-only) argument|positional "
    r"arguments? but|"
    r"takes (no|at (most|least)|exactly|from|\d+)|got multiple values|is an invalid keyword "
    r"argument"
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
    """Return the class of a failed run, from the type and the message of its error."""
    error, message = result.error_class, result.reason
    if error in _BY_CODE:
        return _BY_CODE[error]
    # Misuse of a Backtrader line raises any of these three errors.
    ambiguous = error in ("TypeError", "AttributeError", "ValueError")
    if ambiguous and _LINE.search(message) and "no attribute" not in message:
        return "line-object"
    if error == "AttributeError":
        return "type-or-none" if "NoneType" in message else "missing-attribute"
    if error == "TypeError":
        return "wrong-api-params" if _WRONG_CALL.search(message) else "type-or-none"
    return "other-runtime"
