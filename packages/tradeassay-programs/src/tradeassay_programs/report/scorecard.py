"""Render the scorecard of a submission, and the forms on which people review submissions.

The scorecard has drawings of decisions on the price path, target exposure, and the year's return by
cost.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradeassay.core.measure import BadgeTexts
from tradeassay.core.tables import counted
from tradeassay.report import numbers
from tradeassay.report.shell import render_page, write_page
from tradeassay_programs.benchmarks.programs import SubmissionCard

if TYPE_CHECKING:
    from tradeassay_programs.benchmarks.programs import Rated, ReviewForm
    from tradeassay_programs.benchmarks.systrade.examine import (
        AuditStep,
        LegPath,
        Mark,
        SubmissionCheck,
        Trail,
    )

DIMENSIONS = {
    "D1": (
        "Fidelity",
        "makes the decisions of the frozen semantics on the scenarios and the test data",
    ),
    "D2": ("Risk discipline", "respects its constraints in ordinary times and under stress"),
    "D3": ("Reliability", "runs, is deterministic, does not look ahead, and can be audited"),
    "D4": (
        "Robustness",
        "performance in the test year after costs, adjusted for the number of trials",
    ),
}
GATE_CHIPS = {
    "passed": ("above", "held"),
    "failed": ("below", "failed"),
    "not_run": ("quiet", "not run"),
}
DRIFT_TONES = {"drift": "below", "unknown": "below", "review": "mixed"}
MARKS = {
    "both": "the same bar, leg and size as the frozen semantics",
    "other size": "the same bar and leg, different size",
    "only submission": "a decision that the frozen semantics do not make",
    "only frozen": "a decision of the frozen semantics that is missing",
}
_SHOWN_DIFFERENCES = 30


def write_check_html(check: SubmissionCheck, path: Path) -> Path:
    """Write the scorecard of a submission that was checked without a model, and return its path."""
    badges = (("plain", check.scorecard.data), ("plain", "checked without a model"))
    parts = {
        name: getattr(check, name)
        for name in ("scorecard", "trail", "submission", "drift", "years")
    }
    return write_page(path, render_card(SubmissionCard(**parts), badges))


def render_card(made: SubmissionCard, badges: BadgeTexts = (), *, back: str = "") -> str:
    """Return the page of one scorecard. ``back`` is the link to the page of its run."""
    card, trail = made.scorecard, made.trail
    if made.iteration is not None:
        badges = (*badges, ("plain", f"iteration {made.iteration}"))
    tone, headline, support = card_in_words(made)
    marks, counts = ((), {}) if trail is None else (trail.marks, trail.counts)
    differences = [mark_words(mark) for mark in marks if mark.kind != "both"]
    every, year = sum(counts.values()), card.year
    points = [] if year is None else [(point.cost_bp, point.total) for point in year.costs]
    context = {
        "card": card,
        "trail": trail,
        "made": made,
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
        "more_differences": max(0, every - counts.get("both", 0) - _SHOWN_DIFFERENCES),
        "decisions": every,
        "cost_chart": None if year is None else cost_chart(points, year.break_even_bp.value),
        "measured": _measured,
        "followed": _followed,
    }
    return render_page("card.html.j2", context)


def card_in_words(made: SubmissionCard) -> tuple[str, str, str]:
    """Return the tone of the verdict, the verdict in one sentence, and its limits."""
    report, drift = made.scorecard.gates, made.drift
    failure = report.first_failure
    missing = [gate for gate in report.gates if gate.status == "not_run"]
    if failure is not None:
        count = sum(gate.status == "failed" for gate in report.gates)
        more = f" {counted(count - 1, 'more gate')} failed too." if count > 1 else ""
        return (
            "below",
            f"Rejected: gate '{failure.name}' failed.",
            f"{failure.reason}.{more}",
        )
    if missing:
        names = ", ".join(gate.name for gate in missing)
        return "below", f"Not decided: {names} could not be run.", missing[0].reason
    if drift is not None and not drift.accepted:
        grown = f"{drift.changed_lines} lines changed, {drift.budget} are allowed"
        why = (*drift.card_changes, *drift.reasons, *(() if drift.within_budget else (grown,)))
        words = (
            f"All {len(report.gates)} gates passed, but it cannot replace the earlier submission."
        )
        return "below", words, f"{'; '.join(why)}."
    caution = (
        "A passed leak gate is evidence, not proof: runs on other futures were compared at some "
        "bars, and "
        "at every bar of the micro-scenarios."
    )
    return "above", f"All {len(report.gates)} gates passed.", caution


def _measured(value: object) -> str:
    """Return a gate's measurement as text. Hashes are shortened, and numbers are formatted."""
    if value is None:
        return numbers.NONE
    if isinstance(value, str):
        return f"{value[:12]}…" if len(value) == 64 else value
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _followed(step: AuditStep) -> tuple[str, bool]:
    """Return a sentence on a step of an audited trade, and whether the step is correct."""
    if step.id is None:
        return "missing", False
    if step.own is None:
        return step.id, True
    claimed = numbers.NONE if step.claimed is None else f"{step.claimed:,.6g}"
    return (claimed, True) if step.true else (f"{claimed}; the host finds {step.own:,.6g}", False)


