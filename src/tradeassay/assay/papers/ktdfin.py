"""KTD-Fin's tables and figures, from journals, scores and the hashed data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from tradeassay.assay.papers.cells import Attributed, Group, Line, groups_of, latency
from tradeassay.assay.probe import METRICS, ProbeReport
from tradeassay.benchmarks import ktdfin
from tradeassay.benchmarks.benchmark import window_sets
from tradeassay.benchmarks.exhibits import (
    Curves,
    Filled,
    PaperPage,
    fill_paper,
    filled_groups,
    grouped,
    mean_of,
    middle,
    row,
)
from tradeassay.benchmarks.ktdfin.ktdfin_config import MODES
from tradeassay.core.errors import DataError, RunError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import Cell, Row, Table, amount, figure, in_order, table
from tradeassay.core.view import Floats
from tradeassay.factors import FACTOR_NAMES, FACTORS
from tradeassay.llm.prompting import cell
from tradeassay.masking import LEVELS, MaskConfig, Truth, find_leaks
from tradeassay.metrics import max_drawdown, rate_measure, sharpe, significant
from tradeassay.metrics.attribution import MAIN
from tradeassay.runs import Run
from tradeassay.runs.summary.reading import ktdfin_setting

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
_BEHAVIOUR = (
    ("cumulative_return", "return", "change"),
    ("abstention_rate", "abstention", "share"),
    ("turnover", "turnover", "number"),
)
_HEADLINE = {"mask": "blinded", "mode": "open-research"}
_SEES = {
    "memory-only": ("memory alone", "names and the account"),
    "fixed-candidate": ("choosing from clean signals", "a table of bars and factors of a few names"),
    "open-research": ("research of its own", "the account; everything else through six tools"),
}


def ktdfin_page(runs: Sequence[Run], *, attribution: bool, probe: ProbeReport | None = None) -> PaperPage:
    """Return the paper with what some runs fill of it. ``attribution`` takes every account apart, which needs the
    data and takes seconds per episode; ``probe`` is what attackers recovered, where it was tried."""
    groups = groups_of(runs, "ktdfin")
    # The headline setting comes first.
    groups = tuple(sorted(groups, key=lambda group: not _is(group, **_HEADLINE)))
    parts = Attributed(attribution)
    makers: dict[str, Callable[[], Filled]] = {
        "table-1": lambda: _plain(
            "Modes", ("", "what it tests", "what is shown"), [(mode, *_SEES[mode]) for mode in MODES]
        ),
        "table-2": lambda: _windows(groups),
        "table-3": lambda: _by_mask(groups),
        "figure-2": lambda: _accounts(groups),
        "figure-3": lambda: _probed(probe, ("top_1", "top_5", "date_7", "joint")),
        "table-4": lambda: _leaderboards(groups, parts),
        "table-5": lambda: _attribution(groups, parts),
        "appendix-a": lambda: _rationales(groups),
        "table-6": lambda: _plain(
            "The six tools", ("", "what it gives"), [(t.name, t.description) for t in ktdfin.TOOLS]
        ),
        "table-7": lambda: _plain("The nine factors", ("", "definition"), [(f.name, f.doc) for f in FACTORS]),
        "table-8": lambda: _exposures(groups, parts),
        "table-9": lambda: _factor_models(groups),
        "table-10": lambda: _harness(groups),
        "table-11": lambda: _bright_blinded(groups),
        "table-12": lambda: _probed(probe, tuple(METRICS)),
        "latency": lambda: latency(runs),
        "groups": lambda: _kinds(groups),
    }
    printed = ktdfin.published()
    return fill_paper("ktdfin", makers, source=printed.source, second_hand=printed.second_hand)


def _is(group: Group, **settings: str) -> bool:
    return all(group.settings.get(key) == value for key, value in settings.items())


def _plain(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Filled:
    made = (Row(Cell(head), tuple(map(Cell, cells))) for head, *cells in rows)
    return Filled(tables=(table(title, columns, made),))


def _windows(groups: Sequence[Group]) -> Filled:
    """Return the windows of every data set that was played, with what the index itself returned from close to
    close."""
    tables: list[Table] = []
    for (dataset, convention), group in {(one.dataset, one.benchmark.convention): one for one in groups}.items():
        if group.sample is None:
            continue
        run, key = group.sample
        played = {one.window for one in groups if one.dataset == dataset}
        try:
            snapshot = run.snapshot(key)
        except (RunError, DataError) as error:
            return Filled(missing=str(error.message))
        rows = []
        for window in window_sets.get("ktdfin")(snapshot, convention):
            days = snapshot.rows(window.first, window.last)
            try:
                levels = snapshot.at(days.stop - 1, "close").index_levels(str(group.benchmark.index), len(days))
                change = Measure(value=significant(float(levels[-1] / levels[0] - 1.0)), n=len(days))
            except DataError as error:
                change = not_scored(str(error.message))
            cells = (
                Cell(window.first),
                Cell(window.last),
                amount(window.sessions),
                figure(change, "change"),
                Cell("–" if window.structural else window.regime),
                Cell("yes" if window.code in played else "no"),
            )
            rows.append(Row(Cell(window.code), cells, ours=True))
        columns = ("", "first", "last", "sessions", "index", "regime in the paper", "played")
        note = "the index from the first close of a window to its last; –: not the paper's days"
        tables.append(table(f"Windows of {dataset}", columns, rows, note=note))
    return Filled(tables=tuple(tables))


def _pool(groups: Sequence[Group]) -> dict[tuple[str, str], dict[str, list[Line]]]:
    """Return the models' lines by model and mode, then by mask: over windows, and each line over its seeds."""
    found: dict[tuple[str, str], dict[str, list[Line]]] = {}
    for group in groups:
        for line in group.asked if {"mask", "mode"} <= set(group.settings) else ():
            by_mask = found.setdefault((line.name, str(group.settings["mode"])), {})
            by_mask.setdefault(str(group.settings["mask"]), []).append(line)
    return found


