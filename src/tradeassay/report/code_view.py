"""Everything that the page of a run of programs shows, written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tradeassay.report import numbers
from tradeassay.report.code_items import EarnedRow, ItemView, earned_rows, item_views
from tradeassay.report.code_published import PaperView, failure_titles, paper_view
from tradeassay.report.code_rates import (
    GroupTable,
    Rate,
    RateRow,
    cell_styles,
    contrasts_of,
    cost_words,
    group_tables,
    ranked_cells,
    rate,
    stage_row,
    way,
)
from tradeassay.report.code_turns import TurnChart, turn_chart
from tradeassay.runs.quantcode_scores import FAILURE_WORDS

if TYPE_CHECKING:
    from tradeassay.runs import CodeRun
    from tradeassay.runs.quantcode_scores import CellScores, QuantCodeScores


class FailureLine(msgspec.Struct, frozen=True, kw_only=True):
    """One class of failure over the last answers of all rows."""

    title: str
    words: str
    count: int
    share: str
    width: float


class JudgeRow(msgspec.Struct, frozen=True, kw_only=True):
    """How often the two judges agreed about the programs of one row."""

    name: str
    counts: tuple[int, int, int, int]
    agreement: Rate


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """One program of which the judges said the opposite."""

    item: str
    name: str
    turn: int
    behaviour: str
    language: str


class TrickRow(msgspec.Struct, frozen=True, kw_only=True):
    """One finding in one program: a trick, or decisions that depend on later bars."""

    item: str
    name: str
    turn: int
    trick: str
    detail: str
    scores_zero: bool


class CollapseRow(msgspec.Struct, frozen=True, kw_only=True):
    """How alike a row's programs are over its tasks."""

    name: str
    tasks: int
    shapes: int
    largest: str
    flagged: bool
    example: str


class CostRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a row took."""

    name: str
    calls: str
    tokens: str
    usd: str
    tokens_per_solved: str
    usd_per_solved: str
    judge: str


class CodeView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    title: str
    sub: str
    badges: tuple[tuple[str, str], ...]
    headline: str
    support: tuple[str, ...]
    rows: tuple[RateRow, ...]
    chart: TurnChart | None
    groups: tuple[GroupTable, ...]
    contrasts: tuple[GroupTable, ...]
    paper: PaperView
    failures: tuple[FailureLine, ...]
    judges: tuple[JudgeRow, ...]
    disagreements: tuple[Disagreement, ...]
    tricks: tuple[TrickRow, ...]
    collapse: tuple[CollapseRow, ...]
    costs: tuple[CostRow, ...]
    earned: tuple[EarnedRow, ...]
    items: tuple[ItemView, ...]
    without_turns: int
    failed: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    hashes: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    check: str


def code_view(run: CodeRun) -> CodeView:
    """Make the page's view of a finished QuantCode run; raises :class:`RunError` when it is not finished."""
    scores: QuantCodeScores = run.scores
    records = run.records()
    cells = ranked_cells(scores)
    colours = cell_styles(cells)
    items, without = item_views(run, records)
    ids = {view.key: view.id for view in items}
    tasks = len({item.task for item in run.episodes})
    headline, support = in_words(cells)
    return CodeView(
        title=f"{run.benchmark}: {run.folder.resolve().name}",
        sub=(
            f"{numbers.count(tasks, 'task')}, {numbers.count(len(run.episodes), 'item')} · "
            "programs written by models, examined in a sandbox"
        ),
        badges=code_badges(run),
        headline=headline,
        support=support,
        rows=tuple(
            stage_row(
                cell.model, way(cell), cell.rates,
                turns=_mean(cell), cost=cost_words(cell), style=colours[cell.name],
            )
            for cell in cells
        ),
        chart=turn_chart(cells, colours),
        groups=group_tables(cells),
        contrasts=contrasts_of(cells),
        paper=paper_view(run.spec, tasks, cells),
        failures=failure_lines(cells),
        judges=tuple(_judge_row(cell) for cell in cells if cell.judges.agreement.value is not None),
        disagreements=tuple(_disagreements(cells, records, ids, run)),
        tricks=tuple(_tricks(run, records, ids)),
        collapse=tuple(_collapse(cell) for cell in cells),
        costs=tuple(_cost(cell) for cell in cells),
        earned=earned_rows(run, records, ids),
        items=items,
        without_turns=without,
        failed=tuple((ids.get(key, ""), f"{key}: {why}") for key, why in run.failed.items()),
        notes=(*run.manifest.notes, *scores.notes),
        hashes=(("spec", run.manifest.work_sha256), *sorted(run.manifest.facts.items())),
        versions=(*sorted(run.manifest.versions.packages.items()), ("python", run.manifest.versions.python)),
        check=f"tradeassay verify {run.folder}",
    )  # fmt: skip


def code_badges(run: CodeRun) -> tuple[tuple[str, str], ...]:
    """Return what a reader must know before believing a number."""
    spec = run.spec
    kinds = {outcome.answers for _, outcome in run.outcomes()}
    found = [("synthetic", "synthetic data")]
    words = {"scripted": "scripted models", "replayed": "replayed answers", "live": "live models"}
    found += [("bias" if kind == "scripted" else "plain", words[kind]) for kind in sorted(kinds)]
    decides = {
        "reference-first": "the behavioural judge decides",
        "behaviour": "the behavioural judge decides",
        "language": "the language judge decides",
        "both": "both judges must agree",
    }
    found.append(("plain", decides[spec.evaluate.decides]))
    found.append(("plain", f"language judge: {spec.judge}") if spec.judge else ("plain", "no language judge"))
    failed = len(run.failed)
    if failed:
        found.append(("bias", f"{numbers.count(failed, 'item')} without a result"))
    return tuple(found)


