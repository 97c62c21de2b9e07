"""Runs of programs, and one program or submission, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.screen import stdout
from tradeassay.report import code_page, numbers, systrade_page
from tradeassay.report.formatting import shown
from tradeassay.report.paper_tables import way
from tradeassay.runs.score.quantcode_scores import FAILURE_TITLES
from tradeassay.runs.summary.programs import pooled_rates
from tradeassay.runs.systrade import SystradeSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table
    from rich.text import Text

    from tradeassay.benchmarks.systrade.examine import SubmissionCheck
    from tradeassay.core.measure import Measure
    from tradeassay.runs import CodeRun
    from tradeassay.runs.score.quantcode_scores import CellScores
    from tradeassay.runs.score.systrade_scores import SystradeScores
    from tradeassay.runs.summary.programs import Evaluation

_STYLES = {"passed": "bold cyan", "failed": "bold yellow"}


def print_code_board(run: CodeRun) -> None:
    """Print the table of a run, what stands out, and why programs failed; a pipe gets it at full width."""
    from rich.text import Text

    console = stdout()
    if isinstance(run.spec, SystradeSpec):
        badges, (headline, support) = systrade_page.systrade_badges(run), systrade_page.in_words(run.scores)
        table, cells = systrade_board(run), []
    else:
        cells = code_page.ranked_cells(run.scores)
        badges, (headline, support) = code_page.code_badges(run), code_page.in_words(cells)
        table = code_board(cells)
    console.print(Text(f"{run.benchmark}  [{', '.join(text for _, text in badges)}]", style="bold"))
    console.print(table)
    console.print(Text(" ".join([headline, *support])))
    if isinstance(run.spec, SystradeSpec):
        for line in systrade_lines(run.scores):
            console.print(Text(line))
    counts = pooled_rates(cells).counts
    if counts:
        titles = (f"{FAILURE_TITLES[name].lower()} {count}" for name, count in counts.items())
        console.print(Text("failures: " + ", ".join(titles)))
    for note in run.manifest.notes if cells else ():
        console.print(Text(f"note: {note}"))


def code_board(cells: list[CellScores]) -> Table:
    """Return the table of stage rates."""
    from rich.text import Text

    table = _plain_table()
    table.add_column(
        "model", overflow="fold", min_width=min(34, max((len(cell.model) for cell in cells), default=5))
    )
    table.add_column("way of asking", overflow="fold")
    for title in ("items", *(title.lower() for _, title, _ in code_page.STAGE_TITLES), "turns"):
        table.add_column(title, justify="right")
    table.add_column("a solved task took", overflow="fold")
    for cell in cells:
        rates = cell.rates
        left_out = rates.failed + rates.unscored
        table.add_row(
            Text(cell.model),
            Text(way(cell)),
            Text(f"{rates.items}" + (f" (+{left_out} not scored)" if left_out else "")),
            *(_rate(getattr(rates, name), interval=name == "judge") for name, _, _ in code_page.STAGE_TITLES),
            Text(shown(cell.mean_turns, "{:.1f}").text),
            Text(code_page.cost_words(cell)),
        )
    return table


def systrade_board(run: CodeRun) -> Table:
    """Return the table of the models' gates and scores."""
    from rich.text import Text

    table = _plain_table()
    table.add_column("model", overflow="fold")
    dimensions = tuple(systrade_page.DIMENSIONS)
    added = ("not cleared", "ten-bar", "printed", "tier")
    for title in ("items", "exec", "leak", "audit", "valid", *dimensions, "overall", "$/strategy", *added):
        table.add_column(title, justify="right")
    for row in run.scores.models:
        printed = Text(shown(row.overall_paper, "{:.2f}").text)
        more = (Text(str(row.not_cleared)), _rate(row.windows, interval=False), printed, Text(row.paper_tier))
        table.add_row(
            Text(row.model),
            Text(str(row.items)),
            *(_rate(row.gates[name], interval=False) for name in ("exec", "leak", "audit")),
            _rate(row.valid, interval=True),
            *(Text(shown(row.scores[name], "{:.2f}").text) for name in dimensions),
            Text(shown(row.overall, "{:.2f}").text),
            Text(numbers.dollars(row.usd_per_strategy)),
            *more,
        )
    return table


