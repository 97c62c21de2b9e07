"""Interpret frozen semantics: the meaning of a strategy as rules.

The interpreter is slow and simple, and all other implementations must agree with it. The rule
language consists of Python's arithmetic and comparisons over named values. It is parsed and never
run as Python. Its functions only look back: value ``t`` of a result depends on rows up to ``t``.
Missing values are NaN, and a window with a NaN gives NaN.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.syntax import expression_tree
from tradeassay_bench.account.shares import DecisionList, decision_list
from tradeassay_bench.core.dialogue import schema_of_type

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=40)]
Expression = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


class StrategyParameter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A numeric parameter of the strategy.

    A submission's card may differ from it by at most ``tolerance``.
    """

    value: float
    kind: Literal["int", "float"]
    tolerance: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    meaning: str = ""


class Inputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The legs of the strategy by name, and its bars. ``watched`` legs are never traded."""

    legs: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=8)]
    timeframes: tuple[Literal["1d", "1m"], ...]
    watched: tuple[Name, ...] = ()


class StrategyRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule of a strategy.

    In one of the ``given`` states, if ``when`` is true, the rule changes the state, registers and
    targets. ``target`` maps a leg to its target exposure as a share of net equity. Legs without a
    target are unchanged. New register values are computed from the old values.
    """

    id: str
    given: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="from")
    when: Expression
    to: Name
    signal: str
    target: dict[Name, Expression] = {}
    set: dict[Name, Expression] = {}


class StrategyConstraints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of the strategy: gross exposure, trades per bar, and positions at a session's
    end.
    """

    max_exposure: float
    max_trades_per_bar: int
    flat_overnight: bool = False
    short_allowed: bool = True


class Conventions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conventions that prose usually leaves open.

    A field is None if the strategy does not use it.
    """

    std_ddof: int | None = None
    ema_seed: str | None = None
    wilder: str | None = None
    channel_includes_current_bar: bool | None = None
    reversal: str = ""
    zero_variance: str | None = None
    ties: str = "numbers nearer than 1e-9 of the larger plus 1e-10 are equal"
    warm_up: str = "no rule fires while an indicator it uses is undefined"


class Semantics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The complete meaning of a strategy."""

    id: str
    version: int
    title: str
    inputs: Inputs
    parameters: dict[Name, StrategyParameter]
    indicators: dict[Name, Expression]
    states: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    registers: dict[Name, float] = {}
    rules: Annotated[tuple[StrategyRule, ...], msgspec.Meta(min_length=1)]
    constraints: StrategyConstraints
    conventions: Conventions
    sizing: Literal["equity-fraction"] = "equity-fraction"
    fill: Literal["signal-bar-close"] = "signal-bar-close"

    @property
    def sha256(self) -> str:
        return sha256_bytes(self.canonical)

    @property
    def canonical(self) -> bytes:
        return canonical_json(self)


def read_semantics(body: bytes, where: str = "semantics.json") -> Semantics:
    """Return the semantics in a JSON document.

    Raises :class:`UserError` with the location of an error.
    """
    try:
        found = msgspec.json.decode(body, type=Semantics)
    except (ValueError, *UNDECODABLE) as error:
        hint = "compare it with the schema (tradeassay code strategies --schema semantics)"
        raise UserError(f"{where}: {error}", hint=hint) from error
    legs = set(found.inputs.legs)
    states = set(found.states)
    for rule in found.rules:
        strange = (set(rule.given) | {rule.to}) - states
        if strange:
            raise UserError(
                f"{where}: rule '{rule.id}' names the state '{min(strange)}', which is not listed"
            )
        if set(rule.target) - legs:
            raise UserError(
                f"{where}: rule '{rule.id}' has a target for a leg that is not among the inputs"
            )
        if set(rule.target) & set(found.inputs.watched):
            raise UserError(f"{where}: rule '{rule.id}' trades a leg that may only be watched")
        if set(rule.set) - set(found.registers):
            raise UserError(f"{where}: rule '{rule.id}' sets a register that is not declared")
    groups = (found.parameters, found.indicators, found.registers, dict.fromkeys(legs))
    names: list[str] = []
    for group in groups:
        names.extend(group)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UserError(f"{where}: the name '{min(twice)}' is used twice")
    if len({rule.id for rule in found.rules}) != len(found.rules):
        raise UserError(f"{where}: two rules have the same id")
    return found


def semantics_schema() -> bytes:
    return canonical_json(schema_of_type(Semantics))


FIELDS: Final = ("open", "high", "low", "close", "volume")
SPECIAL: Final = ("session_first", "session_last", "row")
_ROWS: Final = 4096
_TIE: Final = 1e-12
"""Share of the values below which a spread is a rounding error and is set to zero."""
Columns = Mapping[str, Floats]
Values = Mapping[str, Floats | float]
"""Named values: parameters, registers, indicators, and legs' fields such as ``X.close``."""


