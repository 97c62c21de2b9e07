"""Leaderboards for a terminal: one table per benchmark, its badges, and the plain sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.report import numbers
from tradeassay.report.contrast_view import contrast_verdict
from tradeassay.report.contrasts import Contrast, contrasts
from tradeassay.report.data import AgentData, CellData, ReportData
from tradeassay.report.limits import limits_in_words
from tradeassay.report.model_view import kinds
from tradeassay.report.view import badge_words
from tradeassay.report.words import Verdict, answer, in_words, ranked, result, verdict

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

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


class TerminalReport:
    """Everything of a report that a terminal can show. It chooses its columns by the width it is given."""

    def __init__(self, data: ReportData) -> None:
        self.data = data

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for place, cell in enumerate(self.data.cells):
            if place:
                yield ""
            yield _head(cell)
            yield board(cell, self.data.level, options.max_width)
            yield _sentences(cell, self.data)
        for contrast in contrasts(self.data.cells, self.data.level, self.data.draws):
            yield _side_by_side(contrast, self.data.level)


def board(cell: CellData, level: float, width: int = _WIDE) -> Table:
    """Return one leaderboard. Agents without a result are shown as failed, with the reason."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    models = any(agent.model for agent in cell.agents) and width >= _MIDDLE
    more = _columns(width, models)
    longest = max((len(agent.name) for agent in cell.agents), default=0)
    # Names and reasons are other people's words: Text never reads markup in them.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", style="dim")
    table.add_column("agent", overflow="fold", min_width=min(longest, _LONGEST_NAME))
    table.add_column(Text(f"return ({level:.0%} interval)"), no_wrap=width >= _MIDDLE)
    table.add_column(Text(f"against {cell.baseline_phrase}, per year"), overflow="fold")
    for name in more:
        table.add_column(numbers.info(name).title.lower(), justify="right", no_wrap=True)
    for title in ("tokens", "dollars") if models else ():
        table.add_column(title, justify="right", no_wrap=True)
    for place, agent in enumerate(ranked(cell.agents)):
        told = verdict(agent, cell, level)
        if result(agent).value is None:
            reason = agent.failure or str(result(agent).reason)
            empty = (*("" for _ in more), *(_cost(agent) if models else ()))
            table.add_row("-", Text(agent.name), Text("failed", style=_STYLE["failed"]), Text(reason), *empty)
            continue
        table.add_row(
            str(place + 1),
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


def _cost(agent: AgentData) -> tuple[Text, Text]:
    from rich.text import Text

    cost = agent.model.cost if agent.model is not None else None
    if cost is None:
        return Text("-", style="dim"), Text("-", style="dim")
    return Text(numbers.short(cost.tokens)), Text(numbers.dollars(cost.usd))


def _head(cell: CellData) -> Text:
    from rich.text import Text

    text = Text()
    text.append(cell.title, style="bold underline")
    window = f"{cell.sessions[0]} to {cell.sessions[-1]}" if cell.sessions else "no sessions"
    text.append(f"  {cell.benchmark} on {cell.dataset}, {len(cell.sessions)} sessions, {window}\n", style="dim")
    text.append(" | ".join(words for _, words in badge_words(cell.badges, kinds(cell.agents))), style="italic")
    return text


def _sentences(cell: CellData, data: ReportData) -> Text:
    from rich.text import Text

    said = answer(cell, data.level, data.draws)
    text = Text()
    text.append(said.headline + "\n", style="bold")
    for sentence in (*in_words(ranked(cell.agents), cell, data.level), *limits_in_words(cell, data.level)):
        text.append(f"- {sentence}\n")
    return text


def _side_by_side(contrast: Contrast, level: float) -> Text:
    from rich.text import Text

    text = Text(f"\n{contrast.title}", style="bold underline")
    against = f"  {contrast.where}; against {contrast.labels[0]}\n"
    text.append(against, style="not bold not underline dim")
    for row in contrast.rows:
        said = []
        for label, arm in zip(contrast.labels, row.arms, strict=True):
            value = None if arm is None else arm.result.value
            words = f"{label} {numbers.NONE if value is None else numbers.shown('cumulative_return', value)}"
            if arm is not None and arm.versus is not None:
                words += f" ({contrast_verdict(arm, contrast.labels[0], level).label})"
            said.append(words)
        text.append(f"- {row.agent}: {', '.join(said)}\n", style="not bold not underline")
    return text


def _value(name: str, agent: AgentData, *, bounds: bool) -> Text:
    from rich.text import Text

    measure = agent.measures[name].median
    if measure.value is None:
        return Text(numbers.NONE, style="dim")
    text = Text(numbers.shown(name, measure.value))
    if bounds and measure.low is not None and measure.high is not None:
        low, high = numbers.shown(name, measure.low), numbers.shown(name, measure.high)
        text.append(f" [{low}, {high}]", style="dim")
    return text


def _versus(agent: AgentData, told: Verdict) -> Text:
    from rich.text import Text

    versus = agent.versus_baseline
    if agent.baseline or versus is None or versus.difference.value is None:
        return Text(told.label, style=_STYLE[told.tone])
    text = Text(f"{numbers.difference(versus.difference.value)} ")
    text.append(told.label, style=_STYLE[told.tone])
    return text
