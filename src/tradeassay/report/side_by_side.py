"""Two runs side by side, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.report import numbers

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from tradeassay.runs import RunComparison
    from tradeassay.runs.comparison import Difference, Pair

_SHOWN = ("cumulative_return", "sharpe", "max_drawdown")


def side_by_side(comparison: RunComparison) -> Group:
    """Return the comparison of two runs: one table per benchmark, then what only one of them has."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Table | Text] = []
    for benchmark in dict.fromkeys(pair.benchmark for pair in comparison.pairs):
        parts.append(_table(comparison, benchmark))
    if not comparison.pairs:
        parts.append(Text("The two runs have no agent on the same benchmark in common."))
    for run, rest in ((comparison.first, comparison.only_first), (comparison.second, comparison.only_second)):
        if rest:
            parts.append(Text(f"only in {run}: {', '.join(rest)}", style="dim"))
    return Group(*parts)


def _table(comparison: RunComparison, benchmark: str) -> Table:
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
    trades = all(name in pair.measures for pair in pairs for name in _SHOWN)
    shown = _SHOWN if trades else tuple(pairs[0].measures)
    for name in shown:
        table.add_column(numbers.info(name).title.lower() if trades else name, justify="right")
    table.add_column("can they be told apart?", overflow="fold")
    for pair in pairs:
        table.add_row(
            Text(pair.agent),
            *(_values(name if trades else None, pair.measures[name]) for name in shown),
            _paired(pair),
        )
    return table


def _values(name: str | None, change: Difference) -> Text:
    """Return both values; ``name`` None is a measure of programs, which has no unit."""
    from rich.text import Text

    first, second = (
        numbers.NONE if value is None else numbers.number(value) if name is None else numbers.shown(name, value)
        for value in (change.first, change.second)
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