@dataclass(frozen=True, slots=True)
class BarCalendar:
    """The session of each bar (counted from 0), and marks for first and last bars of sessions.

    The last bar of a session is known from the exchange's timetable and not from later data.
    """

    session: Ints
    first: Floats
    last: Floats


def calendar_of(times: NDArray[Any]) -> BarCalendar:
    days = times.astype("M8[D]").astype(np.int64)
    fresh = np.concatenate(([True], np.diff(days) != 0)) if days.size else np.empty(0, dtype=bool)
    session = np.cumsum(fresh) - 1
    last = np.concatenate((fresh[1:], [True])) if days.size else fresh
    return BarCalendar(session.astype(np.int64), fresh.astype(np.float64), last.astype(np.float64))


def _windows(x: Floats, n: float, function: Callable[[Floats], Floats]) -> Floats:
    """Return ``function`` of the last ``n`` values of every bar.

    The function gets a matrix with one row per bar, a few thousand bars at a time.
    """
    size = int(n)
    out = np.full(x.shape, np.nan)
    rows = sliding_window_view(x, size) if x.size >= size else np.empty((0, size))
    for t in range(0, len(rows), _ROWS):
        out[size - 1 :][t : t + _ROWS] = function(rows[t : t + _ROWS])
    return out


def _spread(rows: Floats, ddof: int) -> Floats:
    found = np.std(rows, axis=-1, ddof=ddof)
    return np.where(found <= _TIE * np.abs(rows).max(axis=-1), 0.0, found)


def _smoothed(x: Floats, n: int, weight: float) -> Floats:
    """Return an exponential average that starts with the mean of the first ``n`` known values.

    Each new value moves it by ``weight`` times the difference.
    """
    out = np.full(x.shape, np.nan)
    known = np.flatnonzero(~np.isnan(x))
    if known.size < n:
        return out
    start = int(known[0]) + n - 1
    value = float(x[known[0] : start + 1].sum() / n)
    out[start] = value
    for t, new in enumerate(x[start + 1 :].tolist(), start + 1):
        value += weight * (new - value)
        out[t] = value
    return out


def _past_sessions(
    x: Floats, calendar: BarCalendar, n: float, of_day: np.ufunc | None, of_days: np.ufunc
) -> Floats:
    """Return ``of_days`` over the last ``n`` complete sessions' ``of_day``, or NaN before that.

    Without ``of_day`` the last value of each session is used.
    """
    starts = np.flatnonzero(calendar.first)
    daily = (
        x[np.append(starts[1:], x.size)[: starts.size] - 1]
        if of_day is None
        else of_day.reduceat(x, starts)
    )
    found = _windows(daily, n, lambda rows: of_days.reduce(rows, axis=-1))
    return np.concatenate(([np.nan], found))[calendar.session]


def _this_session(
    x: Floats, calendar: BarCalendar, step: Callable[[float, float], float]
) -> Floats:
    """Return a running value that restarts at the first bar of each session."""
    out, value = [], 0.0
    for now, first in zip(x.tolist(), calendar.first.tolist(), strict=True):
        value = now if first else step(value, now)
        out.append(value)
    return np.array(out, dtype=np.float64)