def _over(lines: Sequence[Line], name: str) -> Measure:
    failed = sum(len(line.scores.episodes) for line in lines)
    why = "not run" if not lines else f"none of {failed} episodes has a result"
    return middle([value for line in lines for value in line.values(name)], why)


_OVER = "medians over windows and seeds, with the middle half of them"


def _by_mask(groups: Sequence[Group]) -> Filled:
    pooled = _pool(groups)
    masks = [mask for mask in LEVELS if any(mask in by for by in pooled.values())]
    if len(masks) < 2:
        return Filled(missing="needs two masks or more: --grid plays them")
    rows = [
        row(f"{name}, {mode}", ((_over(by.get(mask, ()), m), form) for m, _, form in _BEHAVIOUR for mask in masks))
        for (name, mode), by in pooled.items()
    ]
    columns = ("", *(f"{title}, {mask}" for _, title, _ in _BEHAVIOUR for mask in masks))
    return Filled(tables=(table("By mode and mask", columns, rows, note=_OVER),))


def _bright_blinded(groups: Sequence[Group]) -> Filled:
    rows = [
        row(f"{name}, {mask}", ((_over(by[mask], measure), form) for measure, _, form in _BEHAVIOUR))
        for (name, mode), by in _pool(groups).items()
        for mask in ("bright", "blinded")
        if mode == "open-research" and {"bright", "blinded"} <= set(by)
    ]
    if not rows:
        return Filled(missing="needs open research both bright and blinded: --grid plays them")
    columns = ("", *(title for _, title, _ in _BEHAVIOUR))
    return Filled(tables=(table("Bright against blinded", columns, rows, note=_OVER),))


def _index(group: Group) -> tuple[tuple[str, ...], Floats] | None:
    """Return the sessions of a group and the levels that its excess returns are measured against."""
    if group.sample is None:
        return None
    series = group.sample[0].series(group.sample[1])
    return None if series.index is None or series.index.size < 3 else (series.sessions, series.index)


def _accounts(groups: Sequence[Group]) -> Filled:
    """Return the mean account of every model over its seeds, and the index, since the window's start. Models that
    are not ranked come after the others."""
    curves: list[Curves] = []
    for group in groups:
        asked = sorted(group.asked, key=lambda line: line.unranked is not None)
        known = [(line, series) for line in asked if (series := line.series())]
        if not known or (not _is(group, **_HEADLINE) and curves):
            continue
        sessions = known[0][1][0].sessions
        lines = []
        for line, series in known:
            paths = [one.nav[1:] / one.nav[0] - 1.0 for one in series if one.sessions == sessions]
            lines.append((line.name, tuple(map(float, np.mean(paths, axis=0)))))
        index = _index(group)
        if index is not None:
            lines.append((f"{group.benchmark.index} (index)", tuple(map(float, index[1][1:] / index[1][0] - 1.0))))
        curves.append(Curves(x=tuple(sessions), lines=tuple(lines)))
    return Filled(curves=tuple(curves), missing="" if curves else "no model has a result")


