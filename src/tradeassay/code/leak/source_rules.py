"""What reading the source can tell about look-ahead: our advice, and the two checks that a paper prints.

Advice for the evidence, never a verdict: rules of this kind both miss leaks and object to honest code. The printed
checks are rebuilt from appendix B.3 of the SysTradeBench paper to be measured: source rules that name negative
shifts, a forward index in a loop, a reversed slice from a row and four words; and a guard, a proxy whose ``[]``
refuses a slice or an integer beyond the current bar, while anything else goes through to the data.
"""

from __future__ import annotations

import ast
import io
import re
from contextlib import redirect_stdout
from typing import Any, Final

import msgspec

from tradeassay.code.leak.trace import Columns
from tradeassay.code.program_source import parses

_BACKWARD: Final = frozenset({"shift", "pct_change", "diff"})
_NOT_CAUSAL: Final = {
    "bfill": "fills from later rows",
    "backfill": "fills from later rows",
    "interpolate": "draws a line to the next known value",
    "filtfilt": "filters backwards as well",
    "sosfiltfilt": "filters backwards as well",
    "savgol_filter": "uses a centred window",
    "detrend": "fits the whole series",
    "argrelextrema": "knows an extremum before it is one",
    "argrelmax": "knows an extremum before it is one",
    "argrelmin": "knows an extremum before it is one",
    "find_peaks": "knows a peak before it is one",
    "gradient": "takes central differences",
    "polyfit": "fits all rows it is given",
    "rfft": "transforms the whole series",
    "fft": "transforms the whole series",
}


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """One place in the source that deserves a look."""

    line: int
    text: str


def source_advice(source: str | ast.Module) -> tuple[Advice, ...]:
    """Return places that look like look-ahead, in the order of their lines; ``source`` may be parsed already.

    Nothing for source that does not parse.
    """
    tree = parses(source) if isinstance(source, str) else source
    if tree is None:
        return ()
    found = [advice for node in ast.walk(tree) for advice in _look(node)]
    return tuple(sorted(found, key=lambda advice: advice.line))


def _look(node: ast.AST) -> list[Advice]:
    if isinstance(node, ast.Call):
        text = _call(node)
        return [Advice(line=node.lineno, text=text)] if text else []
    if isinstance(node, ast.Slice) and isinstance(node.step, ast.UnaryOp) and isinstance(node.step.op, ast.USub):
        return [Advice(line=node.lineno, text="a slice that runs backwards")]
    if isinstance(node, ast.For):
        return _ahead(node)
    return []


def _call(node: ast.Call) -> str:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    words = {keyword.arg: keyword.value for keyword in node.keywords}
    if name in _BACKWARD and any(_negative(value) for value in (*node.args[:1], words.get("periods"))):
        return f"{name} with a negative step takes later rows"
    if name == "roll" and any(_negative(value) for value in (*node.args[1:2], words.get("shift"))):
        return "roll with a negative step takes later rows"
    if name == "rolling" and _constant(words.get("center")) is True:
        return "a centred window takes later rows"
    if name == "fillna" and _constant(words.get("method")) in ("bfill", "backfill"):
        return "fillna fills from later rows"
    if name == "merge_asof" and _constant(words.get("direction")) in ("forward", "nearest"):
        return "the join may take a later row"
    if name in ("convolve", "correlate") and _constant(words.get("mode")) == "same":
        return "mode 'same' centres the kernel"
    return f"{name} {_NOT_CAUSAL[name]}" if name in _NOT_CAUSAL else ""


def _ahead(loop: ast.For) -> list[Advice]:
    """Find ``x[i + k]`` where ``i`` is the loop's own variable."""
    names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    found = []
    for node in ast.walk(loop):
        if not isinstance(node, ast.Subscript):
            continue
        sums = [
            part for part in ast.walk(node.slice) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)
        ]
        if any(getattr(part.left, "id", None) in names for part in sums):
            found.append(Advice(line=node.lineno, text="an index ahead of the loop's own bar"))
    return found


def _negative(value: ast.expr | None) -> bool:
    return isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)


def _constant(value: ast.expr | None) -> object:
    return value.value if isinstance(value, ast.Constant) else None


_WORDS: Final = re.compile(r"future|forward|peek|next", re.IGNORECASE)


class LeakageError(Exception):
    """The guard refused an access."""


class LeakageGuard:
    """The printed proxy. What it does not define goes to the data; without that, few programs could run."""

    def __init__(self, data: Any, current: int) -> None:
        self._data = data
        self._current = current

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            if key.stop is None or key.stop > self._current:
                raise LeakageError(f"a slice beyond bar {self._current}")
        elif isinstance(key, int) and key > self._current:
            raise LeakageError(f"bar {key} is beyond {self._current}")
        return self._data[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def __len__(self) -> int:
        return len(self._data)


def guard_objects(source: str, columns: Columns) -> bool:
    """Return whether the guard refuses anything when ``run`` is given the data through it.

    It is tried with the current bar in the middle and at the end: the paper does not say which it would be for
    code that takes a whole table. For trusted source only: it runs in this process.
    """
    from tradeassay.sandbox.strategy import shape

    frame = shape(columns, "frame")
    space: dict[str, Any] = {}
    exec(compile(source, "strategy.py", "exec"), space)
    for current in (len(frame) // 2, len(frame) - 1):
        try:
            with redirect_stdout(io.StringIO()):
                space["run"](LeakageGuard(frame, current))
        except LeakageError:
            return True
        except Exception:
            continue  # a proxy is not a frame and may break honest code; that is not a leak found
    return False


def paper_rules(source: str) -> tuple[str, ...]:
    """Return which of the paper's source rules object."""
    tree = parses(source) or ast.Module([], [])
    found = [name for name, rule in _RULES.items() if any(rule(node) for node in ast.walk(tree))]
    if any(_WORDS.search(word) for word in _names(tree)):
        found.append("suspicious word")
    return tuple(found)


def _negative_shift(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "shift"):
        return False
    steps = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "periods")]
    return any(isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub) for step in steps)


def _ahead_in_loop(node: ast.AST) -> bool:
    if not isinstance(node, ast.For):
        return False
    names = {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
    return any(
        isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add) and getattr(index.left, "id", None) in names
        for inner in ast.walk(node)
        if isinstance(inner, ast.Subscript)
        for index in ast.walk(inner.slice)
    )


def _reversed_from_row(node: ast.AST) -> bool:
    """Match ``x[t:][::-1]``: a slice with a lower end, reversed."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)):
        return False
    step = node.slice.step
    inner = node.value
    return (
        isinstance(step, ast.UnaryOp)
        and isinstance(step.op, ast.USub)
        and isinstance(inner, ast.Subscript)
        and isinstance(inner.slice, ast.Slice)
        and inner.slice.lower is not None
    )


def _names(tree: ast.AST) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, ast.Attribute):
            names.append(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.append(node.value)
    return names


_RULES: Final = {
    "negative shift": _negative_shift,
    "index ahead": _ahead_in_loop,
    "reversed slice": _reversed_from_row,
}