SERIES: Final[dict[str, tuple[Callable[..., Floats], int]]] = {
    "mean": (lambda x, n: _windows(x, n, lambda rows: rows.sum(axis=-1) / rows.shape[-1]), 2),
    "sum": (lambda x, n: _windows(x, n, lambda rows: rows.sum(axis=-1)), 2),
    "std": (lambda x, n, ddof: _windows(x, n, lambda rows: _spread(rows, int(ddof))), 3),
    "highest": (lambda x, n: _windows(x, n, lambda rows: rows.max(axis=-1)), 2),
    "lowest": (lambda x, n: _windows(x, n, lambda rows: rows.min(axis=-1)), 2),
    "prev": (lambda x, k: np.concatenate((np.full(int(k), np.nan), x))[: x.size], 2),
    "ema": (lambda x, n: _smoothed(x, int(n), 2.0 / (n + 1.0)), 2),
    "wilder": (lambda x, n: _smoothed(x, int(n), 1.0 / n), 2),
    "_ema_from_first": (lambda x, n: _smoothed(x, 1, 2.0 / (n + 1.0)), 2),
    "_wilder_from_first": (lambda x, n: _smoothed(x, 1, 1.0 / n), 2),
}
"""Functions of a series and numbers, with their numbers of arguments. Only indicators may use them.

The last two are mistakes that no strategy states. They are used to detect a wrong seed of an
average.
"""

DAILY: Final[dict[str, Callable[..., Floats]]] = {
    "day_open": lambda x, c: _this_session(x, c, lambda before, now: before),
    "day_high": lambda x, c, n=1.0: _past_sessions(x, c, n, np.maximum, np.maximum),
    "day_low": lambda x, c, n=1.0: _past_sessions(x, c, n, np.minimum, np.minimum),
    "day_close": lambda x, c: _past_sessions(x, c, 1.0, None, np.maximum),
    "day_max_close": lambda x, c, n=1.0: _past_sessions(x, c, n, None, np.maximum),
    "day_min_close": lambda x, c, n=1.0: _past_sessions(x, c, n, None, np.minimum),
    "high_so_far": lambda x, c: _this_session(x, c, max),
    "low_so_far": lambda x, c: _this_session(x, c, min),
}
"""Functions that use sessions. Only indicators may use them."""

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

RELATIVE: Final = 1e-9
ABSOLUTE: Final = 1e-10
"""Two numbers closer than ``RELATIVE`` of the larger plus ``ABSOLUTE`` are equal in every
comparison.

Otherwise the last bit of a running sum would decide a tie, and two honest programs would disagree.
"""


def _near(a: Floats, b: Floats) -> Floats:
    return RELATIVE * np.maximum(np.abs(a), np.abs(b)) + ABSOLUTE


