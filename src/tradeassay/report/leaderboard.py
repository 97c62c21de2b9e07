"""Trading runs for a terminal: leaderboards with badges and sentences, and two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.secrets import stdout
from tradeassay.report import numbers
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
from tradeassay.runs.summary import (
    AgentSummary,
    CellSummary,
    Contrast,
    RunSummary,
    failed_too_often,
    summary_of,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderResult
    from rich.table import Table
    from rich.text import Text

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
_WIDE, _ROOMY, _MIDDLE = 140, 126, 108
"""Widths from which a table shows everything, most, and more than the result."""
_LONGEST_NAME = 24
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
    """Print two runs side by side on stdout."""
    stdout().print(side_by_side(comparison))


class TerminalReport:
    """Everything a terminal can show of a run. It chooses its columns by the width it is given."""

    def __init__(self, data: RunSummary) -> None:
        self.data = data

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

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
            yield board(cell, self.data.level, options.max_width)
            said = Text(f"{answer(cell).headline}\n", style="bold")
            for sentence in (*contest_words(cell), *in_words(cell), *cell.limits):
                said.append(f"- {sentence}\n", style="not bold")
            yield said
        for contrast in self.data.contrasts:
            yield _side_by_side(contrast)
        for found in self.data.over_markets:
            yield f"\n{markets_words(found, setting_title(found, self.data.over_markets))}"
        if self.data.freedom is not None:
            yield Text(self.data.freedom.sentence, style="italic")


def board(cell: CellSummary, level: float, width: int = _WIDE) -> Table:
    """Return one leaderboard. Agents without a result are shown as failed, with the reason."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    models = any(agent.model for agent in cell.agents) and width >= _MIDDLE
    more = _columns(width, models)
    longest = max((len(agent.name) for agent in cell.agents), default=0)
    # Names and reasons are other people's words: Text never reads markup in them.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    # A place among agents that cannot be told apart would be luck: where tiers are known they stand in its stead.
    table.add_column("#" if cell.contest is None else "tier", justify="right")
    table.add_column("agent", overflow="fold", min_width=min(longest, _LONGEST_NAME))
    table.add_column(Text(f"return ({level:.0%} interval)"), no_wrap=width >= _MIDDLE)
    table.add_column(Text(f"against {cell.baseline_phrase}, per year"), overflow="fold")
    for name in more:
        table.add_column(numbers.info(name).title.lower(), justify="right", no_wrap=True)
    for title in ("tokens", "dollars") if models else ():
        table.add_column(title, justify="right", no_wrap=True)
    for place, agent in enumerate(cell.ranked):
        told = standing(agent, cell)
        if agent.result.value is None:
            reason = agent.failure or str(agent.result.reason)
            empty = (*("" for _ in more), *(_cost(agent) if models else ()))
            table.add_row("-", Text(agent.name), Text("failed", style=_STYLE["failed"]), Text(reason), *empty)
            continue
        where = None if failed_too_often(agent) else place + 1
        if cell.contest is not None:
            where = cell.contest.tier_of(agent.name)
        table.add_row(
            "-" if where is None else str(where),
            Text(agent.name, style="dim" if agent.baseline else "bold"),
            _value("cumulative_return", agent, bounds=True),
            _versus(agent, told),
            *(_value(name, agent, bounds=name == "sharpe" and width >= _WIDE and not models) for name in more),
            *(_cost(agent) if models else ()),
        )
    return table


def _columns(width: int, models: bool) -> list[str]:
    """Return the measures a table has room for; with models in it, their failures come before style."""
    wanted = (("sharpe", _MIDDLE), ("max_drawdown", _MIDDLE), ("turnover", _ROOMY))
    if models:
        wanted = (("sharpe", _ROOMY), ("max_drawdown", _WIDE), ("failure_rate", _MIDDLE))
    return [name for name, least in wanted if width >= least]


def _cost(agent: AgentSummary) -> tuple[Text, Text]:
    from rich.text import Text

    cost = agent.model.cost if agent.model is not None else None
    if cost is None:
        return Text("-", style="dim"), Text("-", style="dim")
    return Text(numbers.short(cost.input_tokens + cost.output_tokens)), Text(numbers.dollars(cost.usd))


def _side_by_side(contrast: Contrast) -> Text:
    from rich.text import Text

    text = Text(f"\n{contrast.title}", style="bold underline")
    against = f"  {contrast.where}; against {contrast.labels[0]}\n"
    text.append(against, style="not bold not underline dim")
    for row in contrast.rows:
        said = []
        for label, arm in zip(contrast.labels, row.arms, strict=True):
            value = None if arm is None else arm.result.value
            words = f"{label} {numbers.NONE if value is None else numbers.written(value, 'change')}"
            if arm is not None and arm.versus is not None:
                words += f" ({arm_standing(arm, contrast.labels[0]).label})"
            said.append(words)
        text.append(f"- {row.agent}: {', '.join(said)}\n", style="not bold not underline")
    return text


def _value(name: str, agent: AgentSummary, *, bounds: bool) -> Text:
    from rich.text import Text

    measure = agent.measures[name].median
    if measure.value is None:
        return Text(numbers.NONE, style="dim")
    text = Text(numbers.written(measure.value, numbers.form_of(name)))
    if bounds and measure.low is not None and measure.high is not None:
        low, high = (numbers.written(end, numbers.form_of(name)) for end in (measure.low, measure.high))
        text.append(f" [{low}, {high}]", style="dim")
    return text


def _versus(agent: AgentSummary, told: AgentStanding) -> Text:
    from rich.text import Text

    versus = agent.versus
    if agent.baseline or versus is None or versus.difference.value is None:
        return Text(told.label, style=_STYLE[told.tone])
    text = Text(f"{numbers.difference(versus.difference.value)} ")
    text.append(told.label, style=_STYLE[told.tone])
    return text


def side_by_side(comparison: RunComparison) -> Group:
    """Return the comparison of two runs: one table per benchmark, then what only one of them has."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Table | Text] = []
    for benchmark in dict.fromkeys(pair.benchmark for pair in comparison.pairs):
        parts.append(_compared_table(comparison, benchmark))
    if not comparison.pairs:
        parts.append(Text("The two runs have no agent on the same benchmark in common."))
    for run, rest in ((comparison.first, comparison.only_first), (comparison.second, comparison.only_second)):
        if rest:
            parts.append(Text(f"only in {run}: {', '.join(rest)}", style="dim"))
    return Group(*parts)


def _compared_table(comparison: RunComparison, benchmark: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(f"{benchmark}: {comparison.first} -> {comparison.second}"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("agent", overflow="fold")
    pairs = [pair for pair in comparison.pairs if pair.benchmark == benchmark]
    trades = all(name in pair.measures for pair in pairs for name in _COMPARED)
    names = _COMPARED if trades else tuple(pairs[0].measures)
    for name in names:
        table.add_column(numbers.info(name).title.lower() if trades else name, justify="right")
    table.add_column("can they be told apart?", overflow="fold")
    for pair in pairs:
        forms = {name: numbers.form_of(name) if trades else "number" for name in names}
        table.add_row(
            Text(pair.agent), *(_values(forms[name], pair.measures[name]) for name in names), _paired(pair)
        )
    return table


def _values(form: str, change: Difference) -> Text:
    from rich.text import Text

    first, second = (
        numbers.NONE if value is None else numbers.written(value, form) for value in (change.first, change.second)
    )
    return Text(first if first == second else f"{first} -> {second}")


def _paired(pair: Pair) -> Text:
    from rich.text import Text

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
