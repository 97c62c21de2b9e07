"""StockBench's tables and figures, from journals, scores and the hashed data.

Every study varies one thing and holds the others at the main table's: sizes are compared in the main window with
all inputs, regimes with the main number of names, ablations in the main window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from tradeassay.assay.papers.cells import Group, Line, groups_of, latency
from tradeassay.benchmarks import stockbench
from tradeassay.benchmarks.exhibits import Filled, PaperPage, fill_paper, filled_groups, grouped, row
from tradeassay.benchmarks.stockbench.panel import StockbenchFigure
from tradeassay.benchmarks.stockbench.specs import NAMES
from tradeassay.core.errors import DataError, RunError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import Row, Table, table
from tradeassay.runs import Run
from tradeassay.runs.summary.reading import stockbench_setting

_INPUTS = ("all", "no-news", "no-fundamentals", "neither")
_ERRORS = ("schema", "arithmetic", "liquidity", "give_up", "unanswered")
_RESULTS = (("return", "change"), ("max drawdown", "change"), ("Sortino", "signed"))


def stockbench_page(runs: Sequence[Run]) -> PaperPage:
    """Return the paper with what some runs fill of it."""
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
    """Return the main table's setting: the paper's window and number of names with all inputs, else the first."""
    whole = [group for group in groups if group.settings.get("inputs", "all") == "all"]
    usual = [group for group in whole if group.size in (None, NAMES)]
    special = {"down", "up"}  # as a window or a benchmark of a regime is called
    main = [one for one in usual if not {one.window.split("-")[0], one.benchmark.id.split("-")[1]} & special]
    return next(iter((*main, *usual, *whole, *groups)), None)


def _like(main: Group, group: Group, *, size: bool = False, window: bool = False, inputs: bool = False) -> bool:
    """Tell whether a group differs from the main one at most in what is named."""
    asked, usual = ({"inputs": "all"} | dict(one.settings) for one in (group, main))
    days, same_days = ((one.benchmark.market.first, one.benchmark.market.last) for one in (group, main))
    own_inputs, main_inputs = asked.pop("inputs"), usual.pop("inputs")
    return (
        group.dataset == main.dataset
        and group.benchmark.convention == main.benchmark.convention
        and (size or group.size == main.size)
        and (window or days == same_days)
        and (inputs or own_inputs == main_inputs)
        and (not group.settings or not main.settings or asked == usual)
    )


def _standings(group: Group) -> list[stockbench.CohortStanding]:
    cohort = {line.name: found for line in group.lines if (found := line.series())}
    unranked = {line.name: line.unranked for line in group.lines}
    return list(stockbench.standings(cohort, group.benchmark.convention, unranked))


def _place(one: stockbench.CohortStanding, cohort: Iterable[stockbench.CohortStanding]) -> Measure:
    """Return a rank among those of the cohort that are ranked."""
    if one.rank is None:
        return not_scored("no composite" if one.unranked is None else "not ranked")
    return Measure(value=float(one.rank), n=sum(other.unranked is None for other in cohort))


def _main(groups: Sequence[Group]) -> Filled:
    """Return the three measures, composite and rank, and the published baseline, computed and printed."""
    main = _main_group(groups)
    if main is None or main.sample is None:
        return Filled(missing="no agent has a result")
    known = _standings(main)
    forms = ("change", "change", "signed", "signed", "{:.0f}")
    rows = []
    for one in known:
        cells = [one.cumulative_return, one.max_drawdown, one.sortino, one.composite, _place(one, known)]
        rows.append(row(one.label, zip(cells, forms, strict=True), unranked=one.unranked))
    failed = [(not_scored("every episode failed"), form) for form in forms]
    rows += [row(line.name, failed) for line in main.lines if not line.done]
    run, key = main.sample
    figures = [one for one in stockbench.published().figure if one.where == "Section 3.2"]
    none = not_scored("not in the cohort: it pays no costs and gets no dividends")
    reasons: dict[str, None] = {}
    setting = stockbench_setting(run, key, main.benchmark, run.series(key).sessions)
    try:
        base = stockbench.published_baseline(run.snapshot(key), main.benchmark.market)
        measures = stockbench.measures_of(base, main.benchmark.convention)
        cells = [*(measures[name] for name in stockbench.PANEL), none, none]
        # With the digits by which the reference's own account is known.
        exact = zip(cells, ("{:+.5%}", "{:+.5%}", *forms[2:]), strict=True)
        rows.append(row("published baseline: equal weight, no costs, no dividends", exact))
        ours = msgspec.structs.replace(setting, frictionless=True)
        reasons |= dict.fromkeys(
            why for one in figures if one.frictionless for why in stockbench.compare_with(one, ours)
        )
    except (DataError, RunError) as error:
        reasons[str(error.message)] = None
    reasons |= dict.fromkeys(
        why for one in figures if not one.frictionless for why in stockbench.compare_with(one, setting)
    )
    rows += _printed(figures, forms)
    made = table(
        main.title,
        ("", "return", "max drawdown", "Sortino", "composite", "rank"),
        rows,
        note=f"means over seeds, convention {main.benchmark.convention}",
    )
    return Filled(tables=(made,), reasons=tuple(reasons))


def _printed(figures: Sequence[StockbenchFigure], forms: Sequence[str]) -> list[Row]:
    lost = not_scored("not in our text of the paper")
    rows = []
    for who in dict.fromkeys(one.who for one in figures):
        values = {one.measure: Measure(value=one.value) for one in figures if one.who == who}
        cells = [*(values.get(name, lost) for name in stockbench.PANEL), lost, lost]
        rows.append(row(f"printed: {who}", zip(cells, forms, strict=True), ours=False))
    return rows


def _kinds(groups: Sequence[Group], wanted: tuple[str, str]) -> Filled:
    main = _main_group(groups)
    known = {} if main is None else {one.label: one for one in _standings(main)}
    nothing = [not_scored("every episode failed")] * 3
    models = {
        line.name: (
            str(line.model),
            [one.cumulative_return, one.max_drawdown, one.sortino] if (one := known.get(line.name)) else nothing,
        )
        for line in (main.asked if main is not None else ())
    }
    made = grouped("Groups of models", _RESULTS, models)
    return filled_groups(made if made is None else _only(made, wanted))


def _only(groups: Table, wanted: tuple[str, str]) -> Table:
    return msgspec.structs.replace(
        groups, rows=tuple(one for one in groups.rows if one.head.text.split(" ")[0] in wanted)
    )


def _thinking(groups: Sequence[Group]) -> Filled:
    made = _kinds(groups, ("thinking", "instruct"))
    figures = [one for one in stockbench.published().figure if one.who.startswith("Qwen3-235B")]
    if not made.tables:
        return made
    ours = made.tables[0]
    printed = [Row(one.head, one.cells[:3]) for one in _printed(figures, ("change", "change", "signed", "", ""))]
    whole = msgspec.structs.replace(ours, rows=(*ours.rows, *printed))
    return Filled(tables=(whole,), reasons=("the printed pair is one model in two versions",))


def _errors(groups: Sequence[Group]) -> Filled:
    """Return shares of sessions with each kind of mistake, by model and way of playing, and by kind of model."""
    rows, pooled, main = [], {}, _main_group(groups)
    for group in groups:
        size = "" if group.size in (None, NAMES) else f", {group.size} names"
        for line in group.asked:
            records = [record for key in line.scores.episodes for record in line.run.records(key)]
            found = stockbench.error_profile(records)
            measures = [getattr(found, name) for name in _ERRORS]
            rows.append(row(f"{line.name}, {group.title}{size}", ((one, "share") for one in measures)))
            if group is main:
                pooled[line.name] = (str(line.model), measures)
    titles = ("schema", "arithmetic", "liquidity", "gave up", "no answer")
    tables = [table("By model", ("", *titles), rows, note="shares of sessions")]
    kinds = grouped("By kind of model", [(title, "share") for title in titles], pooled)
    if kinds is not None:
        tables.append(_only(kinds, ("thinking", "instruct")))
    return Filled(tables=tuple(tables)) if tables[0].rows else Filled(missing="no model was asked")


def _sizes(groups: Sequence[Group]) -> Filled:
    """Return returns and their coefficient of variation over seeds by number of names."""
    main = _main_group(groups)
    same = [group for group in groups if main is not None and group.size and _like(main, group, size=True)]
    sizes = sorted({size for group in same if (size := group.size) is not None})
    if len(sizes) < 2:
        return Filled(missing="needs universes of several sizes: --grid plays them")
    by: dict[str, dict[int, Line]] = {}
    for group in same:
        for line in group.lines:
            by.setdefault(line.name, {})[group.size or 0] = line
    rows, missing = [], not_scored("not run")
    for name, lines in by.items():
        study = stockbench.size_study(
            {size: line.series() for size, line in lines.items()}, same[0].benchmark.convention
        )
        at = {one.size: one for one in study}
        cells = [(at[size].returns.median if size in at else missing, "change") for size in sizes]
        cells += [(at[size].variation if size in at else missing, "number") for size in sizes]
        rows.append(row(name, cells))
    columns = ("", *(f"return, {size} names" for size in sizes), *(f"variation, {size} names" for size in sizes))
    note = "medians over seeds and standard deviation / mean of them: several seeds are needed for the latter"
    return Filled(tables=(table("Sizes", columns, rows, note=note),))


def _ablations(groups: Sequence[Group]) -> Filled:
    """Return what is left when inputs are left out, in the main window with the main number of names."""
    main = _main_group(groups)
    same = {
        str(group.settings["inputs"]): group
        for group in groups
        if main is not None and group.asked and "inputs" in group.settings and _like(main, group, inputs=True)
    }
    ways = [way for way in _INPUTS if way in same]
    if len(ways) < 2:
        return Filled(missing="needs inputs left out: --grid plays them")
    shown = (("cumulative_return", "return"), ("max_drawdown", "drawdown"))
    found = {way: {line.name: line for line in same[way].asked} for way in ways}
    missing = not_scored("not run")
    rows = []
    for name in dict.fromkeys(name for by in found.values() for name in by):
        measures = (
            found[way][name].median(measure) if name in found[way] else missing
            for measure, _ in shown
            for way in ways
        )
        rows.append(row(name, ((one, "change") for one in measures)))
    figures = [one for one in stockbench.published().figure if one.where == "Section 4.3"]
    lost = not_scored("not in our text of the paper")
    for who in dict.fromkeys(one.who for one in figures):
        printed = {one.inputs: Measure(value=one.value) for one in figures if one.who == who}
        cells = [*(printed.get(way, lost) for way in ways), *[lost] * len(ways)]  # type: ignore[call-overload]  # a word of Inputs
        rows.append(row(f"printed: {who}", ((one, "change") for one in cells), ours=False))
    columns = ("", *(f"{words}, {way}" for _, words in shown for way in ways))
    first = same[ways[0]]
    reasons: tuple[str, ...] = ("no model has a result",)
    if first.sample is not None:
        run, key = first.sample
        setting = stockbench_setting(run, key, first.benchmark, run.series(key).sessions)
        found_reasons = (
            w for one in figures if one.inputs == "all" for w in stockbench.compare_with(one, setting)
        )
        reasons = tuple(dict.fromkeys(found_reasons))
    return Filled(tables=(table(first.title, columns, rows),), reasons=reasons)


def _regimes(groups: Sequence[Group]) -> Filled:
    """Return return, drawdown, composite and rank by regime: the named windows, or benchmarks of such markets."""
    main = _main_group(groups)
    same = [group for group in groups if main is not None and _like(main, group, window=True)]
    # Named by its window, or by its benchmark where each of several has one of its own.
    ids = [group.benchmark.id for group in same]
    names = [
        one.window if " to " not in one.window or ids.count(one.benchmark.id) > 1 else one.benchmark.id
        for one in same
    ]
    if len(set(names)) < 2:
        return Filled(missing="needs several windows: --grid plays a falling and a rising one")
    found = [{one.label: one for one in _standings(group)} for group in same]
    missing = not_scored("not run")
    rows = []
    for who in dict.fromkeys(name for by in found for name in by):
        cells: list[tuple[Measure, str]] = []
        for by in found:
            if (one := by.get(who)) is None:
                cells += [(missing, "change")] * 4
                continue
            cells += [(one.cumulative_return, "change"), (one.max_drawdown, "change")]
            cells += [(one.composite, "signed"), (_place(one, by.values()), "{:.0f}")]
        reasons = [
            f"{why} ({name})"
            for by, name in zip(found, names, strict=True)
            if who in by and (why := by[who].unranked)
        ]
        rows.append(row(who, cells, unranked="; ".join(reasons) or None))
    columns = tuple(f"{what}, {name}" for name in names for what in ("return", "drawdown", "composite", "rank"))
    note = "means over seeds; composite and rank among those who played the window"
    return Filled(tables=(table("Regimes", ("", *columns), rows, note=note),))
