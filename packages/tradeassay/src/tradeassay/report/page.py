"""The page of an account.

It displays the verdict, alpha against zero, the parts of the return, the account's history, the
reasons for and against, and the time until more is known.

The page of a recorded run has the same accounts with more details. See ``run_page``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from tradeassay.core.measure import BadgeTexts, Measure
from tradeassay.factors import factor_words
from tradeassay.metrics import MEASURES
from tradeassay.metrics.history import ROLLING, AccountHistory
from tradeassay.report import numbers
from tradeassay.report.charts import (
    BASELINE,
    MOST_LINES,
    LineStyle,
    account_charts,
    rolling_chart,
    styles,
    ticks,
    waterfall_svg,
)
from tradeassay.report.formatting import MeasureShown, Scale, common_scale, shown
from tradeassay.report.shell import render_page, write_page
from tradeassay.report.verdicts import PARTS, TONES
from tradeassay.report.words import AgentStanding, badge_words
from tradeassay.tables.dates import ENGLISH_MONTHS
from tradeassay.verdict.record import AgentAssay, Assay
from tradeassay.verdict.statement import QUANTITIES

_TABLE = ("sharpe", "max_drawdown", "volatility", "turnover", "failure_rate")
_TILES = (
    *("return-per-year", "sharpe", "sortino", "max-drawdown"),
    *("volatility", "calmar"),
)
"""Quantities in the tiles of an account, each with the value of its statement."""
_BEHAVIOUR = ("hhi", "cash_ratio", "abstention_rate", "rejection_rate")
_MONTHS = tuple(name[:3] for name in ENGLISH_MONTHS)
_DETAILED = 27
"""Number of accounts of a page with charts and decisions. Further accounts only have their
numbers."""


class Tile(NamedTuple):
    """A number with its title. ``shown`` is its text, ``more`` an additional remark.

    ``identity`` names the account and the quantity. Tests use it to compare all surfaces.
    """

    title: str
    shown: MeasureShown
    defined: str = ""
    more: str = ""
    identity: str = ""


def stated_tile(judged: AgentAssay, quantity: str, owner: str, more: str = "") -> Tile | None:
    """Return the tile of a statement, or None if there is no such statement.

    ``owner`` is the account whose statement it is. A ratio or a difference names its benchmark.
    """
    statement = judged.statement(quantity)
    if statement is None:
        return None
    known = QUANTITIES[quantity]
    title = known.heading
    if statement.versus is not None:
        if quantity in ("excess-return", "information-ratio"):
            title = f"{title} versus {statement.versus}"
        elif quantity == "benchmark-return":
            more = f"{statement.versus}, over the same sessions"
    text = shown(statement.measure, statement.form)
    return Tile(title, text, known.definition, more, f"{owner}/{quantity}")


def _sentence_of(judged: AgentAssay, quantity: str) -> str:
    """Return the sentence of a statement, or an empty text without the statement."""
    statement = judged.statement(quantity)
    if statement is None:
        return ""
    return f"{statement.claim[:1].upper()}{statement.claim[1:]}."


class AccountOnPage:
    """One account: its verdict if it was judged, and its results, both as text.

    ``place`` is its tier or rank. ``unranked`` is the reason for a missing rank. ``alpha`` is the
    measure in the main chart, or the difference from a baseline if the account was not judged.
    """

    agent: object = None
    detail: object = None
    name: str
    baseline = False
    result: Measure
    style: LineStyle
    ranked: bool

    def __init__(
        self, place: int, tab: TabOnPage, assayed: AgentAssay | None, *, detailed: bool
    ) -> None:
        self.id = f"{tab.id}-a{place}"
        self.assayed = assayed
        self.detailed = detailed
        self._tab = tab
        self.place = ""
        self.unranked = ""
        self.cost = ""
        self.whose = ""
        self.p_value = ""
        self.until = ""
        self.mistakes = ""
        self.difference: MeasureShown | None = None
        self.standing: AgentStanding | None = None
        self.tone, self.label, self.sentence = "none", "", ""
        self.history: AccountHistory | None = None
        self.curves: tuple[Markup, Markup] | None = None
        self.waterfall: Markup | None = None
        self.badges: BadgeTexts = ()
        self.decisions = ("", 0, 0)
        self.notes: Sequence[Any] = ()
        self.tools: list[str] = []
        drawn = self._read(place)
        # Owner of the statements on the page, and the subject of a label: see ``data-claim`` in the
        # templates.
        self.identity = f"{tab.name if assayed is None else assayed.setting}/{self.name}"
        judged = assayed is not None and not self.baseline
        self.labelled = f"{self.identity}/{'verdict' if judged else 'standing'}"
        if assayed is not None:
            if judged:
                verdict = assayed.verdict
                self.tone, self.label, self.sentence = (
                    TONES[verdict.kind],
                    verdict.label,
                    verdict.sentence,
                )
                stated = assayed.statement("alpha")
                drawn = None if stated is None else stated.measure
            self.waterfall = waterfall_svg(assayed) if detailed else None
            self.until = _sentence_of(assayed, "years-to-know")
            self.badges = () if assayed.badges is None else badge_words(assayed.badges)
            self.mistakes = ", ".join(f"{kind} {n}" for kind, n in assayed.failures.items())
        self.alpha_measure = None if drawn is None or drawn.value is None else drawn
        self.rolling = None if self.history is None else rolling_chart(self.history)

    def _read(self, place: int) -> Measure | None:
        """Fill in the account's results.

        Return the difference to draw if there is no verdict.
        """
        assert self.assayed is not None
        self.name = self.assayed.agent
        self.result = self.assayed.total
        self.style = self._tab.look.get(self.name, BASELINE)
        self.ranked = self.assayed.total.value is not None
        self.history = self.assayed.history
        if self.assayed.curve is not None and len(self.assayed.curve.sessions) > 1:
            self.curves = account_charts(self.assayed.curve)
        return None

    @property
    def alpha(self) -> MeasureShown | None:
        """Return alpha as drawn in the chart, or None if there is none."""
        return (
            None
            if self.alpha_measure is None
            else shown(self.alpha_measure, "change", self._tab.alphas)
        )

    @property
    def tiles(self) -> list[Tile]:
        """Return the usual measures as stated.

        A short record states the reason for a missing measure.
        """
        if self.assayed is None or not self.assayed.measures:
            return []
        candidates = (stated_tile(self.assayed, quantity, self.identity) for quantity in _TILES)
        return [tile for tile in candidates if tile is not None]

    def stated(self, quantity: str, more: str = "") -> Tile | None:
        """Return the tile of a statement of this account, or None without it."""
        return (
            None
            if self.assayed is None
            else stated_tile(self.assayed, quantity, self.identity, more)
        )

    @property
    def parts(self) -> list[tuple[str, Tile]]:
        """Return the return and its parts, with all intervals drawn on one scale."""
        assert self.assayed is not None
        candidates = [(name, self.assayed.statement(name)) for name in ("return", *PARTS)]
        known = [
            (name, one) for name, one in candidates if one is not None and one.value is not None
        ]
        scale = common_scale([one.measure for _, one in known])
        return [
            (
                name,
                Tile(one.title, shown(one.measure, "change", scale), QUANTITIES[name].definition),
            )
            for name, one in known
        ]

    @property
    def exposures(self) -> list[tuple[str, Measure]]:
        """Return the factors with a known exposure, the largest first and equal ones by name.

        The record itself has no order.
        """
        known = {} if self.assayed is None else self.assayed.exposures
        pairs = [
            (factor_words(name), measure)
            for name, measure in known.items()
            if measure.value is not None
        ]
        return sorted(pairs, key=lambda pair: (-abs(pair[1].value or 0.0), pair[0]))


class TabOnPage:
    """One tab with comparable accounts.

    ``returns``, ``differences`` and ``alphas`` are common scales. ``hottest`` is the largest
    absolute return of a month, for the intensity of colours. ``setting`` is the setting of a run.
    """

    setting: object = None
    charts: object = None
    has_models = False
    support: tuple[str, ...] = ()
    in_words: tuple[str, ...] = ()
    rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
    headline: str
    badges: BadgeTexts
    look: dict[str, LineStyle]

    def __init__(
        self, id: str, tab: str, name: str, judged: Sequence[AgentAssay], data: PageData
    ) -> None:
        self.id, self.tab, self.name, self.level = id, tab, name, data.level
        self.judged = judged
        # If no factors are known, style was not subtracted.
        styled = any(one.parts["style"].value is not None for one in judged if "style" in one.parts)
        self.beyond = "market and style" if styled else "the market"
        self.key = {} if data.assay is None or not data.own else data.assay.key
        self.returns = common_scale([])
        self.differences = self.returns
        self.agents: Sequence[AccountOnPage] = self._accounts(data)
        self.drawn = sorted(
            (one for one in self.agents if one.alpha_measure is not None),
            key=lambda one: (
                one.unranked != "",
                -((one.alpha_measure.value if one.alpha_measure else None) or 0.0),
            ),
        )
        self.alphas: Scale = common_scale(
            [one.alpha_measure for one in self.drawn if one.alpha_measure is not None]
        )
        step, marks = ticks(self.alphas.low, self.alphas.high, 6)
        digits = 0 if step >= 0.01 else 1
        self.axis = [
            (
                self.alphas.place(at),
                f"{at:{'+' if at else ''}.{digits}%}".replace("-", numbers.MINUS),
            )
            for at in marks
        ]
        histories = [one.history for one in self.agents if one.history is not None]
        months = [month for one in histories for year in one.months for month in year.months]
        self.hottest = max([0.01, *(abs(month) for month in months if month is not None)])
        self.first = next((one for one in self.agents if not one.baseline), None)

    def _accounts(self, data: PageData) -> Sequence[AccountOnPage]:
        """Return the accounts, and set the fields of the tab that depend on all of them."""
        self.look = styles([one.agent for one in self.judged], "")
        self.badges = () if self.judged[0].badges is None else badge_words(self.judged[0].badges)
        self.headline = self.judged[0].verdict.sentence
        if self.key:
            known = [one for one in self.judged if one.agent in self.key]
            right = sum(one.verdict.kind in self.key[one.agent].deserves for one in known)
            self.headline = f"{right} of {len(self.key)} right where the answer is known."
        elif len(self.judged) > 1:
            kinds = Counter(one.verdict.label for one in self.judged)
            self.headline = "; ".join(
                f"{label}: {n} of {len(self.judged)}" for label, n in kinds.most_common()
            )
        return [
            AccountOnPage(place, self, one, detailed=place < data.detailed)
            for place, one in enumerate(self.judged)
        ]


class PageData:
    """All data for the page of an assay."""

    own = True
    summary: object = None
    title: str
    level: float

    def __init__(self, assay: Assay | None) -> None:
        self.assay = assay
        self.tabs: Sequence[TabOnPage] = self._tabs()

    def _tabs(self) -> Sequence[TabOnPage]:
        assert self.assay is not None
        self.title, self.level = self.assay.title, self.assay.config.level
        judged = self.assay.agents
        self.detailed = most_detailed(1, len(judged))
        if not judged:
            return []
        if self.assay.key:  # accounts with an answer key share a tab
            return [TabOnPage("c0", "Is it found?", "", judged, self)]
        tabs = []
        for place, name in enumerate(dict.fromkeys(one.setting for one in judged)):
            inside = [one for one in judged if one.setting == name]
            tabs.append(
                TabOnPage(f"c{place}", self.assay.titles.get(name, name), name, inside, self)
            )
        return tabs


def most_detailed(tabs: int, accounts: int) -> int:
    """Return the number of accounts per tab with charts.

    ``accounts`` is the size of the largest tab. A page of two hundred accounts stays below two
    megabytes because only drawn accounts have details.
    """
    fits = max(3, _DETAILED // max(1, tabs))
    return min(fits, MOST_LINES) if accounts > fits else fits


def render_assay(assay: Assay) -> str:
    """Return the HTML page of an assay. All text is escaped, and the page works offline."""
    return rendered(PageData(assay), data=None, papers=(), verified=None)


def write_assay(assay: Assay, path: Path) -> Path:
    """Write the self-contained page of an assay and return its path."""
    return write_page(path, render_assay(assay))


def rendered(page: PageData, **context: object) -> str:
    """Return the HTML of a page. ``context`` has the template variables besides the accounts."""
    shared = {
        "page": page,
        "assay": page.assay,
        "tabs": page.tabs,
        "table": _TABLE,
        "behaviour": _BEHAVIOUR,
        "measures": [info.id for info in MEASURES],
        "months": _MONTHS,
        "month_text": numbers.month_text,
        "p_value": numbers.p_value,
        "rolling": ROLLING,
        "common_scale": common_scale,
    }
    return render_page("page.html.j2", shared | context, scripts=("charts.js", "decisions.js"))
