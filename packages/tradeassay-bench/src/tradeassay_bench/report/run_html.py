"""Render the page of a recorded run: a tab for each setting, with leaderboard, curves and
accounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.metrics import BY_ID
from tradeassay.metrics.horizon import TOO_SHORT
from tradeassay.report import numbers
from tradeassay.report.charts import MOST_LINES, styles
from tradeassay.report.formatting import MeasureShown, common_scale, shown
from tradeassay.report.page import (
    AccountOnPage,
    PageData,
    TabOnPage,
    Tile,
    most_detailed,
    render_assay,
    rendered,
    write_assay,
)
from tradeassay.report.shell import write_page
from tradeassay.report.words import ANSWERS
from tradeassay.verdict.record import AgentAssay, Assay
from tradeassay_bench.benchmarks.exhibits import PaperPage
from tradeassay_bench.examine.assay_file import recorded_assay
from tradeassay_bench.papers import paper_pages
from tradeassay_bench.report.decisions import packed, tools_of
from tradeassay_bench.report.run_charts import setting_charts
from tradeassay_bench.report.run_words import (
    answer,
    arm_standing,
    contrast_in_words,
    cost_line,
    in_words,
    markets_words,
    setting_badges,
    setting_title,
    standing,
)
from tradeassay_bench.runs import CodeRun, Run
from tradeassay_bench.runs.summary import AgentSummary, RunSummary, SettingSummary, summary_of
from tradeassay_bench.runs.summary.rows import EpisodeDetail

if TYPE_CHECKING:
    from tradeassay_bench.runs import VerifyReport


_TILES = (
    *("annualised_return", "sharpe", "sortino", "max_drawdown"),
    *("volatility", "calmar", "information_ratio", "turnover"),
)
"""The scored measures on the tiles of an agent."""


class AgentOnPage(AccountOnPage):
    """An agent of a run on a page, with its place on the leaderboard.

    An agent without a verdict has a chart of the difference from the baseline.
    """

    agent: AgentSummary
    detail: EpisodeDetail | None

    def __init__(
        self,
        place: int,
        tab: RunTab,
        agent: AgentSummary,
        assayed: AgentAssay | None,
        detailed: bool,
    ):
        self.agent = agent
        self.detail = agent.detail if detailed else None
        self._run_tab = tab
        super().__init__(place, tab, assayed, detailed=detailed)
        self.notes = () if self.detail is None else self.detail.decisions
        self.tools = tools_of(self.notes)

    def _read(self, place: int) -> Measure | None:
        agent, tab = self.agent, self._run_tab
        self.name, self.baseline, self.result = agent.name, agent.baseline, agent.result
        self.style, self.cost = tab.look[agent.name], cost_line(agent)
        self.whose = "rule" if agent.model is None else ANSWERS[agent.model.answers]
        self.ranked = agent.has_place
        rank = tab.setting.place_of(agent, place + 1)
        self.place = "\u2013" if rank is None else str(rank)
        self.unranked = "" if agent.unranked is None else f"not ranked: {agent.unranked}"
        self.standing = standing(agent, tab.setting)
        self.tone, self.label = self.standing.tone, self.standing.label
        self.sentence = self.standing.sentence
        self.history = None if self.detail is None else self.detail.history
        if agent.versus is None or agent.excess is None:
            return None
        self.difference = shown(agent.excess, "change", tab.differences)
        adjusted = agent.versus.p_adjusted
        self.p_value = "" if adjusted is None else numbers.p_value(adjusted)
        return agent.excess

    @property
    def tiles(self) -> list[Tile]:
        """Return the scored measures of the run, medians over seeds, with their spread."""
        tiles = []
        for name in _TILES:
            figure = self.figure(name)
            if figure.value is not None or figure.note == TOO_SHORT:
                title, defined = self.measure_title(name), BY_ID[name].defined
                tiles.append(Tile(title, figure, defined, self.spread(name)))
        return tiles

    def measure_title(self, name: str) -> str:
        """Return the title of a measure.

        If the measure uses an index, the title includes its name.
        """
        title, index = BY_ID[name].title, self._run_tab.setting.index_name
        if name == "excess_return":
            return title if index is None else f"Return over {index}"
        return f"{title} versus {index}" if name == "information_ratio" and index else title

    def figure(self, name: str) -> MeasureShown:
        """Return a measure as text. For the return, a drawing of its interval is added."""
        scale = self._run_tab.returns if name == "cumulative_return" else None
        return shown(self.agent.measures[name].median, numbers.form_of(name), scale)

    def spread(self, name: str) -> str:
        """Return a measure's range over seeds for the page."""
        found, form = self.agent.measures[name], numbers.form_of(name)
        if found.n < 2 or found.lowest is None or found.highest is None:
            return ""
        low, high = numbers.written(found.lowest, form), numbers.written(found.highest, form)
        return f"{found.n} seeds: {low} to {high}"


