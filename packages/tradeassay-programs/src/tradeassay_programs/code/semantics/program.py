"""Convert frozen semantics to a program: the source of a ``TradingStrategy`` with the same
decisions.

The program is readable Python over arrays with one loop over the bars. It uses the bookkeeping that
all references share. Tests compare it with the interpreter. A benchmark with semantics therefore
needs no separate, hand-written reference.
"""

import ast
from itertools import chain
from typing import Final

from tradeassay.core.errors import UserError
from tradeassay_programs.code.semantics.interpreter import (
    DAILY,
    FIELDS,
    Semantics,
    StrategyRule,
    names_in,
    ordered,
    parse,
)

_SERIES: Final = {
    "mean": "rolling_mean({0}, int({1}))",
    "sum": "rolling({0}, int({1}), lambda w: w.sum(axis=1))",
    "std": "rolling_std({0}, int({1}), int({2}))",
    "highest": "rolling({0}, int({1}), lambda w: w.max(axis=1))",
    "lowest": "rolling({0}, int({1}), lambda w: w.min(axis=1))",
    "prev": "before({0}, int({1}))",
    "ema": "smoothed({0}, int({1}), 2 / ({1} + 1))",
    "wilder": "smoothed({0}, int({1}), 1 / {1})",
}
_WIDE: Final = {
    "abs": "np.abs({0})",
    "log": "np.log({0})",
    "sqrt": "np.sqrt({0})",
    "min": "np.minimum({0}, {1})",
    "max": "np.maximum({0}, {1})",
    "where": "np.where({0}, {1}, {2})",
    "isnan": "np.isnan({0})",
}
_NARROW: Final = {
    "abs": "abs({0})",
    "log": "float(np.log({0}))",
    "sqrt": "float(np.sqrt({0}))",
    "min": "min({0}, {1})",
    "max": "max({0}, {1})",
    "where": "({1} if {0} else {2})",
    "isnan": "({0} != {0})",
}
_TESTS: Final = {
    ast.Gt: "more({0}, {1})",
    ast.Lt: "more({1}, {0})",
    ast.GtE: "not_less({0}, {1})",
    ast.LtE: "not_less({1}, {0})",
    ast.Eq: "equal({0}, {1})",
    ast.NotEq: "differ({0}, {1})",
}
_SIGNS: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}

HELPERS: Final = '''
def near(a, b):
    return 1e-9 * np.maximum(np.abs(a), np.abs(b)) + 1e-10


def wide_more(a, b):
    return a - b > near(a, b)


def wide_not_less(a, b):
    return b - a <= near(a, b)


def wide_equal(a, b):
    return np.abs(a - b) <= near(a, b)


def wide_differ(a, b):
    return np.abs(a - b) > near(a, b)


def more(a, b):
    return a - b > 1e-9 * max(abs(a), abs(b)) + 1e-10


def not_less(a, b):
    return b - a <= 1e-9 * max(abs(a), abs(b)) + 1e-10


def equal(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + 1e-10


def differ(a, b):
    return abs(a - b) > 1e-9 * max(abs(a), abs(b)) + 1e-10


class Days:
    """Sessions of the bars, by the day on which they open."""

    def __init__(self, times):
        days = times.astype("M8[D]").astype(np.int64)
        if len(days):
            self.first = np.concatenate(([True], np.diff(days) != 0))
        else:
            self.first = np.zeros(0, dtype=bool)
        self.session = np.cumsum(self.first) - 1
        self.starts = np.flatnonzero(self.first)

    def day_open(self, x):
        return x[self.starts][self.session]

    def before(self, x, kind, n):
        ends = np.append(self.starts[1:], len(x))
        if kind == "high":
            daily = np.maximum.reduceat(x, self.starts)
        elif kind == "low":
            daily = np.minimum.reduceat(x, self.starts)
        else:
            daily = x[ends - 1]
        out = np.full(len(daily), np.nan)
        pick = {
            "high": np.max,
            "low": np.min,
            "close": lambda w: w[-1],
            "max_close": np.max,
            "min_close": np.min,
        }
        for s in range(n, len(daily)):
            out[s] = pick[kind](daily[s - n : s])
        return out[self.session]

    def so_far(self, x, kind):
        out = np.empty(len(x))
        ends = np.append(self.starts[1:], len(x))
        best = np.maximum if kind == "high" else np.minimum
        for start, end in zip(self.starts, ends):
            out[start:end] = best.accumulate(x[start:end])
        return out
'''
_DAYS: Final = {
    "day_open": "days.day_open({0})",
    "day_high": 'days.before({0}, "high", int({1}))',
    "day_low": 'days.before({0}, "low", int({1}))',
    "day_close": 'days.before({0}, "close", 1)',
    "day_max_close": 'days.before({0}, "max_close", int({1}))',
    "day_min_close": 'days.before({0}, "min_close", int({1}))',
    "high_so_far": 'days.so_far({0}, "high")',
    "low_so_far": 'days.so_far({0}, "low")',
}


