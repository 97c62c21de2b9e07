"""One examined program or submission, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tradeassay.core.printable import printable_line
from tradeassay.core.screen import StackedTable, stdout
from tradeassay.report import numbers
from tradeassay.report.formatting import shown

if TYPE_CHECKING:
    from tradeassay.benchmarks.programs import Evaluation
    from tradeassay.benchmarks.systrade.examine import SubmissionCheck

_STYLES = {"passed": "bold cyan", "failed": "bold yellow"}


def print_evaluation(found: Evaluation, title: str) -> None:
    console = stdout()
    console.print(Text(f"{title} ({found.framework}): {found.verdict}", style="bold"))
    rows = []
    for stage in ("compile", "backtest", "trade", "lookahead", "judge"):
        result = found.stage(stage)
        title = "look-ahead" if stage == "lookahead" else stage
        rows.append((title, _status(result.status), printable_line(result.reason)))
    console.print(StackedTable(("stage", "status", "why"), rows, ruled=False))
    lines = [f"trick: {one.name}{'' if one.grave else ' (a pointer)'}: {one.detail}" for one in found.tricks]
    if found.leak is not None:
        lines += [f"look-ahead: {one.text}" for one in found.leak.evidence]
    behaviour, language = found.judge_behaviour, found.judge_language
    if behaviour is not None and behaviour.agreement is not None:
        markets = ", ".join(f"{one.market} {one.value:.3f}" for one in behaviour.markets)
        agreed = f"{behaviour.agreement:.3f} ({markets}); {behaviour.threshold:g} needed"
        lines.append(f"agreement with the reference: {agreed}")
        lines += [f"hint: {hint}" for hint in behaviour.hints]
    if language is not None and language.attempts:
        lines.append(f"language judge {language.judge}: {language.status} {language.reason}".rstrip())
    if found.earned is not None:
        earned = found.earned
        own, held = (numbers.written(one.total_return, "change") for one in (earned.strategy, earned.hold))
        lines.append(f"not scored: {earned.trades} trades, return {own}, buy and hold {held}")
    for line in lines:
        console.print(Text(printable_line(line)))


def print_check(check: SubmissionCheck, *, name: str) -> None:
    console = stdout()
    card = check.scorecard
    verdict = "all gates held" if check.gates.passed else "not all gates held"
    console.print(Text(f"{name} for {card.strategy} on {card.data}: {verdict}", style="bold"))
    rows = [(gate.name, _status(gate.status), printable_line(gate.reason)) for gate in card.gates.gates]
    console.print(StackedTable(("gate", "status", "why"), rows, ruled=False))
    if check.drift is not None:
        why = "; ".join((*check.drift.card_changes, *check.drift.reasons))
        lines = f"{check.drift.changed_lines} of at most {check.drift.budget} lines changed"
        kind = f"{check.drift.kind} ({why})" if why else check.drift.kind
        console.print(Text(printable_line(f"since the earlier submission: {kind}, {lines}")))
    for dimension in card.sound:
        score = shown(card.sound[dimension], "{:.2f}")
        note = f" ({score.note})" if score.note else ""
        console.print(Text(printable_line(f"{dimension}: {score.text}{note}")))
    if check.years is not None:
        over, mean = check.years, shown(check.years, "{:.2f}")
        note = over.note or mean.note
        if over.low is not None:
            note += f", its mean between {over.low:.2f} and {over.high:.2f} in 95 of 100 cases"
        console.print(Text(printable_line(f"D4 over years: {mean.text} ({note})")))
    if card.year is not None:
        totals = ", ".join(f"{point.cost_bp:g} bp {point.total:+.1%}" for point in card.year.costs)
        console.print(Text(f"the year at {totals}"))
        middle = card.year.costs[len(card.year.costs) // 2]
        if middle.per_turnover and middle.break_even_turnover:
            earned = f"{middle.per_turnover:+.3%} by unit of turnover"
            paid = f"the return before costs pays for {middle.break_even_turnover:,.1f} turnovers a year"
            console.print(Text(f"at {middle.cost_bp:g} bp: {earned}; {paid}"))
    for one in card.regimes:
        for breach in one.breaches:
            what = f"{breach.severity} breach of {breach.constraint} ({one.regime}) on {breach.bars} bars"
            console.print(Text(f"{what}, first {breach.time}; its own log refused {breach.logged} of them"))
    if card.windows:
        console.print(Text(f"pieces of ten bars: {card.windows.passed} of {card.windows.tests} ran through"))


def _status(status: str) -> Text:
    return Text(status.replace("_", " "), style=_STYLES.get(status, "dim"))
