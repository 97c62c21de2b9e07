"""The rule language: Python's arithmetic and comparisons over named values, parsed and never run as Python.

Its functions only look back: value ``t`` of a result depends on rows up to ``t``. They are written plainly,
window by window, because they are the authority that fast code is compared with. Missing values are NaN, and a
window that holds one gives NaN.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.errors import UserError
from tradeassay.core.syntax import expression_tree
from tradeassay.core.view import Floats, Ints

_TIE: Final = 1e-12
"""A spread this small relative to the values is rounding: it counts as zero."""


@dataclass(frozen=True, slots=True)
class BarCalendar:
    """Which session each bar belongs to (counted from 0), and whether it is the first or the last of it.

    That a bar is the last one is known from the exchange's timetable, not from the data after it.
    """

    session: Ints
    first: Floats
    last: Floats


def mean(x: Floats, n: float) -> Floats:
    """Return the mean of the last ``n`` values, the present one included."""
    return _windows(x, n, lambda w: float(w.sum() / w.size))


def total(x: Floats, n: float) -> Floats:
    """Return the sum of the last ``n`` values."""
    return _windows(x, n, lambda w: float(w.sum()))


def std(x: Floats, n: float, ddof: float) -> Floats:
    """Return the standard deviation of the last ``n`` values; exactly 0 where they do not vary."""

    def spread(w: Floats) -> float:
        found = float(np.std(w, ddof=int(ddof)))
        return 0.0 if found <= _TIE * float(np.abs(w).max()) else found

    return _windows(x, n, spread)


def highest(x: Floats, n: float) -> Floats:
    """Return the largest of the last ``n`` values, the present one included."""
    return _windows(x, n, lambda w: float(w.max()))


def lowest(x: Floats, n: float) -> Floats:
    """Return the smallest of the last ``n`` values, the present one included."""
    return _windows(x, n, lambda w: float(w.min()))


def prev(x: Floats, k: float) -> Floats:
    """Return the value ``k`` bars ago."""
    shift = int(k)
    out = np.full(x.shape, np.nan)
    if shift < x.size:
        out[shift:] = x[: x.size - shift]
    return out


def ema(x: Floats, n: float) -> Floats:
    """Return the exponential mean: weight 2 / (n + 1), started with the plain mean of the first ``n`` values."""
    return _smoothed(x, int(n), 2.0 / (n + 1.0))


def wilder(x: Floats, n: float) -> Floats:
    """Return Wilder's mean: weight 1 / n, started with the plain mean of the first ``n`` values."""
    return _smoothed(x, int(n), 1.0 / n)


def day_open(x: Floats, calendar: BarCalendar) -> Floats:
    """Return the first value of the present session."""
    out = np.empty(x.shape)
    for t in range(x.size):
        out[t] = x[t] if calendar.first[t] else out[t - 1]
    return out


def day_before(x: Floats, calendar: BarCalendar, kind: str, n: float) -> Floats:
    """Return the ``high``, ``low`` or ``close`` of the last ``n`` whole sessions before the present one.

    ``high`` is the largest of them, ``low`` the smallest, ``max_close`` and ``min_close`` are over their closes,
    and ``close`` is that of the last one. NaN until ``n`` whole sessions have passed.
    """
    sessions = int(calendar.session[-1]) + 1 if x.size else 0
    daily = np.full(sessions, np.nan)
    for s in range(sessions):
        w = x[calendar.session == s]
        daily[s] = w.max() if kind == "high" else w.min() if kind == "low" else w[-1]
    pick: dict[str, Callable[[Floats], float]] = {
        "high": lambda w: float(w.max()),
        "low": lambda w: float(w.min()),
        "close": lambda w: float(w[-1]),
        "max_close": lambda w: float(w.max()),
        "min_close": lambda w: float(w.min()),
    }
    out = np.full(x.shape, np.nan)
    count = int(n)
    for t in range(x.size):
        s = int(calendar.session[t])
        if s >= count:
            out[t] = pick[kind](daily[s - count : s])
    return out


def day_so_far(x: Floats, calendar: BarCalendar, kind: str) -> Floats:
    """Return the running ``high`` or ``low`` of the present session, the present bar included."""
    out = np.empty(x.shape)
    for t in range(x.size):
        fresh = calendar.first[t] or t == 0
        out[t] = x[t] if fresh else (max(out[t - 1], x[t]) if kind == "high" else min(out[t - 1], x[t]))
    return out


