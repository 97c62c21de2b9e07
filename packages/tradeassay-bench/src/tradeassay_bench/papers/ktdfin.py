"""Fill KTD-Fin's tables and figures from journals, scores and the hashed data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import DataError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import Cell
from tradeassay.factors import FACTOR_NAMES, FACTORS
from tradeassay.metrics import max_drawdown, rate_measure, sharpe, significant
from tradeassay.metrics.attribution import MAIN
from tradeassay_bench.benchmarks import ktdfin
from tradeassay_bench.benchmarks.benchmark import window_sets
from tradeassay_bench.benchmarks.exhibits import (
    Curves,
    Filled,
    PaperPage,
    fill_paper,
    group_table,
    groups_exhibit,
    mean_of,
    median_of,
    row,
)
from tradeassay_bench.benchmarks.ktdfin.ktdfin_config import MODES
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.tables import Row, Table, amount, figure, in_order, table
from tradeassay_bench.examine.probe import METRICS, ProbeReport
from tradeassay_bench.llm.prompting import cell
from tradeassay_bench.masking import LEVELS, MaskConfig, Truth, find_leaks
from tradeassay_bench.papers.cells import Attributed, Group, Line, groups_of, latency
from tradeassay_bench.runs import Run
from tradeassay_bench.runs.summary.reading import ktdfin_setting

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
    "fixed-candidate": (
        "choosing from clean signals",
        "a table of bars and factors of a few names",
    ),
    "open-research": ("research of its own", "the account; everything else through six tools"),
}


def ktdfin_page(
    runs: Sequence[Run], *, attribution: bool, probe: ProbeReport | None = None
) -> PaperPage:
    """Return KTD-Fin's page, filled with results of some runs.

    ``attribution`` decomposes every account, which needs the data and takes seconds per episode.
    ``probe`` is the report of the attacks on the masks, or None if there were none.
    """
    groups = groups_of(runs, "ktdfin")
    # The headline setting comes first.
    groups = tuple(sorted(groups, key=lambda group: not _is(group, **_HEADLINE)))
    parts = Attributed(attribution)
    makers: dict[str, Callable[[], Filled]] = {
        "table-1": lambda: _plain(
            "Modes",
            ("", "what it tests", "what is shown"),
            [(mode, *_SEES[mode]) for mode in MODES],
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
        "table-7": lambda: _plain(
            "The nine factors", ("", "definition"), [(f.name, f.doc) for f in FACTORS]
        ),
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
    """Return whether a group has the given settings."""
    return all(group.settings.get(key) == value for key, value in settings.items())


def _plain(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Filled:
    """Return an exhibit with a table of texts."""
    table_rows = (Row(Cell(head), tuple(map(Cell, cells))) for head, *cells in rows)
    return Filled(tables=(table(title, columns, table_rows),))


def _windows(groups: Sequence[Group]) -> Filled:
    """Return the windows of every dataset, with the index return from close to close."""
    tables: list[Table] = []
    by_dataset = {(group.dataset, group.benchmark.convention): group for group in groups}
    for (dataset, convention), group in by_dataset.items():
        if group.sample is None:
            continue
        run, key = group.sample
        played = {other.window for other in groups if other.dataset == dataset}
        try:
            snapshot = run.snapshot(key)
        except (RunError, DataError) as error:
            return Filled(missing=str(error.message))
        rows = []
        for window in window_sets.get("ktdfin")(snapshot, convention):
            days = snapshot.rows(window.first, window.last)
            try:
                levels = snapshot.at(days.stop - 1, "close").index_levels(
                    str(group.benchmark.index), len(days)
                )
                change = Measure(
                    value=significant(float(levels[-1] / levels[0] - 1.0)), n=len(days)
                )
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
    """Return the results of all windows by (model, mode) and then by mask."""
    pooled: dict[tuple[str, str], dict[str, list[Line]]] = {}
    for group in groups:
        if not {"mask", "mode"} <= set(group.settings):
            continue
        for line in group.asked:
            by_mask = pooled.setdefault((line.name, str(group.settings["mode"])), {})
            by_mask.setdefault(str(group.settings["mask"]), []).append(line)
    return pooled


def _pooled_median(lines: Sequence[Line], name: str) -> Measure:
    """Return the median of a measure over all windows and seeds of the given results."""
    reason = "not run"
    if lines:
        episodes = sum(len(line.scores.episodes) for line in lines)
        reason = f"none of {episodes} episodes has a result"
    values: list[float] = []
    for line in lines:
        values += line.values(name)
    return median_of(values, reason)


_POOLED_NOTE = "medians over windows and seeds, with the middle half of them"


def _by_mask(groups: Sequence[Group]) -> Filled:
    """Return each model's behaviour by mode, with a column for each mask."""
    pooled = _pool(groups)
    masks = [mask for mask in LEVELS if any(mask in by for by in pooled.values())]
    if len(masks) < 2:
        return Filled(missing="needs two masks or more: --grid runs them")
    rows = []
    for (name, mode), by_mask in pooled.items():
        cells = []
        for measure, _, form in _BEHAVIOUR:
            for mask in masks:
                cells.append((_pooled_median(by_mask.get(mask, ()), measure), form))
        rows.append(row(f"{name}, {mode}", cells))
    titles = [title for _, title, _ in _BEHAVIOUR]
    columns = ("", *(f"{title}, {mask}" for title, mask in product(titles, masks)))
    return Filled(tables=(table("By mode and mask", columns, rows, note=_POOLED_NOTE),))


