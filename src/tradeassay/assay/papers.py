"""The papers' own tables, made from a recorded run: leaderboards, masks, cohorts, sizes, regimes, ablations.

Every table is computed from journals, scores and the hashed data, and asks no model. Cells are measures: a number
with its interval, or a reason. What a run does not hold (one mask, no factor models) gives no table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from tradeassay.assay.attribute import RunAttribution, attribute_run
from tradeassay.benchmarks import Benchmark, stockbench
from tradeassay.core.errors import DataError, RunError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.factors import FACTOR_NAMES
from tradeassay.masking import Truth, find_leaks
from tradeassay.metrics import max_drawdown, rate_measure, sharpe, significant
from tradeassay.runs import Run
from tradeassay.runs.score import AgentScores, yardstick


class StudyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a table."""

    name: str
    cells: tuple[Measure, ...]


class StudyTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table. ``forms`` says how each column is written (``share``, ``change``, ``number``, ``signed``)."""

    title: str
    columns: tuple[str, ...]
    forms: tuple[str, ...]
    rows: tuple[StudyRow, ...]
    note: str = ""


def paper_studies(run: Run, *, attribution: bool = True) -> tuple[StudyTable, ...]:
    """Return every table of the papers that a run can fill; none for a benchmark without a paper.

    ``attribution`` takes every account apart, for the rank by selection and the cohorts' exposures: it needs the
    data and takes seconds per episode. Raises :class:`RunError` when a run has not been scored.
    """
    cells = _cells(run)
    parts = _Attributed(run, attribution)
    tables: list[StudyTable] = []
    trading = {name: cell for name, cell in cells.items() if cell.benchmark.protocol == "ktdfin"}
    tables += [_leaderboard(run, cell, parts) for cell in trading.values()]
    tables += _by_mask(trading.values())
    tables += _cohorts(trading.values(), parts)
    tables += _rationales(run, trading.values())
    portfolio = {name: cell for name, cell in cells.items() if cell.benchmark.protocol == "stockbench"}
    tables += [_composite(run, cell) for cell in portfolio.values()]
    tables += _errors(run, portfolio.values())
    tables += _sizes(run, portfolio.values())
    tables += _regimes(portfolio.values())
    tables += _ablations(portfolio.values())
    return tuple(_named(table, run.names) for table in tables if table.rows)


def _named(table: StudyTable, names: Mapping[str, str]) -> StudyTable:
    """Return a table whose rows are called as agents are everywhere; a row may add its setting to a label."""
    rows = []
    for row in table.rows:
        label, comma, setting = row.name.partition(", ")
        rows.append(msgspec.structs.replace(row, name=f"{names.get(label, label)}{comma}{setting}"))
    return msgspec.structs.replace(table, rows=tuple(rows))


class _Cell(msgspec.Struct, frozen=True):
    """One cell of a run: its benchmark as played, the settings of its conversation, its agents."""

    name: str
    benchmark: Benchmark
    window: str
    settings: Mapping[str, object]
    rows: tuple[AgentScores, ...]
    models: frozenset[str]

    @property
    def asked(self) -> tuple[AgentScores, ...]:
        return tuple(row for row in self.rows if row.agent in self.models)


def _cells(run: Run) -> dict[str, _Cell]:
    found: dict[str, _Cell] = {}
    models = frozenset(episode.label for episode in run.episodes if episode.by_model)
    for row in run.scores.agents:
        if row.cell in found:
            continue
        episode = run.episode(row.episodes[0])
        record = run.manifest.protocols.get(row.cell)
        named = run.manifest.windows.get(row.cell)
        benchmark = run.manifest.benchmark(episode)
        window = named.code if named is not None else f"{benchmark.market.first} to {benchmark.market.last}"
        settings: Mapping[str, object] = {} if record is None else record.config
        rows = tuple(one for one in run.scores.agents if one.cell == row.cell)
        found[row.cell] = _Cell(row.cell, benchmark, window, settings, rows, models)
    return found


def _median(row: AgentScores, name: str) -> Measure:
    summary = row.measures.get(name)
    return not_scored("not measured in this version of the benchmark") if summary is None else summary.median


class _Attributed:
    """Attribution of the run, once, where it is wanted and can be had."""

    def __init__(self, run: Run, wanted: bool) -> None:
        self.reason = "attribution was not asked for"
        self.found: RunAttribution | None = None
        if wanted:
            try:
                self.found = attribute_run(run)
            except (RunError, DataError) as error:
                self.reason = str(error.message)

    def ranks(self, cell: str) -> dict[str, Measure]:
        """Return the place of each agent of a cell by selection, 1 for the greatest."""
        if self.found is None:
            return {}
        chosen = {
            one.agent: one.linked["selection"].median.value
            for one in self.found.agents
            if one.cell == cell and "selection" in one.linked
        }
        known = {agent: value for agent, value in chosen.items() if value is not None}
        return {
            agent: Measure(value=float(1 + sum(other > value for other in known.values())), n=len(known))
            for agent, value in known.items()
        }


# -- KTD-Fin ------------------------------------------------------------------------------------------------------

_PANEL: tuple[tuple[str, str, str], ...] = (
    ("cumulative_return", "total return", "change"),
    ("excess_return", "excess", "change"),
    ("sharpe", "Sharpe", "signed"),
    ("max_drawdown", "max drawdown", "change"),
    ("information_ratio", "IR", "signed"),
    ("turnover", "turnover", "number"),
    ("hhi", "HHI", "number"),
    ("cash_ratio", "cash", "share"),
    ("abstention_rate", "abstention", "share"),
    ("parse_failure_rate", "parse failures", "share"),
    ("ece", "ECE", "number"),
    ("brier", "Brier", "number"),
    ("tool_validity_rate", "valid calls", "share"),
)
_ONLY_MODELS = frozenset(("parse_failure_rate", "ece", "brier", "tool_validity_rate"))


def _leaderboard(run: Run, cell: _Cell, parts: _Attributed) -> StudyTable:
    """Return Table 4: the panel of ten, the diagnostics, the rank by selection, and the index among the rows."""
    ranks = parts.ranks(cell.name)
    rows = []
    for row in cell.rows:
        said = [
            not_scored("not a model")
            if name in _ONLY_MODELS and row.agent not in cell.models
            else _median(row, name)
            for name, _, _ in _PANEL
        ]
        rows.append(StudyRow(name=row.agent, cells=(*said, ranks.get(row.agent, not_scored(parts.reason)))))
    index = _index_row(run, cell)
    if index is not None:
        rows.append(index)
    rows.sort(key=lambda one: -(one.cells[0].value if one.cells[0].value is not None else -np.inf))
    settings = ", ".join(str(cell.settings[key]) for key in ("mask", "mode") if key in cell.settings)
    return StudyTable(
        title=f"Table 4: {cell.benchmark.id}, {settings or 'rules only'}, {cell.window}",
        columns=(*(title for _, title, _ in _PANEL), "rank by selection"),
        forms=(*(form for _, _, form in _PANEL), "{:.0f}"),
        rows=tuple(rows),
        note=f"medians over seeds, convention {cell.benchmark.convention}; turnover, HHI, abstention and "
        "calibration are defined as the convention has them",
    )


def _index_row(run: Run, cell: _Cell) -> StudyRow | None:
    """Return the index itself, from its levels: from the first close under ``paper``, else from the one before."""
    done = [key for row in cell.rows for key in row.episodes if run.scores.episode(key).status == "done"]
    if not done or cell.benchmark.index is None:
        return None
    sessions = tuple(record.session for record in run.records(done[0]))
    levels: Floats | None = None
    try:
        snapshot = run.snapshot(done[0])
        rows = snapshot.rows(sessions[0], sessions[-1])
        if cell.benchmark.convention != "paper":
            levels = yardstick(snapshot, cell.benchmark.index, sessions).levels
        elif rows.start > 0:
            levels = snapshot.at(rows.stop - 1, "close").index_levels(cell.benchmark.index, len(rows) + 1)
    except (DataError, RunError):
        return None
    if levels is None or levels.size < 3:
        return None
    path = levels[1:] if cell.benchmark.convention == "paper" else levels
    returns = path[1:] / path[:-1] - 1.0
    values = {
        "cumulative_return": float(path[-1] / path[0] - 1.0),
        "excess_return": 0.0,
        "sharpe": float(sharpe(returns, cell.benchmark.periods_per_year)),
        "max_drawdown": float(max_drawdown(path)),
    }
    cells = tuple(
        Measure(value=significant(values[name]), n=len(sessions)) if name in values else not_scored("an index")
        for name, _, _ in _PANEL
    )
    return StudyRow(name=f"{cell.benchmark.index} buy and hold", cells=(*cells, not_scored("an index")))


_MASKS = ("bright", "stock-blind", "date-blind", "blinded")
_SHOWN = (
    ("cumulative_return", "return", "change"),
    ("abstention_rate", "abstention", "share"),
    ("turnover", "turnover", "number"),
)


def _by_mask(cells: Iterable[_Cell]) -> list[StudyTable]:
    """Return Table 3 and Appendix J: return, abstention and turnover by mode and mask."""
    groups: dict[tuple[str, str], list[_Cell]] = {}
    for cell in cells:
        if "mask" in cell.settings:
            groups.setdefault((cell.benchmark.id, cell.window), []).append(cell)
    tables = []
    for (benchmark, window), members in groups.items():
        masks = [mask for mask in _MASKS if any(cell.settings["mask"] == mask for cell in members)]
        if len(masks) < 2:
            continue
        rows: dict[str, dict[str, AgentScores]] = {}
        for cell in members:
            for row in cell.asked:
                rows.setdefault(f"{row.agent}, {cell.settings.get('mode')}", {})[str(cell.settings["mask"])] = row
        tables.append(
            StudyTable(
                title=f"Table 3 and Appendix J: {benchmark}, {window}, by mode and mask",
                columns=tuple(f"{title}, {mask}" for _, title, _ in _SHOWN for mask in masks),
                forms=tuple(form for _, _, form in _SHOWN for _ in masks),
                rows=tuple(
                    StudyRow(
                        name=name,
                        cells=tuple(
                            _median(by[mask], measure) if mask in by else not_scored("not run")
                            for measure, _, _ in _SHOWN
                            for mask in masks
                        ),
                    )
                    for name, by in rows.items()
                ),
            )
        )
    return tables


def _cohorts(cells: Iterable[_Cell], parts: _Attributed) -> list[StudyTable]:
    """Return Table 8: the mean exposure of language models and of all others, factor by factor."""
    if parts.found is None:
        return []
    tables = []
    for cell in cells:
        held: dict[str, list[Mapping[str, Measure]]] = {"language models": [], "others": []}
        for one in parts.found.agents:
            if one.cell == cell.name:
                held["language models" if one.by_model else "others"].append(one.preferences)
        rows = []
        for who, agents in held.items():
            means = []
            for name in FACTOR_NAMES:
                values = [value for one in agents if name in one and (value := one[name].value) is not None]
                means.append(
                    Measure(value=significant(float(np.mean(values))), n=len(values))
                    if values
                    else not_scored("nobody held anything")
                )
            if agents:
                rows.append(StudyRow(name=f"{who} ({len(agents)})", cells=tuple(means)))
        if len(rows) == 2:
            tables.append(
                StudyTable(
                    title=f"Table 8: exposures by cohort, {cell.name}",
                    columns=FACTOR_NAMES,
                    forms=("signed",) * len(FACTOR_NAMES),
                    rows=tuple(rows),
                    note="portfolio-weighted z-scores, mean over invested days, then over the cohort",
                )
            )
    return tables


_FACTOR = re.compile(
    r"(?i)\b(?:MOM_12_1|RV_60|ILLIQ|REV_ON|MOM_ID|SKEW|CORR_PV|HIGH_52W|CV_VOL|momentum|volatil\w*|liquid\w*|revers\w*"
    r"|skew\w*|52.?week|yearly high)\b"
)


def _rationales(run: Run, cells: Iterable[_Cell]) -> list[StudyTable]:
    """Return what Appendix A reads by eye: how many reasons name a company, a day or a factor, by mask."""
    rows = []
    for cell in cells:
        for row in cell.asked:
            said = [
                (record.session, order.reason)
                for key in row.episodes
                for record in run.records(key)
                for order in record.decision.orders
                if order.reason
            ]
            if not said:
                continue
            try:
                names = _names_in(run, row.episodes[0], said)
            except (DataError, RunError) as error:
                names = not_scored(str(error.message))
            dated = sum(_DATED.search(reason) is not None for _, reason in said)
            factors = sum(_FACTOR.search(reason) is not None for _, reason in said)
            mode = f"{cell.settings.get('mode')}, {cell.settings.get('mask')}"
            rows.append(
                StudyRow(
                    name=f"{row.agent}, {mode}",
                    cells=(
                        Measure(value=float(len(said)), n=len(said)),
                        names,
                        rate_measure(dated, len(said), nothing="no reason was given"),
                        rate_measure(factors, len(said), nothing="no reason was given"),
                    ),
                )
            )
    return [
        StudyTable(
            title="Section 5.1 and Appendix A: what reasons speak of",
            columns=("orders with a reason", "name a company", "name a day", "name a factor"),
            forms=("{:.0f}", "share", "share", "share"),
            rows=tuple(rows),
            note="shares of orders; a name is a company's name or brand, not the id the order is given by. What a "
            "masked model named itself was recorded as [name] or [date] and counts",
        )
    ]


def _names_in(run: Run, key: str, said: Sequence[tuple[str, str]]) -> Measure:
    snapshot = run.snapshot(key)
    view = snapshot.at(snapshot.rows(said[-1][0], said[-1][0]).start, "close")
    from tradeassay.masking import MaskConfig

    whole = Truth.of(view, MaskConfig(level="stock-blind"))
    truth = Truth(names=whole.names, chinese=whole.chinese, spellings=whole.spellings)
    named = sum("[name]" in reason or bool(find_leaks(reason, truth)) for _, reason in said)
    return rate_measure(named, len(said), nothing="no reason was given")


_DATED = re.compile(
    r"\[(?:date|day|month|year|period|festival)\]|(?<!\d)(?:19|20)\d{2}[-/年.]\d{1,2}|\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct"
    r"|Nov|Dec)[a-z]*\.? \d{1,2}\b|\b(?:in|since|of|from) (?:19|20)\d{2}\b|\d{1,2}月"
)


# -- StockBench ---------------------------------------------------------------------------------------------------


def _composite(run: Run, cell: _Cell) -> StudyTable:
    """Return the main table: the three measures, composite and rank, and the published baseline."""
    cohort = {
        row.agent: [series for key in row.episodes if (series := run.series(key)).failure is None]
        for row in cell.rows
    }
    cohort = {label: series for label, series in cohort.items() if series}
    printed = ""
    rows = []
    for one in stockbench.standings(cohort, cell.benchmark.convention):
        rank = not_scored("no composite") if one.rank is None else Measure(value=float(one.rank), n=len(cohort))
        cells = (one.cumulative_return, one.max_drawdown, one.sortino, one.composite, rank)
        rows.append(StudyRow(name=one.label, cells=cells))
    try:
        base = stockbench.published_baseline(run.snapshot(cell.rows[0].episodes[0]), cell.benchmark.market)
        measures = stockbench.measures_of(base, cell.benchmark.convention)
        printed = f"; {_beside_print(run, cell, base.sessions)}"
        none = not_scored("not in the cohort: it pays no costs and gets no dividends")
        rows.append(
            StudyRow(
                name="published baseline: equal weight, no costs, no dividends",
                cells=(*(measures[name] for name in stockbench.PANEL), none, none),
            )
        )
    except (DataError, RunError):
        pass
    return StudyTable(
        title=f"Main table: {cell.name}",
        columns=("return", "max drawdown", "Sortino", "composite", "rank"),
        forms=("{:+.5%}", "{:+.5%}", "signed", "signed", "{:.0f}"),
        rows=tuple(rows),
        note=f"means over seeds, convention {cell.benchmark.convention}{printed}",
    )


def _beside_print(run: Run, cell: _Cell, sessions: Sequence[str]) -> str:
    """Return what the paper prints for its baseline, and whether ours may be compared with it."""
    key = cell.rows[0].episodes[0]
    snapshot = run.snapshot(key)
    view = snapshot.at(snapshot.rows(sessions[-1], sessions[-1]).start, "close")
    universe = cell.benchmark.market.universe
    ours = stockbench.StockbenchSetting(
        data=run.cell_badges(cell.name).data,
        symbols=view.symbols if universe == "all" else view.members(universe.split(":")[0]),
        first=sessions[0],
        last=sessions[-1],
        convention=cell.benchmark.convention,
        frictionless=True,
    )
    figures = [figure for figure in stockbench.published().figure if figure.frictionless]
    told = ", ".join(f"{figure.measure.replace('_', ' ')} {figure.value:+.1%}" for figure in figures)
    reasons = dict.fromkeys(why for figure in figures for why in stockbench.compare_with(figure, ours).reasons)
    verdict = "comparable: yes" if not reasons else f"comparable: no, because {'; '.join(reasons)}"
    return f"printed for the published baseline: {told}; {verdict}"


_THINKING = re.compile(r"(?i)think|reason|(?:^|[/-])o[134](?:-|$)|(?:^|[/-])r1(?:-|$)|qwq")


def kind_of_model(name: str) -> str:
    """Return ``thinking`` or ``instruct``, by a model's name alone."""
    return "thinking" if _THINKING.search(name) else "instruct"


