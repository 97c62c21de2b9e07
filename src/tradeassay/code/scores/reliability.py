"""D3: the gates as numbers, measured by running the code and not by reading it."""

from __future__ import annotations

from typing import Final

from tradeassay.code.gates.result import GateReport
from tradeassay.core.measure import Measure, not_scored

WEIGHTS: Final = {"exec": 0.20, "determinism": 0.25, "leak": 0.30, "audit": 0.25}
"""What each gate is worth; ours, near the paper's weights."""


def reliability(report: GateReport) -> Measure:
    """Return D3, 0 to 10. The audit gives what share of its cells is complete and of its trades can be followed.

    A gate that could not be asked counts as not held, because nothing is known in its favour. Not scored when
    the submission could not even be parsed.
    """
    if not report.gate("parse").passed:
        return not_scored("it could not be parsed")
    total = 0.0
    for name, weight in WEIGHTS.items():
        gate = report.gate(name)  # type: ignore[arg-type]  # names of gates
        total += weight * (_audit_share(report) if name == "audit" else float(gate.passed))
    return Measure(value=10.0 * total, n=len(WEIGHTS))


def _audit_share(report: GateReport) -> float:
    gate = report.gate("audit")
    if gate.status == "not_run":
        return 0.0
    complete, traced = gate.measures.get("completeness"), gate.measures.get("traceable")
    if not isinstance(complete, float | int) or not isinstance(traced, float | int):
        return float(gate.passed)  # no trade to be followed
    return (float(complete) + float(traced)) / 2.0
