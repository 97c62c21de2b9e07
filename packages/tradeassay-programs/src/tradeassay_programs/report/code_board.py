"""Print the evaluation of a program or the check of a submission to the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tradeassay.core.printable import printable_line
from tradeassay.core.screen import StackedTable, stdout
from tradeassay.report import numbers
from tradeassay.report.formatting import shown

if TYPE_CHECKING:
    from tradeassay_programs.benchmarks.programs import Evaluation
    from tradeassay_programs.benchmarks.systrade.examine import SubmissionCheck

_STYLES = {"passed": "bold cyan", "failed": "bold yellow"}


def print_evaluation(evaluation: Evaluation, title: str) -> None:
    """Print the stages of an evaluation, with tricks, look-ahead, agreement and returns."""
    console = stdout()
    heading = f"{title} ({evaluation.framework}): {evaluation.verdict}"
    console.print(Text(heading, style="bold"))
    rows = []
    for stage in ("compile", "backtest", "trade", "lookahead", "judge"):
        finding = evaluation.stage(stage)
        name = "look-ahead" if stage == "lookahead" else stage
        rows.append((name, _status(finding.status), printable_line(finding.reason)))
    console.print(StackedTable(("stage", "status", "why"), rows, ruled=False))
    lines = []
    for trick in evaluation.tricks:
        mark = "" if trick.grave else " (a pointer)"
        lines.append(f"trick: {trick.name}{mark}: {trick.detail}")
    if evaluation.leak is not None:
        lines += [f"look-ahead: {change.text}" for change in evaluation.leak.evidence]
    behaviour, language = evaluation.judge_behaviour, evaluation.judge_language
    if behaviour is not None and behaviour.agreement is not None:
        markets = ", ".join(f"{each.market} {each.value:.3f}" for each in behaviour.markets)
        agreement = f"{behaviour.agreement:.3f} ({markets}); {behaviour.threshold:g} needed"
        lines.append(f"agreement with the reference: {agreement}")
        lines += [f"hint: {hint}" for hint in behaviour.hints]
    if language is not None and language.attempts:
        verdict = f"{language.status} {language.reason}"
        lines.append(f"language judge {language.judge}: {verdict}".rstrip())
    earned = evaluation.earned
    if earned is not None:
        own = numbers.written(earned.strategy.total_return, "change")
        held = numbers.written(earned.hold.total_return, "change")
        lines.append(f"not scored: {earned.trades} trades, return {own}, buy and hold {held}")
    for line in lines:
        console.print(Text(printable_line(line)))


def print_check(check: SubmissionCheck, *, name: str) -> None:
    """Print the gates, the drift and the scores of a submission."""
    console = stdout()
    card = check.scorecard
    verdict = "all gates passed" if check.gates.passed else "not all gates passed"
    console.print(Text(f"{name} for {card.strategy} on {card.data}: {verdict}", style="bold"))
    rows = [
        (gate.name, _status(gate.status), printable_line(gate.reason)) for gate in card.gates.gates
    ]
    console.print(StackedTable(("gate", "status", "why"), rows, ruled=False))
    if check.drift is not None:
        reasons = "; ".join((*check.drift.card_changes, *check.drift.reasons))
        changed = f"{check.drift.changed_lines} of at most {check.drift.budget} lines changed"
        kind = f"{check.drift.kind} ({reasons})" if reasons else check.drift.kind
        console.print(Text(printable_line(f"since the earlier submission: {kind}, {changed}")))
    for dimension in card.corrected:
        score = shown(card.corrected[dimension], "{:.2f}")
        note = f" ({score.note})" if score.note else ""
        console.print(Text(printable_line(f"{dimension}: {score.text}{note}")))
    if check.years is not None:
        over, mean = check.years, shown(check.years, "{:.2f}")
        note = over.note or mean.note
        if over.low is not None:
            note += f", mean between {over.low:.2f} and {over.high:.2f} (95 %)"
        console.print(Text(printable_line(f"D4 over years: {mean.text} ({note})")))
    if card.year is not None:
        totals = ", ".join(f"{point.cost_bp:g} bp {point.total:+.1%}" for point in card.year.costs)
        console.print(Text(f"return of the test year by cost: {totals}"))
        middle = card.year.costs[len(card.year.costs) // 2]
        if middle.per_turnover and middle.break_even_turnover:
            earned = f"{middle.per_turnover:+.3%} per unit of turnover"
            paid = (
                f"the return before costs covers {middle.break_even_turnover:,.1f} turnovers "
                "per year"
            )
            console.print(Text(f"at {middle.cost_bp:g} bp: {earned}; {paid}"))
    for regime in card.regimes:
        for breach in regime.breaches:
            text = (
                f"{breach.severity} breach of {breach.constraint} ({regime.regime}) on "
                f"{breach.bars} bars"
            )
            own_log = f"its own risk check failed on {breach.logged} of them"
            console.print(Text(f"{text}, first {breach.time}; {own_log}"))
    if card.windows:
        console.print(
            Text(f"pieces of ten bars: {card.windows.passed} of {card.windows.tests} completed")
        )


def _status(status: str) -> Text:
    return Text(status.replace("_", " "), style=_STYLES.get(status, "dim"))
