"""The evidence bundle: what a writer is told about its last hand-in. Only the development year is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tradeassay.benchmarks.systrade.prompts import PROMPTS
from tradeassay.code.drift import DriftReport
from tradeassay.code.gates.result import GateReport
from tradeassay.code.gates.spec import StrategySpec
from tradeassay.code.review.board import Review
from tradeassay.code.scores.scorecard import DIMENSIONS, TARGET, Scorecard
from tradeassay.core.measure import Measure

if TYPE_CHECKING:
    from tradeassay.benchmarks.systrade.dialogue import Scored

_SHOWN = 5


def evidence_text(
    spec: StrategySpec,
    scored: Scored,
    reviews: tuple[Review, ...],
    number: int,
    budget: int,
    *,
    last: bool,
    set_aside: bool = False,
) -> str:
    """Return the message that asks for iteration ``number``; ``last`` adds the goal of the last one.

    ``set_aside`` says that the hand-in was refused, so that the next one starts from the one before it.
    """
    card = scored.develop
    payload = {"kind": "systrade.build", "strategy": spec.id, "iteration": number}
    goal = PROMPTS.fill("goal", target=TARGET, year=_year(card)) if last else ""
    return PROMPTS.fill(
        "evidence",
        number=number,
        target=TARGET,
        scores="\n".join(f"- {name}: {_number(card.sound[name])}" for name in DIMENSIONS),
        gates=_gates(card.gates),
        budget=budget,
        drift=_drift(scored.drift, set_aside=set_aside),
        reviews=_reviews(reviews),
        goal=goal,
        payload=msgspec.json.encode(payload).decode(),
    )


def _number(measure: Measure) -> str:
    if measure.value is None:
        return f"not scored ({measure.reason})"
    return f"{measure.value:.2f}" + (f" ({measure.note})" if measure.note else "")


def _drift(drift: DriftReport | None, *, set_aside: bool) -> str:
    if drift is None:
        return ""
    why = "; ".join((*drift.card_changes, *drift.reasons)[:_SHOWN])
    words = f"Your change was judged '{drift.kind}'{f' ({why})' if why else ''}: {drift.changed_lines} lines."
    if set_aside:
        words += " It is set aside: go on from the hand-in shown above, not from the refused one."
    return words


def _gates(report: GateReport) -> str:
    lines = []
    for gate in report.gates:
        lines.append(f"- {gate.name}: {gate.status.replace('_', ' ')}{f' ({gate.reason})' if gate.reason else ''}")
        lines += [f"  - {finding.text[:300]}" for finding in gate.evidence[:_SHOWN]]
    return "\n".join(lines)


def _reviews(reviews: tuple[Review, ...]) -> str:
    lines = []
    for number, review in enumerate(reviews, 1):
        if review.failure is None:
            words = f"fidelity {review.fidelity:g}, risk {review.risk:g}. {_one_line(review.weaknesses)}"
            lines.append(f"- reviewer {number}: {words}")
    return "\n".join(lines) or "- none"


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:400]


def _year(card: Scorecard) -> str:
    if card.year is None:
        return card.year_reason or "nothing"
    middle = card.year.costs[len(card.year.costs) // 2]
    ratio = "none" if middle.sharpe is None else f"{middle.sharpe:.2f}"
    return f"{middle.total:+.1%} at {middle.cost_bp:g} bp, Sharpe ratio {ratio}, turnover {card.year.turnover:.1f}"
