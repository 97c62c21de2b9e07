"""Trading runs for a terminal: leaderboards with badges and sentences, and two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tradeassay.core.screen import StackedTable, stdout
from tradeassay.metrics import BY_ID
from tradeassay.report import numbers
from tradeassay.report.formatting import bracketed
from tradeassay.report.words import (
    AgentStanding,
    answer,
    arm_standing,
    cell_badges,
    contest_words,
    in_words,
    markets_words,
    setting_title,
    standing,
)
from tradeassay.runs import CodeRun, Run
from tradeassay.runs.summary import AgentSummary, CellSummary, Contrast, RunSummary, summary_of

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from tradeassay.metrics.reliability import Reliability
    from tradeassay.runs import RunComparison
    from tradeassay.runs.summary.comparison import Difference, Pair

_STYLE = {
    "above": "bold cyan",
    "below": "bold yellow",
    "failed": "bold red",
    "same": "",
    "none": "dim",
    "baseline": "dim",
}
_COMPARED = ("cumulative_return", "sharpe", "max_drawdown")


def terminal(source: Run | RunSummary) -> TerminalReport:
    """Return leaderboards, badges and plain sentences as one rich renderable that fits any width."""
    return TerminalReport(source if isinstance(source, RunSummary) else summary_of(source, details=False))


def print_leaderboard(source: Run | CodeRun | RunSummary) -> None:
    """Print the leaderboards on stdout; a pipe gets them at full width."""
    if isinstance(source, CodeRun):
        from tradeassay.report.code_board import print_code_board

        print_code_board(source)
        return
    stdout().print(terminal(source))


def print_comparison(comparison: RunComparison) -> None:
    stdout().print(side_by_side(comparison))


class TerminalReport:
    """Everything a terminal can show of a run."""

    def __init__(self, data: RunSummary) -> None:
        self.data = data

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for place, cell in enumerate(self.data.cells):
            if place:
                yield ""
            head = Text(cell.title, style="bold underline")
            window = f"{cell.sessions[0]} to {cell.sessions[-1]}" if cell.sessions else "no sessions"
            where = f"  {cell.benchmark} on {cell.dataset}, {len(cell.sessions)} sessions, {window}\n"
            head.append(where, style="not bold not underline dim")
            badges = " | ".join(words for _, words in cell_badges(cell))
            head.append(badges, style="not bold not underline italic")
            yield head
            yield board(cell, self.data.level)
            headline = answer(cell).headline
            said = Text(f"{headline}\n", style="bold")
            for sentence in (*contest_words(cell), *in_words(cell), *cell.limits):
                if sentence != headline:
                    said.append(f"- {sentence}\n", style="not bold")
            yield said
        for contrast in self.data.contrasts:
            yield _side_by_side(contrast)
        for found in self.data.over_markets:
            yield f"\n{markets_words(found, setting_title(found, self.data.over_markets))}"
        if self.data.reliability is not None:
            yield _reliable(self.data.reliability)
        if self.data.freedom is not None:
            yield Text(self.data.freedom.sentence, style="italic")


def _reliable(found: Reliability) -> Text:
    return Text("\n".join(("\nHow reliable", *(f"- {one}" for one in found.sentences))))


def board(cell: CellSummary, level: float) -> StackedTable:
    """Return one leaderboard. Agents without a result are shown as failed, with the reason."""
    models = any(agent.model for agent in cell.agents)
    rates = [
        agent.measures["failure_rate"].median.value for agent in cell.agents if "failure_rate" in agent.measures
    ]
    more = ("sharpe", "max_drawdown", "turnover", *(("failure_rate",) if models or any(rates) else ()))
    titles = (
        ">#" if cell.contest is None else ">tier",
        "agent",
        f">return ({level:.0%} interval)",
        f"against {cell.baseline_phrase}, per year",
        *(f">{BY_ID[name].title.lower()}" for name in more),
        *((">tokens", ">dollars") if models else ()),
    )
    rows: list[tuple[str | Text, ...]] = []
    for rank, agent in enumerate(cell.ranked, 1):
        told = standing(agent, cell)
        if agent.result.value is None:
            reason = agent.failure or str(agent.result.reason)
            empty = (*("" for _ in more), *(_cost(agent) if models else ()))
            rows.append(("-", agent.name, Text("failed", style=_STYLE["failed"]), reason, *empty))
            continue
        place = cell.place_of(agent, rank)
        rows.append(
            (
                "-" if place is None else str(place),
                Text(agent.name, style="dim" if agent.baseline else "bold"),
                _value("cumulative_return", agent, bounds=True),
                _versus(agent, told),
                *(_value(name, agent) for name in more),
                *(_cost(agent) if models else ()),
            )
        )
    return StackedTable(titles, rows, heads=2)


def _cost(agent: AgentSummary) -> tuple[Text, Text]:
    cost = agent.model.cost if agent.model is not None else None
    if cost is None:
        return Text("-", style="dim"), Text("-", style="dim")
    return Text(numbers.short(cost.input_tokens + cost.output_tokens)), Text(numbers.dollars(cost.usd))


def _side_by_side(contrast: Contrast) -> Text:
    text = Text(f"\n{contrast.title}", style="bold underline")
    against = f"  {contrast.where}; against {contrast.labels[0]}\n"
    text.append(against, style="not bold not underline dim")
    for row in contrast.rows:
        said = []
        for label, arm in zip(contrast.labels, row.arms, strict=True):
            value = None if arm is None else arm.result.value
            words = f"{label} {numbers.written(value, 'change')}"
            if arm is not None and arm.versus is not None:
                words += f" ({arm_standing(arm, contrast.labels[0]).label})"
            said.append(words)
        text.append(f"- {row.agent}: {', '.join(said)}\n", style="not bold not underline")
    return text


def _value(name: str, agent: AgentSummary, *, bounds: bool = False) -> Text:
    measure = agent.measures[name].median
    if measure.value is None:
        return Text(numbers.NONE, style="dim")
    text = Text(numbers.written(measure.value, numbers.form_of(name)))
    return text.append(bracketed(measure, numbers.form_of(name)), style="dim") if bounds else text


def _versus(agent: AgentSummary, told: AgentStanding) -> Text:
    versus = agent.versus
    if agent.baseline or versus is None or versus.difference.value is None:
        return Text(told.label, style=_STYLE[told.tone])
    text = Text(f"{numbers.difference(versus.difference.value)} ")
    text.append(told.label, style=_STYLE[told.tone])
    return text


def side_by_side(comparison: RunComparison) -> Group:
    """Return the comparison of two runs: one table per benchmark, then what only one of them has."""
    parts: list[StackedTable | Text] = []
    for benchmark in dict.fromkeys(pair.benchmark for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if pair.benchmark == benchmark]
        trades = all(name in pair.measures for pair in pairs for name in _COMPARED)
        names = _COMPARED if trades else tuple(pairs[0].measures)
        forms = {name: numbers.form_of(name) if trades else "number" for name in names}
        titles = [f">{BY_ID[name].title.lower() if trades else name}" for name in names]
        rows: list[tuple[str | Text, ...]] = [
            (pair.agent, *(_values(forms[name], pair.measures[name]) for name in names), _paired(pair))
            for pair in pairs
        ]
        title = f"{benchmark}: {comparison.first} -> {comparison.second}"
        parts.append(StackedTable(("agent", *titles, "can they be told apart?"), rows, title=title))
    if not comparison.pairs:
        parts.append(Text("The two runs have no agent on the same benchmark in common."))
    parts += [_reliable(comparison.reliability)] if comparison.reliability is not None else []
    for run, rest in ((comparison.first, comparison.only_first), (comparison.second, comparison.only_second)):
        if rest:
            parts.append(Text(f"only in {run}: {', '.join(rest)}", style="dim"))
    return Group(*parts)


def _values(form: str, change: Difference) -> str:
    first, second = (numbers.written(value, form) for value in (change.first, change.second))
    return first if first == second else f"{first} -> {second}"


def _paired(pair: Pair) -> Text:
    paired = pair.paired
    if pair.reason is not None or paired.distinguishable is None:
        return Text(pair.reason or str(paired.difference.reason), style="dim")
    if paired.difference.low == paired.difference.high == 0.0:
        return Text("the same, session by session", style="dim")
    low, high = paired.difference.low or 0.0, paired.difference.high or 0.0
    bounds = f"{numbers.difference(low)} to {numbers.difference(high)} a year"
    p = "" if paired.p_value is None else f", {numbers.p_value(paired.p_value)}"
    if not paired.distinguishable:
        return Text(f"no ({bounds}{p})")
    return Text(f"yes, the second is {'better' if low > 0 else 'worse'} ({bounds}{p})", style="bold")
