"""Gate: does it do on the micro-scenarios what the frozen semantics do?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tradeassay.account.shares import DecisionList
from tradeassay.code.gates.result import Finding, GateResult, Measures, failed, not_run, passed
from tradeassay.code.gates.spec import Scenario, StrategySpec
from tradeassay.code.submission_run import SubmissionRun


def scenarios_gate(spec: StrategySpec, runs: Mapping[str, SubmissionRun], agreement: float) -> GateResult:
    """Compare each run's decisions with the stored ones: bar, leg, signal, and share of equity."""
    if not spec.scenarios:
        return not_run("scenarios", "the strategy has no micro-scenarios")
    found = []
    for scenario in spec.scenarios:
        decisions = runs[scenario.name].decisions
        assert decisions is not None
        one = first_departure(spec, scenario, decisions, agreement)
        if one is not None:
            found.append(one)
    measures: Measures = {"scenarios": len(spec.scenarios), "departures": len(found)}
    if found:
        return failed("scenarios", tuple(found), measures=measures)
    return passed("scenarios", measures=measures)


def first_departure(
    spec: StrategySpec, scenario: Scenario, found: DecisionList, agreement: float
) -> Finding | None:
    """Return the first decision that is not the frozen one; None when all are."""
    frozen = scenario.expected
    shared = min(len(found), len(frozen))
    agree = (found.row[:shared] == frozen.row[:shared]) & (found.leg[:shared] == frozen.leg[:shared])
    agree &= found.signal[:shared] == frozen.signal[:shared]
    agree &= np.abs(found.fraction[:shared] - frozen.fraction[:shared]) <= agreement
    wrong = np.flatnonzero(~agree)
    place = int(wrong[0]) if wrong.size else shared
    if place == len(found) == len(frozen):
        return None
    row = int(min(one.row[place] for one in (found, frozen) if place < len(one)))
    where = f"scenario {scenario.name}"
    text = (
        f"{where} ({scenario.what}), bar {row}: the frozen semantics decide {_words(spec, frozen, place, row)}; "
        f"the submission decides {_words(spec, found, place, row)}"
    )
    return Finding(code="departs", text=text, bar=row, where=where)


def _words(spec: StrategySpec, decisions: DecisionList, place: int, row: int) -> str:
    if place >= len(decisions) or int(decisions.row[place]) != row:
        return "nothing"
    leg = spec.semantics.inputs.legs[int(decisions.leg[place])]
    signal = int(decisions.signal[place])
    name = spec.signals[signal] if signal >= 0 else "an unknown signal"
    return f"{leg} to {float(decisions.fraction[place]):.6g} of equity ({name})"
