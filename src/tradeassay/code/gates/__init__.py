"""Is a submission governed software? Seven gates, one question each, with evidence.

``report = run_gates(submission, spec, executor)``; see ``docs/concepts/gates.md``. A gate that could not be asked
is ``not_run``, never passed.
"""

from __future__ import annotations

from tradeassay.code.gates.config import GateConfig
from tradeassay.code.gates.junit import to_junit
from tradeassay.code.gates.result import GATES, PAPER_GATES, QUESTIONS, Finding, GateReport, GateResult
from tradeassay.code.gates.run import Gated, pass_gates, run_gates
from tradeassay.code.gates.sarif import to_sarif
from tradeassay.code.gates.spec import Scenario, StrategySpec

__all__ = [
    "GATES",
    "PAPER_GATES",
    "QUESTIONS",
    "Finding",
    "GateConfig",
    "GateReport",
    "GateResult",
    "Gated",
    "Scenario",
    "StrategySpec",
    "pass_gates",
    "run_gates",
    "to_junit",
    "to_sarif",
]
