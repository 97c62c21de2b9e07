"""Format numbers in the same way on all pages and in all tables."""

from __future__ import annotations

import math

from tradeassay.core.measure import Measure
from tradeassay.metrics import BY_ID

MINUS = "\u2212"
NONE = "n/a"
_SIGNED = frozenset(
    "cumulative_return annualised_return excess_return max_drawdown sharpe sortino "
    "sortino_stockbench calmar "
    "information_ratio".split()
)
"""Measures that are displayed with their sign."""


def number(value: float, *, unit: str = "number", signed: bool = False) -> str:
    """Return a value as text with a true minus sign.

    Fractions are in per cent with one decimal, numbers have two decimals.
    """
    if not math.isfinite(value):
        return NONE
    scaled, tail, one_digit_from = value, "", 100.0
    if unit == "fraction":
        scaled, tail, one_digit_from = value * 100.0, "%", 0.095
    size = abs(scaled)
    digits = 2
    if size >= 1000:
        digits = 0
    elif size >= one_digit_from or (unit == "fraction" and size == 0):
        digits = 1
    text = f"{size:,.{digits}f}"
    sign = ""
    if float(text.replace(",", "")) != 0.0:
        if scaled < 0:
            sign = MINUS
        elif signed:
            sign = "+"
    return f"{sign}{text}{tail}"


FORMS = {
    "share": ("fraction", False),
    "change": ("fraction", True),
    "number": ("number", False),
    "signed": ("number", True),
}
"""Formats: share in per cent, signed change in per cent, number, and signed number."""


def written(value: float | None, form: str = "number") -> str:
    """Return a value formatted as one of :data:`FORMS` or by a format string such as ``{:.2f}``."""
    if value is None:
        return NONE
    if form in FORMS:
        unit, signed = FORMS[form]
        return number(value, unit=unit, signed=signed)
    return form.format(value).replace("-", MINUS)


def form_of(name: str) -> str:
    """Return the format of a measure, one of :data:`FORMS`."""
    if BY_ID[name].unit == "fraction":
        return "change" if name in _SIGNED else "share"
    return "signed" if name in _SIGNED else "number"


def interval(name: str, measure: Measure) -> str:
    """Return a measure's interval as text, or an empty text if it has none."""
    if measure.low is None or measure.high is None:
        return ""
    return f"{written(measure.low, form_of(name))} to {written(measure.high, form_of(name))}"


def difference(value: float | None) -> str:
    """Return a difference in per cent with its sign."""
    return written(value, "change")


def month_text(value: float) -> str:
    """Return a month's return in per cent without the sign %, for a narrow cell."""
    text = f"{abs(value) * 100.0:.1f}"
    return text if float(text) == 0.0 else f"{MINUS if value < 0 else '+'}{text}"


def p_value(value: float) -> str:
    """Return a p-value with two digits, or as smaller than the smallest one displayed."""
    return "p < 0.01" if value < 0.01 else f"p = {value:.2f}"


def dollars(value: float | None) -> str:
    """Return an amount in dollars. A missing amount is displayed as unknown, never as 0."""
    if value is None:
        return "price unknown"
    return f"${value:,.2f}" if value >= 0.01 or value == 0 else f"${value:.2g}"


def short(value: int) -> str:
    """Return a large count with about three digits: ``940``, ``12.3k``, ``1.0M``."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size * 0.9995:
            scaled = value / size
            return f"{scaled:,.1f}{letter}" if scaled < 100 else f"{scaled:,.0f}{letter}"
    return f"{value:,}"
