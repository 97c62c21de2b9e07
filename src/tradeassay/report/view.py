"""What the page's template is given: words and places, all numbers already written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tradeassay.core.badges import Badges
from tradeassay.core.measure import Measure
from tradeassay.metrics import MEASURES
from tradeassay.report import charts, numbers
from tradeassay.report.calendar_returns import YearOfReturns, by_month
from tradeassay.report.contrast_view import ContrastView, FiguresView, contrast_views, figures_view
from tradeassay.report.contrasts import contrasts
from tradeassay.report.data import AgentData, CellData, DecisionNote, ReportData
from tradeassay.report.figure import Figure
from tradeassay.report.interval_bar import Scale, common_scale
from tradeassay.report.limits import limits_in_words, together
from tradeassay.report.model_view import ANSWERS, ModelView, kinds, model_view
from tradeassay.report.palette import LineStyle, colours, styles
from tradeassay.report.words import Answer, Verdict, answer, in_words, ranked, result, verdict

TABLE = ("cumulative_return", "sharpe", "max_drawdown", "volatility", "turnover", "failure_rate")
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
_BARRED = ("cumulative_return",)


class AgentView(msgspec.Struct, frozen=True, kw_only=True):
    """One agent on the page. ``rank`` is None without a result."""

    id: str
    rank: int | None
    agent: AgentData
    style: LineStyle
    verdict: Verdict
    figures: dict[str, Figure]
    difference: Figure | None
    months: tuple[YearOfReturns, ...]
    rejections: tuple[tuple[str, int, float], ...]
    failures: tuple[tuple[str, int], ...]
    decisions: tuple[DecisionNote, ...]
    has_holdings: bool
    symbols: tuple[str, ...]
    model: ModelView | None = None


class CellView(msgspec.Struct, frozen=True, kw_only=True):
    """One tab of the page."""

    id: str
    tab: str
    cell: CellData
    badges: tuple[tuple[str, str], ...]
    answer: Answer
    in_words: tuple[str, ...]
    agents: tuple[AgentView, ...]
    hottest: float
    rules: tuple[tuple[str, tuple[str, ...]], ...]
    window: str
    has_models: bool = False
    published: FiguresView | None = None


def badge_words(badges: Badges, answers: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return (kind, text) per badge; every table and page carries them.

    ``answers`` says whose answers are in the table; where they differ each kind has a badge of its own.
    """
    models = answers or ([] if badges.model == "none" else [badges.model])
    return (
        (badges.data, f"{badges.data} data"),
        ("convention", f"{badges.convention} convention"),
        *(("model", ANSWERS[kind]) for kind in models),
        *((("model", "rules only, no model"),) if not models else ()),
        *(("bias", f"known bias: {bias}") for bias in badges.biases),
    )


def compared(data: ReportData, views: Sequence[CellView]) -> tuple[ContrastView, ...]:
    """Return the cells of a page that differ in one setting, side by side."""
    tabs = {view.cell.id: view.id for view in views}
    return contrast_views(contrasts(data.cells, data.level, data.draws), tabs, data.level)


def cell_views(data: ReportData) -> list[CellView]:
    """Return the tabs of a page."""
    tabs = _tabs(data.cells)
    return [_cell(f"c{place}", tabs[place], cell, data) for place, cell in enumerate(data.cells)]


def _tabs(cells: Sequence[CellData]) -> list[str]:
    """Return names for tabs: titles, without what all have in common when they are settings of one benchmark."""
    titles = [cell.title for cell in cells]
    if len(cells) < 2 or len({cell.benchmark for cell in cells}) > 1 or not all(cell.settings for cell in cells):
        return titles
    parts = [title.split(", ") for title in titles]
    while min(map(len, parts)) > 1 and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    return [", ".join(part) for part in parts]


def payload(views: list[CellView]) -> dict[str, Any]:
    """Return what the page's script draws from, by tab: dates, colours, charts."""
    return {view.id: _drawings(view) for view in views}


def _cell(place: str, tab: str, cell: CellData, data: ReportData) -> CellView:
    looks = styles([agent.name for agent in cell.agents], cell.baseline)
    order = ranked(cell.agents)
    scale = common_scale([result(agent) for agent in order])
    apart = common_scale([agent.versus_baseline.difference for agent in order if agent.versus_baseline])
    jointly = together(cell, data.level, data.draws)
    agents = []
    for number, agent in enumerate(order):
        scales = {"cumulative_return": scale, "difference": apart}
        rank = number + 1 if result(agent).value is not None else None
        told = verdict(agent, cell, data.level)
        view = _agent(f"{place}-a{number}", rank, agent, cell, looks[agent.name], told, scales)
        agents.append(_with_joint(view, jointly.get(agent.name)))
    moved = [abs(month) for view in agents for year in view.months for month in year.months if month is not None]
    return CellView(
        id=place,
        tab=tab,
        cell=cell,
        badges=badge_words(cell.badges, kinds(cell.agents)),
        answer=answer(cell, data.level, data.draws),
        in_words=(*in_words(order, cell, data.level), *limits_in_words(cell, data.level)),
        agents=tuple(agents),
        hottest=max([0.01, *moved]),
        rules=_paragraphs(cell.rules),
        window=_window(cell),
        has_models=any(agent.model for agent in cell.agents),
        published=figures_view(cell.published),
    )


