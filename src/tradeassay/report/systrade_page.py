"""The pages of SysTradeBench: one scorecard per item, one page per run. No request leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.benchmarks.systrade.examine import SubmissionCheck
from tradeassay.report import numbers
from tradeassay.report.code_page import answer_badges, failed_badge, overlap, versions_of
from tradeassay.report.formatting import MeasureShown, shown
from tradeassay.report.paper_tables import paper_of
from tradeassay.report.shell import render_page, write_page
from tradeassay.report.systrade_drawings import cost_chart, leg_charts, mark_words
from tradeassay.runs import CodeRun
from tradeassay.runs.score.systrade_scores import ModelRow, SystradeScores
from tradeassay.runs.verify.coverage import coverage_of

if TYPE_CHECKING:
    from tradeassay.benchmarks.systrade.examine import AuditStep, Trail
    from tradeassay.benchmarks.systrade.outcome import Iteration, StrategyOutcome
    from tradeassay.runs import VerifyReport
    from tradeassay.runs.summary.programs import Rated, ReviewBoard, ReviewForm, Scorecard, Submission

GATE_TITLES = ("parse", "schema", "exec", "determinism", "leak", "audit", "scenarios")
DIMENSIONS = {
    "D1": ("Fidelity", "decides as the frozen semantics do, on the scenarios and on the test data"),
    "D2": ("Risk discipline", "keeps its constraints, in ordinary times and under stress"),
    "D3": ("Reliability", "runs, repeats itself, does not look ahead, and can be audited"),
    "D4": ("Robustness", "what is left of the test year after costs and after counting the trials"),
}
GATE_CHIPS = {"passed": ("above", "held"), "failed": ("below", "failed"), "not_run": ("quiet", "not run")}
DRIFT_TONES = {"drift": "below", "unknown": "below", "review": "mixed"}
MARKS = {
    "both": "the same bar, leg and size as the frozen semantics",
    "other size": "the same bar and leg, another size",
    "only submission": "a decision the frozen semantics do not make",
    "only frozen": "a decision of the frozen semantics that is missing",
}
_SHOWN_DIFFERENCES = 30


# One scorecard


def write_check_html(check: SubmissionCheck, path: Path) -> Path:
    """Write the scorecard of a submission that no model was asked for, and return its path."""
    badges = (("plain", check.scorecard.data), ("plain", "no model was asked"))
    return write_page(path, render_card(check.scorecard, check.trail, check.submission, badges=badges))


def render_card(
    card: Scorecard,
    trail: Trail | None,
    submission: Submission,
    *,
    hand_in: Iteration | None = None,
    badges: Sequence[tuple[str, str]] = (),
    back: str = "",
) -> str:
    """Return the page of one scorecard. ``back`` links to the page of the run it belongs to."""
    tone, headline, support = card_in_words(card)
    scored = None if hand_in is None else hand_in.scored
    differences = [] if trail is None else [mark_words(mark) for mark in trail.marks if mark.kind != "both"]
    every = 0 if trail is None else sum(trail.counts.values())
    year = card.year
    context = {
        "card": card,
        "trail": trail,
        "submission": submission,
        "drift": None if scored is None else scored.drift,
        "reviews": () if hand_in is None else hand_in.reviews,
        "badges": badges,
        "back": back,
        "tone": tone,
        "headline": headline,
        "support": support,
        "dimensions": DIMENSIONS,
        "gate_chips": GATE_CHIPS,
        "drift_tones": DRIFT_TONES,
        "marks": MARKS,
        "legs": () if trail is None else leg_charts(trail),
        "differences": differences[:_SHOWN_DIFFERENCES],
        "more_differences": max(0, every - (trail.counts.get("both", 0) if trail else 0) - _SHOWN_DIFFERENCES),
        "decisions": every,
        "cost_chart": None
        if year is None
        else cost_chart([(point.cost_bp, point.total) for point in year.costs], year.break_even_bp.value),
        "by_turnover": year is not None,
        "measured": _measured,
        "followed": _followed,
    }
    return render_page("card.html.j2", context)


def card_in_words(card: Scorecard) -> tuple[str, str, str]:
    """Return the tone of the gates' verdict, the verdict in one sentence, and what it does not say."""
    report = card.gates
    failure = report.first_failure
    missing = [gate for gate in report.gates if gate.status == "not_run"]
    if failure is not None:
        count = sum(gate.status == "failed" for gate in report.gates)
        more = f" {numbers.count(count - 1, 'more gate')} failed too." if count > 1 else ""
        return "below", f"Not fit to sign: it fails at '{failure.name}'.", f"{failure.reason}.{more}"
    if missing:
        names = ", ".join(gate.name for gate in missing)
        return "below", f"Not decided: {names} could not be run.", missing[0].reason
    caution = (
        "Holding the leak gate is evidence, not proof: runs on other futures were compared at some bars, and at "
        "every bar of the micro-scenarios."
    )
    return "above", f"All {len(report.gates)} gates held.", caution


