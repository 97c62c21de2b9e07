"""Display runs on a terminal: leaderboards with badges and sentences, and two runs side by side."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tradeassay.core.screen import StackedTable, stdout
from tradeassay.metrics import BY_ID
from tradeassay.report import numbers
from tradeassay.report.formatting import cell_shown
from tradeassay_bench.report.code_page import run_badges, shown_run
from tradeassay_bench.report.paste_cells import bracketed
from tradeassay_bench.report.run_words import (
    answer,
    arm_standing,
    contest_words,
    in_words,
    markets_words,
    setting_badges,
    setting_title,
    standing,
)
from tradeassay_bench.runs import CodeRun, Run
from tradeassay_bench.runs.summary import RunSummary, SettingSummary, summary_of
from tradeassay_bench.runs.verify.freedom import freedom_of

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from tradeassay.metrics.reliability import Reliability
    from tradeassay_bench.runs import RunComparison
    from tradeassay_bench.runs.summary.comparison import Pair

_STYLE = dict(
    above="bold cyan", below="bold yellow", failed="bold red", same="", none="dim", baseline="dim"
)
_COMPARED = ("cumulative_return", "sharpe", "max_drawdown")


def terminal(source: Run | RunSummary) -> TerminalReport:
    """Return leaderboards, badges and sentences as a rich renderable that fits any width."""
    return TerminalReport(
        source if isinstance(source, RunSummary) else summary_of(source, details=False)
    )


def print_leaderboard(source: Run | CodeRun | RunSummary) -> None:
    """Print the leaderboards of a run."""
    if isinstance(source, CodeRun):
        print_code_board(source)
    else:
        stdout().print(terminal(source))


def print_code_board(run: CodeRun) -> None:
    """Print the main table of a run of programs."""
    console, page = stdout(), shown_run(run)
    badges = ", ".join(text for _, text in run_badges(run, page))
    console.print(Text(f"{run.benchmark}  [{badges}]", style="bold"))
    first, *titles = page.board.columns
    for place, title in enumerate(titles):
        numeric = any(row.cells[place].measure is not None for row in page.board.rows)
        titles[place] = f"{'>' if numeric else ''}{title.lower()}"
    rows: list[tuple[str | Text, ...]] = []
    for row in page.board.rows:
        # A terminal has space for one interval: that of the last share, which is the result.
        decided = max((place for place, cell in enumerate(row.cells) if cell.bar), default=-1)
        cells = []
        for place, cell in enumerate(row.cells):
            measure, text = cell.measure, Text(cell_shown(cell).text)
            if measure is not None and measure.value is None:
                text = Text(numbers.NONE, style="dim")
            elif measure is not None:
                text.append(bracketed(measure, "share") if place == decided else "", style="dim")
                text.append(f" ({cell.small})" if cell.small else "", style="dim")
            cells.append(text)
        rows.append((row.head.text, *cells))
    console.print(StackedTable((first, *titles), rows, ruled=False))
    console.print(Text(" ".join([page.headline, *page.support])))
    chosen = freedom_of(run.folder, run.manifest).sentence
    for line in (
        *page.board.unranked,
        *page.board_lines,
        *(f"note: {note}" for note in run.manifest.notes),
        chosen,
    ):
        console.print(Text(line))


class TerminalReport:
    """The report of a run for a terminal."""

    def __init__(self, data: RunSummary) -> None:
        self.data = data

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for place, setting in enumerate(self.data.settings):
            if place:
                yield ""
            head = Text(setting.title, style="bold underline")
            window = (
                f"{setting.sessions[0]} to {setting.sessions[-1]}"
                if setting.sessions
                else "no sessions"
            )
            where = (
                f"  {setting.benchmark} on {setting.dataset}, {len(setting.sessions)} "
                f"sessions, {window}\n"
            )
            head.append(where, style="not bold not underline dim")
            badges = " | ".join(words for _, words in setting_badges(setting))
            head.append(badges, style="not bold not underline italic")
            yield head
            yield board(setting, self.data.level)
            headline = answer(setting).headline
            sentences = Text(f"{headline}\n", style="bold")
            for sentence in (*contest_words(setting), *in_words(setting), *setting.limits):
                if sentence != headline:
                    sentences.append(f"- {sentence}\n", style="not bold")
            yield sentences
        for contrast in self.data.contrasts:
            text = Text(f"\n{contrast.title}", style="bold underline")
            against = f"  {contrast.where}; against {contrast.labels[0]}\n"
            text.append(against, style="not bold not underline dim")
            for row in contrast.rows:
                arms = []
                for label, arm in zip(contrast.labels, row.arms, strict=True):
                    arms.append(
                        f"{label} "
                        f"{numbers.written(None if arm is None else arm.result.value, 'change')}"
                    )
                    if arm is not None and arm.versus is not None:
                        arms[-1] += f" ({arm_standing(arm, contrast.labels[0]).label})"
                text.append(f"- {row.agent}: {', '.join(arms)}\n", style="not bold not underline")
            yield text
        for comparison in self.data.over_markets:
            title = setting_title(comparison, self.data.over_markets)
            yield f"\n{markets_words(comparison, title)}"
        if self.data.reliability is not None:
            yield _reliable(self.data.reliability)
        if self.data.freedom is not None:
            yield Text(self.data.freedom.sentence, style="italic")


def _reliable(reliability: Reliability) -> Text:
    """Return the sentences on reliability as a text for the terminal."""
    return Text(
        "\n".join(("\nHow reliable", *(f"- {sentence}" for sentence in reliability.sentences)))
    )


def board(setting: SettingSummary, level: float) -> StackedTable:
    """Return one leaderboard. Agents without a result are listed as failed, with the reason."""
    models = any(agent.model for agent in setting.agents)
    rates = [
        agent.measures["failure_rate"].median.value
        for agent in setting.agents
        if "failure_rate" in agent.measures
    ]
    more = (
        "sharpe",
        "max_drawdown",
        "turnover",
        *(("failure_rate",) if models or any(rates) else ()),
    )
    titles = (
        ">#" if setting.contest is None else ">tier",
        "agent",
        f">return ({level:.0%} interval)",
        f"{setting.excess_title[0].lower()}{setting.excess_title[1:]}",
        *(f">{BY_ID[name].title.lower()}" for name in more),
        *((">tokens", ">dollars") if models else ()),
    )
    rows: list[tuple[str | Text, ...]] = []
    for rank, agent in enumerate(setting.ranked, 1):
        spent: tuple[str | Text, ...] = ()
        if models:
            cost = agent.model.cost if agent.model is not None else None
            spent = (Text("-", style="dim"), Text("-", style="dim"))
            if cost is not None:
                spent = (
                    numbers.short(cost.input_tokens + cost.output_tokens),
                    numbers.dollars(cost.usd),
                )
        if agent.result.value is None:
            reason = agent.failure or str(agent.result.reason)
            rows.append(
                (
                    "-",
                    agent.name,
                    Text("failed", style=_STYLE["failed"]),
                    reason,
                    *("" for _ in more),
                    *spent,
                )
            )
            continue
        told, place = standing(agent, setting), setting.place_of(agent, rank)
        versus = None if agent.baseline or agent.excess is None else agent.excess.value
        against = Text("" if versus is None else f"{numbers.difference(versus)} ")
        measured = []
        for name in ("cumulative_return", *more):
            measure = agent.measures[name].median
            form = numbers.form_of(name)
            known = measure.value is not None
            measured.append(
                Text(numbers.written(measure.value, form), style="" if known else "dim")
            )
            if known and len(measured) == 1:  # a terminal has space for one interval
                measured[0].append(bracketed(measure, form), style="dim")
        rows.append(
            (
                "-" if place is None else str(place),
                Text(agent.name, style="dim" if agent.baseline else "bold"),
                measured[0],
                against.append(told.label, style=_STYLE[told.tone]),
                *measured[1:],
                *spent,
            )
        )
    return StackedTable(titles, rows, heads=2)


def print_comparison(comparison: RunComparison) -> None:
    """Print the comparison of two runs: one table per benchmark, then the agents of only one
    run.
    """
    parts: list[StackedTable | Text] = []
    for benchmark in dict.fromkeys(pair.benchmark for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if pair.benchmark == benchmark]
        trades = all(name in pair.measures for pair, name in product(pairs, _COMPARED))
        names = _COMPARED if trades else tuple(pairs[0].measures)
        forms = {name: numbers.form_of(name) if trades else "number" for name in names}
        titles = [f">{BY_ID[name].title.lower() if trades else name}" for name in names]
        rows: list[tuple[str | Text, ...]] = []
        for pair in pairs:
            values = []
            for name in names:
                change = pair.measures[name]
                first, second = (
                    numbers.written(value, forms[name]) for value in (change.first, change.second)
                )
                values.append(first if first == second else f"{first} -> {second}")
            rows.append((pair.agent, *values, _paired(pair)))
        title = f"{benchmark}: {comparison.first} -> {comparison.second}"
        parts.append(
            StackedTable(("agent", *titles, "significantly different?"), rows, title=title)
        )
    if not comparison.pairs:
        parts.append(Text("The two runs have no agent on the same benchmark in common."))
    parts += [_reliable(comparison.reliability)] if comparison.reliability is not None else []
    for run, rest in (
        (comparison.first, comparison.only_first),
        (comparison.second, comparison.only_second),
    ):
        if rest:
            parts.append(Text(f"only in {run}: {', '.join(rest)}", style="dim"))
    stdout().print(Group(*parts))


def _paired(pair: Pair) -> Text:
    paired = pair.paired
    if pair.reason is not None or paired.distinguishable is None:
        return Text(pair.reason or str(paired.difference.reason), style="dim")
    if paired.difference.low == paired.difference.high == 0.0:
        return Text("the same, session by session", style="dim")
    low = paired.difference.low or 0.0
    difference, per = paired.difference, "per year"
    if pair.horizon is not None:
        difference, per = pair.horizon.grown(difference), pair.horizon.words
    bounds = (
        f"{numbers.written(difference.low, 'change')} to "
        f"{numbers.written(difference.high, 'change')} {per}"
    )
    p = "" if paired.p_value is None else f", {numbers.p_value(paired.p_value)}"
    if not paired.distinguishable:
        return Text(f"no ({bounds}{p})")
    return Text(
        f"yes, the second is {'better' if low > 0 else 'worse'} ({bounds}{p})", style="bold"
    )
