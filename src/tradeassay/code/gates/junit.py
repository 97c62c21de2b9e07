"""A gate report as JUnit XML, for the test page of a build server."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from tradeassay.code.gates.result import GateReport, GateResult


def to_junit(report: GateReport) -> str:
    """Return the report as one test suite with a test case for each gate; a gate that was not run is skipped."""
    failures = sum(gate.status == "failed" for gate in report.gates)
    skipped = sum(gate.status == "not_run" for gate in report.gates)
    name = quoteattr(f"tradeassay.{report.strategy}")
    head = (
        f"<testsuite name={name} tests={quoteattr(str(len(report.gates)))} "
        f'failures="{failures}" errors="0" skipped="{skipped}" time="{report.cpu_s:.3f}">'
    )
    cases = "\n".join(_case(report, gate) for gate in report.gates)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{head}\n{cases}\n</testsuite>\n</testsuites>\n'


def _case(report: GateReport, gate: GateResult) -> str:
    where = quoteattr(f"{report.strategy}.{report.submission or 'submission'}")
    start = f"<testcase classname={where} name={quoteattr(gate.name)}"
    if gate.status == "passed":
        return f"{start}/>"
    if gate.status == "not_run":
        return f"{start}><skipped message={quoteattr(_plain(gate.reason))}/></testcase>"
    body = "\n".join(escape(_plain(_line(gate, number))) for number in range(len(gate.evidence)))
    return f"{start}><failure message={quoteattr(_plain(gate.reason))}>{body}</failure></testcase>"


def _line(gate: GateResult, number: int) -> str:
    finding = gate.evidence[number]
    place = f"{finding.file}:{finding.line}: " if finding.line is not None else ""
    return f"{place}{finding.code}: {finding.text}"


def _plain(text: str) -> str:
    """Return text without characters that XML 1.0 cannot hold."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)
