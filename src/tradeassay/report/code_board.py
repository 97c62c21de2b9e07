"""Runs of programs, and one program or submission, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.secrets import stdout
from tradeassay.report import numbers
from tradeassay.report.code_page import run_badges, shown_run
from tradeassay.report.formatting import cell_shown, shown
from tradeassay.runs.verify.freedom import freedom_of

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from tradeassay.benchmarks.programs import Cell, Evaluation
    from tradeassay.benchmarks.systrade.examine import SubmissionCheck
    from tradeassay.runs import CodeRun

_STYLES = {"passed": "bold cyan", "failed": "bold yellow"}


def print_code_board(run: CodeRun) -> None:
    """Print the table of a run's models and what stands out; a pipe gets it at full width."""
    from rich.text import Text

    console, page = stdout(), shown_run(run)
    badges = ", ".join(text for _, text in run_badges(run, page))
    console.print(Text(f"{run.benchmark}  [{badges}]", style="bold"))
    first, *titles = page.board.columns
    table = _plain_table()
    longest = max((len(row.head.text) for row in page.board.rows), default=5)
    table.add_column(first, overflow="fold", min_width=min(34, longest))
    for place, title in enumerate(titles):
        numeric = any(row.cells[place].measure is not None for row in page.board.rows)
        table.add_column(title.lower(), justify="right" if numeric else "left", overflow="fold")
    for row in page.board.rows:
        # A terminal has room for one interval: that of the last share, which the others lead to.
        decided = max((place for place, cell in enumerate(row.cells) if cell.bar), default=-1)
        cells = (_entry(cell, interval=place == decided) for place, cell in enumerate(row.cells))
        table.add_row(Text(row.head.text), *cells)
    console.print(table)
    console.print(Text(" ".join([page.headline, *page.support])))
    chosen = freedom_of(run.folder, run.manifest).sentence
    for line in (*page.board_lines, *(f"note: {note}" for note in run.manifest.notes), chosen):
        console.print(Text(line))


def _entry(cell: Cell, *, interval: bool) -> Text:
    from rich.text import Text

    measure = cell.measure
    if measure is not None and measure.value is None:
        return Text(numbers.NONE, style="dim")
    text = Text(cell_shown(cell).text, no_wrap=measure is not None)
    if interval and measure is not None and measure.low is not None and measure.high is not None:
        text.append(f" [{measure.low:.0%}, {measure.high:.0%}]", style="dim")
    if cell.small and measure is not None:
        text.append(f" ({cell.small})", style="dim")
    return text


def print_evaluation(found: Evaluation, *, name: str) -> None:
    """Print what was found about one program."""
    from rich.text import Text

    console = stdout()
    verdict = {"solved": "passed", "not_scored": "not scored"}.get(found.outcome, f"failed ({found.outcome})")
    console.print(Text(f"{name} on {found.task} ({found.framework}): {verdict}", style="bold"))
    table = _plain_table("stage", "status", "why")
    for stage in ("compile", "backtest", "trade", "lookahead", "judge"):
        result = found.stage(stage)
        title = "look-ahead" if stage == "lookahead" else stage
        table.add_row(Text(title), _status(result.status), Text(_clean(result.reason)))
    console.print(table)
    for line in _details(found):
        console.print(Text(_clean(line)))


def print_check(check: SubmissionCheck, *, name: str) -> None:
    """Print what was found about one submission."""
    from rich.text import Text

    console = stdout()
    card = check.scorecard
    verdict = "all gates held" if check.passed else "not all gates held"
    console.print(Text(f"{name} for {card.strategy} on {card.data}: {verdict}", style="bold"))
    table = _plain_table("gate", "status", "why")
    for gate in card.gates.gates:
        table.add_row(Text(gate.name), _status(gate.status), Text(_clean(gate.reason)))
    console.print(table)
    for dimension in card.sound:
        score = shown(card.sound[dimension], "{:.2f}")
        note = f" ({score.note})" if score.note else ""
        console.print(Text(_clean(f"{dimension}: {score.text}{note}")))
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


def _details(found: Evaluation) -> list[str]:
    lines = [f"trick: {one.name}{'' if one.grave else ' (a pointer)'}: {one.detail}" for one in found.tricks]
    if found.leak is not None:
        lines += [f"look-ahead: {one.text}" for one in found.leak.evidence]
    behaviour, language = found.judge_behaviour, found.judge_language
    if behaviour is not None and behaviour.agreement is not None:
        markets = ", ".join(f"{one.market} {one.value:.3f}" for one in behaviour.markets)
        lines.append(
            f"agreement with the reference: {behaviour.agreement:.3f} ({markets}); {behaviour.threshold:g} needed"
        )
        lines += [f"hint: {hint}" for hint in behaviour.hints]
    if language is not None and language.attempts:
        lines.append(f"language judge {language.judge}: {language.status} {language.reason}".rstrip())
    if found.earned is not None:
        earned = found.earned
        lines.append(
            f"not scored: {earned.trades} trades, return {_change(earned.strategy.total_return)}, "
            f"buy and hold {_change(earned.hold.total_return)}"
        )
    return lines


def _plain_table(*titles: str) -> Table:
    from rich.table import Table

    table = Table(header_style="bold", box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _status(status: str) -> Text:
    from rich.text import Text

    return Text(status.replace("_", " "), style=_STYLES.get(status, "dim"))


def _change(value: float | None) -> str:
    return numbers.NONE if value is None else numbers.written(value, "change")


def _clean(text: str) -> str:
    """Return a program's words without control characters that a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