def _bright_blinded(groups: Sequence[Group]) -> Filled:
    """Return each model's open research with and without a mask."""
    rows = []
    for (name, mode), by_mask in _pool(groups).items():
        if mode != "open-research" or not {"bright", "blinded"} <= set(by_mask):
            continue
        for mask in ("bright", "blinded"):
            cells = [
                (_pooled_median(by_mask[mask], measure), form) for measure, _, form in _BEHAVIOUR
            ]
            rows.append(row(f"{name}, {mask}", cells))
    if not rows:
        return Filled(missing="needs open research both bright and blinded: --grid runs them")
    columns = ("", *(title for _, title, _ in _BEHAVIOUR))
    return Filled(tables=(table("Bright against blinded", columns, rows, note=_POOLED_NOTE),))


def _index(group: Group) -> tuple[tuple[str, ...], Floats] | None:
    """Return a group's sessions and the index levels of its excess returns; None without them."""
    if group.sample is None:
        return None
    series = group.sample[0].series(group.sample[1])
    if series.index is None or series.index.size < 3:
        return None
    return series.sessions, series.index


def _accounts(groups: Sequence[Group]) -> Filled:
    """Return the mean account of every model over its seeds, and the index.

    Both are returns since the start. Models that are not ranked are last.
    """
    curves: list[Curves] = []
    for group in groups:
        asked = sorted(group.asked, key=lambda line: line.unranked is not None)
        known = [(line, series) for line in asked if (series := line.series())]
        if not known or (not _is(group, **_HEADLINE) and curves):
            continue
        sessions = known[0][1][0].sessions
        lines = []
        for line, series in known:
            paths = [
                episode.nav[1:] / episode.nav[0] - 1.0
                for episode in series
                if episode.sessions == sessions
            ]
            lines.append((line.name, tuple(map(float, np.mean(paths, axis=0)))))
        index = _index(group)
        if index is not None:
            _, levels = index
            returns = tuple(map(float, levels[1:] / levels[0] - 1.0))
            lines.append((f"{group.benchmark.index} (index)", returns))
        curves.append(Curves(x=tuple(sessions), lines=tuple(lines)))
    return Filled(curves=tuple(curves), missing="" if curves else "no model has a result")


def _leaderboards(groups: Sequence[Group], parts: Attributed) -> Filled:
    """Return the panel with diagnostics, ranks by selection, the index, and the printed returns."""
    tables: list[Table] = []
    reasons: list[str] = []
    figures = [
        published for published in ktdfin.published().figure if published.measure == "total_return"
    ]
    for group in groups:
        selection = _ranked_selection(group, parts)
        rows = []
        for line in group.lines:
            cells = []
            for name, _, form in _PANEL:
                if line.model is None and name in _ONLY_MODELS:
                    cells.append((not_scored("not a model"), form))
                else:
                    cells.append((line.median(name), form))
            rank = not_scored(parts.reason if line.done else "no episode has a result")
            if line.unranked is not None:
                rank = not_scored("not ranked")
            if line.name in selection:
                better = sum(other > selection[line.name] for other in selection.values())
                rank = Measure(value=1.0 + better, n=len(selection))
            rows.append(row(line.name, (*cells, (rank, "{:.0f}")), unranked=line.unranked))
        rows += _index_row(group)
        rows = in_order(rows, 0)
        if group.sample is not None:
            setting = ktdfin_setting(*group.sample, group.benchmark)
            for published in figures:
                reasons += ktdfin.compare_with(published, setting)
        if not tables:
            none = not_scored("lost in our text of the paper")
            lost = [*((none, form) for _, _, form in _PANEL[1:]), (none, "{:.0f}")]
            for published in figures:
                printed_return = (Measure(value=published.value), "change")
                rows.append(row(f"printed: {published.who}", (printed_return, *lost), ours=False))
        columns = ("", *(title for _, title, _ in _PANEL), "rank by selection")
        note = (
            f"medians over seeds, convention {group.benchmark.convention}; turnover, HHI, "
            "abstention and "
            "calibration are defined as the convention has them; excess and IR are against the "
            "index row; a parse "
            "failure is a day without a submission of the right form after all retries"
        )
        tables.append(table(group.title, columns, rows, note=note, folded=bool(tables)))
    return Filled(tables=tuple(tables), reasons=tuple(dict.fromkeys(reasons)))


