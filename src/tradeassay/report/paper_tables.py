"""The papers' tables on programs in our columns, our rows beside them, and why they measure different things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET

from tradeassay.benchmarks.quantcode import published as quantcode
from tradeassay.benchmarks.systrade import published as systrade
from tradeassay.benchmarks.systrade.loading import SYSTB
from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.formatting import NOTHING, MeasureShown, shown
from tradeassay.runs import CodeRun, QuantCodeSpec
from tradeassay.runs.score.quantcode_scores import FAILURE_TITLES, CellScores
from tradeassay.runs.score.systrade_scores import SystradeScores
from tradeassay.runs.summary.programs import pooled_rates
from tradeassay.runs.systrade import SystradeSpec

STAGES = ("compile", "backtest", "trade", "judge")
_TURNS = (1, 3, 5, 10)
_ENDS = {
    "solved": "Solved",
    "judge": "Rejected by the judge",
    "lookahead": "Looks ahead",
    "trade": "No trade",
    "backtest": "Crashes while running",
    "compile": "Does not compile",
    "trick": "Trick",
    "no_code": "No code, reasoning loop",
    "not_scored": "Not judged",
}
_GATES = ("parse", "schema", "exec", "determinism", "leak", "audit")


class PaperRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row; ``ours`` tells whose it is."""

    name: str
    cells: tuple[MeasureShown, ...]
    ours: bool = False


class PaperTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a paper in our columns. ``note`` says what may be compared, or what differs here."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    note: str = ""


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """All tables of a paper and where they come from. ``reasons`` say why none of them is comparable with ours."""

    source: str
    reasons: tuple[str, ...]
    tables: tuple[PaperTable, ...]
    notes: tuple[str, ...]


def paper_of(run: CodeRun) -> Paper:
    """Return the printed tables of a run's paper with ours beside them."""
    if isinstance(run.spec, SystradeSpec):
        return systrade_paper(run.spec, run.scores)
    return quantcode_paper(run.spec, len({item.task for item in run.episodes}), run.scores.cells)


# QuantCode-Bench


def way(cell: CellScores) -> str:
    """Return how a row's tasks were put: ``agentic · formal · backtrader``."""
    return f"{cell.setting} · {cell.wording} · {cell.framework}"