def _leaderboards(groups: Sequence[Group], parts: Attributed) -> Filled:
    """Return the panel with diagnostics, the rank by selection, the index among the rows, and what is printed."""
    tables: list[Table] = []
    reasons: list[str] = []
    figures = [one for one in ktdfin.published().figure if one.measure == "total_return"]
    for group in groups:
        linked = {line.name: known.linked for line in group.lines if (known := parts.of(line)) is not None}
        medians = {name: one["selection"].median.value for name, one in linked.items() if "selection" in one}
        unranked = {line.name: line.unranked for line in group.lines}
        chosen = {n: value for n, value in medians.items() if value is not None and unranked[n] is None}
        rows = []
        for line in group.lines:
            nobody = _ONLY_MODELS if line.model is None else ()
            said = [
                (not_scored("not a model") if name in nobody else line.median(name), form)
                for name, _, form in _PANEL
            ]
            place = not_scored(parts.reason if line.done else "no episode has a result")
            if line.unranked is not None:
                place = not_scored("not ranked")
            if line.name in chosen:
                above = sum(other > chosen[line.name] for other in chosen.values())
                place = Measure(value=1.0 + above, n=len(chosen))
            rows.append(row(line.name, (*said, (place, "{:.0f}")), unranked=line.unranked))
        rows += _index_row(group)
        rows = in_order(rows, 0)
        if group.sample is not None:
            setting = ktdfin_setting(*group.sample, group.benchmark)
            reasons += [why for one in figures for why in ktdfin.compare_with(one, setting)]
        if not tables:
            none = not_scored("lost in our text of the paper")
            lost = [*((none, form) for _, _, form in _PANEL[1:]), (none, "{:.0f}")]
            for one in figures:
                rows.append(row(f"printed: {one.who}", ((Measure(value=one.value), "change"), *lost), ours=False))
        columns = ("", *(title for _, title, _ in _PANEL), "rank by selection")
        note = (
            f"medians over seeds, convention {group.benchmark.convention}; turnover, HHI, abstention and "
            "calibration are defined as the convention has them; excess and IR are against the index row; a parse "
            "failure is a day without a submission of the right form after all retries"
        )
        tables.append(table(group.title, columns, rows, note=note, folded=bool(tables)))
    return Filled(tables=tuple(tables), reasons=tuple(dict.fromkeys(reasons)))


def _index_row(group: Group) -> list[Row]:
    """Return the index, from the very levels that excess and information ratio are measured against."""
    known = _index(group)
    if known is None:
        return []
    sessions, levels = known
    values = {
        "cumulative_return": float(levels[-1] / levels[0] - 1.0),
        "excess_return": 0.0,
        "sharpe": float(sharpe(levels[1:] / levels[:-1] - 1.0, group.benchmark.periods_per_year)),
        "max_drawdown": float(max_drawdown(levels)),
    }
    none = not_scored("an index")
    cells = [
        (Measure(value=significant(values[name]), n=len(sessions)) if name in values else none, form)
        for name, _, form in _PANEL
    ]
    return [row(f"{group.benchmark.index} buy and hold", (*cells, (none, "{:.0f}")))]


def _attribution(groups: Sequence[Group], parts: Attributed) -> Filled:
    """Return the parts of every return, means over seeds, which add up to the account's return.

    Under ``paper`` they add up to what closing weights earned from close to close, as the paper prints it. The
    account's return, which pays fees and fills within the day, then has a column of its own."""
    tables: list[Table] = []
    for group in groups:
        printed = group.benchmark.convention == "paper"
        shown = [name for name in MAIN if name != "trading"] if printed else [*MAIN]
        sums = ("sum of parts", "account") if printed else ("total",)
        rows = []
        for line in group.lines:
            known = parts.of(line)
            if known is None or not known.linked:
                continue
            measures = [mean_of([known.linked[name].mean], "no result") for name in (*shown, "total")]
            if printed:
                measures.append(mean_of(line.values("cumulative_return"), "no result"))
            rows.append(row(line.name, ((measure, "change") for measure in measures), unranked=line.unranked))
        if rows:
            rows = in_order(rows, len(shown))
            note = f"means over seeds, convention {group.benchmark.convention}; "
            if printed:
                note += (
                    "common, style and selection follow closing weights from close to close, as printed. "
                    "Their sum is without fees and without what fills within a day earned; the account's own "
                    "return is beside it, and Table 4 has its median"
                )
            else:
                note += "common, style, selection and trading add up to the total"
            tables.append(table(group.title, ("", *shown, *sums), rows, note=note, folded=bool(tables)))
    return Filled(tables=tuple(tables), missing="" if tables else parts.reason)


