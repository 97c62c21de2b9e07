"""The rule language: Python's arithmetic and comparisons over named values, parsed and never run as Python."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tradeassay.code.semantics import functions as fn
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

FIELDS: Final = ("open", "high", "low", "close", "volume")

SERIES: Final[dict[str, tuple[Callable[..., Floats], int]]] = {
    "mean": (fn.mean, 2),
    "sum": (fn.total, 2),
    "std": (fn.std, 3),
    "highest": (fn.highest, 2),
    "lowest": (fn.lowest, 2),
    "prev": (fn.prev, 2),
    "ema": (fn.ema, 2),
    "wilder": (fn.wilder, 2),
}
"""Functions of a series and numbers; only indicators may use them."""

DAILY: Final[dict[str, Callable[..., Floats]]] = {
    "day_open": lambda x, c: fn.day_open(x, c),
    "day_high": lambda x, c, n=1.0: fn.day_before(x, c, "high", n),
    "day_low": lambda x, c, n=1.0: fn.day_before(x, c, "low", n),
    "day_close": lambda x, c: fn.day_before(x, c, "close", 1.0),
    "day_max_close": lambda x, c, n=1.0: fn.day_before(x, c, "max_close", n),
    "day_min_close": lambda x, c, n=1.0: fn.day_before(x, c, "min_close", n),
    "high_so_far": lambda x, c: fn.day_so_far(x, c, "high"),
    "low_so_far": lambda x, c: fn.day_so_far(x, c, "low"),
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
"""Two numbers nearer than ``RELATIVE`` of the larger plus ``ABSOLUTE`` are equal to every comparison.

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
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"'{text}' is no expression: {error}") from None
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
    """Return whether an expression needs the present bar's values only, so that a rule may use it."""
    tree = parse(text)
    used = {
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return not used & (set(SERIES) | set(DAILY))


def evaluate(text: str, values: Values, calendar: fn.Calendar | None = None) -> Floats:
    """Return an expression's value; comparisons give 1 or 0, and 0 where a side is NaN.

    Raises :class:`UserError` for an unknown name, or a session function without a calendar.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(_value(parse(text), values, calendar, text), dtype=np.float64)


def _value(node: ast.expr, values: Values, calendar: fn.Calendar | None, text: str) -> Floats | float:
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


def _compare(node: ast.Compare, values: Values, calendar: fn.Calendar | None, text: str) -> Floats:
    sides = [np.asarray(_value(side, values, calendar, text)) for side in (node.left, *node.comparators)]
    out = np.asarray(True)
    for op, a, b in zip(node.ops, sides, sides[1:], strict=False):
        out = np.logical_and(out, _COMPARE[type(op)](a, b))
    return out.astype(np.float64)


def _call(node: ast.Call, values: Values, calendar: fn.Calendar | None, text: str) -> Floats:
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
    """Refuse every node that is not of the language."""
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