def quantcode_paper(spec: QuantCodeSpec, tasks: int, cells: Sequence[CellScores]) -> Paper:
    """Return the printed tables of QuantCode-Bench with ours beside them."""
    paper = quantcode.published()
    single = [cell for cell in cells if cell.setting == "single-turn"]
    agentic = [cell for cell in cells if cell.setting == "agentic"]
    why = {
        setting: quantcode.why_not_comparable(
            quantcode.QuantcodeSetting(
                public_tasks=spec.task_file is not None,
                real_data=False,
                tasks=tasks,
                setting=setting,
                turns=spec.turns,
                decided_by="language" if spec.evaluate.decides == "language" else "behaviour",
                wording="formal" if spec.wordings == ("formal",) else "conversational",
            )
        )
        for setting in ("single-turn", "agentic")
    }
    shared = tuple(reason for reason in why["single-turn"] if reason in why["agentic"])
    alone, talking = pooled_rates(single), pooled_rates(agentic)
    failures: dict[str, float] = {row.failure_class: row.share for row in paper.failures}
    both = {row.failure_class: row for row in paper.failure_turns}
    tables = [
        PaperTable(
            title="Table 3: single-turn, share of tasks that pass each stage",
            columns=("Compile", "Backtest", "Trade", "Judge"),
            rows=_by_judge(
                [
                    *(PaperRow(name=f"{c.model} ({way(c)})", ours=True, cells=_stages(c)) for c in single),
                    *(
                        PaperRow(name=row.model, cells=tuple(_printed(getattr(row, name)) for name in STAGES))
                        for row in paper.single_turn
                    ),
                ]
            ),
        ),
        PaperTable(
            title="Table 4: agentic, final stages, mean number of turns, solved by turn",
            columns=("Compile", "Backtest", "Trade", "Judge", "Mean turns", *(f"T{n}" for n in _TURNS)),
            rows=_by_judge(
                [
                    *(PaperRow(name=f"{c.model} ({way(c)})", ours=True, cells=_by_turn(c)) for c in agentic),
                    *(PaperRow(name=row.model, cells=_printed_turns(row)) for row in paper.agentic),
                ]
            ),
        ),
        _ends("Table 5: where single-turn answers end", paper.single_turn_stages, alone.ends),
        PaperTable(
            title="Table 6: why single-turn answers fail, share of all answers",
            columns=("Paper", "Ours, all models"),
            rows=tuple(
                PaperRow(name=title, cells=(_maybe(failures, name), shown(alone.last[name], "share")))
                for name, title in FAILURE_TITLES.items()
                if name in failures or alone.last[name].value
            ),
        ),
        _ends("Table 7: where agentic conversations end", paper.agentic_stages, talking.ends),
        PaperTable(
            title="Table 8: why answers fail, first turn against the last turn of those that never succeed",
            columns=("Paper, turn 1", "Ours, turn 1", "Paper, last turn", "Ours, last turn"),
            rows=tuple(
                PaperRow(
                    name=title,
                    cells=(
                        _printed(both[name].turn_1) if name in both else NOTHING,
                        shown(talking.first[name], "share"),
                        _printed(both[name].last_turn) if name in both else NOTHING,
                        shown(talking.lost[name], "share"),
                    ),
                )
                for name, title in FAILURE_TITLES.items()
                if name in both or talking.first[name].value or talking.last[name].value
            ),
            note="Ours, turn 1: first answers of agentic conversations; the paper's are its single-turn answers.",
        ),
    ]
    settings = ("single-turn", "agentic", "single-turn", "single-turn", "agentic", "agentic")
    noted = []
    for table, setting in zip(tables, settings, strict=True):
        own = [reason for reason in why[setting] if reason not in shared]
        words = [f"Also: {'; '.join(own)}."] if own else []
        noted.append(
            msgspec.structs.replace(table, note=" ".join([*words, *([table.note] if table.note else [])]))
        )
    return Paper(source=paper.source, notes=paper.notes, reasons=shared, tables=tuple(noted))


def _ends(title: str, printed: Sequence[quantcode.StageShare], ours: Mapping[str, Measure]) -> PaperTable:
    paper = {row.stage: row.share for row in printed}
    rows = tuple(
        PaperRow(name=words, cells=(_maybe(paper, stage), shown(ours[stage], "share")))
        for stage, words in _ENDS.items()
        if stage in paper or ours[stage].value
    )
    return PaperTable(title=title, columns=("Paper", "Ours, all models"), rows=rows)


def _stages(cell: CellScores) -> tuple[MeasureShown, ...]:
    return tuple(shown(getattr(cell.rates, stage), "share") for stage in STAGES)


def _by_turn(cell: CellScores) -> tuple[MeasureShown, ...]:
    by = (shown(cell.by_turn[n - 1], "share") if n <= len(cell.by_turn) else NOTHING for n in _TURNS)
    return (*_stages(cell), shown(cell.mean_turns, "{:.1f}"), *by)


def _printed_turns(row: quantcode.AgenticRates) -> tuple[MeasureShown, ...]:
    stages = (_printed(getattr(row, stage)) for stage in STAGES)
    mean = MeasureShown(text=f"{row.mean_turns:.1f}", value=row.mean_turns)
    return (*stages, mean, *(_printed(getattr(row, f"t{n}")) for n in _TURNS))


def _printed(share: float) -> MeasureShown:
    return MeasureShown(text=f"{share:.1f}%", value=share / 100.0)


def _maybe(printed: Mapping[str, float], name: str) -> MeasureShown:
    return _printed(printed[name]) if name in printed else NOTHING


