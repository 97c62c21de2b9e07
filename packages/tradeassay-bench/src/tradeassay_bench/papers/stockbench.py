"""Fill StockBench's tables and figures from journals, scores and the hashed data.

Every study varies one setting of the main table and fixes the remaining settings. Sizes are
compared in the main window with all inputs, regimes with the main number of names, and ablations in
the main window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

import msgspec

from tradeassay.core.errors import DataError
from tradeassay.core.measure import Measure, not_scored
from tradeassay_bench.benchmarks import stockbench
from tradeassay_bench.benchmarks.exhibits import (
    Filled,
    PaperPage,
    fill_paper,
    group_table,
    groups_exhibit,
    row,
)
from tradeassay_bench.benchmarks.stockbench.panel import StockbenchFigure
from tradeassay_bench.benchmarks.stockbench.specs import NAMES
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.core.tables import Row, Table, table
from tradeassay_bench.papers.cells import Group, Line, groups_of, latency
from tradeassay_bench.runs import Run
from tradeassay_bench.runs.summary.reading import stockbench_setting

_INPUTS = ("all", "no-news", "no-fundamentals", "neither")
_ERRORS = ("schema", "arithmetic", "liquidity", "give_up", "unanswered")
_RESULTS = (("return", "change"), ("max drawdown", "change"), ("Sortino", "signed"))


def stockbench_page(runs: Sequence[Run]) -> PaperPage:
    """Return StockBench's page, filled with results of some runs."""
    groups = groups_of(runs, "stockbench")
    makers: dict[str, Callable[[], Filled]] = {
        "main": lambda: _main(groups),
        "thinking": lambda: _thinking(groups),
        "figure-3": lambda: _errors(groups),
        "table-3": lambda: _sizes(groups),
        "ablations": lambda: _ablations(groups),
        "figure-4": lambda: _regimes(groups),
        "latency": lambda: latency(runs),
        "groups": lambda: _kinds(groups, ("general", "specialised")),
    }
    printed = stockbench.published()
    return fill_paper("stockbench", makers, source=printed.source, second_hand=printed.second_hand)


def _main_group(groups: Sequence[Group]) -> Group | None:
    """Return the group of the main table.

    It has the paper's window and number of names, with all inputs. If there is no such group, the
    closest group is returned.
    """
    whole = [group for group in groups if group.settings.get("inputs", "all") == "all"]
    usual = [group for group in whole if group.size in (None, NAMES)]
    regimes = {"down", "up"}  # words in the name of a regime's window or benchmark
    main = []
    for group in usual:
        if not {group.window.split("-")[0], group.benchmark.id.split("-")[1]} & regimes:
            main.append(group)
    return next(iter((*main, *usual, *whole, *groups)), None)


def _like(
    main: Group, group: Group, *, size: bool = False, window: bool = False, inputs: bool = False
) -> bool:
    """Return whether a group equals the main group, except for settings that may differ."""
    own_settings = {"inputs": "all"} | dict(group.settings)
    main_settings = {"inputs": "all"} | dict(main.settings)
    own_inputs, main_inputs = own_settings.pop("inputs"), main_settings.pop("inputs")
    own_days = (group.benchmark.market.first, group.benchmark.market.last)
    main_days = (main.benchmark.market.first, main.benchmark.market.last)
    return (
        group.dataset == main.dataset
        and group.benchmark.convention == main.benchmark.convention
        and (size or group.size == main.size)
        and (window or own_days == main_days)
        and (inputs or own_inputs == main_inputs)
        and (not group.settings or not main.settings or own_settings == main_settings)
    )


def _standings(group: Group) -> list[stockbench.CohortStanding]:
    """Return the standings of a group's agents that have a result."""
    cohort = {line.name: series for line in group.lines if (series := line.series())}
    unranked = {line.name: line.unranked for line in group.lines}
    return list(stockbench.standings(cohort, group.benchmark.convention, unranked))


