"""The paper's tables in our columns, ours beside them, and why the two are not the same measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tradeassay.benchmarks.systrade.published import OurRun, published, why_not_comparable
from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.code_rates import rate

if TYPE_CHECKING:
    from tradeassay.runs.systrade_scores import SystradeScores

_GATES = ("parse", "schema", "exec", "determinism", "leak", "audit")


class PaperRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row; ``ours`` tells whose. A cell is (text, small print)."""

    name: str
    ours: bool
    cells: tuple[tuple[str, str], ...]


class PaperTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table of the paper in our columns. ``comparable`` says what may be compared, if anything."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    comparable: str


def reasons(spec: Any, scores: SystradeScores) -> tuple[str, ...]:
    """Return why no figure of a run is the paper's measurement."""
    return why_not_comparable(
        OurRun(
            strategies=len(scores.strategies),
            iterations=spec.iterations,
            real_data=spec.dataset is not None,
            reviewed=bool(spec.reviewers),
        )
    )


def paper_tables(scores: SystradeScores) -> tuple[PaperTable, ...]:
    """Return the printed tables with our rows first."""
    return (_gates(scores), _strategies(scores), _iterations(scores), _reviews(scores), _costs(scores))


def _gates(scores: SystradeScores) -> PaperTable:
    ours = tuple(
        PaperRow(name=row.model, ours=True, cells=tuple(_share(row.gates[name]) for name in _GATES))
        for row in scores.models
    )
    printed = tuple(
        PaperRow(
            name=f"{row.model} ({row.handed_in} of {published().strategies} handed in)",
            ours=False,
            cells=tuple((f"{getattr(row, name):.1f}%", "") for name in _GATES),
        )
        for row in published().gates
    )
    return PaperTable(
        title="Table 3: hand-ins that pass each gate",
        columns=_GATES,
        rows=(*ours, *printed),
        comparable="Not comparable: parse and schema ask nearly the same, the other gates more than the paper's.",
    )


def _strategies(scores: SystradeScores) -> PaperTable:
    found = {row.strategy: row for row in scores.strategies}
    rows = []
    for one in published().by_strategy:
        mine = found.get(one.strategy)
        valid = ("", "not run") if mine is None else _share(mine.valid)
        overall = ("", "not run") if mine is None else _number(mine.overall)
        weight = "" if mine is None else f"{mine.complexity:.2f}"
        rows.append(
            PaperRow(
                name=one.strategy,
                ours=mine is not None,
                cells=(
                    (weight, ""),
                    (one.complexity, ""),
                    valid,
                    (f"{one.valid}/{published().attempts}", ""),
                    overall,
                    (f"{one.overall:.2f}", f"LLM {one.llm:g}, QR {one.qr:g}"),
                ),
            )
        )
    rho = _number(scores.complexity)
    rows.append(
        PaperRow(
            name="Spearman's rho of complexity and overall",
            ours=True,
            cells=(("", ""), ("", ""), ("", ""), ("", ""), rho, (f"{published().complexity.rho:+.2f}", "printed")),
        )
    )
    return PaperTable(
        title="Table 4: strategies",
        columns=(
            "C, ours",
            "complexity, printed",
            "valid, ours",
            "valid, printed",
            "overall, ours",
            "overall, printed",
        ),
        rows=tuple(rows),
        comparable="Not comparable in value; the order of strategies may be.",
    )


def _iterations(scores: SystradeScores) -> PaperTable:
    printed = {row.iteration: row for row in published().iterations}
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
                    _number(gain, "{:+.3f}"),
                    ("" if one is None else f"{one.gain:+.2f}", ""),
                    _share(row.alike),
                    (similar, ""),
                    _share(row.test_return),
                    ("" if one is None else f"{one.test_return:+.1f}%", ""),
                ),
            )
        )
    return PaperTable(
        title="Section 5.5: what iterations bring (scores on 0 to 1)",
        columns=(
            "gain, ours", "gain, printed", "code alike, ours", "code alike, printed", "test return, ours",
            "test return, printed",
        ),
        rows=tuple(rows),
        comparable="Not comparable: the paper followed three models on one strategy, on windows of ten bars.",
    )  # fmt: skip


def _reviews(scores: SystradeScores) -> PaperTable:
    figures, board = published().reviews, scores.reviews
    tau = ("", "no reviewers") if board is None else _number(board.agreement)
    own = ("", "no reviewers") if board is None else _range([one.fidelity for one in board.own_bias])
    vendor = ("", "no reviewers") if board is None else _range([one.fidelity for one in board.vendor_bias])
    return PaperTable(
        title="Sections 5.3 and B.9: reviewers",
        columns=("ours", "printed"),
        rows=(
            PaperRow(
                name="Agreement (mean Kendall tau)",
                ours=True,
                cells=(tau, (f"{figures.tau_mean}", f"{figures.tau_low} to {figures.tau_high} pairwise")),
            ),
            PaperRow(
                name="Own work marked higher by",
                ours=True,
                cells=(own, (f"{figures.own_bias_low} to {figures.own_bias_high}", "")),
            ),
            PaperRow(
                name="Work of the same vendor marked higher by",
                ours=True,
                cells=(vendor, (f"{figures.vendor_bias_low} to {figures.vendor_bias_high}", "")),
            ),
        ),
        comparable="Comparable where real models reviewed; marks of scripted reviewers mean nothing.",
    )


def _costs(scores: SystradeScores) -> PaperTable:
    ours = tuple(
        PaperRow(
            name=row.model,
            ours=True,
            cells=((numbers.dollars(row.usd_per_strategy), ""), _number(row.overall), (row.tier, "")),
        )
        for row in scores.models
    )
    printed = tuple(
        PaperRow(
            name=f"tier '{row.name}'",
            ours=False,
            cells=(
                (f"${row.usd_low:.2f} to ${row.usd_high:.2f}", "first iteration"),
                (f"{row.overall_low} to {row.overall_high}", ""),
                ("", ""),
            ),
        )
        for row in published().tiers
    )
    return PaperTable(
        title="Section 5.6: dollars per strategy and what they buy",
        columns=("dollars per strategy", "overall", "tier"),
        rows=(*ours, *printed),
        comparable="Dollars are comparable at the prices of the day; overall scores are not.",
    )


def _share(measure: Measure) -> tuple[str, str]:
    made = rate(measure)
    return made.text, made.interval or made.note


def _number(measure: Measure, form: str = "{:.2f}") -> tuple[str, str]:
    if measure.value is None:
        return numbers.NONE, measure.reason or ""
    interval = ""
    if measure.low is not None and measure.high is not None:
        interval = f"{form.format(measure.low)} to {form.format(measure.high)}"
    return form.format(measure.value), interval or (measure.note or "")


def _range(found: list[Measure]) -> tuple[str, str]:
    values = [one.value for one in found if one.value is not None]
    if not values:
        return numbers.NONE, found[0].reason or "" if found else ""
    return f"{min(values):+.2f} to {max(values):+.2f}", f"{len(values)} authors"