def in_words(cells: Sequence[CellScores]) -> tuple[str, tuple[str, ...]]:
    """Say which model solves most, and whether that can be told apart from the next."""
    told = [cell for cell in cells if cell.rates.judge.value is not None]
    if not told:
        return "No model has a result.", ()
    best = told[0]
    headline = f"{best.model} solves {_of(best)} ({best.setting}, {best.wording} wording, {best.framework})."
    support = []
    others = [cell for cell in told[1:] if cell.model != best.model]
    if others:
        support.append(_against(best, others[0]))
    collapsed = [cell.model for cell in told if cell.collapse.collapsed]
    if collapsed:
        names = ", ".join(dict.fromkeys(collapsed))
        support.append(f"Many tasks, one program: {names}.")
    tricks = sum(sum(cell.tricks.values()) for cell in told)
    leaks = sum(cell.look_ahead for cell in told)
    found = [numbers.count(tricks, "trick")] if tricks else []
    found += [f"{numbers.count(leaks, 'item')} that looked ahead"] if leaks else []
    if found:
        support.append(f"Found in programs: {' and '.join(found)}.")
    return headline, tuple(support)


def failure_lines(cells: Sequence[CellScores]) -> tuple[FailureLine, ...]:
    """Return the classes of failure of the last answers, most frequent first."""
    total = sum(cell.rates.items for cell in cells)
    counts: dict[str, int] = {}
    for cell in cells:
        for name, count in cell.last_failures.items():
            counts[name] = counts.get(name, 0) + count
    most = max(counts.values(), default=1)
    titles = failure_titles()
    return tuple(
        FailureLine(
            title=titles[name],
            words=FAILURE_WORDS[name],
            count=count,
            share=numbers.number(count / total, unit="fraction"),
            width=round(100.0 * count / most, 1),
        )
        for name, count in sorted(counts.items(), key=lambda pair: -pair[1])
    )


def _of(cell: CellScores) -> str:
    n = cell.rates.judge.n or 0
    return f"{cell.solved} of {numbers.count(n, 'task')}"


def _against(best: CellScores, second: CellScores) -> str:
    high, low = second.rates.judge.high, best.rates.judge.low
    apart = high is not None and low is not None and low > high
    words = "their intervals do not overlap" if apart else "their intervals overlap, so they cannot be told apart"
    return f"Next is {second.model} with {_of(second)} ({second.setting}); {words}."


def _mean(cell: CellScores) -> str:
    return numbers.NONE if cell.mean_turns.value is None else f"{cell.mean_turns.value:.1f}"


def _judge_row(cell: CellScores) -> JudgeRow:
    pair = cell.judges
    return JudgeRow(
        name=f"{cell.model} ({way(cell)})",
        counts=(pair.both_passed, pair.both_failed, pair.only_behaviour_passed, pair.only_language_passed),
        agreement=rate(pair.agreement),
    )


def _disagreements(cells: Sequence[CellScores], records: dict[str, Any], ids: dict[str, str], run: CodeRun) -> Any:
    for cell in cells:
        for key, number in cell.judges.disagree:
            found = records[key].turns[number - 1].evaluation
            yield Disagreement(
                item=ids.get(key, ""),
                name=_short(run, key),
                turn=number,
                behaviour=_said(found.judge_behaviour),
                language=_said(found.judge_language),
            )


def _said(verdict: Any) -> str:
    agreement = getattr(verdict, "agreement", None)
    words = verdict.reason or (f"agreement {agreement:.3f}" if agreement is not None else "every criterion passes")
    return f"{verdict.status}: {words}"


def _tricks(run: CodeRun, records: dict[str, Any], ids: dict[str, str]) -> Any:
    for key, record in records.items():
        for turn in record.turns:
            found = turn.evaluation
            if found is None:
                continue
            for trick in found.tricks:
                yield TrickRow(
                    item=ids.get(key, ""), name=_short(run, key), turn=turn.number,
                    trick=trick.name, detail=trick.detail, scores_zero=trick.grave,
                )  # fmt: skip
            if turn.stage == "lookahead":
                yield TrickRow(
                    item=ids.get(key, ""), name=_short(run, key), turn=turn.number,
                    trick="look-ahead", detail=found.lookahead.reason, scores_zero=True,
                )  # fmt: skip


def _short(run: CodeRun, key: str) -> str:
    item = run.episode(key)
    return f"{item.model}: {item.task}"


def _collapse(cell: CellScores) -> CollapseRow:
    report = cell.collapse
    largest = report.clusters[0] if report.clusters else None
    return CollapseRow(
        name=f"{cell.model} ({way(cell)})",
        tasks=report.tasks,
        shapes=len(report.clusters),
        largest=numbers.NONE
        if report.largest_share is None
        else numbers.number(report.largest_share, unit="fraction"),
        flagged=report.collapsed,
        example="" if largest is None or len(largest.tasks) < 2 else ", ".join(largest.tasks[:6]),
    )


def _cost(cell: CellScores) -> CostRow:
    tokens, usd = cell.tokens_per_solved, cell.usd_per_solved
    return CostRow(
        name=f"{cell.model} ({way(cell)})",
        calls=f"{cell.writer.calls:,}",
        tokens=numbers.short(cell.writer.tokens),
        usd=numbers.dollars(cell.writer.known_usd),
        tokens_per_solved=numbers.short(round(tokens.value)) if tokens.value is not None else str(tokens.reason),
        usd_per_solved=numbers.dollars(usd.value) if usd.value is not None else str(usd.reason),
        judge=cell.judge.words() if cell.judge.calls else "not asked",
    )
