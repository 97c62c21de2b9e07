"""Frozen semantics as one compiled loop: the rules that the interpreter reads, written out and compiled once.

A kernel takes opens, highs, lows and closes of shape (legs, bars), marks of sessions' first and last bars,
parameters in the order of the semantics, and four buffers to write decisions into; it returns how many there
are, or a negative number that names the bar on which a rule aimed at NaN. What a rule needs is worked out
where the rule is tried and nowhere else; series that look back on themselves (smoothed means, and whatever a
window is laid over) are kept on every bar, and what holds for a session is worked out on its first bar.
"""

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.account.shares import DecisionList
from tradeassay.code.semantics.interpreter import (
    DAILY,
    PLAIN,
    SERIES,
    SPECIAL,
    Semantics,
    StrategyRule,
    calendar_of,
    ordered,
    parse,
)
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.view import Floats

_FIELDS: Final = ("open", "high", "low", "close")
_SO_FAR: Final = {"high_so_far": "max", "low_so_far": "min"}
_SESSION: Final = {
    "day_high": ("max", "highest_of"),
    "day_low": ("min", "lowest_of"),
    "day_close": ("last", "highest_of"),
    "day_max_close": ("last", "highest_of"),
    "day_min_close": ("last", "lowest_of"),
}
"""What is kept of a session, and which of the last sessions' values is used."""
_TESTS: Final[dict[type[ast.cmpop], tuple[str, bool]]] = {
    ast.Gt: ("more", False),
    ast.Lt: ("more", True),
    ast.LtE: ("not_more", False),
    ast.GtE: ("not_more", True),
    ast.Eq: ("same", False),
    ast.NotEq: ("differ", False),
}
"""Comparisons as parts of compiled code, and whether the sides change places."""
_MARKS: Final = {"session_first": "first[t]", "session_last": "last[t]"}
_SIGNS: Final[dict[type[ast.operator], str]] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_HEAD: Final = """\
import numpy as np

from tradeassay.code.semantics.parts import (
    NAN, at, compiled, differ, highest_of, least, lowest_of, mean_of, more, most, not_more, same, spread_of,
    total_of,
)


@compiled
def kernel(opens, highs, lows, closes, first, last, p, rows, legs, fractions, signals):
"""


_WINDOWS: Final = frozenset({"mean", "sum", "std", "highest", "lowest", "prev"})
_WORDS: Final = {
    "abs": "abs",
    "log": "np.log",
    "sqrt": "np.sqrt",
    "min": "least",
    "max": "most",
    "mean": "mean_of",
    "sum": "total_of",
    "highest": "highest_of",
    "lowest": "lowest_of",
}
"""Functions of the rule language as parts of compiled code."""
_MOST_KEPT: Final = 256
_KEPT: dict[int, tuple[Semantics, Callable[..., int]]] = {}
"""Kernels by the object they were made from: a sweep asks for the same one thousands of times."""


class KernelTape:
    """Bars laid out for kernels: fields of shape (legs, bars), and marks of sessions' first and last bars."""

    def __init__(
        self, feeds: Mapping[str, Mapping[str, NDArray[Any]]], legs: tuple[str, ...], times: NDArray[Any]
    ) -> None:
        self.open, self.high, self.low, self.close = (
            np.ascontiguousarray(np.stack([np.asarray(feeds[leg][field], dtype=np.float64) for leg in legs]))
            for field in _FIELDS
        )
        if not np.isfinite(self.close).all():
            raise UserError("a close is missing", hint="drop that bar from every leg")
        calendar = calendar_of(times)
        self.first = calendar.first.astype(np.bool_)
        self.last = calendar.last.astype(np.bool_)

    def __len__(self) -> int:
        return int(self.close.shape[1])


def run_compiled(
    semantics: Semantics, tape: KernelTape, parameters: Mapping[str, float] | None = None
) -> DecisionList:
    """Return a strategy's decisions over a tape; the same as the interpreter's up to the last bits of sizes."""
    values = {name: p.value for name, p in semantics.parameters.items()} | dict(parameters or {})
    unknown = sorted(set(values) - set(semantics.parameters))
    if unknown:
        raise UserError(f"strategy '{semantics.id}' has no parameter '{unknown[0]}'")
    given: Floats = np.array([values[name] for name in semantics.parameters], dtype=np.float64)
    room = len(tape) * len(semantics.inputs.legs)
    rows, legs, signals = (np.empty(room, dtype=np.int64) for _ in range(3))
    fractions = np.empty(room)
    kept = _KEPT.get(id(semantics))
    if kept is None or kept[0] is not semantics:
        if len(_KEPT) >= _MOST_KEPT:
            _KEPT.clear()
        kept = _KEPT[id(semantics)] = (semantics, _compiled(Kernel(semantics).source()))
    count = kept[1](
        tape.open, tape.high, tape.low, tape.close, tape.first, tape.last, given, rows, legs, fractions, signals
    )
    if count < 0:
        raise UserError(f"a rule of '{semantics.id}' has no target in bar {-1 - count}")
    # Copies: views would keep buffers of the tape's length alive for a handful of decisions.
    return DecisionList(rows[:count].copy(), legs[:count].copy(), fractions[:count].copy(), signals[:count].copy())