def _by_judge(rows: Sequence[PaperRow]) -> tuple[PaperRow, ...]:
    """Order by the judge's column; ours stand among the printed ones."""
    return tuple(sorted(rows, key=lambda row: -(row.cells[3].value if row.cells[3].value is not None else -1.0)))


# SysTradeBench


def systrade_paper(spec: SystradeSpec, scores: SystradeScores) -> Paper:
    """Return the printed tables of SysTradeBench with our rows first."""
    paper = systrade.published()
    ours = systrade.SystradeSetting(
        strategies=len(scores.strategies),
        iterations=spec.iterations,
        real_data=spec.dataset is not None,
        reviewed=bool(spec.reviewers),
        benchmark=spec.benchmark,
    )
    return Paper(
        source=paper.source,
        reasons=systrade.why_not_comparable(ours),
        notes=paper.notes,
        tables=(
            _gates(scores),
            _strategies(scores),
            _windows(scores),
            _iterations(scores),
            _reviews(scores),
            _costs(scores),
        ),
    )


def _gates(scores: SystradeScores) -> PaperTable:
    paper = systrade.published()
    ours = (
        PaperRow(name=row.model, ours=True, cells=tuple(shown(row.gates[name], "share") for name in _GATES))
        for row in scores.models
    )
    printed = (
        PaperRow(
            name=f"{row.model} ({row.handed_in} of {paper.strategies} handed in)",
            cells=tuple(_printed(getattr(row, name)) for name in _GATES),
        )
        for row in paper.gates
    )
    return PaperTable(
        title="Table 3: hand-ins that pass each gate",
        columns=_GATES,
        rows=(*ours, *printed),
        note="Not comparable: parse and schema ask nearly the same, the other gates more than the paper's.",
    )


def _strategies(scores: SystradeScores) -> PaperTable:
    paper, found = systrade.published(), {row.strategy.removeprefix(SYSTB): row for row in scores.strategies}
    not_run = MeasureShown(text="", note="not run")
    rows = []
    for one in paper.by_strategy:
        mine = found.get(one.strategy)
        rows.append(
            PaperRow(
                name=one.strategy,
                ours=mine is not None,
                cells=(
                    _text("" if mine is None else f"{mine.complexity:.2f}"),
                    _text(one.complexity),
                    not_run if mine is None else shown(mine.valid, "share"),
                    _text(f"{one.valid}/{paper.attempts}"),
                    not_run if mine is None else shown(mine.overall, "{:.2f}"),
                    _text(f"{one.overall:.2f}", f"LLM {one.llm:g}, QR {one.qr:g}"),
                ),
            )
        )
    rho = (shown(scores.complexity, "{:.2f}"), _text(f"{paper.complexity.rho:+.2f}", "printed"))
    rows.append(
        PaperRow(name="Spearman's rho of complexity and overall", ours=True, cells=(*[_text("")] * 4, *rho))
    )
    return PaperTable(
        title="Table 4: strategies",
        columns=_pairs("C", "valid", "overall"),
        rows=tuple(rows),
        note="Not comparable in value; the order of strategies may be.",
    )


def _windows(scores: SystradeScores) -> PaperTable:
    """Return how many tests on ten bars of the test data ran through."""
    printed = systrade.published().out_of_sample
    old = MeasureShown(text="", note="not tried by this version")
    share = Measure(value=printed.passed / printed.tests, n=printed.tests)
    ours = (
        PaperRow(
            name=row.model,
            ours=True,
            cells=(old if row.windows is UNSET else shown(row.windows, "share"), _text("")),
        )
        for row in scores.models
    )
    total = old if scores.windows is UNSET else shown(scores.windows, "share")
    words = _text(shown(share, "share").text, f"{printed.passed} of {printed.tests}")
    return PaperTable(
        title="Section 5.4.1: tests on ten bars of the test data that ran through",
        columns=("ours", "printed"),
        rows=(*ours, PaperRow(name="all valid hand-ins", ours=True, cells=(total, words))),
        note="Comparable in kind: ours are five pieces of each valid hand-in's test data, at drawn places.",
    )


