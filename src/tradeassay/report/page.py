"""The one page of a run, or of somebody's own account: the answer, the edge against zero, what it is made of, the
account, reasons for and against, how long until it is known, and every decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from tradeassay.assay.assay_file import recorded_assay
from tradeassay.assay.papers import paper_pages
from tradeassay.assay.verdict.record import AgentAssay, Assay
from tradeassay.benchmarks.exhibits import PaperPage
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.data.dates import ENGLISH_MONTHS
from tradeassay.factors import factor_words
from tradeassay.metrics import MEASURES
from tradeassay.metrics.history import ROLLING, AccountHistory
from tradeassay.report import numbers
from tradeassay.report.charts import (
    BASELINE,
    MOST_LINES,
    account_charts,
    rolling_chart,
    styles,
    ticks,
    waterfall_svg,
)
from tradeassay.report.decisions import packed, tools_of
from tradeassay.report.formatting import MeasureShown, Scale, common_scale, shown
from tradeassay.report.run_charts import cell_charts
from tradeassay.report.run_page import write_run_page
from tradeassay.report.run_words import (
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
from tradeassay.report.shell import render_page, write_page
from tradeassay.report.verdicts import PARTS, TONES
from tradeassay.report.words import ANSWERS, AgentStanding, badge_words, until_known
from tradeassay.runs import CodeRun, Run
from tradeassay.runs.summary import AgentSummary, CellSummary, RunSummary, summary_of

if TYPE_CHECKING:
    from tradeassay.runs import VerifyReport

TABLE = ("sharpe", "max_drawdown", "volatility", "turnover", "failure_rate")
TILES = (
    *("annualised_return", "sharpe", "sortino", "max_drawdown"),
    *("volatility", "calmar", "information_ratio", "turnover"),
)
BEHAVIOUR = ("hhi", "cash_ratio", "abstention_rate", "rejection_rate")
MONTHS = tuple(name[:3] for name in ENGLISH_MONTHS)
DETAILED = 27
"""Accounts of a page whose charts and decisions are on it; those behind them have their numbers."""


class AccountOnPage:
    """One account: its scores where a run has them, its verdict where it was judged, and how both are written.

    ``place`` is its tier or rank, ``unranked`` says why it has none. ``edge`` is what the one chart draws: what
    is left beyond market and style where the account was judged, otherwise the difference from the baseline."""

    def __init__(
        self,
        place: int,
        cell: CellOnPage,
        agent: AgentSummary | None,
        assayed: AgentAssay | None,
        *,
        detailed: bool,
    ) -> None:
        self.id, self.agent, self.assayed, self._cell = f"{cell.id}-a{place}", agent, assayed, cell
        self.detailed = detailed
        self.place = self.unranked = self.cost = self.whose = self.p_value = self.until = self.mistakes = ""
        self.difference: MeasureShown | None = None
        self.standing: AgentStanding | None = None
        self.tone, self.label, self.sentence = "none", "", ""
        self.history: AccountHistory | None = None
        self.curves: tuple[Markup, Markup] | None = None
        self.waterfall: Markup | None = None
        self.badges: tuple[tuple[str, str], ...] = ()
        self.detail = None if agent is None or not detailed else agent.detail
        found: Measure | None = None
        if agent is not None:  # what the leaderboard says of it
            self.name, self.baseline, self.result = agent.name, agent.baseline, agent.result
            self.style, self.cost = cell.look[agent.name], cost_line(agent)
            self.whose = "rule" if agent.model is None else ANSWERS[agent.model.answers]
            self.ranked = agent.has_place
            rank = cell.summary.place_of(agent, place + 1)
            self.place = "\u2013" if rank is None else str(rank)
            self.unranked = "" if agent.unranked is None else f"not ranked: {agent.unranked}"
            if agent.versus is not None:
                found = agent.versus.difference
                self.difference = shown(found, "change", cell.differences)
                adjusted = agent.versus.p_adjusted
                self.p_value = "" if adjusted is None else numbers.p_value(adjusted)
            self.standing = told = standing(agent, cell.summary)
            self.tone, self.label, self.sentence = told.tone, told.label, told.sentence
            self.history = None if self.detail is None else self.detail.history
        elif assayed is not None:
            self.name, self.baseline, self.result = assayed.agent, False, assayed.total
            self.style, self.ranked = cell.look.get(assayed.agent, BASELINE), assayed.total.value is not None
            self.history = assayed.history
            if assayed.curve is not None and len(assayed.curve.sessions) > 1:
                self.curves = account_charts(assayed.curve)
        # Whose claims are marked on the page, and what its label is about: see ``data-claim`` in the templates.
        self.claim = f"{assayed.cell if assayed is not None else cell.summary.id}/{self.name}"
        judged = assayed is not None and not self.baseline
        self.labelled = f"{self.claim}/{'verdict' if judged else 'standing'}"
        if assayed is not None:
            if judged:
                verdict = assayed.verdict
                self.tone, self.label, self.sentence = TONES[verdict.kind], verdict.label, verdict.sentence
                found = None if assayed.edge is None else assayed.edge.tested
            self.waterfall = waterfall_svg(assayed) if detailed else None
            self.until = until_known(assayed)
            self.badges = () if assayed.badges is None else badge_words(assayed.badges)
            self.mistakes = ", ".join(f"{kind} {n}" for kind, n in assayed.failures.items())
        self.edge_measure = None if found is None or found.value is None else found
        self.notes = () if self.detail is None else self.detail.decisions
        self.decisions = ("", 0, 0)
        self.tools = tools_of(self.notes)
        self.rolling = None if self.history is None else rolling_chart(self.history)

    @property
    def edge(self) -> MeasureShown | None:
        """The edge as the chart draws it; None where there is none."""
        return None if self.edge_measure is None else shown(self.edge_measure, "change", self._cell.edges)

    @property
    def measures(self) -> list[str]:
        known = self.agent.measures if self.agent is not None else self.assayed.measures if self.assayed else {}
        return [name for name in TILES if name in known and self.figure(name).value is not None]

    def figure(self, name: str) -> MeasureShown:
        """Return a measure written out; the return has its interval drawn."""
        scale = self._cell.returns if name == "cumulative_return" else None
        if self.agent is None:
            assert self.assayed is not None
            return shown(self.assayed.measures[name], numbers.form_of(name), scale)
        return shown(self.agent.measures[name].median, numbers.form_of(name), scale)

    def spread(self, name: str) -> str:
        if self.agent is None:
            return ""
        found, form = self.agent.measures[name], numbers.form_of(name)
        if found.n < 2 or found.lowest is None or found.highest is None:
            return ""
        low, high = numbers.written(found.lowest, form), numbers.written(found.highest, form)
        return f"{found.n} seeds: {low} to {high}"

    @property
    def exposures(self) -> list[tuple[str, Measure]]:
        """The factors with a known exposure, the largest first, equal ones by name: a record has no order."""
        known = {} if self.assayed is None else self.assayed.exposures
        found = [(factor_words(name), one) for name, one in known.items() if one.value is not None]
        return sorted(found, key=lambda pair: (-abs(pair[1].value or 0.0), pair[0]))


class CellOnPage:
    """One tab: accounts that may be compared. ``cell`` is a run's, None for somebody's own account.

    ``returns``, ``differences`` and ``edges`` are common scales; ``hottest`` is the largest return of a month, by
    size, for the depth of colours."""

    def __init__(
        self, id: str, tab: str, cell: CellSummary | None, judged: Sequence[AgentAssay], data: PageData
    ) -> None:
        self.id, self.tab, self.cell, self.level = id, tab, cell, data.level
        self.judged = bool(judged)
        # Where no factors are known, style is not among what was taken away.
        styled = any(one.parts["style"].value is not None for one in judged if "style" in one.parts)
        self.beyond = "market and style" if styled else "the market"
        self.key = {} if data.assay is None or cell is not None else data.assay.key
        self.returns = self.differences = common_scale([])
        self.support: tuple[str, ...] = ()
        self.in_words: tuple[str, ...] = ()
        self.rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
        by_name = {one.agent: one for one in judged}
        accounts: list[tuple[AgentSummary | None, AgentAssay | None]] = [(None, one) for one in judged]
        if cell is not None:
            accounts = [(agent, by_name.get(agent.name)) for agent in cell.ranked]
            self.look = styles([agent.name for agent in cell.agents], cell.baseline)
            self.returns = common_scale([agent.result for agent in cell.agents])
            gaps = [one.versus.difference for one in cell.agents if one.versus is not None]
            self.differences = common_scale(gaps)
            self.badges = cell_badges(cell)
            said = answer(cell)
            self.headline, self.support = said.headline, said.support
            self.in_words = (*in_words(cell), *cell.limits)
            self.rules = paragraphs(cell.rules)
        else:
            self.look = styles([one.agent for one in judged], "")
            self.badges = () if judged[0].badges is None else badge_words(judged[0].badges)
            self.headline = judged[0].verdict.sentence
            if self.key:
                known = [one for one in judged if one.agent in self.key]
                right = sum(one.verdict.kind in self.key[one.agent].deserves for one in known)
                self.headline = f"{right} of {len(self.key)} right where the answer is known."
            elif len(judged) > 1:
                kinds = Counter(one.verdict.label for one in judged)
                self.headline = "; ".join(f"{label}: {n} of {len(judged)}" for label, n in kinds.most_common())
        self.agents = [
            AccountOnPage(place, self, agent, one, detailed=place < data.detailed)
            for place, (agent, one) in enumerate(accounts)
        ]
        self.drawn = sorted(
            (one for one in self.agents if one.edge_measure is not None),
            key=lambda one: (one.unranked != "", -((one.edge_measure.value if one.edge_measure else None) or 0.0)),
        )
        self.edges: Scale = common_scale([one.edge_measure for one in self.drawn if one.edge_measure is not None])
        step, marks = ticks(self.edges.low, self.edges.high, 6)
        digits = 0 if step >= 0.01 else 1
        self.axis = [
            (self.edges.place(at), f"{at:{'+' if at else ''}.{digits}%}".replace("-", numbers.MINUS))
            for at in marks
        ]
        histories = [one.history for one in self.agents if one.history is not None]
        months = [month for one in histories for year in one.months for month in year.months]
        self.hottest = max([0.01, *(abs(month) for month in months if month is not None)])
        self.has_models = any(one.agent is not None and one.agent.model is not None for one in self.agents)
        # Whom a reader came for is open, and printed: the best model, or the best that is no baseline.
        models = [one for one in self.agents if one.agent is not None and one.agent.model is not None]
        self.first = next((one for one in (*models, *self.agents) if not one.baseline), None)
        self.charts = None
        if cell is not None:
            there = {one.agent.name: one.id for one in self.agents if one.agent is not None and one.detail}
            self.charts = cell_charts(cell, id, self.look, there)
        played = [one for one in self.agents if one.agent is not None and one.agent.paths]
        drawn = [one.name for one in played if not one.baseline][:MOST_LINES]
        self.shown = [one for one in played if one.baseline or one.name in drawn]
        self.more_lines = len(played) > len(self.shown)

    @property
    def summary(self) -> CellSummary:
        assert self.cell is not None
        return self.cell


class PageData:
    """Everything that a page is written from: a run's summary, an assay, or both."""

    def __init__(self, summary: RunSummary | None, assay: Assay | None) -> None:
        self.summary, self.assay = summary, assay
        self.title = summary.title if summary is not None else assay.title if assay is not None else ""
        self.level = summary.level if summary is not None else assay.config.level if assay is not None else 0.95
        self.own = summary is None
        judged = () if assay is None else assay.agents
        cells = () if summary is None else summary.cells
        fits = max(3, DETAILED // max(1, len(cells)))
        # A page of two hundred accounts stays below two megabytes: only those whose lines are drawn unfold.
        many = max((len(one.agents) for one in cells), default=len(judged)) > fits
        self.detailed = min(fits, MOST_LINES) if many else fits
        tabs = _tabs(cells)
        self.cells = [
            CellOnPage(f"c{place}", tabs[place], cell, [one for one in judged if one.cell == cell.id], self)
            for place, cell in enumerate(cells)
        ]
        if assay is not None and summary is None and judged:  # accounts with an answer key share a tab
            if assay.key:
                self.cells = [CellOnPage("c0", "Is it found?", None, judged, self)]
            for place, name in enumerate(() if assay.key else dict.fromkeys(one.cell for one in judged)):
                inside = [one for one in judged if one.cell == name]
                self.cells.append(CellOnPage(f"c{place}", assay.titles.get(name, name), None, inside, self))
        every = [one for view in self.cells for one in view.agents if one.notes]
        for one, pack in zip(every, packed([one.notes for one in every]), strict=True):
            one.decisions = pack


def render_html(
    data: RunSummary | Assay,
    papers: Sequence[PaperPage] = (),
    verified: VerifyReport | None = None,
    assay: Assay | None = None,
) -> str:
    """Return the page of a run or of an assay. Every text in it is escaped; it works from a file, offline.

    ``papers`` are the paper's own tables, where the benchmark has a paper; ``verified`` what became of the run's
    claims, where it was verified just now; ``assay`` what the run's results are made of, where that is known."""
    summary = data if isinstance(data, RunSummary) else None
    page = PageData(summary, data if isinstance(data, Assay) else assay)
    context = {
        "page": page,
        "data": summary,
        "assay": page.assay,
        "verified": verified,
        "cells": page.cells,
        "places": {view.cell.id: view.id for view in page.cells if view.cell is not None},
        "table": TABLE,
        "behaviour": BEHAVIOUR,
        "measures": [info.id for info in MEASURES],
        "months": MONTHS,
        "month_text": numbers.month_text,
        "p_value": numbers.p_value,
        "parts": PARTS,
        "rolling": ROLLING,
        "arm_standing": arm_standing,
        "contrast_in_words": contrast_in_words,
        "common_scale": common_scale,
        "markets_words": markets_words,
        "setting_title": setting_title,
        "papers": papers,
    }
    return render_page("page.html.j2", context, scripts=("charts.js", "decisions.js"))


def write_html(
    source: Run | CodeRun | RunSummary | Assay,
    path: Path | None = None,
    *,
    summary: RunSummary | None = None,
    verified: VerifyReport | None = None,
    assay: Assay | None = None,
) -> Path:
    """Write the self-contained page and return its path (default: ``report.html`` in the run's folder, unless a
    page is there that was not written on this machine: that raises :class:`PageKept`).

    ``summary`` is that of the run, where it is known already; ``verified`` what became of the run's claims, where
    it was verified just now: the page then says so, claim by claim. ``assay`` is what its results are made of; by
    default the one that is recorded with the run."""
    if isinstance(source, CodeRun):
        from tradeassay.report.code_page import write_code_html

        return write_code_html(source, path, verified)
    if not isinstance(source, Run):
        if path is None:
            raise UserError("no place for the page", hint="give a path")
        return write_page(path, render_html(source, verified=verified, assay=assay))
    papers = paper_pages(source)
    made = assay or recorded_assay(source)
    text = render_html(summary or summary_of(source), papers, verified, made)
    return write_run_page(source.folder, path, text)


def paragraphs(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return plain text as blocks of ("p" | "h4" | "ul", lines).

    Lines that start with a dash are a list; a short line without a full stop before a list is its heading."""
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