def _rank(
    standing: stockbench.CohortStanding, cohort: Iterable[stockbench.CohortStanding]
) -> Measure:
    """Return an agent's rank, with the number of ranked agents."""
    if standing.rank is None:
        return not_scored("no composite" if standing.unranked is None else "not ranked")
    return Measure(value=float(standing.rank), n=sum(other.unranked is None for other in cohort))


def _main(groups: Sequence[Group]) -> Filled:
    """Return measures, composite and rank of every agent and of the baseline, computed and
    printed.
    """
    main = _main_group(groups)
    if main is None or main.sample is None:
        return Filled(missing="no agent has a result")
    cohort = _standings(main)
    forms = ("change", "change", "signed", "signed", "{:.0f}")
    rows = []
    for standing in cohort:
        cells = [
            standing.cumulative_return,
            standing.max_drawdown,
            standing.sortino,
            standing.composite,
            _rank(standing, cohort),
        ]
        rows.append(row(standing.label, zip(cells, forms, strict=True), unranked=standing.unranked))
    failed = [(not_scored("every episode failed"), form) for form in forms]
    rows += [row(line.name, failed) for line in main.lines if not line.done]
    run, key = main.sample
    figures = [
        published for published in stockbench.published().figure if published.where == "Section 3.2"
    ]
    none = not_scored("not in the cohort: it pays no costs and gets no dividends")
    reasons: dict[str, None] = {}  # an ordered set
    setting = stockbench_setting(run, key, main.benchmark, run.series(key).sessions)
    try:
        base = stockbench.published_baseline(run.snapshot(key), main.benchmark.market)
        measures = stockbench.measures_of(base, main.benchmark.convention)
        cells = [*(measures[name] for name in stockbench.PANEL), none, none]
        # As many digits as are known of the reference account.
        exact = zip(cells, ("{:+.5%}", "{:+.5%}", *forms[2:]), strict=True)
        rows.append(row("published baseline: equal weight, no costs, no dividends", exact))
        ours = msgspec.structs.replace(setting, frictionless=True)
        for published in figures:
            if published.frictionless:
                reasons |= dict.fromkeys(stockbench.compare_with(published, ours))
    except (DataError, RunError) as error:
        reasons[str(error.message)] = None
    for published in figures:
        if not published.frictionless:
            reasons |= dict.fromkeys(stockbench.compare_with(published, setting))
    rows += _printed(figures, forms)
    results = table(
        main.title,
        ("", "return", "max drawdown", "Sortino", "composite", "rank"),
        rows,
        note=f"means over seeds, convention {main.benchmark.convention}",
    )
    return Filled(tables=(results,), reasons=tuple(reasons))


def _printed(figures: Sequence[StockbenchFigure], forms: Sequence[str]) -> list[Row]:
    """Return a row for each agent of the published figures."""
    lost = not_scored("not in our text of the paper")
    rows = []
    for who in dict.fromkeys(published.who for published in figures):
        values = {
            published.measure: Measure(value=published.value)
            for published in figures
            if published.who == who
        }
        cells = [*(values.get(name, lost) for name in stockbench.PANEL), lost, lost]
        rows.append(row(f"printed: {who}", zip(cells, forms, strict=True), ours=False))
    return rows


def _kinds(groups: Sequence[Group], kinds: tuple[str, str]) -> Filled:
    """Return the mean results of two kinds of models."""
    main = _main_group(groups)
    if main is None:
        return groups_exhibit()
    standings = {standing.label: standing for standing in _standings(main)}
    models = {}
    for line in main.asked:
        measures = [not_scored("every episode failed")] * 3
        standing = standings.get(line.name)
        if standing is not None:
            measures = [standing.cumulative_return, standing.max_drawdown, standing.sortino]
        models[line.name] = (str(line.model), measures)
    results = group_table("Groups of models", _RESULTS, models)
    return groups_exhibit(results if results is None else _only(results, kinds))


