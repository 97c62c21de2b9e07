"""Everything that the page of a SysTradeBench run shows, written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.code_rates import Rate, rate
from tradeassay.report.systrade_card import Number, score
from tradeassay.report.systrade_published import PaperTable, paper_tables, reasons

if TYPE_CHECKING:
    from tradeassay.runs import CodeRun
    from tradeassay.runs.systrade_scores import IterationRow, ModelRow, StrategyRow, SystradeScores

GATE_TITLES = ("parse", "schema", "exec", "determinism", "leak", "audit", "scenarios")
DIMENSIONS = ("D1", "D2", "D3", "D4")


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    """One model's row."""

    name: str
    items: str
    gates: tuple[Rate, ...]
    valid: Rate
    scores: tuple[Number, ...]
    paper: tuple[Number, ...]
    overall: Number
    usd: str
    tier: str


class StrategyView(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy's row."""

    name: str
    complexity: str
    items: str
    valid: Rate
    scores: tuple[Number, ...]
    overall: Number
    pbo: Number
    spa: Number


class IterationView(msgspec.Struct, frozen=True, kw_only=True):
    """One iteration's row."""

    number: int
    items: str
    scores: tuple[Number, ...]
    gain: Number
    alike: Rate
    same: Rate
    test_return: Rate
    ensemble: Number
    drift: str


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One author on the review board."""

    name: str
    rating: Number
    fidelity: Number
    risk: Number


class BoardView(msgspec.Struct, frozen=True, kw_only=True):
    """The review board."""

    rows: tuple[BoardRow, ...]
    agreement: Number
    biases: tuple[tuple[str, str, Number, Number], ...]
    unanswered: int


class ItemLine(msgspec.Struct, frozen=True, kw_only=True):
    """One item: how it ended, and where its scorecard is."""

    name: str
    strategy: str
    link: str
    outcome: str
    tone: str
    stopped: str
    path: str
    overall: str


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    title: str
    sub: str
    badges: tuple[tuple[str, str], ...]
    headline: str
    support: tuple[str, ...]
    gates: tuple[str, ...]
    models: tuple[ModelView, ...]
    strategies: tuple[StrategyView, ...]
    correlation: Number
    iterations: tuple[IterationView, ...]
    board: BoardView | None
    paper: tuple[PaperTable, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    source: str
    items: tuple[ItemLine, ...]
    hashes: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    check: str


def run_view(run: CodeRun) -> RunView:
    """Make the page's view of a finished run; raises :class:`RunError` when it is not finished."""
    from tradeassay.benchmarks.systrade.published import published

    scores: SystradeScores = run.scores
    models = sorted(scores.models, key=_rank)
    headline, support = in_words(scores)
    return RunView(
        title=f"{run.benchmark}: {run.folder.resolve().name}",
        sub=(
            f"{numbers.count(len(scores.strategies), 'strategy', 'strategies')}, "
            f"{numbers.count(len(run.episodes), 'item')} · governed strategies written by models, run in a sandbox"
        ),
        badges=systrade_badges(run),
        headline=headline,
        support=support,
        gates=GATE_TITLES,
        models=tuple(_model(row) for row in models),
        strategies=tuple(_strategy(row) for row in scores.strategies),
        correlation=plain(scores.complexity),
        iterations=tuple(_iteration(row) for row in scores.iterations if row.items),
        board=None if scores.reviews is None else _board(scores.reviews),
        paper=paper_tables(scores),
        reasons=reasons(run.spec, scores),
        notes=published().notes,
        source=published().source,
        items=tuple(_item(run, item) for item in run.episodes),
        hashes=(("spec", run.manifest.work_sha256), *sorted(run.manifest.facts.items())),
        versions=(*sorted(run.manifest.versions.packages.items()), ("python", run.manifest.versions.python)),
        check=f"tradeassay verify {run.folder}",
    )


def systrade_badges(run: CodeRun) -> tuple[tuple[str, str], ...]:
    """Return what a reader must know before believing a number."""
    spec = run.spec
    data = ("synthetic", "synthetic data") if spec.dataset is None else ("plain", f"data: {spec.dataset}")
    kinds = {outcome.answers for _, outcome in run.outcomes()}
    words = {"scripted": "scripted models", "replayed": "replayed answers", "live": "live models"}
    found = [data, *(("bias" if kind == "scripted" else "plain", words[kind]) for kind in sorted(kinds))]
    found.append(("plain", numbers.count(len(spec.reviewers), "reviewer") if spec.reviewers else "no reviewers"))
    if run.failed:
        found.append(("bias", f"{numbers.count(len(run.failed), 'item')} without a result"))
    return tuple(found)


def in_words(scores: SystradeScores) -> tuple[str, tuple[str, ...]]:
    """Say whose hand-ins hold most gates, whether that can be told apart, and what iterations brought."""
    told = sorted((row for row in scores.models if row.valid.value is not None), key=_rank)
    if not told:
        return "No model has a result.", ()
    best = told[0]
    headline = f"{best.model}: {rate(best.valid).text} of {best.valid.n} hand-ins hold all six gates."
    support = []
    if len(told) > 1:
        second = told[1]
        low, high = best.valid.low, second.valid.high
        apart = low is not None and high is not None and low > high
        words = "the intervals do not overlap" if apart else "the intervals overlap, so they cannot be told apart"
        support.append(f"Next is {second.model} with {rate(second.valid).text}; {words}.")
    leaks = [row.model for row in told if (row.gates["leak"].value or 0.0) < (row.gates["exec"].value or 0.0)]
    if leaks:
        support.append(f"Hand-ins that run and look ahead: {', '.join(leaks)}.")
    drifted = sum(row.drifted for row in scores.iterations)
    if drifted:
        support.append(f"{numbers.count(drifted, 'patch', 'patches')} changed the strategy and were set aside.")
    return headline, tuple(support)


def plain(measure: Measure, form: str = "{:.2f}") -> Number:
    """Write any measure out."""
    if measure.value is None:
        return Number(text=numbers.NONE, note=measure.reason or "")
    interval = ""
    if measure.low is not None and measure.high is not None:
        interval = f"{form.format(measure.low)} to {form.format(measure.high)}"
    return Number(text=form.format(measure.value), interval=interval, note=measure.note or "")


def _rank(row: ModelRow) -> tuple[float, float]:
    return -(row.valid.value or 0.0), -(row.overall.value or 0.0)


def _numbers(found: dict[str, Measure]) -> tuple[Number, ...]:
    return tuple(score(found[name]) for name in DIMENSIONS)


def _model(row: ModelRow) -> ModelView:
    left = f" ({row.unanswered} without an answer)" if row.unanswered else ""
    return ModelView(
        name=row.model,
        items=f"{row.items}{left}",
        gates=tuple(rate(row.gates[name]) for name in GATE_TITLES),
        valid=rate(row.valid),
        scores=_numbers(row.scores),
        paper=_numbers(row.paper),
        overall=score(row.overall),
        usd=numbers.dollars(row.usd_per_strategy),
        tier=row.tier,
    )


def _strategy(row: StrategyRow) -> StrategyView:
    return StrategyView(
        name=row.strategy,
        complexity=f"{row.complexity:.2f}",
        items=f"{row.items}",
        valid=rate(row.valid),
        scores=_numbers(row.scores),
        overall=score(row.overall),
        pbo=plain(row.pbo),
        spa=plain(row.spa_p, "{:.3f}"),
    )


def _iteration(row: IterationRow) -> IterationView:
    return IterationView(
        number=row.iteration,
        items=f"{row.items}",
        scores=_numbers(row.scores),
        gain=plain(row.gain, "{:+.2f}"),
        alike=rate(row.alike),
        same=rate(row.same_outcome),
        test_return=rate(row.test_return),
        ensemble=plain(row.ensemble),
        drift=f"{row.repaired} repaired, {row.drifted} drifted",
    )


def _board(board: Any) -> BoardView:
    names = sorted(board.fidelity, key=lambda name: -(_value(board.rating.get(name))))
    none = Number(text=numbers.NONE, note="not compared")
    rows = tuple(
        BoardRow(
            name=name,
            rating=plain(board.rating[name], "{:.0f}") if name in board.rating else none,
            fidelity=score(board.fidelity[name]),
            risk=score(board.risk[name]),
        )
        for name in names
    )
    biases = [("own work", one.who, plain(one.fidelity, "{:+.2f}"), plain(one.risk, "{:+.2f}"))
              for one in board.own_bias]  # fmt: skip
    biases += [("same vendor", one.who, plain(one.fidelity, "{:+.2f}"), plain(one.risk, "{:+.2f}"))
               for one in board.vendor_bias]  # fmt: skip
    return BoardView(
        rows=rows, agreement=plain(board.agreement), biases=tuple(biases), unanswered=board.unanswered
    )


def _value(measure: Measure | None) -> float:
    return 0.0 if measure is None or measure.value is None else measure.value


def _item(run: CodeRun, item: Any) -> ItemLine:
    outcome, record = run.outcome(item.key), run.record(item.key)
    last = None if record is None else record.last
    held = last is not None and last.scorecard.gates.passed
    return ItemLine(
        name=item.model,
        strategy=item.task,
        link="" if last is None else f"cards/{item.key}.html",
        outcome="" if outcome is None else outcome.words,
        tone="good" if held else "bad",
        stopped="" if record is None else record.stopped,
        path="" if record is None else _path(record.iterations),
        overall=numbers.NONE if last is None else score(last.scorecard.overall).text,
    )


def _path(iterations: Sequence[Any]) -> str:
    """Return an item's iterations in a line: what came of each."""
    parts = []
    for one in iterations:
        if one.scored is None:
            parts.append("no hand-in")
            continue
        failure = one.scored.scorecard.gates.first_failure
        words = "held" if failure is None else f"failed at {failure.name}"
        drift = "" if one.scored.drift is None else f", {one.scored.drift.kind}"
        parts.append(f"{words}{drift}{', set aside' if one.set_aside else ''}")
    return " → ".join(parts)