def _exposures(groups: Sequence[Group], parts: Attributed) -> Filled:
    """Return the mean exposures of factor models and of language models, and how they differ.

    A cohort counts the agents that held something: the others have no exposure, and no part in the mean."""
    tables: list[Table] = []
    for group in groups:
        trained = list(group.trained)
        others = trained or [line for line in group.lines if line.model is None]
        cohorts = []
        counts = []
        idle: list[str] = []
        for lines in (others, group.asked):
            known = []
            for line in lines:
                attributed = parts.of(line)
                values = {} if attributed is None else attributed.preferences
                if any(measure.value is not None for measure in values.values()):
                    known.append(values)
                else:
                    idle.append(line.name)
            counts.append(len(known))
            cohort = []
            for name in FACTOR_NAMES:
                exposures = [one[name].value for one in known if name in one]
                cohort.append(mean_of(exposures, "nobody held anything"))
            cohorts.append(cohort)
        if parts.reason and not any(counts):
            continue
        rows = []
        for name, theirs, models in zip(FACTOR_NAMES, *cohorts, strict=True):
            apart = not_scored("one of the two held nothing")
            if theirs.value is not None and models.value is not None:
                apart = Measure(value=significant(theirs.value - models.value))
            rows.append(row(name, ((one, "signed") for one in (theirs, models, apart))))
        who = "factor models" if trained else "rules"
        columns = ("", f"{who} ({counts[0]})", f"language models ({counts[1]})", "difference")
        note = "portfolio-weighted z-scores, mean over invested days, then over those who held something"
        if idle:
            note += f"; not counted, without a holding or a result: {', '.join(idle)}"
        if not trained:
            note += "; no factor model was trained on this data, so rules stand in (tradeassay baselines)"
        tables.append(table(group.title, columns, rows, note=note, folded=bool(tables)))
    return Filled(tables=tuple(tables), missing="" if tables else parts.reason)


def _factor_models(groups: Sequence[Group]) -> Filled:
    tables: list[Table] = []
    for group in groups:
        if group.trained:
            shown = _PANEL[:6]
            rows = [row(line.name, ((line.median(m), form) for m, _, form in shown)) for line in group.trained]
            rows += [Row(one.head, one.cells[:6], ours=True) for one in _index_row(group)]
            columns = ("", *(title for _, title, _ in shown))
            tables.append(table(group.title, columns, rows, folded=bool(tables)))
    why = "needs factor models that were trained on this data: tradeassay baselines"
    return Filled(tables=tuple(tables), missing="" if tables else why)


def _harness(groups: Sequence[Group]) -> Filled:
    group = next((one for one in groups if one.settings), None)
    if group is None:
        return Filled(missing="no model was asked")
    market = group.benchmark.market
    known = {"index": group.benchmark.index, "cash": market.cash, "venue": market.venue, "fill": market.fill}
    return _plain(
        "Settings", ("", "value"), [(key, cell(value)) for key, value in {**known, **group.settings}.items()]
    )


# Appendix A

_FACTOR = re.compile(
    r"(?i)\b(?:MOM_12_1|RV_60|ILLIQ|REV_ON|MOM_ID|SKEW|CORR_PV|HIGH_52W|CV_VOL|momentum|volatil\w*|liquid\w*|revers\w*"
    r"|skew\w*|52.?week|yearly high)\b"
)
_DATED = re.compile(
    r"\[(?:date|day|month|year|period|festival)\]|(?<!\d)(?:19|20)\d{2}[-/年.]\d{1,2}|\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct"
    r"|Nov|Dec)[a-z]*\.? \d{1,2}\b|\b(?:in|since|of|from) (?:19|20)\d{2}\b|\d{1,2}月"
)


