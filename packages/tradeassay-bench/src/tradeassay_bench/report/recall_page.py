"""Display a model's memory on one page: recall by month, with the knowledge cutoff marked."""

from __future__ import annotations

from datetime import date
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from tradeassay.report.charts import Band, ChartLook, Curve, Equity, LineStyle, Marks, line_chart
from tradeassay.report.shell import render_page, write_page
from tradeassay_bench.examine.memory import CounterfactualReport, RecallReport

_LOOK = {
    "recall": LineStyle(hue="h0", width=2.0),
    "near": LineStyle(hue="h1"),
    "control": LineStyle(hue="h2", dash="4 3"),
}
_LABELS = {"recall": "moves known", "near": "closes within 5 %", "control": "invented names"}
_EXAMPLES = 12


def write_recall(report: RecallReport, path: Path) -> Path:
    """Write the page of a model's recall and return its path."""
    shown = [one for one in report.answers if one.right][: _EXAMPLES // 2]
    shown += [one for one in report.answers if not one.right][: _EXAMPLES - len(shown)]
    context = {"report": report, "chart": recall_chart(report), "examples": shown}
    return write_page(path, render_page("recall.html.j2", context, scripts=("charts.js",)))


def recall_chart(report: RecallReport) -> Markup | None:
    """Return a chart of recall by month: 0 is guessing, 1 is knowing.

    Returns None if nothing could be scored.
    """
    months = [one for one in report.months if one.recall.value is not None]
    if not months:
        return None
    days = tuple(one.first for one in months)
    curves = []
    for entry in ("recall", "near", "control"):
        values = tuple(
            None if (v := getattr(one, entry).value) is None else round(v, 4) for one in months
        )
        if any(value is not None for value in values):
            curves.append(
                Curve(
                    entry=entry, label=_LABELS[entry], baseline=entry == "control", returns=values
                )
            )
    # With too few days for an interval, the band is as thin as the line.
    low, middle, high = (
        tuple(one.recall.value if (v := getattr(one.recall, end)) is None else v for one in months)
        for end in ("low", "value", "high")
    )
    band = Band(low=low, middle=middle, high=high)
    marks: tuple[Marks, ...] = ()
    if report.cutoff is not None:
        first, last = date.fromisoformat(days[0]), date.fromisoformat(days[-1])
        if first <= report.cutoff <= last:
            returns = chain.from_iterable(curve.returns for curve in curves)
            top = max(value for value in returns if value is not None)
            point = (report.cutoff.isoformat(), top, f"knowledge ends {report.cutoff}")
            marks = (
                Marks(label=f"cutoff {report.cutoff}", glyph="▼", tone="bad", points=(point,)),
            )
    about = f"Recall by month from {days[0]} to {days[-1]}; 0 is guessing, 1 is knowing"
    chart = Equity(days=days, curves=tuple(curves), band=band, sessions=len(days))
    return line_chart(chart, ChartLook(styles=_LOOK, size="mid", zero=True), about, marks=marks)


def write_counterfactual(report: CounterfactualReport, path: Path) -> Path:
    """Write the page of a counterfactual test and return its path."""
    changed = [one for one in report.decisions if one.arm != "again" and (one.recorded or one.now)][
        :_EXAMPLES
    ]
    return write_page(
        path, render_page("counterfactual.html.j2", {"report": report, "examples": changed})
    )
