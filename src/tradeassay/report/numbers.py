"""How numbers are written for people: one way, everywhere."""

from __future__ import annotations

import math

from tradeassay.core.measure import Measure
from tradeassay.metrics import BY_ID, MeasureInfo

MINUS = "\u2212"
NONE = "n/a"
SIGNED = frozenset(
    (
        "cumulative_return",
        "annualised_return",
        "excess_return",
        "max_drawdown",
        "sharpe",
        "sortino",
        "sortino_stockbench",
        "calmar",
        "information_ratio",
    )
)
"""Measures for which the sign is news."""


def number(value: float, *, unit: str = "number", signed: bool = False) -> str:
    """Return a value with a true minus sign: fractions in per cent with one decimal, numbers with two."""
    if not math.isfinite(value):
        return NONE
    if unit == "fraction":
        scaled, tail = value * 100.0, "%"
        digits = 0 if abs(scaled) >= 1000 else 1 if abs(scaled) >= 0.095 or scaled == 0 else 2
    else:
        scaled, tail = value, ""
        digits = 0 if abs(scaled) >= 1000 else 1 if abs(scaled) >= 100 else 2
    text = f"{abs(scaled):,.{digits}f}"
    zero = float(text.replace(",", "")) == 0.0
    sign = "" if zero else MINUS if scaled < 0 else "+" if signed else ""
    return f"{sign}{text}{tail}"


def shown(name: str, value: float) -> str:
    """Return a measure's value as tables show it."""
    return number(value, unit=BY_ID[name].unit, signed=name in SIGNED)


def interval(name: str, measure: Measure) -> str:
    """Return a measure's interval, empty when there is none."""
    if measure.low is None or measure.high is None:
        return ""
    return f"{shown(name, measure.low)} to {shown(name, measure.high)}"


def difference(value: float) -> str:
    """Return a yearly difference of growth in per cent, with its sign."""
    return number(value, unit="fraction", signed=True)


def month_text(value: float) -> str:
    """Return a month's return in per cent without the sign of per cent, for a narrow cell."""
    text = f"{abs(value) * 100.0:.1f}"
    return text if float(text) == 0.0 else f"{MINUS if value < 0 else '+'}{text}"


def p_value(value: float) -> str:
    """Return a p-value with as many digits as it deserves."""
    return "p < 0.01" if value < 0.01 else f"p = {value:.2f}"


def dollars(value: float | None) -> str:
    """Return an amount of dollars; one that nobody knows is said to be unknown, never 0."""
    if value is None:
        return "price unknown"
    return f"${value:,.2f}" if value >= 0.01 or value == 0 else f"${value:.2g}"


def short(value: int) -> str:
    """Return a large count in three digits or so: ``940``, ``12.3k``, ``1.0M``."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size * 0.9995:
            scaled = value / size
            return f"{scaled:,.1f}{letter}" if scaled < 100 else f"{scaled:,.0f}{letter}"
    return f"{value:,}"


def count(value: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 session``, ``2 sessions``."""
    return f"{value:,} {singular if value == 1 else plural or singular + 's'}"


def info(name: str) -> MeasureInfo:
    """Return a measure's entry in the catalogue."""
    return BY_ID[name]
