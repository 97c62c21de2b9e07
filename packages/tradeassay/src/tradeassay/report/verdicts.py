"""Verdicts for a terminal: a table with the sentences below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.screen import StackedTable, stdout
from tradeassay.report import numbers
from tradeassay.report.words import badge_words
from tradeassay.verdict.record import AgentAssay, Assay, Kind
from tradeassay.verdict.statement import QUANTITIES

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

TONES: dict[Kind, str] = {
    "skill": "above",
    "timing": "above",
    "could-be-best-of-few": "mixed",
    "hidden-risk": "mixed",
    "not-distinguishable-from-luck": "same",
    "market": "same",
    "style": "same",
    "costs": "same",
    "memory": "below",
    "look-ahead": "below",
    "worse": "below",
    "cash": "none",
    "no-benchmark": "none",
    "failed": "failed",
}
PARTS = ("market", "style", "selection", "unexplained", "trading")
"""Parts of a return. For a table of returns, the rest is unexplained instead of selection."""
_STYLE: dict[Kind, str] = {
    "skill": "bold cyan",
    "timing": "bold cyan",
    "could-be-best-of-few": "cyan",
    "look-ahead": "bold red",
    "memory": "bold yellow",
    "hidden-risk": "bold yellow",
    "failed": "bold red",
    "worse": "yellow",
}


def in_order(assay: Assay) -> list[AgentAssay]:
    """Return the agents by setting: judged agents, then unranked ones, then baselines.

    Each group is sorted by return. Planted agents come first, in the order of the answer key.
    """
    if assay.key:
        return list(assay.agents)
    return sorted(assay.agents, key=lambda one: (one.setting, one.baseline, *_place(one)))


def _place(one: AgentAssay) -> tuple[bool, float]:
    """Return a sort key: ranked agents first, then by return."""
    return one.ranks.unranked is not None, -(
        one.total.value if one.total.value is not None else -1e9
    )


def print_verdicts(assay: Assay) -> None:
    stdout().print(VerdictBoard(assay))


class VerdictBoard:
    """All of an assay for a terminal: one table per setting, with the sentences below it."""

    def __init__(self, assay: Assay) -> None:
        self.assay = assay

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for setting in dict.fromkeys(one.setting for one in self.assay.agents):
            inside = [one for one in self.assay.agents if one.setting == setting]
            named = "your own account" if self.assay.source == "own" else setting
            head = Text(self.assay.titles.get(setting, named), style="bold underline")
            if setting in self.assay.badges:
                words = " | ".join(text for _, text in badge_words(self.assay.badges[setting]))
                head.append(f"\n{words}", style="not bold not underline italic")
            yield head
            yield _table(inside)
            for one in inside:
                yield Text.assemble("- ", one.verdict.sentence)
                if one.ranks.unranked is not None:
                    yield Text(f"    {one.agent} is not ranked: {one.ranks.unranked}", style="dim")
                for limit in one.verdict.limits:
                    yield Text(f"    {limit}", style="dim")
                memory = one.statement("memory")
                if memory is not None:
                    yield Text(f"    {memory.claim}", style="dim")
                if places := place_words(one):
                    yield Text(f"    {places}", style="dim")
                if one.capacity is not None and one.capacity.low > 0.0:
                    # Without alpha there is none to lose to costs.
                    yield Text(f"    {one.capacity.sentence}", style="dim")
        for note in self.assay.notes:
            yield Text(f"note: {note}", style="dim")


def _table(agents: list[AgentAssay]) -> StackedTable:
    from rich.text import Text

    shown = [
        quantity
        for quantity in ("return", *PARTS, "alpha", "beats-random")
        if quantity == "return" or any(value_of(one, quantity) is not None for one in agents)
    ]
    titles = (f">{QUANTITIES[quantity].heading.lower()}" for quantity in shown)
    rows: list[tuple[str | Text, ...]] = []
    for one in sorted(agents, key=_place):
        verdict = Text(one.verdict.label, style=_STYLE.get(one.verdict.kind, ""))
        rows.append((one.agent, verdict, *(written_of(one, quantity) for quantity in shown)))
    return StackedTable(("agent", "verdict", *titles), rows)


def value_of(one: AgentAssay, quantity: str) -> float | None:
    """Return the value of a statement, or None without a statement or a number."""
    statement = one.statement(quantity)
    return None if statement is None else statement.value


def written_of(one: AgentAssay, quantity: str) -> str:
    """Return the value of a statement as text, formatted as on all surfaces."""
    statement = one.statement(quantity)
    if statement is None or statement.value is None:
        return numbers.NONE
    if quantity == "beats-random":
        return f"{statement.value:.1%}"
    return numbers.written(statement.value, statement.form)


def place_words(one: AgentAssay) -> str:
    """Return an account's places in its ranking as text, or an empty text without a ranking."""
    ranks = one.ranks
    if ranks.of < 2 or ranks.by_return is None:
        return ""
    text = f"place {ranks.by_return} of {ranks.of} by return"
    return text if ranks.by_selection is None else f"{text}, {ranks.by_selection} by selection"
