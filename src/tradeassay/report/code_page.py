"""The page of a QuantCode run: who solves most, how far programs come, why they fail, and every item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tradeassay.core.badges import NOT_REDERIVABLE
from tradeassay.report import numbers
from tradeassay.report.formatting import NOTHING, MeasureShown, shown
from tradeassay.report.palette import styles
from tradeassay.report.paper_tables import paper_of, way
from tradeassay.report.shell import render_page, write_page
from tradeassay.runs import CodeRun
from tradeassay.runs.score.quantcode_scores import FAILURE_TITLES, FAILURE_WORDS, CellScores, QuantCodeScores
from tradeassay.runs.summary.programs import pooled_rates
from tradeassay.runs.verify.coverage import coverage_of

if TYPE_CHECKING:
    from tradeassay.benchmarks.quantcode.dialogue import TaskOutcome
    from tradeassay.runs import VerifyReport

MOST_TURNS = 3_000
"""How many turns a page shows the programs of; a browser could take more, a reader could not."""
STAGE_TITLES = (
    ("compile", "Compiles", "the source compiles and defines exactly one strategy"),
    ("backtest", "Runs", "it runs to the end of the data"),
    ("trade", "Trades", "it opens at least one trade, by the host's own fills"),
    (
        "judge",
        "Solved",
        "the deciding judge finds that it does what the task says, and it was not seen to look ahead",
    ),
)
OUTCOMES = {
    "solved": ("above", "solved"),
    "trick": ("failed", "trick"),
    "compile": ("below", "does not compile"),
    "backtest": ("below", "crashes"),
    "trade": ("below", "no trade"),
    "lookahead": ("below", "looks ahead"),
    "judge": ("below", "rejected"),
    "no_code": ("below", "no code"),
    "not_scored": ("same", "not judged"),
    "no_answer": ("failed", "no answer"),
}
"""By where an answer ended: the tone and the words of its chip."""
_LONGEST = 40_000


class ProgramFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something found in one program: a trick, or decisions that depend on later bars."""

    key: str
    turn: int
    what: str
    detail: str
    scores_zero: bool


def write_code_html(run: CodeRun, path: Path | None = None, verified: VerifyReport | None = None) -> Path:
    """Write the page of a finished QuantCode run and return its path (default: ``report.html`` in its folder)."""
    return write_page(path or run.folder / "report.html", render_code_html(run, verified))


def render_code_html(run: CodeRun, verified: VerifyReport | None = None) -> str:
    """Return the page of a finished QuantCode run; raises :class:`RunError` when it is not finished."""
    scores: QuantCodeScores = run.scores
    records: dict[str, TaskOutcome] = run.records()
    cells = ranked_cells(scores)
    tasks = len({item.task for item in run.episodes})
    shown_turns, room = set(), MOST_TURNS
    for key, record in records.items():
        if len(record.turns) <= room:
            shown_turns.add(key)
            room -= len(record.turns)
    outcomes = [(f"item-{place}", item, outcome) for place, (item, outcome) in enumerate(run.outcomes())]
    last = [(id, item, records[item.key].turns[-1].evaluation) for id, item, _ in outcomes
            if item.key in records and records[item.key].solved]  # fmt: skip
    headline, support = in_words(cells)
    context = {
        "run": run,
        "prospect": coverage_of(run),
        "verified": verified,
        "sub": f"{numbers.count(tasks, 'task')}, {numbers.count(len(run.episodes), 'item')} · "
        "programs written by models, examined in a sandbox",
        "badges": code_badges(run),
        "headline": headline,
        "support": support,
        "stages": STAGE_TITLES,
        "cells": cells,
        "look": styles([cell.name for cell in cells], ""),
        "agentic": [cell for cell in cells if cell.setting == "agentic" and cell.by_turn],
        "groups": [*contrasts_of(cells), *group_tables(cells)],
        "paper": paper_of(run),
        "pooled": pooled_rates(cells),
        "failure_titles": FAILURE_TITLES,
        "failure_words": FAILURE_WORDS,
        "findings": list(findings(records)),
        "records": records,
        "shown_turns": shown_turns,
        "outcomes": outcomes,
        "earnings": [(id, item, found.earned) for id, item, found in last if found is not None and found.earned],
        "ids": {item.key: id for id, item, _ in outcomes},
        "chips": OUTCOMES,
        "way": way,
        "cost_words": cost_words,
        "cut": _cut,
        "notes": (*run.manifest.notes, *scores.notes),
        "hashes": (("spec", run.manifest.work_sha256), *sorted(run.manifest.facts.items())),
        "versions": versions_of(run),
    }
    return render_page("code.html.j2", context)


def versions_of(run: CodeRun) -> tuple[tuple[str, str], ...]:
    """Return the packages a run used."""
    versions = run.manifest.versions
    return (*sorted(versions.packages.items()), ("python", versions.python))


def answer_badges(run: CodeRun) -> list[tuple[str, str]]:
    """Return a badge for every kind of answer in a run."""
    words = {"scripted": "scripted models", "replayed": "replayed answers", "live": "live models"}
    kinds = sorted({outcome.answers for _, outcome in run.outcomes()})
    said = [("bias" if kind == "scripted" else "plain", words[kind]) for kind in kinds]
    return [*said, *([("plain", NOT_REDERIVABLE)] if {"live", "replayed"} & set(kinds) else [])]


def failed_badge(run: CodeRun) -> list[tuple[str, str]]:
    """Return the badge of a run in which items have no result."""
    return [("bias", f"{numbers.count(len(run.failed), 'item')} without a result")] if run.failed else []


