"""Format a measure: its number, its interval, the reason for a missing number, and a small drawing.

All bars of a column share one scale, so they can be compared by eye. The drawing is decoration: the
numbers are next to it as text.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.core.tables import Cell
from tradeassay.report import numbers


class _IntervalBar(msgspec.Struct, frozen=True, kw_only=True):
    """Positions in per cent of the bar's width. None means that the part is not drawn."""

    value: float
    low: float | None
    high: float | None
    zero: float
    cut_low: bool = False
    cut_high: bool = False


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The common range of a column, which always includes zero."""

    low: float
    high: float

    def place(self, value: float) -> float:
        width = self.high - self.low
        share = 0.5 if width <= 0 else (value - self.low) / width
        return round(100.0 * min(1.0, max(0.0, share)), 2)

    def bar(self, measure: Measure) -> _IntervalBar | None:
        if measure.value is None:
            return None
        low, high = measure.low, measure.high
        return _IntervalBar(
            value=self.place(measure.value),
            low=None if low is None else self.place(low),
            high=None if high is None else self.place(high),
            zero=self.place(0.0),
            cut_low=low is not None and low < self.low,
            cut_high=high is not None and high > self.high,
        )


def common_scale(measures: Sequence[Measure]) -> Scale:
    """Return a scale that includes zero, all values, and all intervals except extremely wide ones.

    An extreme agent must not shrink all other bars to a dot. Ends beyond three times the
    interquartile range of all ends are cut, and the drawing has an arrow there.
    """
    values = [measure.value for measure in measures if measure.value is not None]
    ends = sorted(
        end for measure in measures for end in (measure.low, measure.high) if end is not None
    )
    low, high = min([0.0, *values]), max([0.0, *values])
    if ends:
        q1, q3 = ends[len(ends) // 4], ends[(3 * len(ends)) // 4]
        reach = 3.0 * max(q3 - q1, high - low)
        low = min(low, max(ends[0], q1 - reach))
        high = max(high, min(ends[-1], q3 + reach))
    pad = 0.04 * ((high - low) or 1.0)
    return Scale(low=low - pad, high=high + pad)


UNIT = Scale(low=0.0, high=1.0)
"""The scale of shares."""


class MeasureShown(msgspec.Struct, frozen=True, kw_only=True):
    """One measure formatted for a page or table. ``value`` is the sort key, None last.

    ``note`` is the reason for a missing number, or the basis of the number. ``tone`` is ``above``
    or ``below`` if the interval is on one side of zero.
    """

    text: str
    interval: str = ""
    note: str = ""
    value: float | None = None
    bar: _IntervalBar | None = None
    tone: str = ""

    @property
    def small(self) -> str:
        return self.interval or self.note


def shown(
    measure: Measure,
    form: str = "number",
    scale: Scale | None = None,
    between: str = "{low} to {high}",
) -> MeasureShown:
    """Return a measure formatted in a form of :func:`~tradeassay.report.numbers.written`."""
    if measure.value is None:
        return MeasureShown(text=numbers.NONE, note=measure.reason or "")
    interval, tone = "", ""
    if measure.low is not None and measure.high is not None:
        low, high = numbers.written(measure.low, form), numbers.written(measure.high, form)
        # A spread over windows and seeds must not look like the interval of a return.
        interval = ("middle half " if measure.level == 0.5 else "") + between.format(
            low=low, high=high
        )
        if form in ("change", "signed"):
            if measure.low > 0:
                tone = "above"
            elif measure.high < 0:
                tone = "below"
    return MeasureShown(
        text=numbers.written(measure.value, form),
        interval=interval,
        note=measure.note or "",
        value=measure.value,
        bar=None if scale is None else scale.bar(measure),
        tone=tone,
    )


def cell_shown(cell: Cell) -> MeasureShown:
    if cell.measure is None:
        return MeasureShown(text=cell.text)
    value = cell.measure.value
    if value is not None and cell.form in ("dollars", "tokens"):
        text = numbers.dollars(value) if cell.form == "dollars" else numbers.short(round(value))
        return MeasureShown(text=text, note=cell.measure.note or "", value=value)
    form = "number" if cell.form in ("dollars", "tokens") else cell.form
    return shown(cell.measure, form, UNIT if cell.bar else None)