def calendar_of(times: NDArray[Any]) -> BarCalendar:
    """Return the calendar of bars by the UTC day they open on."""
    days = times.astype("M8[D]").astype(np.int64)
    fresh = np.concatenate(([True], np.diff(days) != 0)) if days.size else np.empty(0, dtype=bool)
    session = np.cumsum(fresh) - 1
    last = np.concatenate((fresh[1:], [True])) if days.size else fresh
    return BarCalendar(session.astype(np.int64), fresh.astype(np.float64), last.astype(np.float64))


def _windows(x: Floats, n: float, function: Callable[[Floats], float]) -> Floats:
    size = int(n)
    out = np.full(x.shape, np.nan)
    for t in range(size - 1, x.size):
        w = x[t - size + 1 : t + 1]
        if not np.isnan(w).any():
            out[t] = function(w)
    return out


def _smoothed(x: Floats, n: int, weight: float) -> Floats:
    out = np.full(x.shape, np.nan)
    known = np.flatnonzero(~np.isnan(x))
    if known.size < n:
        return out
    start = int(known[0]) + n - 1
    value = float(x[known[0] : start + 1].sum() / n)
    out[start] = value
    for t in range(start + 1, x.size):
        value += weight * (float(x[t]) - value)
        out[t] = value
    return out


FIELDS: Final = ("open", "high", "low", "close", "volume")

SERIES: Final[dict[str, tuple[Callable[..., Floats], int]]] = {
    "mean": (mean, 2),
    "sum": (total, 2),
    "std": (std, 3),
    "highest": (highest, 2),
    "lowest": (lowest, 2),
    "prev": (prev, 2),
    "ema": (ema, 2),
    "wilder": (wilder, 2),
}
"""Functions of a series and numbers; only indicators may use them."""

DAILY: Final[dict[str, Callable[..., Floats]]] = {
    "day_open": lambda x, c: day_open(x, c),
    "day_high": lambda x, c, n=1.0: day_before(x, c, "high", n),
    "day_low": lambda x, c, n=1.0: day_before(x, c, "low", n),
    "day_close": lambda x, c: day_before(x, c, "close", 1.0),
    "day_max_close": lambda x, c, n=1.0: day_before(x, c, "max_close", n),
    "day_min_close": lambda x, c, n=1.0: day_before(x, c, "min_close", n),
    "high_so_far": lambda x, c: day_so_far(x, c, "high"),
    "low_so_far": lambda x, c: day_so_far(x, c, "low"),
}
"""Functions that know sessions; only indicators may use them."""

PLAIN: Final[dict[str, tuple[Callable[..., Floats], int]]] = {
    "abs": (np.abs, 1),
    "log": (np.log, 1),
    "sqrt": (np.sqrt, 1),
    "min": (np.minimum, 2),
    "max": (np.maximum, 2),
    "where": (lambda test, yes, no: np.asarray(np.where(np.asarray(test) != 0.0, yes, no)), 3),
    "isnan": (lambda x: np.isnan(x).astype(np.float64), 1),
}
"""Functions of single values, for indicators and rules."""

_BINARY: Final[dict[type[ast.operator], Callable[[Floats, Floats], Floats]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: np.divide(a, b),
}
RELATIVE: Final = 1e-9
ABSOLUTE: Final = 1e-10
"""Two numbers closer than ``RELATIVE`` of the larger plus ``ABSOLUTE`` are equal in every comparison.

Otherwise a tie would be decided by the last bit of a running sum, and two honest programs would disagree.
"""


def _near(a: Floats, b: Floats) -> Floats:
    return RELATIVE * np.maximum(np.abs(a), np.abs(b)) + ABSOLUTE


_COMPARE: Final[dict[type[ast.cmpop], Callable[[Floats, Floats], Any]]] = {
    ast.Lt: lambda a, b: b - a > _near(a, b),
    ast.LtE: lambda a, b: a - b <= _near(a, b),
    ast.Gt: lambda a, b: a - b > _near(a, b),
    ast.GtE: lambda a, b: b - a <= _near(a, b),
    ast.Eq: lambda a, b: np.abs(a - b) <= _near(a, b),
    ast.NotEq: lambda a, b: np.abs(a - b) > _near(a, b),
}

Values = Mapping[str, Floats | float]
"""Named values: parameters, registers, indicators, and legs' fields as ``X.close``."""


@lru_cache(maxsize=1024)
def parse(text: str) -> ast.expr:
    """Return an expression's tree; raises :class:`UserError` for anything but the rule language."""
    try:
        tree = expression_tree(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"'{text}' is not an expression: {error}") from None
    _check(tree, text)
    return tree


def names_in(text: str) -> frozenset[str]:
    """Return the values an expression uses: plain names, and fields as ``X.close``."""
    tree = parse(text)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    dotted = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert isinstance(node.value, ast.Name)
            found.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Name) and id(node) not in called | dotted:
            found.add(node.id)
    return frozenset(found)