def _iterations(scores: SystradeScores) -> PaperTable:
    printed = {row.iteration: row for row in systrade.published().iterations}
    rows = []
    for row in scores.iterations:
        if not row.items:
            continue
        one = printed.get(row.iteration)
        gain = Measure(value=row.gain.value / 10.0, n=row.gain.n) if row.gain.value is not None else row.gain
        similar = "" if one is None or one.similarity is None else f"{one.similarity:.1f}%"
        rows.append(
            PaperRow(
                name=f"iteration {row.iteration}",
                ours=True,
                cells=(
                    shown(gain, "{:+.3f}"),
                    _text("" if one is None else f"{one.gain:+.2f}"),
                    shown(row.alike, "share"),
                    _text(similar),
                    shown(row.test_return, "share"),
                    _text("" if one is None else f"{one.test_return:+.1f}%"),
                ),
            )
        )
    return PaperTable(
        title="Section 5.5: what iterations bring (scores on 0 to 1)",
        columns=_pairs("gain", "code alike", "test return"),
        rows=tuple(rows),
        note="Not comparable: the paper followed three models on one strategy, on windows of ten bars.",
    )


def _reviews(scores: SystradeScores) -> PaperTable:
    figures, board = systrade.published().reviews, scores.reviews
    nobody = MeasureShown(text="", note="no reviewers")
    own = nobody if board is None else _range([one.fidelity for one in board.own_bias])
    vendor = nobody if board is None else _range([one.fidelity for one in board.vendor_bias])
    tau = nobody if board is None else shown(board.agreement, "{:.2f}")
    pairwise = f"{figures.tau_low} to {figures.tau_high} pairwise"
    printed_own = _text(f"{figures.own_bias_low} to {figures.own_bias_high}")
    printed_vendor = _text(f"{figures.vendor_bias_low} to {figures.vendor_bias_high}")
    return PaperTable(
        title="Sections 5.3 and B.9: reviewers",
        columns=("ours", "printed"),
        rows=(
            PaperRow(
                name="Agreement (mean Kendall tau)", ours=True, cells=(tau, _text(f"{figures.tau_mean}", pairwise))
            ),
            PaperRow(name="Own work marked higher by", ours=True, cells=(own, printed_own)),
            PaperRow(name="Work of the same vendor marked higher by", ours=True, cells=(vendor, printed_vendor)),
        ),
        note="Comparable where real models reviewed; marks of scripted reviewers mean nothing.",
    )


def _costs(scores: SystradeScores) -> PaperTable:
    ours = (
        PaperRow(
            name=row.model,
            ours=True,
            cells=(
                _text(numbers.dollars(row.usd_per_strategy)),
                shown(row.overall, "{:.2f}"),
                _text(row.tier if row.paper_tier is UNSET else row.paper_tier),
            ),
        )
        for row in scores.models
    )
    printed = (
        PaperRow(
            name=f"tier '{row.name}'",
            cells=(
                _text(f"${row.usd_low:.2f} to ${row.usd_high:.2f}", "first iteration"),
                _text(f"{row.overall_low} to {row.overall_high}"),
                _text(row.name),
            ),
        )
        for row in systrade.published().tiers
    )
    return PaperTable(
        title="Section 5.6: dollars per strategy and what they buy",
        columns=("dollars per strategy", "overall", "tier"),
        rows=(*ours, *printed),
        note="Dollars are comparable at the prices of the day; overall scores are not.",
    )


def _pairs(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}, {whose}" for name in names for whose in ("ours", "printed"))


def _text(text: str, note: str = "") -> MeasureShown:
    return MeasureShown(text=text, interval=note)


def _range(found: Sequence[Measure]) -> MeasureShown:
    values = [one.value for one in found if one.value is not None]
    if not values:
        return MeasureShown(text=numbers.NONE, note=found[0].reason or "" if found else "")
    return MeasureShown(text=f"{min(values):+.2f} to {max(values):+.2f}", interval=f"{len(values)} authors")
