"""Verdicts for a terminal: one table per cell, the sentence under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.assay.verdict.record import AgentAssay, Assay
from tradeassay.report import numbers
from tradeassay.report.view import badge_words

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

_STYLE = {"skill": "bold cyan", "mixed": "cyan", "leak": "bold red", "memory": "bold yellow", "failed": "bold red",
          "worse": "yellow"}  # fmt: skip
_WIDE = 110


class VerdictBoard:
    """Everything of an assay that a terminal can show."""

    def __init__(self, assay: Assay) -> None:
        self.assay = assay

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for cell in dict.fromkeys(one.cell for one in self.assay.agents):
            inside = [one for one in self.assay.agents if one.cell == cell]
            head = Text(cell, style="bold underline")
            if cell in self.assay.badges:
                words = " | ".join(text for _, text in badge_words(self.assay.badges[cell]))
                head.append(f"\n{words}", style="not bold not underline italic")
            yield head
            yield _table(inside, options.max_width)
            for one in inside:
                yield Text.assemble("- ", one.verdict.sentence)
                for limit in one.verdict.limits:
                    yield Text(f"    {limit}", style="dim")


def _table(agents: list[AgentAssay], width: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for title in ("agent", "verdict", "return"):
        table.add_column(title, overflow="fold")
    parts = ("common", "style", "selection", "trading") if width >= _WIDE else ("selection",)
    for part in parts:
        table.add_column("market" if part == "common" else part, justify="right", no_wrap=True)
    for title in ("luck", "rank r/e/s"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in sorted(agents, key=lambda one: -(one.total.value if one.total.value is not None else -1e9)):
        share, ranks = one.luck.percentile.value, one.ranks
        places = (ranks.by_return, ranks.by_excess, ranks.by_selection)
        told = Text(one.verdict.label, style=_STYLE.get(one.verdict.kind, ""))
        table.add_row(
            Text(one.agent),
            told,
            _shown(one.total.value),
            *(_shown(one.parts[part].value if part in one.parts else None) for part in parts),
            numbers.NONE if share is None else f"{share:.1%}",
            "/".join("-" if place is None else str(place) for place in places),
        )
    return table


def _shown(value: float | None) -> str:
    return numbers.NONE if value is None else numbers.difference(value)


def print_verdicts(assay: Assay) -> None:
    """Print the verdicts on stdout; a pipe gets them at full width."""
    import sys

    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 160, highlight=False).print(VerdictBoard(assay))
