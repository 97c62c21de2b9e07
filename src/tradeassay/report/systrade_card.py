"""One submission's scorecard, written out: what a risk officer needs before signing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.systrade_charts import CostChart, LegChart, cost_chart, leg_charts, mark_words

if TYPE_CHECKING:
    from tradeassay.benchmarks.systrade.trail import FollowedTrade, Trail

_TITLES = {
    "D1": ("Fidelity", "decides as the frozen semantics do, on the scenarios and on the test data"),
    "D2": ("Risk discipline", "keeps its constraints, in ordinary times and under stress"),
    "D3": ("Reliability", "runs, repeats itself, does not look ahead, and can be audited"),
    "D4": ("Robustness", "what is left of the test year after costs and after counting the trials"),
}
_STATUS = {"passed": "held", "failed": "failed", "not_run": "not run"}
_SHOWN = 30
_HASH = 64


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """A measure as text: value, interval, and a note that says what it rests on or why there is none."""

    text: str
    interval: str = ""
    note: str = ""


class GateView(msgspec.Struct, frozen=True, kw_only=True):
    """One gate with its evidence."""

    name: str
    question: str
    status: str
    tone: str
    reason: str
    measures: tuple[tuple[str, str], ...]
    evidence: tuple[str, ...]
    advice: tuple[str, ...]


class DimensionView(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension in both conventions."""

    name: str
    title: str
    what: str
    sound: Number
    paper: Number


class RegimeView(msgspec.Struct, frozen=True, kw_only=True):
    """One stress regime."""

    name: str
    decisions: str
    breaches: str
    held: bool


class DriftView(msgspec.Struct, frozen=True, kw_only=True):
    """What the patch did to the strategy."""

    verdict: str
    tone: str
    reasons: tuple[str, ...]
    lines: str
    scenarios: tuple[tuple[str, str, str, str], ...]