def systrade_lines(scores: SystradeScores) -> Iterator[str]:
    """Yield what stands below the table: tokens and goals by iteration, standings, how strict reviewers are."""
    for row in scores.iterations:
        if row.items and row.tokens and row.reached_goal:
            yield (
                f"iteration {row.iteration}: {shown(row.tokens, '{:,.0f}').text} tokens a hand-in, "
                f"{shown(row.reached_goal, 'share').text} of {row.reached_goal.n} reached the goal"
            )
    board = scores.reviews
    if board is None:
        return
    for one in board.standings:
        yield (
            f"{one.author}: {shown(one.peers, '{:.2f}').text} by others (place {one.peer_place or numbers.NONE}), "
            f"{shown(one.everyone, '{:.2f}').text} in all reviews (place {one.everyone_place or numbers.NONE})"
        )
    given = ", ".join(f"{desk.reviewer} {shown(desk.mean, '{:.2f}').text}" for desk in board.desks)
    yield f"mean marks given to others, the strictest first: {given}"


def print_evaluation(found: Evaluation, *, name: str) -> None:
    """Print what was found about one program."""
    from rich.text import Text

    console = stdout()
    verdict = {"solved": "passed", "not_scored": "not scored"}.get(found.outcome, f"failed ({found.outcome})")
    console.print(Text(f"{name} on {found.task} ({found.framework}): {verdict}", style="bold"))
    table = _plain_table("stage", "status", "why")
    for stage in ("compile", "backtest", "trade", "lookahead", "judge"):
        result = found.stage(stage)
        title = "look-ahead" if stage == "lookahead" else stage
        table.add_row(Text(title), _status(result.status), Text(_clean(result.reason)))
    console.print(table)
    for line in _details(found):
        console.print(Text(_clean(line)))


def print_check(check: SubmissionCheck, *, name: str) -> None:
    """Print what was found about one submission."""
    from rich.text import Text

    console = stdout()
    card = check.scorecard
    verdict = "all gates held" if check.passed else "not all gates held"
    console.print(Text(f"{name} for {card.strategy} on {card.data}: {verdict}", style="bold"))
    table = _plain_table("gate", "status", "why")
    for gate in card.gates.gates:
        table.add_row(Text(gate.name), _status(gate.status), Text(_clean(gate.reason)))
    console.print(table)
    for dimension in systrade_page.DIMENSIONS:
        score = shown(card.sound[dimension], "{:.2f}")
        note = f" ({score.note})" if score.note else ""
        console.print(Text(_clean(f"{dimension}: {score.text}{note}")))
    if card.year is not None:
        totals = ", ".join(f"{point.cost_bp:g} bp {point.total:+.1%}" for point in card.year.costs)
        console.print(Text(f"the year at {totals}"))
        middle = card.year.costs[len(card.year.costs) // 2]
        if middle.per_turnover and middle.break_even_turnover:
            console.print(
                Text(
                    f"at {middle.cost_bp:g} bp: {middle.per_turnover:+.3%} by unit of turnover; the return before "
                    f"costs pays for {middle.break_even_turnover:,.1f} turnovers a year"
                )
            )
    for one in card.regimes:
        for breach in one.breaches:
            if breach.severity:
                console.print(
                    Text(
                        f"{breach.severity} breach of {breach.constraint} ({one.regime}) on {breach.bars} bars, "
                        f"first {breach.time}; its own log refused {breach.logged} of them"
                    )
                )
    if card.windows:
        console.print(Text(f"pieces of ten bars: {card.windows.passed} of {card.windows.tests} ran through"))


def _details(found: Evaluation) -> list[str]:
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
            f"not scored: {earned.trades} trades, return {_change(earned.strategy.total_return)}, "
            f"buy and hold {_change(earned.hold.total_return)}"
        )
    return lines


def _plain_table(*titles: str) -> Table:
    from rich.table import Table

    table = Table(header_style="bold", box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _status(status: str) -> Text:
    from rich.text import Text

    return Text(status.replace("_", " "), style=_STYLES.get(status, "dim"))


def _rate(measure: Measure, *, interval: bool) -> Text:
    from rich.text import Text

    if measure.value is None:
        return Text(numbers.NONE, style="dim")
    text = Text(numbers.written(measure.value, "share"))
    if interval and measure.low is not None and measure.high is not None:
        text.append(f" [{measure.low:.0%}, {measure.high:.0%}]", style="dim")
    return text


def _change(value: float | None) -> str:
    return numbers.NONE if value is None else numbers.written(value, "change")


def _clean(text: str) -> str:
    """Return a program's words without control characters that a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