def _errors(run: Run, cells: Iterable[_Cell]) -> list[StudyTable]:
    """Return Figure 3: shares of sessions with each kind of mistake, by model and by kind of model."""
    names = ("schema", "arithmetic", "liquidity", "give_up", "unanswered")
    rows: list[StudyRow] = []
    kinds: dict[str, list[str]] = {}
    for cell in cells:
        for row in cell.asked:
            profile = stockbench.error_profile(record for key in row.episodes for record in run.records(key))
            rows.append(
                StudyRow(name=f"{row.agent}, {cell.name}", cells=tuple(getattr(profile, name) for name in names))
            )
            model = run.manifest.models[row.agent].model if row.agent in run.manifest.models else row.agent
            kinds.setdefault(kind_of_model(model), []).extend(row.episodes)
    for kind, keys in kinds.items() if len(kinds) > 1 else ():
        profile = stockbench.error_profile(record for key in keys for record in run.records(key))
        rows.append(StudyRow(name=f"all {kind} models", cells=tuple(getattr(profile, name) for name in names)))
    return [
        StudyTable(
            title="Figure 3: mistakes by kind, shares of sessions",
            columns=("schema", "arithmetic", "liquidity", "gave up", "no answer"),
            forms=("share",) * 5,
            rows=tuple(rows),
            note="thinking or instruct is told by a model's name",
        )
    ]