class YearView(msgspec.Struct, frozen=True, kw_only=True):
    """The test year in numbers."""

    rows: tuple[tuple[str, str, str, str], ...]
    facts: tuple[tuple[str, str, str], ...]
    chart: CostChart | None


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One trade of the sample."""

    what: str
    price: str
    steps: tuple[tuple[str, str, bool], ...]


class CardView(msgspec.Struct, frozen=True, kw_only=True):
    """The whole scorecard."""

    title: str
    sub: str
    badges: tuple[tuple[str, str], ...]
    headline: str
    tone: str
    support: str
    gates: tuple[GateView, ...]
    dimensions: tuple[DimensionView, ...]
    overall: Number
    complexity: str
    legs: tuple[LegChart, ...]
    counts: tuple[tuple[str, str, int], ...]
    differences: tuple[str, ...]
    more_differences: int
    thinned: str
    year: YearView | None
    year_reason: str
    regimes: tuple[RegimeView, ...]
    drift: DriftView | None
    audit: tuple[AuditRow, ...]
    reviews: tuple[tuple[str, str, str, str], ...]
    hashes: tuple[tuple[str, str], ...]
    source: str
    card: str
    back: str


def card_view(
    card: Any,
    trail: Trail | None,
    submission: Any,
    *,
    drift: Any = None,
    reviews: Sequence[Any] = (),
    badges: Sequence[tuple[str, str]] = (),
    back: str = "",
) -> CardView:
    """Make the view of one scorecard. ``back`` links to the page of the run it belongs to."""
    headline, tone, support = in_words(card)
    differences = [] if trail is None else [mark_words(m) for m in trail.marks if m.kind != "both"]
    return CardView(
        title=f"{card.strategy}: {card.submission}",
        sub=f"Scorecard of a submission · {card.data} · {card.gates.rows:,} bars",
        badges=tuple(badges),
        headline=headline,
        tone=tone,
        support=support,
        gates=tuple(_gate(gate, card.gates.questions[gate.name]) for gate in card.gates.gates),
        dimensions=tuple(_dimension(name, card) for name in _TITLES),
        overall=score(card.overall),
        complexity=f"{card.complexity:.2f}",
        legs=() if trail is None else leg_charts(trail),
        counts=() if trail is None else _counts(trail),
        differences=tuple(differences[:_SHOWN]),
        more_differences=max(0, _differences(trail) - _SHOWN),
        thinned=_thinned(trail),
        year=None if card.year is None else _year(card.year),
        year_reason=card.year_reason or "",
        regimes=tuple(_regime(one) for one in card.regimes),
        drift=None if drift is None else _drift(drift),
        audit=() if trail is None else tuple(_audit(one) for one in trail.audit),
        reviews=tuple(_review(number, one) for number, one in enumerate(reviews, 1)),
        hashes=(
            ("submission", card.submission_sha256),
            ("frozen semantics", card.gates.semantics_sha256),
            ("walls it ran behind", card.gates.tier),
            ("runs of the program", f"{card.gates.runs:,}"),
        ),
        source=submission.source,
        card=submission.card,
        back=back,
    )


def in_words(card: Any) -> tuple[str, str, str]:
    """Return the verdict of the gates in one sentence, its tone, and what it does not say."""
    report = card.gates
    failure = report.first_failure
    missing = [gate.name for gate in report.gates if gate.status == "not_run"]
    caution = (
        "Holding the leak gate is evidence, not proof: runs on other futures were compared at some bars, and at "
        "every bar of the micro-scenarios."
    )
    if failure is not None:
        count = sum(gate.status == "failed" for gate in report.gates)
        more = f" {numbers.count(count - 1, 'more gate')} failed too." if count > 1 else ""
        return f"Not fit to sign: it fails at '{failure.name}'.", "bad", f"{failure.reason}.{more}"
    if missing:
        return f"Not decided: {', '.join(missing)} could not be asked.", "bad", report.gate(missing[0]).reason
    return f"All {len(report.gates)} gates held.", "good", caution


def score(measure: Measure) -> Number:
    """Write a score of 0 to 10 out."""
    if measure.value is None:
        return Number(text=numbers.NONE, note=measure.reason or "")
    interval = ""
    if measure.low is not None and measure.high is not None:
        interval = f"{measure.low:.2f} to {measure.high:.2f}"
    return Number(text=f"{measure.value:.2f}", interval=interval, note=measure.note or "")


def _gate(gate: Any, question: str) -> GateView:
    return GateView(
        name=gate.name,
        question=question,
        status=_STATUS[gate.status],
        tone={"passed": "good", "failed": "bad", "not_run": "dim"}[gate.status],
        reason="" if gate.evidence and gate.reason == gate.evidence[0].text else gate.reason,
        measures=tuple((name.replace("_", " "), _plain(value)) for name, value in gate.measures.items()),
        evidence=tuple(_finding(one) for one in gate.evidence),
        advice=tuple(_finding(one) for one in gate.advice),
    )


def _finding(finding: Any) -> str:
    place = f"{finding.file}:{finding.line}: " if finding.line is not None else ""
    return f"{place}{finding.text}"


def _plain(value: Any) -> str:
    if value is None:
        return numbers.NONE
    if isinstance(value, str) and len(value) == _HASH:
        return f"{value[:12]}…"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _dimension(name: str, card: Any) -> DimensionView:
    title, what = _TITLES[name]
    paper = score(card.paper[name])
    parts = card.paper_parts.get(name)
    if parts is not None:
        told = ", ".join(f"{part} {value:g}" for part, value in parts.parts.items())
        paper = msgspec.structs.replace(paper, note=f"from the source text: {told}")
    return DimensionView(name=name, title=title, what=what, sound=score(card.sound[name]), paper=paper)


def _counts(trail: Trail) -> tuple[tuple[str, str, int], ...]:
    words = {
        "both": "the same bar, leg and size as the frozen semantics",
        "other size": "the same bar and leg, another size",
        "only submission": "a decision the frozen semantics do not make",
        "only frozen": "a decision of the frozen semantics that is missing",
    }
    return tuple((kind.replace(" ", "-"), text, trail.counts.get(kind, 0)) for kind, text in words.items())


def _differences(trail: Trail | None) -> int:
    return 0 if trail is None else sum(count for kind, count in trail.counts.items() if kind != "both")


def _thinned(trail: Trail | None) -> str:
    if trail is None or len(trail.marks) == sum(trail.counts.values()):
        return ""
    return (
        f"{len(trail.marks)} of {sum(trail.counts.values()):,} decisions are drawn, differences first; "
        "exposures are left out."
    )


def _year(year: Any) -> YearView:
    rows = tuple(
        (
            f"{point.cost_bp:g} bp",
            _percent(point.total),
            numbers.NONE if point.sharpe is None else numbers.number(point.sharpe, signed=True),
            numbers.number(point.fees, unit="fraction"),
        )
        for point in year.costs
    )
    even = year.break_even_bp
    facts = (
        ("Break-even cost", *_value(even, "{:.2f} bp")),
        ("Turnover", f"{year.turnover:.1f} times the capital a year", "traded value, both sides, without costs"),
        ("Deflated Sharpe ratio", *_value(year.deflated, "{:.3f}")),
        ("Over buy and hold", _percent(year.excess), "at the middle cost level"),
        ("Quarters", ", ".join(_percent(value) for value in year.quarters), "at the middle cost level"),
    )
    chart = cost_chart([(point.cost_bp, point.total) for point in year.costs], even.value)
    return YearView(rows=rows, facts=facts, chart=chart)


def _percent(value: float) -> str:
    return numbers.number(value, unit="fraction", signed=True)


def _value(measure: Measure, form: str) -> tuple[str, str]:
    if measure.value is None:
        return numbers.NONE, measure.reason or ""
    interval = ""
    if measure.low is not None and measure.high is not None:
        interval = f"{form.format(measure.low)} to {form.format(measure.high)}"
    return form.format(measure.value), "; ".join(part for part in (interval, measure.note or "") if part)


def _regime(one: Any) -> RegimeView:
    if one.failed:
        return RegimeView(name=one.regime, decisions="0", breaches=f"it did not run: {one.failed}", held=False)
    told = "; ".join(
        f"{b.constraint.replace('_', ' ')} on {numbers.count(b.bars, 'bar')}, first on bar {b.first}"
        for b in one.breaches
    )
    return RegimeView(
        name=one.regime, decisions=f"{one.decisions:,}", breaches=told or "none", held=not one.breaches
    )


def _drift(drift: Any) -> DriftView:
    tone = {"drift": "bad", "unknown": "bad", "review": "warn"}.get(drift.kind, "good")
    over = "" if drift.within_budget else ": over the budget"
    return DriftView(
        verdict=drift.kind,
        tone=tone if drift.within_budget else "bad",
        reasons=(*drift.card_changes, *drift.reasons),
        lines=f"{drift.changed_lines} of {drift.budget} changed lines{over}",
        scenarios=tuple(
            (one.name, f"{one.moved:.3f}", f"{one.before:.3f}", f"{one.after:.3f}") for one in drift.scenarios
        ),
    )


def _audit(trade: FollowedTrade) -> AuditRow:
    side = "BUY" if trade.quantity > 0 else "SELL"
    claimed = numbers.NONE if trade.claimed_price is None else f"{trade.claimed_price:,.6g}"
    return AuditRow(
        what=f"{trade.time} {side} {abs(trade.quantity):,.6g} {trade.leg} ({trade.signal or 'no signal'})",
        price=f"claimed {claimed}, close {trade.price:,.6g}",
        steps=tuple(_step(step) for step in trade.steps),
    )


def _step(step: Any) -> tuple[str, str, bool]:
    name = step.kind.replace("_", " ")
    if step.id is None:
        return name, "missing", False
    if step.own is None:
        return name, step.id, True
    claimed = numbers.NONE if step.claimed is None else f"{step.claimed:,.6g}"
    room = 1e-6 * max(1.0, abs(step.own), 100_000.0 if step.kind == "pnl" else 0.0)
    true = step.claimed is None or abs(step.claimed - step.own) <= room
    return name, claimed if true else f"{claimed}; the host finds {step.own:,.6g}", true


def _review(number: int, review: Any) -> tuple[str, str, str, str]:
    if review.failure is not None:
        return f"reviewer {number}", numbers.NONE, numbers.NONE, f"gave no marks: {review.failure}"
    who = f"reviewer {number}" + (" (its own work, not counted)" if review.own else "")
    return who, f"{review.fidelity:g}", f"{review.risk:g}", f"For: {review.strengths} Against: {review.weaknesses}"
