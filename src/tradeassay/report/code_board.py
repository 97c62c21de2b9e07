"""A run of programs, and one program, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tradeassay.report import numbers
from tradeassay.report.code_page import SYSTRADE
from tradeassay.report.code_rates import STAGE_TITLES, cost_words, ranked_cells, way
from tradeassay.report.code_view import code_badges, failure_lines, in_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tradeassay.core.measure import Measure
    from tradeassay.runs import CodeRun
    from tradeassay.runs.quantcode_scores import CellScores

_STYLES = {"passed": "bold cyan", "failed": "bold yellow", "not_reached": "dim", "not_scored": "dim"}


def print_code_board(run: CodeRun) -> None:
    """Print stage rates, what stands out, and why programs failed; a pipe gets it at full width."""
    from rich.text import Text

    if run.benchmark == SYSTRADE:
        from tradeassay.report.systrade_board import print_systrade_board

        print_systrade_board(run)
        return
    console = _console()
    cells = ranked_cells(run.scores)
    console.print(Text(f"{run.benchmark}  [{', '.join(text for _, text in code_badges(run))}]", style="bold"))
    console.print(code_board(cells))
    headline, support = in_words(cells)
    console.print(Text(" ".join([headline, *support])))
    failures = failure_lines(cells)
    if failures:
        console.print(Text("failures: " + ", ".join(f"{one.title.lower()} {one.count}" for one in failures)))
    for note in run.manifest.notes:
        console.print(Text(f"note: {note}"))


def code_board(cells: list[CellScores]) -> Table:
    """Return the table of stage rates."""
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", box=None, pad_edge=False)
    table.add_column(
        "model", overflow="fold", min_width=min(34, max((len(cell.model) for cell in cells), default=5))
    )
    table.add_column("way of asking", overflow="fold")
    for title in ("items", *(title.lower() for _, title, _ in STAGE_TITLES), "turns"):
        table.add_column(title, justify="right")
    table.add_column("a solved task took", overflow="fold")
    for cell in cells:
        rates = cell.rates
        left_out = rates.failed + rates.unscored
        turns = cell.mean_turns.value
        table.add_row(
            Text(cell.model),
            Text(way(cell)),
            Text(f"{rates.items}" + (f" (+{left_out} not scored)" if left_out else "")),
            *(_rate(getattr(rates, stage), interval=stage == "judge") for stage, _, _ in STAGE_TITLES),
            Text(numbers.NONE if turns is None else f"{turns:.1f}"),
            Text(cost_words(cell)),
        )
    return table


def print_evaluation(found: Any, *, name: str) -> None:
    """Print what was found about one program."""
    from rich.table import Table
    from rich.text import Text

    console = _console()
    verdict = {"solved": "passed", "not_scored": "not scored"}.get(found.outcome, f"failed ({found.outcome})")
    console.print(Text(f"{name} on {found.task} ({found.framework}): {verdict}", style="bold"))
    table = Table(header_style="bold", box=None, pad_edge=False)
    for title in ("stage", "status", "why"):
        table.add_column(title, overflow="fold")
    for stage in ("compile", "backtest", "trade", "lookahead", "judge"):
        result = found.stage(stage)
        shown = Text(result.status.replace("_", " "), style=_STYLES[result.status])
        table.add_row(Text("look-ahead" if stage == "lookahead" else stage), shown, Text(_clean(result.reason)))
    console.print(table)
    for line in _details(found):
        console.print(Text(_clean(line)))


def _details(found: Any) -> list[str]:
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
            f"not scored: {earned.trades} trades, return {_share(earned.strategy.total_return)}, "
            f"buy and hold {_share(earned.hold.total_return)}"
        )
    return lines


def _rate(measure: Measure, *, interval: bool) -> Text:
    from rich.text import Text

    if measure.value is None:
        return Text(numbers.NONE, style="dim")
    text = Text(numbers.number(measure.value, unit="fraction"))
    if interval and measure.low is not None and measure.high is not None:
        text.append(f" [{measure.low:.0%}, {measure.high:.0%}]", style="dim")
    return text


def _share(value: float | None) -> str:
    return numbers.NONE if value is None else numbers.number(value, unit="fraction", signed=True)


def _clean(text: str) -> str:
    """Return a program's words without signs that a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _console() -> Console:
    import sys

    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)