def _sizes(run: Run, cells: Iterable[_Cell]) -> list[StudyTable]:
    """Return the size study: the spread of returns over seeds by size of the universe."""
    by: dict[str, dict[int, list[str]]] = {}
    conventions = set()
    for cell in cells:
        size = cell.benchmark.market.universe.partition(":")[2]
        if size.isdigit():
            conventions.add(cell.benchmark.convention)
            for row in cell.rows:
                by.setdefault(row.agent, {}).setdefault(int(size), []).extend(row.episodes)
    sizes = sorted({size for found in by.values() for size in found})
    if len(sizes) < 2 or len(conventions) != 1:
        return []
    rows = []
    for agent, found in by.items():
        study = stockbench.size_study(
            {size: [run.series(key) for key in keys] for size, keys in found.items()}, conventions.copy().pop()
        )
        at = {row.size: row for row in study}
        missing = not_scored("not run")
        rows.append(
            StudyRow(
                name=agent,
                cells=(
                    *(at[size].returns.median if size in at else missing for size in sizes),
                    *(at[size].variation if size in at else missing for size in sizes),
                ),
            )
        )
    return [
        StudyTable(
            title="Size study: returns and their coefficient of variation over seeds",
            columns=(
                *(f"return, {size} names" for size in sizes),
                *(f"variation, {size} names" for size in sizes),
            ),
            forms=(*("change" for _ in sizes), *("number" for _ in sizes)),
            rows=tuple(rows),
        )
    ]