def _agent(
    place: str,
    rank: int | None,
    agent: AgentData,
    cell: CellData,
    style: LineStyle,
    told: Verdict,
    scales: Mapping[str, Scale],
) -> AgentView:
    versus = agent.versus_baseline
    most = max(agent.rejections.values(), default=1)
    traded = charts.trades(agent, cell)
    figures = {info.id: _figure(info.id, agent, scales) for info in MEASURES}
    return AgentView(
        id=place,
        rank=rank,
        agent=agent,
        style=style,
        verdict=told,
        figures=figures,
        difference=None
        if versus is None
        else _difference(versus.difference, agent.p_adjusted, scales["difference"]),
        months=by_month(cell.sessions, charts.shown_path(agent)) if agent.paths else (),
        rejections=tuple(
            (reason.replace("_", " "), number, round(100.0 * number / most, 1))
            for reason, number in sorted(agent.rejections.items(), key=lambda item: (-item[1], item[0]))
        ),
        failures=tuple(sorted(agent.failures.items(), key=lambda item: (-item[1], item[0]))),
        decisions=agent.decisions,
        has_holdings=agent.holdings is not None and bool(agent.holdings.symbols),
        symbols=() if traded is None else tuple(entry["symbol"] for entry in traded["symbols"]),
        model=model_view(agent, figures),
    )


def _figure(name: str, agent: AgentData, scales: Mapping[str, Scale]) -> Figure:
    info = numbers.info(name)
    summary = agent.measures[name]
    measure = summary.median
    spread = ""
    if summary.n > 1 and summary.lowest is not None and summary.highest is not None:
        spread = (
            f"{summary.n} seeds: {numbers.shown(name, summary.lowest)} to {numbers.shown(name, summary.highest)}"
        )
    return Figure(
        id=name,
        title=info.title,
        defined=info.defined,
        text=numbers.NONE if measure.value is None else numbers.shown(name, measure.value),
        interval=numbers.interval(name, measure),
        sort=measure.value,
        note=measure.reason or measure.note or "",
        bar=scales[name].bar(measure) if name in _BARRED else None,
        spread=spread,
    )


def _difference(measure: Measure, p: float | None, scale: Scale) -> Figure:
    bounds = ""
    if measure.low is not None and measure.high is not None:
        bounds = f"{numbers.difference(measure.low)} to {numbers.difference(measure.high)}"
    return Figure(
        id="difference",
        title="Against the baseline, per year",
        defined="Yearly difference of growth, paired by session; p-value after Holm's correction.",
        text=numbers.NONE if measure.value is None else numbers.difference(measure.value),
        interval=bounds,
        sort=measure.value,
        note=measure.reason or ("" if p is None else numbers.p_value(p)),
        bar=scale.bar(measure),
    )


def _with_joint(view: AgentView, joint: Measure | None) -> AgentView:
    """Return a row with the interval that holds for all rows together beside its own."""
    if view.difference is None or joint is None or joint.low is None or joint.high is None:
        return view
    words = f"all agents together: {numbers.difference(joint.low)} to {numbers.difference(joint.high)}"
    return msgspec.structs.replace(view, difference=msgspec.structs.replace(view.difference, spread=words))


def _paragraphs(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
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


def _window(cell: CellData) -> str:
    if not cell.sessions:
        return "no sessions"
    return f"{numbers.count(len(cell.sessions), 'session')}, {cell.sessions[0]} to {cell.sessions[-1]}"


def _drawings(view: CellView) -> dict[str, Any]:
    cell = view.cell
    looks = {agent.agent.name: agent.style for agent in view.agents}
    agents: dict[str, Any] = {}
    wanted: set[str] = set()
    for agent in view.agents:
        held, traded = charts.holdings(agent.agent), charts.trades(agent.agent, cell)
        wanted |= set(agent.symbols)
        agents[agent.id] = {"holdings": held, "trades": traded}
    return {
        "dates": charts.dates(cell),
        "sessions": list(cell.sessions),
        "colours": colours(looks),
        "equity": charts.equity(cell, looks),
        "underwater": charts.underwater(cell, looks),
        "agents": agents,
        "prices": {symbol: charts.prices(values) for symbol, values in cell.prices.items() if symbol in wanted},
    }