class RunTab(TabOnPage):
    """The agents of one setting."""

    setting: SettingSummary

    def __init__(
        self,
        id: str,
        tab: str,
        setting: SettingSummary,
        judged: Sequence[AgentAssay],
        data: RunPageData,
    ) -> None:
        self.setting = setting
        super().__init__(id, tab, setting.id, judged, data)
        self.has_models = any(agent.model is not None for agent in setting.agents)
        # The page opens with the account that a reader wants to see: the best model, or the best
        # agent that is not a baseline.
        models = [one for one in self.agents if one.agent.model is not None]
        self.first = next((one for one in (*models, *self.agents) if not one.baseline), None)
        there = {one.agent.name: one.id for one in self.agents if one.detail is not None}
        self.charts = setting_charts(setting, id, self.look, there)
        played = [one for one in self.agents if one.agent.paths]
        drawn = [one.name for one in played if not one.baseline][:MOST_LINES]
        self.shown = [one for one in played if one.baseline or one.name in drawn]
        self.more_lines = len(played) > len(self.shown)

    agents: Sequence[AgentOnPage]

    def _accounts(self, data: PageData) -> Sequence[AgentOnPage]:
        setting = self.setting
        self.look = styles([agent.name for agent in setting.agents], setting.baseline)
        self.returns = common_scale([agent.result for agent in setting.agents])
        gaps = [one.excess for one in setting.agents if one.excess is not None]
        self.differences = common_scale(gaps)
        self.badges = setting_badges(setting)
        best = answer(setting)
        self.headline, self.support = best.headline, best.support
        # A judged setting has one number on its power: the number in each account's statements.
        self.in_words = in_words(setting)
        if not self.judged:
            self.in_words += setting.limits
        self.rules = paragraphs(setting.rules)
        by_name = {one.agent: one for one in self.judged}
        return [
            AgentOnPage(place, self, agent, by_name.get(agent.name), place < data.detailed)
            for place, agent in enumerate(setting.ranked)
        ]


class RunPageData(PageData):
    """The data of a run's page: its summary, and its assay if there is one."""

    own = False
    summary: RunSummary

    def __init__(self, summary: RunSummary, assay: Assay | None) -> None:
        self.summary = summary
        super().__init__(assay)
        agents = chain.from_iterable(tab.agents for tab in self.tabs)
        every = [agent for agent in agents if agent.notes]
        for one, pack in zip(every, packed([one.notes for one in every]), strict=True):
            one.decisions = pack

    def _tabs(self) -> Sequence[TabOnPage]:
        self.title, self.level = self.summary.title, self.summary.level
        judged = () if self.assay is None else self.assay.agents
        settings = self.summary.settings
        self.detailed = most_detailed(
            len(settings), max((len(one.agents) for one in settings), default=len(judged))
        )
        titles = _tab_titles(settings)
        return [
            RunTab(
                f"c{place}",
                titles[place],
                setting,
                [one for one in judged if one.setting == setting.id],
                self,
            )
            for place, setting in enumerate(settings)
        ]


def render_html(
    data: RunSummary | Assay,
    papers: Sequence[PaperPage] = (),
    verified: VerifyReport | None = None,
    assay: Assay | None = None,
) -> str:
    """Return the page of a run or of an assay as HTML.

    All text is escaped, and the page works offline from a file. ``papers`` contains the pages of
    papers to include. ``verified`` is the report of a verification, or None. ``assay`` is the assay
    of the run, or None.
    """
    if isinstance(data, Assay):
        return render_assay(data)
    page = RunPageData(data, assay)
    return rendered(
        page,
        data=data,
        papers=papers,
        verified=verified,
        places={tab.setting.id: tab.id for tab in page.tabs if isinstance(tab, RunTab)},
        arm_standing=arm_standing,
        contrast_in_words=contrast_in_words,
        markets_words=markets_words,
        setting_title=setting_title,
    )


def write_html(
    source: Run | CodeRun | RunSummary | Assay,
    path: Path | None = None,
    *,
    summary: RunSummary | None = None,
    verified: VerifyReport | None = None,
    assay: Assay | None = None,
) -> Path:
    """Write the self-contained page and return its path.

    The default path is ``report.html`` in the run's folder. ``summary`` is the run's summary; by
    default it is computed. ``verified`` is the report of a verification, whose claims the page then
    lists. ``assay`` defaults to the assay recorded with the run.
    """
    if isinstance(source, CodeRun):
        from tradeassay_bench.report.code_page import write_code_html

        return write_code_html(source, path, verified)
    if not isinstance(source, Run):
        if path is None:
            raise UserError("no path for the page is given", hint="give a path")
        if isinstance(source, Assay):
            return write_assay(source, path)
        return write_page(path, render_html(source, verified=verified, assay=assay))
    papers = paper_pages(source)
    made = assay or recorded_assay(source)
    text = render_html(summary or summary_of(source), papers, verified, made)
    return write_page(path or source.folder / "report.html", text)


def paragraphs(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return plain text as blocks of ("p" | "h4" | "ul", lines).

    Lines that start with a dash form a list. A short line without a full stop before a list is its
    heading.
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


def _tab_titles(settings: Sequence[SettingSummary]) -> list[str]:
    """Return names for tabs: the titles, without the part that all settings of one benchmark
    share.
    """
    titles = [setting.title for setting in settings]
    if (
        len(settings) < 2
        or len({setting.benchmark for setting in settings}) > 1
        or not all(setting.options for setting in settings)
    ):
        return titles
    parts = [title.split(", ") for title in titles]
    while min(map(len, parts)) > 1 and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    return [", ".join(part) for part in parts]