def is_pointwise(text: str) -> bool:
    """Return whether an expression needs only the present bar's values, so that a rule may use it."""
    tree = parse(text)
    used = {
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return not used & (set(SERIES) | set(DAILY))


def evaluate(text: str, values: Values, calendar: BarCalendar | None = None) -> Floats:
    """Return an expression's value; comparisons give 1 or 0, and 0 where a side is NaN.

    Raises :class:`UserError` for an unknown name, or a session function without a calendar.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(_value(parse(text), values, calendar, text), dtype=np.float64)


def _value(node: ast.expr, values: Values, calendar: BarCalendar | None, text: str) -> Floats | float:
    match node:
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]  # checked to be a number when parsed
        case ast.Name(id=name):
            return _named(name, values, text)
        case ast.Attribute(value=ast.Name(id=leg), attr=field):
            return _named(f"{leg}.{field}", values, text)
        case ast.UnaryOp(op=op, operand=operand):
            inner = _value(operand, values, calendar, text)
            return np.negative(inner) if isinstance(op, ast.USub) else (np.asarray(inner) == 0).astype(np.float64)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = (_value(side, values, calendar, text) for side in (left, right))
            return _BINARY[type(op)](np.asarray(a), np.asarray(b))
        case ast.Compare():
            return _compare(node, values, calendar, text)
        case ast.BoolOp(op=op, values=parts):
            found = [np.asarray(_value(part, values, calendar, text)) != 0 for part in parts]
            joined = np.logical_and if isinstance(op, ast.And) else np.logical_or
            out = found[0]
            for part in found[1:]:
                out = joined(out, part)
            return np.asarray(out, dtype=np.float64)
        case ast.Call():
            return _call(node, values, calendar, text)
    raise UserError(f"'{text}' holds something that is not of the rule language")


def _compare(node: ast.Compare, values: Values, calendar: BarCalendar | None, text: str) -> Floats:
    sides = [np.asarray(_value(side, values, calendar, text)) for side in (node.left, *node.comparators)]
    out = np.asarray(True)
    for op, a, b in zip(node.ops, sides, sides[1:], strict=False):
        out = np.logical_and(out, _COMPARE[type(op)](a, b))
    return out.astype(np.float64)


def _call(node: ast.Call, values: Values, calendar: BarCalendar | None, text: str) -> Floats:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    args = [_value(arg, values, calendar, text) for arg in node.args]
    if name in PLAIN:
        return PLAIN[name][0](*args)
    series = np.asarray(args[0], dtype=np.float64)
    if series.ndim == 0:
        raise UserError(f"'{text}': {name}() wants a series, not one number")
    numbers = [float(arg) for arg in args[1:]]
    if name in SERIES:
        return SERIES[name][0](series, *numbers)
    if calendar is None:
        raise UserError(f"'{text}': {name}() needs to know the sessions")
    return DAILY[name](series, calendar, *numbers)


def _named(name: str, values: Values, text: str) -> Floats | float:
    try:
        return values[name]
    except KeyError:
        raise UserError(f"'{text}' names '{name}', which is not defined") from None


def _check(tree: ast.expr, text: str) -> None:
    """Refuse every node that is not part of the language."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            good = isinstance(node.value, int | float) and not isinstance(node.value, bool)
            good = good and math.isfinite(node.value)  # type: ignore[arg-type]  # a number, said the line before
        elif isinstance(node, ast.Attribute):
            good = isinstance(node.value, ast.Name) and node.attr in FIELDS
        elif isinstance(node, ast.Call):
            good = _good_call(node)
        else:
            good = isinstance(node, _ALLOWED)
        if not good:
            shown = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise UserError(f"'{text}': '{shown}' is not of the rule language")


_ALLOWED: Final = (
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.UnaryOp,
    ast.USub,
    ast.Not,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.Compare,
    *_BINARY,
    *_COMPARE,
)


def _good_call(node: ast.Call) -> bool:
    if node.keywords or not isinstance(node.func, ast.Name):
        return False
    name, count = node.func.id, len(node.args)
    if name in SERIES:
        return count == SERIES[name][1]
    if name in PLAIN:
        return count == PLAIN[name][1]
    return name in DAILY and count in (1, 2)