def _measured(value: object) -> str:
    """Return what a gate measured: hashes are cut, numbers written out."""
    if value is None:
        return numbers.NONE
    if isinstance(value, str):
        return f"{value[:12]}…" if len(value) == 64 else value
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _followed(step: AuditStep) -> tuple[str, bool]:
    """Return a step of an audited trade in words, and whether it is sound."""
    if step.id is None:
        return "missing", False
    if step.own is None:
        return step.id, True
    claimed = numbers.NONE if step.claimed is None else f"{step.claimed:,.6g}"
    return (claimed, True) if step.true else (f"{claimed}; the host finds {step.own:,.6g}", False)


# People who review


def write_review_form(form: ReviewForm, path: Path) -> Path:
    """Write a page on which a person reads submissions, marks them, and saves the table; return its path."""
    context = {"form": form, "marks": tuple(range(1, 11))}
    return write_page(path, render_page("review_form.html.j2", context, script="review_form.js"))


def write_review_html(rated: Rated, path: Path) -> Path:
    """Write the page of what people said of a form, and return its path."""
    context = {"board": rated.board, "raters": rated.raters, "authors": _authors(rated.board)}
    return write_page(path, render_page("review_board.html.j2", context))


# A run


def write_systrade_html(run: CodeRun, path: Path | None = None, verified: VerifyReport | None = None) -> Path:
    """Write the page of a finished run and, beside it, a scorecard for every item; return the page's path."""
    place = path or run.folder / "report.html"
    badges = systrade_badges(run)
    records: dict[str, StrategyOutcome] = run.records()
    for key, record in records.items():
        one = next((i for i in reversed(record.iterations) if i.scored is not None and not i.set_aside), None)
        if one is None or one.scored is None or one.submission is None:
            continue
        page = render_card(
            one.scored.scorecard,
            one.scored.trail,
            one.submission,
            hand_in=one,
            badges=(*badges, ("plain", f"iteration {one.number}")),
            back=f"../{place.name}",
        )
        write_page(place.parent / "cards" / f"{key}.html", page)
    return write_page(place, render_run(run, records, verified))


def render_run(run: CodeRun, records: dict[str, StrategyOutcome], verified: VerifyReport | None = None) -> str:
    """Return the page of a finished run; raises :class:`RunError` when it is not finished."""
    scores: SystradeScores = run.scores
    headline, support = in_words(scores)
    context = {
        "run": run,
        "prospect": coverage_of(run),
        "verified": verified,
        "scores": scores,
        "sub": f"{numbers.count(len(scores.strategies), 'strategy', 'strategies')}, "
        f"{numbers.count(len(run.episodes), 'item')} · governed strategies written by models, run in a sandbox",
        "badges": systrade_badges(run),
        "headline": headline,
        "support": support,
        "gates": GATE_TITLES,
        "dimensions": DIMENSIONS,
        "models": sorted(scores.models, key=_rank),
        "authors": _authors(scores.reviews),
        "paper": paper_of(run),
        "items": [(item, run.outcome(item.key), records.get(item.key)) for item in run.episodes],
        "path_words": path_words,
        "hashes": (("spec", run.manifest.work_sha256), *sorted(run.manifest.facts.items())),
        "versions": versions_of(run),
    }
    return render_page("systrade.html.j2", context)


def systrade_badges(run: CodeRun) -> tuple[tuple[str, str], ...]:
    """Return what a reader must know before believing a number."""
    spec = run.spec
    data = ("synthetic", "synthetic data") if spec.dataset is None else ("plain", f"data: {spec.dataset}")
    reviewers = numbers.count(len(spec.reviewers), "reviewer") if spec.reviewers else "no reviewers"
    return (data, *answer_badges(run), ("plain", reviewers), *failed_badge(run))


def in_words(scores: SystradeScores) -> tuple[str, tuple[str, ...]]:
    """Say whose submissions pass most gates, whether the lead is real, and what iterations brought."""
    told = sorted((row for row in scores.models if row.valid.value is not None), key=_rank)
    if not told:
        return "No model has a result.", ()
    best = told[0]
    headline = (
        f"{best.model}: {shown(best.valid, 'share').text} of {best.valid.n} hand-ins hold the paper's six gates."
    )
    support = []
    if len(told) > 1:
        second = told[1]
        apart = overlap(best.valid.low, second.valid.high)
        support.append(f"Next is {second.model} with {shown(second.valid, 'share').text}; {apart}.")
    leaks = [row.model for row in told if (row.gates["leak"].value or 0.0) < (row.gates["exec"].value or 0.0)]
    if leaks:
        support.append(f"Hand-ins that run and look ahead: {', '.join(leaks)}.")
    drifted = sum(row.drifted for row in scores.iterations)
    if drifted:
        support.append(f"{numbers.count(drifted, 'patch', 'patches')} changed the strategy and were set aside.")
    return headline, tuple(support)


def path_words(iterations: Sequence[Iteration]) -> str:
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


def _rank(row: ModelRow) -> tuple[float, float]:
    return -(row.valid.value or 0.0), -(row.overall.value or 0.0)


def _authors(board: ReviewBoard | None) -> list[tuple[str, MeasureShown]]:
    """Return the authors on the review board with their rating, the best first."""
    if board is None:
        return []
    none = MeasureShown(text=numbers.NONE, note="not compared")
    rated = {
        name: shown(board.rating[name], "{:.0f}") if name in board.rating else none for name in board.fidelity
    }
    return sorted(rated.items(), key=lambda pair: -(pair[1].value or 0.0))