def _ranked_selection(group: Group, parts: Attributed) -> dict[str, float]:
    """Return the median selection of every agent that has one and is ranked."""
    selection = {}
    for line in group.lines:
        attribution = parts.of(line)
        if attribution is None or "selection" not in attribution.linked:
            continue
        value = attribution.linked["selection"].median.value
        if value is not None and line.unranked is None:
            selection[line.name] = value
    return selection


def _index_row(group: Group) -> list[Row]:
    """Return the row of the index, computed from the levels of excess return and information
    ratio.
    """
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
        (
            Measure(value=significant(values[name]), n=len(sessions)) if name in values else none,
            form,
        )
        for name, _, form in _PANEL
    ]
    return [row(f"{group.benchmark.index} buy and hold", (*cells, (none, "{:.0f}")))]


def _attribution(groups: Sequence[Group], parts: Attributed) -> Filled:
    """Return the parts of every return as means over seeds, which sum to the account's return.

    Under ``paper`` they sum to the return of the closing weights from close to close, as printed in
    the paper. The account's net return, which includes fees and intraday fills, then has a separate
    column.
    """
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
            measures = [
                mean_of([known.linked[name].mean], "no result") for name in (*shown, "total")
            ]
            if printed:
                measures.append(mean_of(line.values("cumulative_return"), "no result"))
            rows.append(
                row(
                    line.name, ((measure, "change") for measure in measures), unranked=line.unranked
                )
            )
        if rows:
            rows = in_order(rows, len(shown))
            note = f"means over seeds, convention {group.benchmark.convention}; "
            if printed:
                note += (
                    "common, style and selection follow closing weights from close to close, as "
                    "printed. "
                    "Their sum is without fees and without what fills within a day earned; the "
                    "account's own "
                    "return is beside it, and Table 4 has its median"
                )
            else:
                note += "common, style, selection and trading add up to the total"
            tables.append(
                table(group.title, ("", *shown, *sums), rows, note=note, folded=bool(tables))
            )
    return Filled(tables=tuple(tables), missing="" if tables else parts.reason)


def _exposures(groups: Sequence[Group], parts: Attributed) -> Filled:
    """Return the mean exposures of factor models and of language models, and the difference.

    A cohort includes only the agents with holdings. Agents without holdings have no exposure.
    """
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
        for name, factor_models, models in zip(FACTOR_NAMES, *cohorts, strict=True):
            difference = not_scored("one of the two held nothing")
            if factor_models.value is not None and models.value is not None:
                difference = Measure(value=significant(factor_models.value - models.value))
            cells = [(measure, "signed") for measure in (factor_models, models, difference)]
            rows.append(row(name, cells))
        who = "factor models" if trained else "rules"
        columns = ("", f"{who} ({counts[0]})", f"language models ({counts[1]})", "difference")
        note = (
            "portfolio-weighted z-scores, mean over invested days, then over agents with holdings"
        )
        if idle:
            note += f"; not counted, without a holding or a result: {', '.join(idle)}"
        if not trained:
            note += (
                "; no factor model was trained on this data, so rules are used instead "
                "(tradeassay baselines)"
            )
        tables.append(table(group.title, columns, rows, note=note, folded=bool(tables)))
    return Filled(tables=tuple(tables), missing="" if tables else parts.reason)


def _factor_models(groups: Sequence[Group]) -> Filled:
    """Return the results of factor models and the index."""
    tables: list[Table] = []
    for group in groups:
        if group.trained:
            shown = _PANEL[:6]
            rows = [
                row(line.name, ((line.median(m), form) for m, _, form in shown))
                for line in group.trained
            ]
            rows += [Row(entry.head, entry.cells[:6], ours=True) for entry in _index_row(group)]
            columns = ("", *(title for _, title, _ in shown))
            tables.append(table(group.title, columns, rows, folded=bool(tables)))
    why = "needs factor models that were trained on this data: tradeassay baselines"
    return Filled(tables=tuple(tables), missing="" if tables else why)


