"""A SysTradeBench run, and one submission, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tradeassay.report import numbers
from tradeassay.report.code_rates import rate
from tradeassay.report.systrade_card import score
from tradeassay.report.systrade_view import DIMENSIONS, in_words, systrade_badges

if TYPE_CHECKING:
    from rich.console import Console

    from tradeassay.benchmarks.systrade.examine import SubmissionCheck
    from tradeassay.runs import CodeRun

_STYLES = {"passed": "bold cyan", "failed": "bold yellow", "not_run": "dim"}


def print_systrade_board(run: CodeRun) -> None:
    """Print the models' gates and scores and what stands out."""
    from rich.table import Table
    from rich.text import Text

    console = _console()
    console.print(Text(f"{run.benchmark}  [{', '.join(text for _, text in systrade_badges(run))}]", style="bold"))
    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    for title in ("items", "exec", "leak", "audit", "valid", *DIMENSIONS, "overall", "$/strategy"):
        table.add_column(title, justify="right")
    for row in run.scores.models:
        gates = (rate(row.gates[name]).text for name in ("exec", "leak", "audit"))
        valid = rate(row.valid)
        table.add_row(
            Text(row.model),
            Text(str(row.items)),
            *(Text(text) for text in gates),
            Text(f"{valid.text} [{valid.interval}]" if valid.interval else valid.text),
            *(Text(score(row.scores[name]).text) for name in DIMENSIONS),
            Text(score(row.overall).text),
            Text(numbers.dollars(row.usd_per_strategy)),
        )
    console.print(table)
    headline, support = in_words(run.scores)
    console.print(Text(" ".join([headline, *support])))


def print_check(check: SubmissionCheck, *, name: str) -> None:
    """Print what was found about one submission."""
    from rich.table import Table
    from rich.text import Text

    console = _console()
    card = check.scorecard
    verdict = "all gates held" if check.passed else "not all gates held"
    console.print(Text(f"{name} for {card.strategy} on {card.data}: {verdict}", style="bold"))
    table = Table(header_style="bold", box=None, pad_edge=False)
    for title in ("gate", "status", "why"):
        table.add_column(title, overflow="fold")
    for gate in card.gates.gates:
        status = Text(gate.status.replace("_", " "), style=_STYLES[gate.status])
        table.add_row(Text(gate.name), status, Text(_clean(gate.reason)))
    console.print(table)
    for dimension in DIMENSIONS:
        console.print(Text(_clean(f"{dimension}: {_score(card.sound[dimension])}")))
    if card.year is not None:
        totals = ", ".join(f"{point.cost_bp:g} bp {point.total:+.1%}" for point in card.year.costs)
        console.print(Text(f"the year at {totals}"))


def _score(measure: Any) -> str:
    made = score(measure)
    return f"{made.text} ({made.note})" if made.note else made.text


def _clean(text: str) -> str:
    """Return a program's words without signs that a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _console() -> Console:
    import sys

    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)