def program_of(semantics: Semantics) -> str:
    """Return the source of a program with the same decisions as the semantics.

    The program needs the shared bookkeeping.
    """
    legs = semantics.inputs.legs
    lines = [
        "book = Book(market_data, initial_capital)",
        f"book.MAX_EXPOSURE = {semantics.constraints.max_exposure!r}",
        "days = Days(book.times)",
    ]
    for name, one in semantics.parameters.items():
        lines.append(f"{name} = {int(one.value) if one.kind == 'int' else one.value!r}")
    for leg in legs:
        for field in FIELDS:
            lines.append(f'{leg}_{field} = market_data["{leg}"]["{field}"].to_numpy(dtype=float)')
    lines += [
        f'session_last = market_data["{legs[0]}"]["session_last"].to_numpy(dtype=float)',
        "session_first = days.first.astype(float)",
        "row = np.arange(len(book.times), dtype=float)",
        'with np.errstate(divide="ignore", invalid="ignore"):',
    ]
    series = [
        f"    {name} = {written(parse(semantics.indicators[name]), wide=True)}"
        for name in ordered(semantics)
    ]
    lines += series or ["    pass"]
    fixed = {*semantics.parameters, *semantics.registers, *(f"held_{leg}" for leg in legs)}
    texts = list(
        chain.from_iterable(
            (rule.when, *rule.target.values(), *rule.set.values()) for rule in semantics.rules
        )
    )
    names = set(chain.from_iterable(map(names_in, texts)))
    read = sorted({name.replace(".", "_") for name in names if name not in fixed})
    used = ", ".join(read or ["row"])
    lines.append(f"table = [np.broadcast_to(x, len(book.times)).tolist() for x in ({used},)]")
    lines.append(f'state = "{semantics.states[0]}"')
    lines += [f"{name} = {value!r}" for name, value in semantics.registers.items()]
    lines.append(f"for t, ({used},) in enumerate(zip(*table)):")
    for place, rule in enumerate(semantics.rules):
        lines += [f"    {line}" for line in _rule(rule, semantics, "elif" if place else "if")]
    lines.append("return book.logs()")
    body = "\n".join(f"        {line}" for line in lines)
    head = "class TradingStrategy:\n    def run(self, market_data, initial_capital):\n"
    return f"{HELPERS}\n\n{head}{body}\n"


def _rule(rule: StrategyRule, semantics: Semantics, word: str) -> list[str]:
    states = " or ".join(f'state == "{state}"' for state in rule.given)
    where = f"({states}) and " if set(rule.given) != set(semantics.states) else ""
    aims = ", ".join(
        f'"{leg}": float({written(parse(text), wide=False)})' for leg, text in rule.target.items()
    )
    made = [f"{word} {where}{written(parse(rule.when), wide=False)}:", f"    aims = {{{aims}}}"]
    if rule.set:
        values = ", ".join(
            f"float({written(parse(text), wide=False)})" for text in rule.set.values()
        )
        comma = "," if len(rule.set) == 1 else ""
        made.append(f"    {', '.join(rule.set)}{comma} = {values}{comma}")
    return [*made, f'    state = "{rule.to}"', f'    book.aim(t, aims, "{rule.signal}")']


def written(node: ast.expr, *, wide: bool) -> str:
    """Return an expression as Python.

    With ``wide`` it works on whole columns, otherwise on the values of one bar.
    """
    match node:
        case ast.Constant(value=value):
            return repr(value)
        case ast.Name(id=name):
            return f'book.target["{name[5:]}"]' if name.startswith("held_") else name
        case ast.Attribute(value=ast.Name(id=leg), attr=field):
            return f"{leg}_{field}"
        case ast.UnaryOp(op=op, operand=operand):
            inner = written(operand, wide=wide)
            if isinstance(op, ast.USub):
                return f"(-{inner})"
            return f"(np.asarray({inner}) == 0)" if wide else f"(not {inner})"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({written(left, wide=wide)} {_SIGNS[type(op)]} {written(right, wide=wide)})"
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [written(side, wide=wide) for side in (left, *others)]
            pairs = zip(ops, sides, sides[1:], strict=False)
            tests = (
                f"{'wide_' if wide else ''}{_TESTS[type(op)].format(a, b)}" for op, a, b in pairs
            )
            return f"({(' & ' if wide else ' and ').join(tests)})"
        case ast.BoolOp(op=op, values=parts):
            if isinstance(op, ast.And):
                sign = " & " if wide else " and "
            else:
                sign = " | " if wide else " or "
            return f"({sign.join(written(part, wide=wide) for part in parts)})"
        case ast.Call(func=ast.Name(id=name), args=args):
            given = [written(arg, wide=wide) for arg in args]
            if name in DAILY:
                return _DAYS[name].format(*given, *(["1"] if len(given) == 1 else []))
            return (_SERIES.get(name) or (_WIDE if wide else _NARROW)[name]).format(*given)
    raise UserError(f"'{ast.unparse(node)}' cannot be written as a program")
