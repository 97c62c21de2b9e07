"""Verdicts for a terminal: a table, and the sentences under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.screen import StackedTable, stdout
from tradeassay.report import numbers
from tradeassay.report.words import badge_words
from tradeassay.verdict.record import AgentAssay, Assay, Kind

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

TONES: dict[Kind, str] = {
    **{
        "skill": "above",
        "timing": "above",
        "mixed": "mixed",
        "tail": "mixed",
        "open": "none",
        "cash": "none",
        "failed": "failed",
    },
    **{"costs": "same", "luck": "same", "style": "same", "market": "same"},
    **{"memory": "below", "leak": "below", "worse": "below"},
}
PARTS = (
    ("total", "Return", "What the account made, net of costs."),
    ("common", "Market", "The share invested times the return that all names have in common."),
    ("style", "Style", "Exposure to the nine factors times what they returned."),
    ("selection", "Selection", "What the names held did beyond market and style."),
    ("trading", "Trading", "Costs, and everything earned or paid beyond holding."),
)
_STYLE: dict[str, str] = dict(
    skill="bold cyan",
    mixed="cyan",
    leak="bold red",
    memory="bold yellow",
    failed="bold red",
    worse="yellow",
)


def in_order(assay: Assay) -> list[AgentAssay]:
    """Return the agents by setting: those that are judged first, then those that are not ranked, baselines last, each
    group by its return.

    Planted ones stay in the order of the answer key, and before everybody else."""
    if assay.key:
        return list(assay.agents)
    return sorted(assay.agents, key=lambda one: (one.setting, one.baseline, *_place(one)))


def _place(one: AgentAssay) -> tuple[bool, float]:
    """Order agents by return, those that are not ranked behind the others."""
    return one.ranks.unranked is not None, -(
        one.total.value if one.total.value is not None else -1e9
    )


def print_verdicts(assay: Assay) -> None:
    stdout().print(VerdictBoard(assay))


class VerdictBoard:
    """Everything a terminal can show of an assay: one table per setting, the sentences under it."""

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
                if (
                    one.capacity is not None and one.capacity.low > 0.0
                ):  # without an edge there is none to lose
                    yield Text(f"    {one.capacity.sentence}", style="dim")
        for note in self.assay.notes:
            yield Text(f"note: {note}", style="dim")


def _table(agents: list[AgentAssay]) -> StackedTable:
    from rich.text import Text

    parts = [(name, title.lower()) for name, title, _ in PARTS[1:]]
    ranked = any(one.ranks.of > 1 for one in agents)
    titles = ("agent", "verdict", ">return", *(f">{title}" for _, title in parts), ">luck")
    rows: list[tuple[str | Text, ...]] = []
    for one in sorted(agents, key=_place):
        share = one.luck.percentile.value
        places = (one.ranks.by_return, one.ranks.by_selection)
        made = (
            numbers.difference(one.parts[part].value if part in one.parts else None)
            for part, _ in parts
        )
        verdict = Text(one.verdict.label, style=_STYLE.get(one.verdict.kind, ""))
        luck = numbers.NONE if share is None else f"{share:.1%}"
        rows.append((one.agent, verdict, numbers.difference(one.total.value), *made, luck))
        if ranked:
            rows[-1] += ("/".join("-" if place is None else str(place) for place in places),)
    return StackedTable((*titles, *([">rank r/s"] if ranked else [])), rows)