def code_badges(run: CodeRun) -> tuple[tuple[str, str], ...]:
    """Return what a reader must know before believing a number."""
    spec = run.spec
    decides = {
        "reference-first": "the behavioural judge decides",
        "behaviour": "the behavioural judge decides",
        "language": "the language judge decides",
        "both": "both judges must agree",
    }
    judge = f"language judge: {spec.judge}" if spec.judge else "no language judge"
    dataset = getattr(spec, "dataset", None)
    return (
        ("plain", f"data: {dataset}, where it has a task's symbol")
        if dataset
        else ("synthetic", "synthetic data"),
        *answer_badges(run),
        ("plain", decides[spec.evaluate.decides]),
        ("plain", judge),
        *failed_badge(run),
    )


def ranked_cells(scores: QuantCodeScores) -> list[CellScores]:
    """Return the rows, most solved first; those without a rate last."""
    return sorted(
        scores.cells, key=lambda cell: 1.0 if cell.rates.judge.value is None else -cell.rates.judge.value
    )


def in_words(cells: Sequence[CellScores]) -> tuple[str, tuple[str, ...]]:
    """Say which model solves most, and whether it can be told apart from the next."""
    told = [cell for cell in cells if cell.rates.judge.value is not None]
    if not told:
        return "No model has a result.", ()
    best = told[0]
    headline = f"{best.model} solves {_of(best)} ({best.setting}, {best.wording} wording, {best.framework})."
    support = []
    others = [cell for cell in told[1:] if cell.model != best.model]
    if others:
        second = others[0]
        low, high = best.rates.judge.low, second.rates.judge.high
        support.append(f"Next is {second.model} with {_of(second)} ({second.setting}); {overlap(low, high)}.")
    collapsed = [cell.model for cell in told if cell.collapse.collapsed]
    if collapsed:
        support.append(f"Many tasks, one program: {', '.join(dict.fromkeys(collapsed))}.")
    tricks = sum(sum(cell.tricks.values()) for cell in told)
    leaks = sum(cell.look_ahead for cell in told)
    found = [numbers.count(tricks, "trick")] if tricks else []
    found += [f"{numbers.count(leaks, 'item')} that looked ahead"] if leaks else []
    if found:
        support.append(f"Found in programs: {' and '.join(found)}.")
    return headline, tuple(support)


def overlap(low: float | None, high: float | None) -> str:
    """Say whether the best one's interval, from ``low`` on, and the next one's, up to ``high``, overlap."""
    if low is not None and high is not None and low > high:
        return "the intervals do not overlap"
    return "the intervals overlap, so they cannot be told apart"


def cost_words(cell: CellScores) -> str:
    """Return what a solved task took."""
    tokens, usd = cell.tokens_per_solved, cell.usd_per_solved
    if tokens.value is None:
        return tokens.reason or ""
    return f"{numbers.short(round(tokens.value))} tokens · {numbers.dollars(usd.value)}"


def group_tables(
    cells: Sequence[CellScores],
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, list[MeasureShown]]]]]:
    """Yield solve rates by source, difficulty, timeframe and family: the grouping, its values, the rows."""
    for by in dict.fromkeys(group.by for cell in cells for group in cell.groups):
        values = tuple(dict.fromkeys(group.value for cell in cells for group in cell.groups if group.by == by))
        if len(values) < 2 and by != "difficulty":
            continue
        yield (
            by,
            values,
            [(f"{cell.model} · {way(cell)}", [_group(cell, by, v) for v in values]) for cell in cells],
        )


def _group(cell: CellScores, by: str, value: str) -> MeasureShown:
    for group in cell.groups:
        if group.by == by and group.value == value:
            made = shown(group.rates.judge, "share")
            return msgspec.structs.replace(made, note=made.note or f"{group.rates.items} items")
    return NOTHING


def contrasts_of(
    cells: Sequence[CellScores],
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, list[MeasureShown]]]]]:
    """Yield the rates by wording and by framework, where a run has more than one."""
    for by, other in (("wording", "framework"), ("framework", "wording")):
        values = tuple(dict.fromkeys(str(getattr(cell, by)) for cell in cells))
        if len(values) < 2:
            continue
        rows: dict[tuple[str, str, str], dict[str, CellScores]] = {}
        for cell in cells:
            rows.setdefault((cell.model, cell.setting, getattr(cell, other)), {})[getattr(cell, by)] = cell
        yield (
            by,
            values,
            [
                (" · ".join(name), [shown(row[v].rates.judge, "share") if v in row else NOTHING for v in values])
                for name, row in rows.items()
            ],
        )


def findings(records: Mapping[str, TaskOutcome]) -> Iterator[ProgramFinding]:
    """Yield every trick and every look-ahead that was found."""
    for key, record in records.items():
        for turn in record.turns:
            if turn.evaluation is None:
                continue
            for trick in turn.evaluation.tricks:
                yield ProgramFinding(
                    key=key, turn=turn.number, what=trick.name, detail=trick.detail, scores_zero=trick.grave
                )
            if turn.stage == "lookahead":
                reason = turn.evaluation.lookahead.reason
                yield ProgramFinding(key=key, turn=turn.number, what="look-ahead", detail=reason, scores_zero=True)


def _of(cell: CellScores) -> str:
    return f"{cell.solved} of {numbers.count(cell.rates.judge.n or 0, 'task')}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n... {len(text) - _LONGEST:,} more characters"