def _rationales(groups: Sequence[Group]) -> Filled:
    """Return the boxes of the four masks side by side, and how many reasons name a company, a day or a factor."""
    boxes: dict[tuple[str, str], dict[str, str]] = {}
    rows = []
    for group in groups:
        for line in group.asked:
            said = [
                (record.session, order.symbol, order.reason)
                for key in line.scores.episodes
                for record in line.run.records(key)
                for order in record.decision.orders
                if order.reason
            ]
            if not said:
                continue
            mode, mask = str(group.settings.get("mode")), str(group.settings.get("mask"))
            session, symbol, reason = said[0]
            boxes.setdefault((line.name, mode), {})[mask] = f"{session}, {symbol}: {reason}"
            shares = [
                rate_measure(
                    sum(form.search(reason) is not None for *_, reason in said), len(said), nothing="none"
                )
                for form in (_DATED, _FACTOR)
            ]
            try:
                snapshot, last = line.run.snapshot(line.scores.episodes[0]), said[-1][0]
                view = snapshot.at(snapshot.rows(last, last).start, "close")
                whole = Truth.of(view, MaskConfig(level="stock-blind"))
                truth = Truth(names=whole.names, chinese=whole.chinese, spellings=whole.spellings)
                naming = sum("[name]" in reason or bool(find_leaks(reason, truth)) for *_, reason in said)
                named = rate_measure(naming, len(said), nothing="no reason was given")
            except (DataError, RunError) as error:
                named = not_scored(str(error.message))
            cells = [(Measure(value=float(len(said))), "{:.0f}"), *((one, "share") for one in (named, *shares))]
            rows.append(row(f"{line.name}, {mode}, {mask}", cells))
    if not rows:
        return Filled(missing="no order had a reason")
    masks = [mask for mask in LEVELS if any(mask in by for by in boxes.values())]
    none = "no order with a reason"
    side_by_side = table(
        "The first reason under each mask",
        ("", *masks),
        (
            Row(Cell(f"{name}, {mode}"), tuple(Cell(by.get(mask, none)) for mask in masks), ours=True)
            for (name, mode), by in boxes.items()
        ),
        note="with the session and the name as they really were, which the mask hid from the model",
    )
    counts = table(
        "What reasons speak of",
        ("", "orders with a reason", "name a company", "name a day", "name a factor"),
        rows,
        note="shares of orders; a name is a company's name or brand, not the id the order is given by. What a "
        "masked model named itself was recorded as [name] or [date] and counts",
    )
    return Filled(tables=(side_by_side, counts))


# The probe


def _probed(report: ProbeReport | None, metrics: tuple[str, ...]) -> Filled:
    if report is None:
        return Filled(missing="needs the probe: --grid asks its attackers")
    rows = [row(one.attacker, ((one.conditional[m], "share") for m in metrics)) for one in report.rows]
    rows.append(row("chance", ((report.random[m], "share") for m in metrics)))
    figures = {"top_1": "probe_top_1", "joint": "probe_joint"}
    bounds = {one.measure: one.value for one in ktdfin.published().figure}
    none = not_scored("lost in our text of the paper")
    printed = [Measure(value=bounds[figures[m]], note="at most") if m in figures else none for m in metrics]
    rows.append(row("printed: strongest attacker, at most", ((one, "share") for one in printed), ours=False))
    made = table(
        f"{report.rows[0].probes} probes of {report.dataset}",
        ("", *(METRICS[m] for m in metrics)),
        rows,
        note="shares of the probes that were answered; match knows the price archive, which no attacker of the "
        "paper had",
    )
    reasons = ["our data is not the paper's"]
    if not any(one.kind == "model" for one in report.rows):
        reasons.append("the paper's attackers are language models, ours are programs")
    return Filled(tables=(made,), reasons=tuple(reasons))


def _kinds(groups: Sequence[Group]) -> Filled:
    columns = [(title, form) for _, title, form in _PANEL[:6]]
    for group in groups:
        panels = ((line, [line.median(name) for name, _, _ in _PANEL[:6]]) for line in group.asked)
        models = {line.name: (str(line.model), measures) for line, measures in panels}
        if (made := grouped(group.title, columns, models)) is not None:
            return filled_groups(made)
    return filled_groups()