@lru_cache(maxsize=256)
def _compiled(source: str) -> Callable[..., int]:
    from tradeassay.code.semantics.parts import COMPILER

    module = COMPILER.module(f"tradeassay_kernel_{sha256_bytes(source.encode())[:16]}", source)
    found: Callable[..., int] = module.kernel
    return found


class _Block:
    """Lines of one stretch of the loop, and the variables that are known when they have run."""

    def __init__(self, known: frozenset[str] = frozenset()) -> None:
        self.lines: list[str] = []
        self.known = set(known)

    def let(self, name: str, value: str) -> None:
        self.lines.append(f"{name} = {value}")
        self.known.add(name)


class Kernel:
    """The function that implements the semantics, as Python source for numba."""

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.setup = [f"p_{name} = p[{place}]" for place, name in enumerate(semantics.parameters)]
        self.session = _Block()
        self.bar = _Block()
        self.starts: list[str] = []
        self.goes_on: list[str] = []
        self.extremes: dict[tuple[str, str], str] = {}
        self.kept: dict[str, str] = {}
        self.running: dict[str, str] = {}
        self.smooth: dict[str, str] = {}
        calls = [node for text in semantics.indicators.values() for node in _calls(parse(text), _WINDOWS)]
        # Indicators that a window covers, or that an expression looks back on, are kept on every bar.
        self.windowed = {node.args[0].id for node in calls if isinstance(node.args[0], ast.Name)}
        self.windowed &= set(semantics.indicators)
        opening = [rule for rule in semantics.rules if semantics.states[0] in rule.given]
        self.needs = [self._since(parse(rule.when)) for rule in opening]

    def source(self) -> str:
        semantics = self.semantics
        self.setup += [f"r_{name} = {float(value)!r}" for name, value in semantics.registers.items()]
        for name in ordered(semantics):
            if name in self.windowed:
                self._keep(name, parse(semantics.indicators[name]), f"v_{name}")
            else:
                self._eager(parse(semantics.indicators[name]))
        branches: list[str] = []  # one for each state, with the rules that may fire there in their order
        for place, state in enumerate(semantics.states):
            branch = _Block()
            for number, rule in enumerate(semantics.rules):
                if state in rule.given:
                    test = self._test(parse(rule.when), branch)
                    branch.lines += [f"if {test}:", *_indented([*self._fired(number, rule, branch), "continue"])]
            if branch.lines:
                branches += [f"{'el' * bool(branches)}if state == {place}:", *_indented(branch.lines)]
        used = "\n".join((*self.setup, *self.session.lines, *self.starts, *self.bar.lines, *branches))
        lines = ["size = closes.shape[1]"]
        for place, leg in enumerate(semantics.inputs.legs):
            lines += [f"c_{leg}_{field} = {field}s[{place}]" for field in _FIELDS if f"c_{leg}_{field}" in used]
        if self.session.lines or self.extremes:
            lines += ["sessions = int(np.sum(first)) + 1", "day = -1"]
        lines += self.setup
        lines += [f"h_{place} = 0.0" for place in range(len(semantics.inputs.legs))]
        if all(self.needs):
            # Until then the first state's rules meet a value that is not known yet, so none of them fires.
            lines.append(f"warm = {_pick('min', {_pick('max', needs) for needs in self.needs})}")
            branches = ["if t >= warm:", *_indented(branches)]
        lines += ["state, count = 0, 0", "for t in range(size):"]
        if self.session.lines or self.extremes:
            lines += _indented(["if first[t]:", *_indented(["day += 1", *self.session.lines, *self.starts])])
            lines += _indented(["else:", *_indented(self.goes_on)] if self.goes_on else [])
        lines += _indented([*self.bar.lines, *branches])
        lines.append("return count")
        return _HEAD + "\n".join(_indented(lines)) + "\n"

    def _since(self, node: ast.expr) -> frozenset[str]:
        """Return rows, as text, before which a number is not known, or a condition cannot hold."""
        parts: Sequence[ast.expr] = ()
        own: frozenset[str] = frozenset()
        match node:
            case ast.Name(id=name) if name in self.semantics.indicators:
                parts = [parse(self.semantics.indicators[name])]
            case ast.BinOp(left=left, right=right):
                parts = [left, right]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                parts = [operand]
            case ast.Compare(left=left, comparators=others):
                parts = [left, *others]
            case ast.BoolOp(op=ast.And(), values=values):
                parts = values
            case ast.Call(func=ast.Name(id=called), args=args):
                if called == "prev" or called in SERIES:
                    length = self._whole(args[1], self.bar)
                    own, parts = frozenset({length if called == "prev" else f"{length} - 1"}), args[:1]
                elif called in PLAIN and called not in ("where", "isnan"):
                    parts = args
        return own.union(*(self._since(part) for part in parts))

    # What is kept on every bar.

    def _eager(self, tree: ast.expr) -> None:
        """Make sure that everything in an expression that must be followed bar by bar is."""
        for node in _calls(tree):
            if _called(node) in ("ema", "wilder", *DAILY):
                self._call(node, self.bar)
            elif _called(node) in _WINDOWS and not isinstance(node.args[0], ast.Name):
                self._series(node.args[0])

    def _keep(self, key: str, tree: ast.expr, variable: str) -> str:
        if key not in self.kept:
            self._eager(tree)
            array = self.kept[key] = f"s_{len(self.kept)}"
            self.setup.append(f"{array} = np.empty(size)")
            if variable not in self.bar.known:
                self.bar.let(variable, self._value(tree, self.bar))
            self.bar.lines.append(f"{array}[t] = {variable}")
        return self.kept[key]

    def _series(self, node: ast.expr) -> tuple[str, str]:
        """Return the array of a series and, as text, the row of its present value."""
        if isinstance(node, ast.Call) and _called(node) == "prev":
            array, row = self._series(node.args[0])
            return array, f"{row} - {self._whole(node.args[1], self.bar)}"
        if isinstance(node, ast.Attribute):
            return self._column(node), "t"
        if isinstance(node, ast.Name) and node.id in self.windowed:
            return self._keep(node.id, parse(self.semantics.indicators[node.id]), f"v_{node.id}"), "t"
        text = ast.unparse(node)
        return self._keep(text, node, f"x_{len(self.kept)}"), "t"

    def _column(self, node: ast.Attribute) -> str:
        assert isinstance(node.value, ast.Name)
        if node.attr not in _FIELDS:
            raise UserError(f"'{self.semantics.id}' uses {node.attr}, which is not compiled", hint="interpret it")
        return f"c_{node.value.id}_{node.attr}"

    def _smoothed(self, node: ast.Call) -> str:
        """Follow a smoothed mean: the plain mean of the first values, then a step towards each new one."""
        key = ast.unparse(node)
        if key not in self.smooth:
            name = self.smooth[key] = f"e_{len(self.smooth)}"
            self._eager(node.args[0])
            value, length = self._value(node.args[0], self.bar), self._value(node.args[1], self.bar)
            whole = self._whole(node.args[1], self.bar)
            self.setup.append(f"{name}, {name}_sum, {name}_seen = NAN, 0.0, 0")
            weight = f"* (2.0 / ({length} + 1.0))" if _called(node) == "ema" else f"/ {length}"
            self.bar.lines += [
                f"{name}_x = {value}",
                f"if {name}_seen >= {whole}:",
                f"    {name} += ({name}_x - {name}) {weight}",
                f"elif {name}_seen > 0 or {name}_x == {name}_x:",
                f"    {name}_seen += 1",
                f"    {name}_sum += {name}_x",
                f"    if {name}_seen == {whole}:",
                f"        {name} = {name}_sum / {length}",
            ]
            self.bar.known.add(name)
        return self.smooth[key]

    def _extreme(self, column: str, kind: str) -> str:
        """Follow the largest or smallest value of the present session; ``last`` is its last value."""
        key = (column, kind)
        if key not in self.extremes:
            name = self.extremes[key] = f"d_{len(self.extremes)}"
            if kind == "last":
                return name
            self.setup.append(f"{name} = NAN")
            self.starts.append(f"{name} = {column}[t]")
            self.goes_on.append(f"{name} = {kind}({name}, {column}[t])")
        return self.extremes[key]

    def _of_sessions(self, node: ast.Call) -> str:
        """Return the variable that holds the result of the last whole sessions; it is constant in a session."""
        key = f"k_{sha256_bytes(ast.unparse(node).encode())[:8]}"
        if key in self.session.known:
            return key
        name = _called(node)
        assert isinstance(node.args[0], ast.Attribute)
        column = self._column(node.args[0])
        self.setup.append(f"{key} = NAN")
        if name == "day_open":
            self.session.let(key, f"{column}[t]")
            return key
        kind, pick = _SESSION[name]
        follow = self._extreme(column, kind)
        array = f"{follow}_days"
        if f"{array} = np.empty(sessions)" not in self.setup:
            self.setup.append(f"{array} = np.empty(sessions)")
            ended = f"{column}[t - 1]" if kind == "last" else follow
            self.session.lines += ["if day > 0:", f"    {array}[day - 1] = {ended}"]
        count = self._whole(node.args[1], self.session) if len(node.args) > 1 else "1"
        self.session.let(key, f"{pick}({array}, day - 1, {count})")
        return key

    # Expressions.

    def _value(self, node: ast.expr, block: _Block) -> str:
        match node:
            case ast.Constant(value=value):
                return repr(float(value))  # type: ignore[arg-type]  # checked to be a number when parsed
            case ast.Name(id=name):
                return self._named(name, block)
            case ast.Attribute():
                return f"{self._column(node)}[t]"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self._value(operand, block)})"
            case ast.BinOp(left=left, op=op, right=right):
                return f"({self._value(left, block)} {_SIGNS[type(op)]} {self._value(right, block)})"
            case ast.Call():
                return self._call(node, block)
        return f"(1.0 if {self._test(node, block)} else 0.0)"

    def _whole(self, node: ast.expr, block: _Block) -> str:
        if isinstance(node, ast.Constant):
            return str(int(float(node.value)))  # type: ignore[arg-type]  # checked to be a number when parsed
        if isinstance(node, ast.Name) and node.id in self.semantics.parameters:
            if (line := f"n_{node.id} = int(p_{node.id})") not in self.setup:
                self.setup.append(line)
            return f"n_{node.id}"
        return f"int({self._value(node, block)})"

    def _test(self, node: ast.expr, block: _Block) -> str:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(not {self._test(operand, block)})"
            case ast.BoolOp(op=op, values=parts):
                word = " and " if isinstance(op, ast.And) else " or "
                return f"({word.join(self._test(part, block) for part in parts)})"
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [self._value(side, block) for side in (left, *others)]
                tests = []
                for sign, a, b in zip(ops, sides, sides[1:], strict=False):
                    name, turned = _TESTS[type(sign)]
                    tests.append(f"{name}({b}, {a})" if turned else f"{name}({a}, {b})")
                return tests[0] if len(tests) == 1 else f"({' and '.join(tests)})"
            case ast.Call(func=ast.Name(id="isnan"), args=[inner]):
                return f"np.isnan({self._value(inner, block)})"
            case ast.Name(id=name) if name in _MARKS:
                return _MARKS[name]
        return f"({self._value(node, block)} != 0.0)"

    def _named(self, name: str, block: _Block) -> str:
        semantics = self.semantics
        if name in semantics.parameters:
            return f"p_{name}"
        if name in semantics.registers:
            return f"r_{name}"
        if name in SPECIAL:
            return "float(t)" if name == "row" else f"(1.0 if {_MARKS[name]} else 0.0)"
        if name.startswith("held_") and name not in semantics.indicators:
            return f"h_{semantics.inputs.legs.index(name.removeprefix('held_'))}"
        variable = f"v_{name}"
        if variable in self.bar.known or variable in self.session.known or variable in block.known:
            return variable
        tree = parse(semantics.indicators[name])
        if self._for_session(tree):
            self.setup.append(f"{variable} = NAN")
            self.session.let(variable, self._value(tree, self.session))
        else:
            block.let(variable, self._value(tree, block))
        return variable

    def _for_session(self, tree: ast.expr) -> bool:
        """Return whether an expression is constant in a session: made only of earlier sessions and parameters."""
        past = _calls(tree, {*_SESSION, "day_open"})
        skipped = {id(inner) for node in past for inner in ast.walk(node)} | {
            id(node.func) for node in _calls(tree)
        }
        used: set[str] = set()
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and _called(node) not in PLAIN):
                return False
            if isinstance(node, ast.Name) and node.id not in self.semantics.parameters:
                used.add(node.id)
        known = self.semantics.indicators
        return bool(past or used) and all(name in known and self._for_session(parse(known[name])) for name in used)

    def _call(self, node: ast.Call, block: _Block) -> str:
        name, args = _called(node), node.args
        if name == "where":
            test, yes, no = self._test(args[0], block), *(self._value(arg, block) for arg in args[1:])
            return f"({yes} if {test} else {no})"
        if name == "isnan":
            return f"float(np.isnan({self._value(args[0], block)}))"
        if name in PLAIN:
            return f"{_WORDS[name]}({', '.join(self._value(arg, block) for arg in args)})"
        if name in ("ema", "wilder"):
            return self._smoothed(node)
        if name in _SO_FAR:
            assert isinstance(node.args[0], ast.Attribute)
            return self._extreme(self._column(node.args[0]), _SO_FAR[name])
        if name in DAILY:
            return self._of_sessions(node)
        if name == "prev":
            array, row = self._series(node)
            return f"at({array}, {row})"
        variable = f"w_{sha256_bytes(ast.unparse(node).encode())[:8]}"
        if variable not in block.known and variable not in self.bar.known:
            block.let(variable, self._window(name, node, block))
        return variable

    def _window(self, name: str, node: ast.Call, block: _Block) -> str:
        array, row = self._series(node.args[0])
        length = self._whole(node.args[1], block)
        if name == "mean" and row == "t" and array.endswith("_close"):
            # Follow the sum of a window over closes relative to the first one, to stay exact over long data.
            key = f"{array} {length}"
            if key not in self.running:
                name = f"q_{len(self.running)}"
                self.setup.append(f"{name}_base = {array}[0] if size > 0 else 0.0")
                self.bar.lines += [f"{name} += {array}[t] - {name}_base", f"if t >= {length}:"]
                self.bar.lines.append(f"    {name} -= {array}[t - {length}] - {name}_base")
                by = length
                if self.needs and all(f"{length} - 1" in needs for needs in self.needs):
                    self.setup.append(f"{name} = 0.0")
                else:  # a rule may look before the window is full: dividing by NaN until then says so
                    by = f"{name}_by"
                    self.setup.append(f"{name}, {by} = 0.0, NAN")
                    self.bar.lines += [f"elif t == {length} - 1:", f"    {by} = float({length})"]
                self.running[key] = f"{name} / {by} + {name}_base"
            return self.running[key]
        if name == "std":
            mean = ast.Call(func=ast.Name(id="mean", ctx=ast.Load()), args=node.args[:2], keywords=[])
            about, ddof = self._call(mean, block), self._whole(node.args[2], block)
            return f"spread_of({array}, {row}, {length}, {about}, {ddof})"
        return f"{_WORDS[name]}({array}, {row}, {length})"

    def _fired(self, number: int, rule: StrategyRule, branch: _Block) -> list[str]:
        # Lines of its own: what a target needs is worked out only when the rule fires.
        block, legs = _Block(frozenset(branch.known)), self.semantics.inputs.legs
        targets = {leg: self._value(parse(text), block) for leg, text in rule.target.items()}
        sets = {name: self._value(parse(text), block) for name, text in rule.set.items()}
        block.lines += [f"a_{leg} = {value}" for leg, value in targets.items()]
        block.lines += [f"b_{name} = {value}" for name, value in sets.items()]
        for leg in targets:
            place = legs.index(leg)
            if not isinstance(parse(rule.target[leg]), ast.Constant):
                block.lines += [f"if a_{leg} != a_{leg}:", "    return -1 - t"]
            block.lines += [
                f"if a_{leg} != h_{place}:",
                f"    rows[count], legs[count], fractions[count], signals[count] = t, {place}, a_{leg}, {number}",
                f"    h_{place} = a_{leg}",
                "    count += 1",
            ]
        return [
            *block.lines,
            *(f"r_{name} = b_{name}" for name in sets),
            f"state = {self.semantics.states.index(rule.to)}",
        ]


def _pick(word: str, rows: Iterable[str]) -> str:
    listed = sorted(rows)
    return listed[0] if len(listed) == 1 else f"{word}({', '.join(listed)})"


def _calls(tree: ast.expr, wanted: Collection[str] | None = None) -> list[ast.Call]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [node for node in nodes if wanted is None or _called(node) in wanted]


def _called(node: ast.Call) -> str:
    assert isinstance(node.func, ast.Name)
    return node.func.id


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