_BINARY: Final[dict[type[ast.operator], Callable[[Floats, Floats], Floats]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: np.divide(a, b),
}
_COMPARE: Final[dict[type[ast.cmpop], Callable[[Floats, Floats], Any]]] = {
    ast.Lt: lambda a, b: b - a > _near(a, b),
    ast.LtE: lambda a, b: a - b <= _near(a, b),
    ast.Gt: lambda a, b: a - b > _near(a, b),
    ast.GtE: lambda a, b: b - a <= _near(a, b),
    ast.Eq: lambda a, b: np.abs(a - b) <= _near(a, b),
    ast.NotEq: lambda a, b: np.abs(a - b) > _near(a, b),
}
_SIMPLE: Final = (
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.UnaryOp,
    ast.USub,
    ast.Not,
    ast.BoolOp,
    ast.And,
    ast.Or,
)
_ALLOWED: Final = (*_SIMPLE, ast.Compare, *_BINARY, *_COMPARE)


@lru_cache(maxsize=1024)
def parse(text: str) -> ast.expr:
    """Return the syntax tree of an expression of the rule language.

    Raises :class:`UserError` for anything else.
    """
    try:
        tree = expression_tree(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UserError(f"'{text}' is not an expression: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            good = type(node.value) in (int, float) and math.isfinite(node.value)  # type: ignore[arg-type]  # a number
        elif isinstance(node, ast.Attribute):
            good = isinstance(node.value, ast.Name) and node.attr in FIELDS
        elif isinstance(node, ast.Call):
            name, count = node.func.id if isinstance(node.func, ast.Name) else "", len(node.args)
            wanted = (SERIES.get(name) or PLAIN.get(name) or (None, 0))[1]
            good = not node.keywords and (
                count == wanted > 0 or (name in DAILY and count in (1, 2))
            )
        else:
            good = isinstance(node, _ALLOWED)
        if not good:
            shown = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise UserError(f"'{text}': '{shown}' is not part of the rule language")
    return tree


@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Return the names that an expression uses: plain names, and fields such as ``X.close``."""
    nodes = list(ast.walk(parse(text)))
    inner = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    inner |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    fields = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return frozenset(
        fields | {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in inner}
    )


def is_pointwise(text: str) -> bool:
    """Return whether an expression needs only values of the current bar, so that a rule may use
    it.
    """
    calls = (node.func for node in ast.walk(parse(text)) if isinstance(node, ast.Call))
    return not any(
        isinstance(name, ast.Name) and name.id in SERIES.keys() | DAILY.keys() for name in calls
    )


def evaluate(text: str, values: Values, calendar: BarCalendar | None = None) -> Floats:
    """Return an expression's value. Comparisons return 1 or 0, and 0 if a side is NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(_value(parse(text), values, calendar, text), dtype=np.float64)


def _value(
    node: ast.expr, values: Values, calendar: BarCalendar | None, text: str
) -> Floats | float:
    match node:
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]  # checked to be a number when parsed
        case ast.Name() | ast.Attribute():
            # Only names and attributes of names remain here. The parser has refused all other
            # nodes.
            owner = "" if isinstance(node, ast.Name) else f"{getattr(node.value, 'id')}."  # noqa: B009
            name = owner + (node.id if isinstance(node, ast.Name) else node.attr)
            if name not in values:
                raise UserError(f"'{text}' names '{name}', which is not defined")
            return values[name]
        case ast.UnaryOp(op=op, operand=operand):
            inner = _value(operand, values, calendar, text)
            return (
                np.negative(inner)
                if isinstance(op, ast.USub)
                else (np.asarray(inner) == 0).astype(np.float64)
            )
        case ast.BinOp(left=left, op=op, right=right):
            a, b = (_value(side, values, calendar, text) for side in (left, right))
            return _BINARY[type(op)](np.asarray(a), np.asarray(b))
        case ast.Compare():
            sides = [
                np.asarray(_value(side, values, calendar, text))
                for side in (node.left, *node.comparators)
            ]
            tests = [
                _COMPARE[type(op)](a, b)
                for op, a, b in zip(node.ops, sides, sides[1:], strict=False)
            ]
            return np.asarray(reduce(np.logical_and, tests), dtype=np.float64)
        case ast.BoolOp(op=op, values=parts):
            found = [np.asarray(_value(part, values, calendar, text)) != 0 for part in parts]
            joined = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return np.asarray(reduce(joined, found), dtype=np.float64)
        case ast.Call(func=ast.Name(id=name)):
            args = [_value(arg, values, calendar, text) for arg in node.args]
            if name in PLAIN:
                return PLAIN[name][0](*args)
            series, numbers = (
                np.asarray(args[0], dtype=np.float64),
                [float(arg) for arg in args[1:]],
            )
            if series.ndim == 0:
                raise UserError(f"'{text}': {name}() takes a series, not one number")
            if name in SERIES:
                return SERIES[name][0](series, *numbers)
            if calendar is None:
                raise UserError(f"'{text}': {name}() needs the sessions")
            return DAILY[name](series, calendar, *numbers)
    raise UserError(f"'{text}' contains something that is not part of the rule language")


def check_semantics(semantics: Semantics) -> None:
    """Raise :class:`UserError` if an expression uses an undefined name, or a rule uses a window."""
    known = set(semantics.parameters) | set(SPECIAL)
    for leg in semantics.inputs.legs:
        for field in FIELDS:
            known.add(f"{leg}.{field}")
    used = []
    for name in ordered(semantics):
        used.append((f"indicator '{name}'", semantics.indicators[name], frozenset(known)))
        known.add(name)
    known |= set(semantics.registers) | {f"held_{leg}" for leg in semantics.inputs.legs}
    for rule in semantics.rules:
        for text in (rule.when, *rule.target.values(), *rule.set.values()):
            used.append((f"rule '{rule.id}'", text, frozenset(known)))
            if not is_pointwise(text):
                raise UserError(
                    f"rule '{rule.id}' uses a window in '{text}'", hint="make it an indicator"
                )
    for where, text, defined in used:
        missing = sorted(names_in(text) - defined)
        if missing:
            raise UserError(f"{where} names '{missing[0]}', which is not defined")


def interpret(
    semantics: Semantics, feeds: Mapping[str, Columns], times: NDArray[Any]
) -> DecisionList:
    """Return the decisions on ``feeds`` by leg.

    A rule can fire on undefined values only through ``isnan``.
    """
    calendar = calendar_of(times)
    series = indicators(semantics, feeds, calendar)
    fixed = {name: one.value for name, one in semantics.parameters.items()}
    registers = dict(semantics.registers)
    held = {f"held_{leg}": 0.0 for leg in semantics.inputs.legs}
    # Conditions that depend on the bars alone are computed for all bars at once. Other conditions
    # are computed when they are needed.
    moving = registers.keys() | held.keys()
    holds = {
        rule.when: np.broadcast_to(evaluate(rule.when, {**series, **fixed}), (len(times),)) != 0.0
        for rule in semantics.rules
        if names_in(rule.when).isdisjoint(moving)
    }
    state = semantics.states[0]
    found: list[tuple[int, int, float, int]] = []
    for row in range(len(times)):
        now: dict[str, float] = {}
        for fired in enumerate(semantics.rules):
            place, rule = fired
            alone = holds.get(rule.when)
            if state not in rule.given or (alone is not None and not alone[row]):
                continue
            now = (
                now
                or {name: float(values[row]) for name, values in series.items()}
                | fixed
                | registers
                | held
            )
            if alone is not None or float(evaluate(rule.when, now)):
                break
        else:
            continue
        for leg, text in rule.target.items():
            wanted = float(evaluate(text, now))
            if np.isnan(wanted):
                raise UserError(f"rule '{rule.id}' of '{semantics.id}' has no target in bar {row}")
            if wanted != held[f"held_{leg}"]:
                found.append((row, semantics.inputs.legs.index(leg), wanted, place))
                held[f"held_{leg}"] = wanted
        registers |= {name: float(evaluate(text, now)) for name, text in rule.set.items()}
        state = rule.to
    return decision_list(found)


def indicators(
    semantics: Semantics, feeds: Mapping[str, Columns], calendar: BarCalendar
) -> dict[str, Floats]:
    """Return every series that a rule may read, with one value per bar.

    These are the legs' fields, session marks and indicators.
    """
    n = calendar.session.size
    series: dict[str, Floats] = {}
    for leg in semantics.inputs.legs:
        for field in FIELDS:
            series[f"{leg}.{field}"] = np.asarray(feeds[leg][field], dtype=np.float64)
    series["session_first"], series["session_last"] = calendar.first, calendar.last
    series["row"] = np.arange(n, dtype=np.float64)
    values: dict[str, Floats | float] = {
        **{name: one.value for name, one in semantics.parameters.items()},
        **series,
    }
    for name in ordered(semantics):
        made = np.broadcast_to(evaluate(semantics.indicators[name], values, calendar), (n,))
        series[name] = np.asarray(made, dtype=np.float64)
        values[name] = series[name]
    return series


def ordered(semantics: Semantics) -> list[str]:
    """Return indicators sorted so that each follows the indicators that it uses.

    Raises :class:`UserError` on a cycle.
    """
    uses = {
        name: names_in(text) & set(semantics.indicators)
        for name, text in semantics.indicators.items()
    }
    done: list[str] = []
    while len(done) < len(uses):
        ready = [name for name in uses if name not in done and uses[name] <= set(done)]
        if not ready:
            raise UserError(f"the indicators of '{semantics.id}' form a cycle")
        done += ready
    return done