def _only(groups: Table, kinds: tuple[str, str]) -> Table:
    """Return a table of groups with the rows of some kinds of models."""
    rows = tuple(entry for entry in groups.rows if entry.head.text.split(" ")[0] in kinds)
    return msgspec.structs.replace(groups, rows=rows)


def _thinking(groups: Sequence[Group]) -> Filled:
    """Return the results of thinking and instruct models, and the printed pair."""
    exhibit = _kinds(groups, ("thinking", "instruct"))
    figures = [
        published
        for published in stockbench.published().figure
        if published.who.startswith("Qwen3-235B")
    ]
    if not exhibit.tables:
        return exhibit
    ours = exhibit.tables[0]
    printed = [
        Row(entry.head, entry.cells[:3])
        for entry in _printed(figures, ("change", "change", "signed", "", ""))
    ]
    both = msgspec.structs.replace(ours, rows=(*ours.rows, *printed))
    return Filled(tables=(both,), reasons=("the printed pair is one model in two versions",))


def _errors(groups: Sequence[Group]) -> Filled:
    """Return the shares of sessions with each kind of mistake.

    One table is by model and setting, one by model kind.
    """
    rows, pooled, main = [], {}, _main_group(groups)
    for group in groups:
        size = "" if group.size in (None, NAMES) else f", {group.size} names"
        for line in group.asked:
            records: list[StepRecord] = []
            for key in line.scores.episodes:
                records += line.run.records(key)
            profile = stockbench.error_profile(records)
            measures = [getattr(profile, name) for name in _ERRORS]
            cells = [(measure, "share") for measure in measures]
            rows.append(row(f"{line.name}, {group.title}{size}", cells))
            if group is main:
                pooled[line.name] = (str(line.model), measures)
    titles = ("schema", "arithmetic", "liquidity", "gave up", "no answer")
    tables = [table("By model", ("", *titles), rows, note="shares of sessions")]
    kinds = group_table("By kind of model", [(title, "share") for title in titles], pooled)
    if kinds is not None:
        tables.append(_only(kinds, ("thinking", "instruct")))
    return (
        Filled(tables=tuple(tables)) if tables[0].rows else Filled(missing="no model was queried")
    )


def _sizes(groups: Sequence[Group]) -> Filled:
    """Return the returns and their variation over seeds, by number of names."""
    main = _main_group(groups)
    same = [
        group
        for group in groups
        if main is not None and group.size and _like(main, group, size=True)
    ]
    sizes = sorted({size for group in same if (size := group.size) is not None})
    if len(sizes) < 2:
        return Filled(missing="needs universes of several sizes: --grid runs them")
    by_agent: dict[str, dict[int, Line]] = {}
    for group in same:
        for line in group.lines:
            by_agent.setdefault(line.name, {})[group.size or 0] = line
    rows, missing = [], not_scored("not run")
    for name, lines in by_agent.items():
        study = stockbench.size_study(
            {size: line.series() for size, line in lines.items()}, same[0].benchmark.convention
        )
        by_size = {entry.size: entry for entry in study}
        returns, variations = [], []
        for size in sizes:
            entry = by_size.get(size)
            returns.append((missing if entry is None else entry.returns.median, "change"))
            variations.append((missing if entry is None else entry.variation, "number"))
        rows.append(row(name, (*returns, *variations)))
    columns = (
        "",
        *(f"return, {size} names" for size in sizes),
        *(f"variation, {size} names" for size in sizes),
    )
    note = (
        "medians over seeds and standard deviation / mean of them: several seeds are needed "
        "for "
        "the latter"
    )
    return Filled(tables=(table("Sizes", columns, rows, note=note),))


