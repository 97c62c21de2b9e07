"""The scorecard of one submission as a page, and the pages on which people review submissions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.benchmarks.programs import Shown, SubmissionCard
from tradeassay.report import numbers
from tradeassay.report.scorecard_drawings import cost_chart, leg_charts, mark_words
from tradeassay.report.shell import render_page, write_page

if TYPE_CHECKING:
    from tradeassay.benchmarks.programs import Rated, ReviewForm, Scorecard
    from tradeassay.benchmarks.systrade.examine import AuditStep, SubmissionCheck

Badges = tuple[tuple[str, str], ...]
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


def write_check_html(check: SubmissionCheck, path: Path) -> Path:
    """Write the scorecard of a submission that no model was asked for, and return its path."""
    badges = (("plain", check.scorecard.data), ("plain", "no model was asked"))
    card = SubmissionCard(scorecard=check.scorecard, trail=check.trail, submission=check.submission)
    return write_page(path, render_card(card, badges))


def write_cards(page: Shown, badges: Badges, place: Path) -> None:
    for key, card in page.cards.items():
        about = (*badges, ("plain", f"iteration {card.iteration}"))
        text = render_card(card, about, back=f"../{place.name}")
        write_page(place.parent / "cards" / f"{key}.html", text)


def render_card(made: SubmissionCard, badges: Badges = (), *, back: str = "") -> str:
    """Return the page of one scorecard. ``back`` links to the page of the run it belongs to."""
    card, trail = made.scorecard, made.trail
    tone, headline, support = card_in_words(card)
    differences = [] if trail is None else [mark_words(mark) for mark in trail.marks if mark.kind != "both"]
    every = 0 if trail is None else sum(trail.counts.values())
    year = card.year
    points = [] if year is None else [(point.cost_bp, point.total) for point in year.costs]
    context = {
        "card": card,
        "trail": trail,
        "submission": made.submission,
        "drift": made.drift,
        "reviews": made.reviews,
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
        "cost_chart": None if year is None else cost_chart(points, year.break_even_bp.value),
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


def write_review_form(form: ReviewForm, path: Path) -> Path:
    """Write a page on which a person reads submissions, marks them, and saves the table; return its path."""
    context = {"form": form, "marks": tuple(range(1, 11))}
    return write_page(path, render_page("review_form.html.j2", context, scripts=("review_form.js",)))


def write_review_html(rated: Rated, path: Path) -> Path:
    """Write the page of what people said of a form, and return its path."""
    from tradeassay.benchmarks.systrade.tables import review_tables

    context = {"tables": tuple(review_tables(rated.board)), "raters": rated.raters}
    return write_page(path, render_page("review_board.html.j2", context))