def _across(title: str, cells: Sequence[_Cell], label: Callable[[_Cell], str], note: str = "") -> list[StudyTable]:
    """Return agents by ways of playing, with return and drawdown in each."""
    ways = list(dict.fromkeys(label(cell) for cell in cells))
    if len(ways) < 2:
        return []
    found: dict[str, dict[str, AgentScores]] = {}
    for cell in cells:
        for row in cell.rows:
            found.setdefault(row.agent, {})[label(cell)] = row
    shown = (("cumulative_return", "return"), ("max_drawdown", "drawdown"))
    return [
        StudyTable(
            title=title,
            columns=tuple(f"{words}, {way}" for _, words in shown for way in ways),
            forms=("change",) * (2 * len(ways)),
            rows=tuple(
                StudyRow(
                    name=agent,
                    cells=tuple(
                        _median(by[way], name) if way in by else not_scored("not run")
                        for name, _ in shown
                        for way in ways
                    ),
                )
                for agent, by in found.items()
            ),
            note=note,
        )
    ]


def _regimes(cells: Iterable[_Cell]) -> list[StudyTable]:
    """Return results by regime: the named windows, or the benchmarks of a falling and a rising market."""
    every = [
        cell
        for cell in cells
        if ":" not in cell.benchmark.market.universe or cell.benchmark.market.universe.endswith(":20")
    ]
    settings = {tuple(sorted((key, str(value)) for key, value in cell.settings.items())) for cell in every}
    return _across("Regimes", every, lambda cell: cell.window) if len(settings) <= 1 else []


def _ablations(cells: Iterable[_Cell]) -> list[StudyTable]:
    """Return the ablations: what is left when inputs are left out, and what the wording of the prompt changes."""
    asked = [
        msgspec.structs.replace(cell, rows=cell.asked)
        for cell in cells
        if cell.asked and "inputs" in cell.settings
    ]
    return _across(
        "Ablations: inputs and wording of the prompt",
        asked,
        lambda cell: f"{cell.settings.get('inputs')} / {cell.settings.get('prompt')}",
    )


__all__ = ["StudyRow", "StudyTable", "kind_of_model", "paper_studies"]
