"""The page of a trading run: one tab per benchmark, its leaderboard, charts, and what each agent did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.assay.papers import StudyTable, paper_studies
from tradeassay.core.errors import UserError
from tradeassay.metrics import MEASURES
from tradeassay.report import numbers
from tradeassay.report.charts import cell_charts
from tradeassay.report.formatting import MeasureShown, Scale, common_scale, shown
from tradeassay.report.palette import LineStyle, styles
from tradeassay.report.shell import render_page, write_page
from tradeassay.report.studies import written_cell
from tradeassay.report.words import (
    AgentStanding,
    BestAnswer,
    answer,
    arm_standing,
    cell_badges,
    contrast_in_words,
    cost_line,
    in_words,
    markets_words,
    setting_title,
    standing,
)
from tradeassay.runs import CodeRun, Run
from tradeassay.runs.summary import AgentSummary, CellSummary, RunSummary, failed_too_often, summary_of

if TYPE_CHECKING:
    from tradeassay.runs import VerifyReport

TABLE = ("sharpe", "max_drawdown", "volatility", "turnover", "failure_rate")
TILES = (
    "cumulative_return",
    "annualised_return",
    "sharpe",
    "sortino",
    "max_drawdown",
    "volatility",
    "information_ratio",
    "turnover",
)
BEHAVIOUR = ("turnover", "hhi", "cash_ratio", "abstention_rate", "rejection_rate")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class AgentOnPage:
    """One agent: its record, its place on the page, and its measures written out.

    ``difference`` is the yearly one from the baseline, None where nothing was compared. ``place`` is its tier, or
    where nobody was compared its rank: a place among equals would be luck. ``unranked`` says why it has none.
    """

    def __init__(self, id: str, rank: int | None, agent: AgentSummary, cell: CellOnPage) -> None:
        self.id, self.rank, self.agent, self._cell = id, rank, agent, cell
        self.style: LineStyle = cell.look[agent.name]
        self.standing: AgentStanding = standing(agent, cell.cell)
        self.cost = cost_line(agent)
        self.difference: MeasureShown | None = None
        if agent.versus is not None:
            self.difference = shown(agent.versus.difference, "change", cell.differences)
        contest = cell.cell.contest
        found = rank if contest is None else contest.tier_of(agent.name)
        self.place = "\u2013" if found is None else str(found)
        self.unranked = ""
        if contest is not None and agent.name in contest.unranked:
            self.unranked = f"not ranked: {contest.unranked[agent.name]}"
        p = None if agent.versus is None else agent.versus.p_adjusted
        self.p_value = "" if p is None else numbers.p_value(p)

    def figure(self, name: str) -> MeasureShown:
        """Return a measure written out; the return has its interval drawn."""
        scale = self._cell.returns if name == "cumulative_return" else None
        return shown(self.agent.measures[name].median, numbers.form_of(name), scale)

    def spread(self, name: str) -> str:
        """Return the range over the seeds in words, empty for a single one."""
        found, form = self.agent.measures[name], numbers.form_of(name)
        if found.n < 2 or found.lowest is None or found.highest is None:
            return ""
        low, high = numbers.written(found.lowest, form), numbers.written(found.highest, form)
        return f"{found.n} seeds: {low} to {high}"


class CellOnPage:
    """One tab: a cell's record with what its rows share on the page.

    ``returns`` and ``differences`` are common scales; ``hottest`` is the largest return of a month, by size, for
    the depth of colours.
    """

    def __init__(self, id: str, tab: str, cell: CellSummary, level: float) -> None:
        self.id, self.tab, self.cell, self.level = id, tab, cell, level
        self.look = styles([agent.name for agent in cell.agents], cell.baseline)
        self.returns: Scale = common_scale([agent.result for agent in cell.agents])
        self.differences: Scale = common_scale(
            [agent.versus.difference for agent in cell.agents if agent.versus is not None]
        )
        self.agents = []
        for place, agent in enumerate(cell.ranked):
            placed = agent.result.value is not None and failed_too_often(agent) is None
            self.agents.append(AgentOnPage(f"{id}-a{place}", place + 1 if placed else None, agent, self))
        self.badges = cell_badges(cell)
        self.answer: BestAnswer = answer(cell)
        self.in_words = (*in_words(cell), *cell.limits)
        details = [agent.detail for agent in cell.agents if agent.detail is not None]
        months = [month for detail in details for year in detail.months for month in year.months]
        self.hottest = max([0.01, *(abs(month) for month in months if month is not None)])
        self.has_models = any(agent.model is not None for agent in cell.agents)
        self.rules = paragraphs(cell.rules)


def render_html(data: RunSummary, studies: Sequence[StudyTable] = (), verified: VerifyReport | None = None) -> str:
    """Return the page of a run. Every text in ``data`` is escaped; the page works from a file, offline.

    ``studies`` are the paper's own tables, where the benchmark has a paper; ``verified`` what became of the run's
    claims, where it was verified just now.
    """
    tabs = _tabs(data.cells)
    cells = [CellOnPage(f"c{place}", tabs[place], cell, data.level) for place, cell in enumerate(data.cells)]
    charts = {
        view.id: cell_charts(view.cell, view.id, view.look, {one.agent.name: one.id for one in view.agents})
        for view in cells
    }
    context = {
        "data": data,
        "verified": verified,
        "charts": charts,
        "cells": cells,
        "places": {view.cell.id: view.id for view in cells},
        "table": TABLE,
        "tiles": TILES,
        "behaviour": BEHAVIOUR,
        "measures": [info.id for info in MEASURES],
        "months": MONTHS,
        "month_text": numbers.month_text,
        "p_value": numbers.p_value,
        "arm_standing": arm_standing,
        "contrast_in_words": contrast_in_words,
        "common_scale": common_scale,
        "markets_words": markets_words,
        "setting_title": setting_title,
        "studies": studies,
        "written_cell": written_cell,
    }
    return render_page("run.html.j2", context, script="charts.js")


def write_html(
    source: Run | CodeRun | RunSummary,
    path: Path | None = None,
    *,
    summary: RunSummary | None = None,
    verified: VerifyReport | None = None,
) -> Path:
    """Write the self-contained page and return its path (default: ``report.html`` in the run's folder).

    ``summary`` is that of the run, where it is known already; ``verified`` what became of the run's claims, where
    it was verified just now: the page then says so, claim by claim.
    """
    if isinstance(source, CodeRun):
        from tradeassay.report.code_page import write_code_html

        return write_code_html(source, path, verified)
    if path is None:
        if isinstance(source, RunSummary):
            raise UserError("no place for the page", hint="give a path")
        path = source.folder / "report.html"
    if isinstance(source, RunSummary):
        return write_page(path, render_html(source, verified=verified))
    studies = paper_studies(source, attribution=False)
    return write_page(path, render_html(summary or summary_of(source), studies, verified))


def paragraphs(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return plain text as blocks of ("p" | "h4" | "ul", lines).

    Lines that start with a dash are a list; a short line without a full stop before a list is its heading.
    """
    blocks: list[tuple[str, tuple[str, ...]]] = []
    for line in (line.strip() for line in text.splitlines() if line.strip()):
        if not line.startswith("- "):
            blocks.append(("p", (line,)))
            continue
        kind, lines = blocks[-1] if blocks else ("", ())
        if kind == "ul":
            blocks[-1] = ("ul", (*lines, line[2:]))
            continue
        if kind == "p" and len(lines[0]) < 70 and not lines[0].endswith("."):
            blocks[-1] = ("h4", lines)
        blocks.append(("ul", (line[2:],)))
    return tuple(blocks)


def _tabs(cells: Sequence[CellSummary]) -> list[str]:
    """Return names for tabs: titles, without what all have in common when they are settings of one benchmark."""
    titles = [cell.title for cell in cells]
    if len(cells) < 2 or len({cell.benchmark for cell in cells}) > 1 or not all(cell.settings for cell in cells):
        return titles
    parts = [title.split(", ") for title in titles]
    while min(map(len, parts)) > 1 and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    return [", ".join(part) for part in parts]