def write_review_form(form: ReviewForm, path: Path) -> Path:
    """Write a page for reading and marking submissions, and return its path.

    The page can save the table of marks.
    """
    context = {"form": form, "marks": tuple(range(1, 11))}
    return write_page(
        path, render_page("review_form.html.j2", context, scripts=("review_form.js",))
    )


def write_review_html(rated: Rated, path: Path) -> Path:
    from tradeassay_programs.benchmarks.systrade.tables import review_tables

    context = {"tables": tuple(review_tables(rated.board)), "raters": rated.raters}
    return write_page(path, render_page("review_board.html.j2", context))


Drawing = dict[str, Any]
"""The parts of a drawing, as named in its template. Positions are in the units of the drawing."""

WIDTH, HEIGHT, STRIP = 1000.0, 230.0, 70.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 12.0, 10.0, 22.0


def leg_charts(trail: Trail) -> tuple[Drawing, ...]:
    """Return a drawing for each leg that either side traded, or for the first leg if none.

    It shows prices, the decisions on them, and below them the exposures of both sides.
    """
    legs = {mark.leg for mark in trail.marks}
    chosen = [path for path in trail.paths if path.leg in legs] or list(trail.paths[:1])
    whole = len(trail.marks) == sum(trail.counts.values())
    return tuple(_leg(trail, path, whole) for path in chosen)