def _harness(groups: Sequence[Group]) -> Filled:
    """Return the settings of the first group with a model."""
    group = next((group for group in groups if group.settings), None)
    if group is None:
        return Filled(missing="no model was queried")
    market = group.benchmark.market
    known = {
        "index": group.benchmark.index,
        "cash": market.cash,
        "venue": market.venue,
        "fill": market.fill,
    }
    return _plain(
        "Settings",
        ("", "value"),
        [(key, cell(value)) for key, value in {**known, **group.settings}.items()],
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
    """Return the first reasons under each mask, and the topics of all reasons.

    The topics are the shares of reasons with a company, a day or a factor.
    """
    boxes: dict[tuple[str, str], dict[str, str]] = {}
    rows = []
    for group in groups:
        for line in group.asked:
            reasons = _order_reasons(line)
            if not reasons:
                continue
            mode, mask = str(group.settings.get("mode")), str(group.settings.get("mask"))
            session, symbol, first_reason = reasons[0]
            boxes.setdefault((line.name, mode), {})[mask] = f"{session}, {symbol}: {first_reason}"
            shares = []
            for pattern in (_DATED, _FACTOR):
                matching = sum(pattern.search(reason) is not None for *_, reason in reasons)
                shares.append(rate_measure(matching, len(reasons), nothing="none"))
            try:
                snapshot, last = line.run.snapshot(line.scores.episodes[0]), reasons[-1][0]
                view = snapshot.at(snapshot.rows(last, last).start, "close")
                whole = Truth.of(view, MaskConfig(level="stock-blind"))
                truth = Truth(names=whole.names, chinese=whole.chinese, spellings=whole.spellings)
                naming = sum(
                    "[name]" in reason or bool(find_leaks(reason, truth)) for *_, reason in reasons
                )
                named = rate_measure(naming, len(reasons), nothing="no reason was given")
            except (DataError, RunError) as error:
                named = not_scored(str(error.message))
            cells = [
                (Measure(value=float(len(reasons))), "{:.0f}"),
                *((share, "share") for share in (named, *shares)),
            ]
            rows.append(row(f"{line.name}, {mode}, {mask}", cells))
    if not rows:
        return Filled(missing="no order had a reason")
    masks = [mask for mask in LEVELS if any(mask in by for by in boxes.values())]
    none = "no order with a reason"
    side_by_side = table(
        "The first reason under each mask",
        ("", *masks),
        (
            Row(
                Cell(f"{name}, {mode}"),
                tuple(Cell(by.get(mask, none)) for mask in masks),
                ours=True,
            )
            for (name, mode), by in boxes.items()
        ),
        note="with the true session and name, which the mask hid from the model",
    )
    counts = table(
        "Topics of reasons",
        ("", "orders with a reason", "name a company", "name a day", "name a factor"),
        rows,
        note="shares of orders; a name is a company's name or brand, not the id the order is given "
        "by. What a "
        "masked model named itself was recorded as [name] or [date] and counts",
    )
    return Filled(tables=(side_by_side, counts))


def _order_reasons(line: Line) -> list[tuple[str, str, str]]:
    """Return (session, symbol, reason) of every order of an agent that has a reason."""
    reasons = []
    for key in line.scores.episodes:
        for record in line.run.records(key):
            for order in record.decision.orders:
                if order.reason:
                    reasons.append((record.session, order.symbol, order.reason))
    return reasons


# The probe


def _probed(report: ProbeReport | None, metrics: tuple[str, ...]) -> Filled:
    """Return the shares that each attacker recovered, with chance and the printed bound."""
    if report is None:
        return Filled(missing="needs the probe: --grid runs it")
    rows = []
    for attack in report.rows:
        cells = [(attack.conditional[metric], "share") for metric in metrics]
        rows.append(row(attack.attacker, cells))
    rows.append(row("chance", ((report.random[metric], "share") for metric in metrics)))
    figures = {"top_1": "probe_top_1", "joint": "probe_joint"}
    bounds = {published.measure: published.value for published in ktdfin.published().figure}
    none = not_scored("lost in our text of the paper")
    printed = []
    for metric in metrics:
        bound = none
        if metric in figures:
            bound = Measure(value=bounds[figures[metric]], note="at most")
        printed.append((bound, "share"))
    rows.append(row("printed: strongest attacker, at most", printed, ours=False))
    results = table(
        f"{report.rows[0].probes} probes of {report.dataset}",
        ("", *(METRICS[m] for m in metrics)),
        rows,
        note="shares of the probes with an answer; match knows the price archive, which no "
        "attacker of the "
        "paper had",
    )
    reasons = ["our data is not the paper's"]
    if not any(one.kind == "model" for one in report.rows):
        reasons.append("the paper's attackers are language models, ours are programs")
    return Filled(tables=(results,), reasons=tuple(reasons))


def _kinds(groups: Sequence[Group]) -> Filled:
    """Return the mean results of kinds of models, in the first group with known kinds."""
    columns = [(title, form) for _, title, form in _PANEL[:6]]
    for group in groups:
        models = {}
        for line in group.asked:
            measures = [line.median(name) for name, _, _ in _PANEL[:6]]
            models[line.name] = (str(line.model), measures)
        results = group_table(group.title, columns, models)
        if results is not None:
            return groups_exhibit(results)
    return groups_exhibit()
