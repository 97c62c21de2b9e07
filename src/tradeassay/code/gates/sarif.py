"""A gate report as SARIF 2.1.0, for code-scanning pages."""

from __future__ import annotations

from typing import Any

import msgspec

from tradeassay.code.gates.result import QUESTIONS, Finding, GateReport, GateResult

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(report: GateReport) -> str:
    """Return every finding as a result: failures as errors, advice and gates that were not run as notes."""
    results: list[dict[str, Any]] = []
    for gate in report.gates:
        if gate.status == "failed":
            results += [_result(gate, finding, "error") for finding in gate.evidence]
        elif gate.status == "not_run":
            results.append(_result(gate, Finding(code="not_run", text=f"not run: {gate.reason}"), "note"))
        results += [_result(gate, finding, "note") for finding in gate.advice]
    rules = [{"id": name, "shortDescription": {"text": question}} for name, question in QUESTIONS.items()]
    run = {
        "tool": {"driver": {"name": "tradeassay", "rules": rules}},
        "results": results,
        "properties": {"strategy": report.strategy, "submission_sha256": report.submission_sha256},
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _result(gate: GateResult, finding: Finding, level: str) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": finding.file}}
    place["region"] = {"startLine": finding.line or 1}
    return {
        "ruleId": gate.name,
        "level": level,
        "message": {"text": f"{finding.code}: {finding.text}"},
        "locations": [{"physicalLocation": place}],
    }