def _ablations(groups: Sequence[Group]) -> Filled:
    """Return the results with some inputs left out, in the main window with the main universe."""
    main = _main_group(groups)
    same = {
        str(group.settings["inputs"]): group
        for group in groups
        if main is not None
        and group.asked
        and "inputs" in group.settings
        and _like(main, group, inputs=True)
    }
    ways = [way for way in _INPUTS if way in same]
    if len(ways) < 2:
        return Filled(missing="needs inputs left out: --grid runs them")
    shown = (("cumulative_return", "return"), ("max_drawdown", "drawdown"))
    lines = {way: {line.name: line for line in same[way].asked} for way in ways}
    names: dict[str, None] = {}  # an ordered set
    for by_name in lines.values():
        names |= dict.fromkeys(by_name)
    missing = not_scored("not run")
    rows = []
    for name in names:
        cells = []
        for measure, _ in shown:
            for way in ways:
                line = lines[way].get(name)
                cells.append((missing if line is None else line.median(measure), "change"))
        rows.append(row(name, cells))
    figures = [
        published for published in stockbench.published().figure if published.where == "Section 4.3"
    ]
    lost = not_scored("not in our text of the paper")
    for who in dict.fromkeys(published.who for published in figures):
        printed: dict[str, Measure] = {}
        for published in figures:
            if published.who == who:
                printed[published.inputs] = Measure(value=published.value)
        measures = [*(printed.get(way, lost) for way in ways), *[lost] * len(ways)]
        printed_cells = [(measure, "change") for measure in measures]
        rows.append(row(f"printed: {who}", printed_cells, ours=False))
    headings = [words for _, words in shown]
    columns = ("", *(f"{heading}, {way}" for heading, way in product(headings, ways)))
    first = same[ways[0]]
    reasons: tuple[str, ...] = ("no model has a result",)
    if first.sample is not None:
        run, key = first.sample
        setting = stockbench_setting(run, key, first.benchmark, run.series(key).sessions)
        distinct: dict[str, None] = {}  # an ordered set
        for published in figures:
            if published.inputs == "all":
                distinct |= dict.fromkeys(stockbench.compare_with(published, setting))
        reasons = tuple(distinct)
    return Filled(tables=(table(first.title, columns, rows),), reasons=reasons)


def _regimes(groups: Sequence[Group]) -> Filled:
    """Return the results by regime. A regime is a named window or a separate benchmark."""
    main = _main_group(groups)
    same = [group for group in groups if main is not None and _like(main, group, window=True)]
    # A regime has the name of its window, or of its benchmark if it is the only group of that
    # benchmark.
    ids = [group.benchmark.id for group in same]
    names = []
    for group in same:
        has_named_window = " to " not in group.window
        if has_named_window or ids.count(group.benchmark.id) > 1:
            names.append(group.window)
        else:
            names.append(group.benchmark.id)
    if len(set(names)) < 2:
        return Filled(missing="needs several windows: --grid runs a falling and a rising one")
    cohorts = [{standing.label: standing for standing in _standings(group)} for group in same]
    agents: dict[str, None] = {}  # an ordered set
    for cohort in cohorts:
        agents |= dict.fromkeys(cohort)
    missing = not_scored("not run")
    rows = []
    for agent in agents:
        cells: list[tuple[Measure, str]] = []
        reasons = []
        for name, cohort in zip(names, cohorts, strict=True):
            standing = cohort.get(agent)
            if standing is None:
                cells += [(missing, "change")] * 4
                continue
            cells += [(standing.cumulative_return, "change"), (standing.max_drawdown, "change")]
            cells += [
                (standing.composite, "signed"),
                (_rank(standing, cohort.values()), "{:.0f}"),
            ]
            if standing.unranked:
                reasons.append(f"{standing.unranked} ({name})")
        rows.append(row(agent, cells, unranked="; ".join(reasons) or None))
    columns = tuple(
        f"{what}, {name}"
        for name, what in product(names, ("return", "drawdown", "composite", "rank"))
    )
    note = "means over seeds; composite and rank among the agents of the window"
    return Filled(tables=(table("Regimes", ("", *columns), rows, note=note),))
