"""Gate: is the card well-formed, and does it say what the frozen semantics say?"""

from __future__ import annotations

import msgspec

from tradeassay.code.gates.result import Finding, GateResult, failed, passed
from tradeassay.code.semantics import Semantics
from tradeassay.code.submission import StrategyCard, Submission
from tradeassay.core.errors import UserError

_ROUNDING = 1e-12


def schema_gate(submission: Submission, semantics: Semantics) -> GateResult:
    """Check the card's form, then its name, legs, parameters (within their tolerances) and constraints."""
    try:
        card = submission.read_card()
    except UserError as error:
        return failed("schema", (_finding("card_schema", error.message),))
    found = card_differences(card, semantics)
    if found:
        return failed("schema", found)
    return passed("schema", measures={"parameters": len(card.parameters), "core_sha256": card.core_sha256})


def card_differences(card: StrategyCard, semantics: Semantics) -> tuple[Finding, ...]:
    """Return where a card departs from the frozen semantics; empty when it does not."""
    found: list[Finding] = []
    if (card.strategy, card.version) != (semantics.id, semantics.version):
        asked = f"'{semantics.id}' version {semantics.version}"
        found.append(
            _finding("strategy", f"the card is for '{card.strategy}' version {card.version}, not {asked}")
        )
    if card.legs != semantics.inputs.legs:
        found.append(_finding("legs", f"the card trades {list(card.legs)}, not {list(semantics.inputs.legs)}"))
    for name in sorted(set(card.parameters) ^ set(semantics.parameters)):
        what = "is missing" if name in semantics.parameters else "is not one of the strategy's"
        found.append(_finding("parameter_names", f"parameter '{name}' {what}"))
    for name, frozen in semantics.parameters.items():
        given = card.parameters.get(name)
        if given is not None and not abs(given - frozen.value) <= frozen.tolerance + _ROUNDING:
            text = f"parameter '{name}' is {given:g}; frozen at {frozen.value:g}, tolerance {frozen.tolerance:g}"
            found.append(_finding("parameter_value", text))
    said, frozen_limits = msgspec.to_builtins(card.constraints), msgspec.to_builtins(semantics.constraints)
    for name, value in frozen_limits.items():
        if said.get(name) != value:
            found.append(_finding("constraint", f"constraint '{name}' is {said.get(name)}; frozen at {value}"))
    return tuple(found)


def _finding(code: str, text: str) -> Finding:
    return Finding(code=code, text=text, file="strategy_card.json")