def _leg(trail: Trail, path: LegPath, whole: bool) -> Drawing:
    low, high = min(path.closes), max(path.closes)
    y_of = _scale(low, high, HEIGHT - _BOTTOM, _TOP)
    mine = [mark for mark in trail.marks if mark.leg == path.leg]
    shares = chain.from_iterable((mark.share, mark.frozen) for mark in mine)
    top = max([1.0, *(abs(share) for share in shares if share is not None)])
    e_of = _scale(-top, top, STRIP - 6.0, 6.0)

    def x_of(row: float) -> float:
        return _LEFT + row / max(trail.rows - 1, 1) * (WIDTH - _LEFT - _RIGHT)

    def price(row: int) -> float:
        place = min(bisect_left(path.rows, row), len(path.rows) - 1)
        if path.rows[place] <= row or place == 0:
            return path.closes[place]
        left, right = path.rows[place - 1], path.rows[place]
        share = (row - left) / (right - left)
        return path.closes[place - 1] * (1.0 - share) + path.closes[place] * share

    def steps(found: Sequence[tuple[int, float | None]]) -> str:
        """Return a step line in which a target exposure is held until the next decision.

        The drift with prices is left out.
        """
        points = [(0.0, 0.0)]
        for row, share in found:
            if share is not None:
                points += [(float(row), points[-1][1]), (float(row), share)]
        points.append((float(trail.rows - 1), points[-1][1]))
        return " ".join(f"{x_of(x):.1f},{e_of(y):.1f}" for x, y in points)

    drawn = []
    for mark in mine:
        at = {"x": round(x_of(mark.row), 1), "y": round(y_of(price(mark.row)), 1)}
        drawn.append({**at, "kind": mark.kind.replace(" ", "-"), "words": mark_words(mark)})
    line = (
        f"{x_of(row):.1f},{y_of(close):.1f}"
        for row, close in zip(path.rows, path.closes, strict=True)
    )
    return {
        "leg": path.leg,
        "line": " ".join(line),
        "marks": drawn,
        "prices": [
            _tick(y_of(value), f"{_nine_digits(value):,.4g}")
            for value in (low, (low + high) / 2.0, high)
        ],
        "exposure": steps([(mark.row, mark.share) for mark in mine]) if whole else "",
        "frozen": steps([(mark.row, mark.frozen) for mark in mine]) if whole else "",
        "zero": round(e_of(0.0), 1),
        "full": [_tick(e_of(v), f"{v:+.2g}") for v in (-top, top)],
        "words": f"{path.leg}: {counted(len(mine), 'decision')} shown",
    }


def cost_chart(points: Sequence[tuple[float, float]], even: float | None) -> Drawing | None:
    """Return the drawing of (cost in basis points, total return) pairs, with a log scale of costs.

    ``even`` is the cost at which the return is zero. It is left out if it is off the chart.
    """
    if len(points) < 2:
        return None
    low_x, high_x = math.log10(points[0][0]), math.log10(points[-1][0])
    place_y = _scale(
        min(0.0, *(y for _, y in points)), max(0.0, *(y for _, y in points)), 190.0, 14.0
    )

    def place_x(cost: float) -> float:
        return round(60.0 + (math.log10(cost) - low_x) / (high_x - low_x) * 470.0, 1)

    dots = []
    for cost, total in points:
        at = {"x": place_x(cost), "y": round(place_y(total), 1), "cost": f"{cost:g}"}
        dots.append({**at, "total": numbers.difference(total)})
    ends = sorted({min(y for _, y in points), max(y for _, y in points), 0.0})
    return {
        "line": " ".join(f"{dot['x']},{dot['y']}" for dot in dots),
        "dots": dots,
        "zero": round(place_y(0.0), 1),
        "even": None
        if even is None or not points[0][0] <= even <= points[-1][0]
        else place_x(even),
        "even_text": "" if even is None else f"break-even {even:.2f} bp",
        "grid": [_tick(place_y(y), numbers.difference(y)) for y in ends],
    }


def _tick(at: float, text: str) -> Drawing:
    return {"at": round(_nine_digits(at), 1), "text": text}


def _nine_digits(value: float) -> float:
    """Return a number rounded to nine digits, because the last digits differ between processors.

    Prices are whole ticks, so half of a sum often ends in a five. The last digit of the float would
    decide its rounding on the page.
    """
    return float(f"{value:.9g}")


def mark_words(mark: Mark) -> str:
    """Return a sentence on a bar with a decision, for the chart."""
    ours = (
        "nothing" if mark.share is None else f"{mark.share:+.3f} of equity {mark.signal}".rstrip()
    )
    theirs = (
        "nothing"
        if mark.frozen is None
        else f"{mark.frozen:+.3f} of equity {mark.frozen_signal}".rstrip()
    )
    if mark.kind == "both":
        return f"{mark.time}, {mark.leg}: both {ours}"
    return f"{mark.time}, {mark.leg}: submission {ours}; frozen semantics {theirs}"


def _scale(low: float, high: float, bottom: float, top: float) -> Callable[[float], float]:
    width = high - low
    return lambda value: bottom - (0.5 if width <= 0 else (value - low) / width) * (bottom - top)
