"""The two checks that the SysTradeBench paper describes, rebuilt from its appendix B.3 to be measured.

Its source rules name negative shifts, an index ahead in a loop, a reversed slice from a row on, and four words.
Its guard is a proxy whose ``[]`` refuses a slice or an integer beyond the current bar; anything else, a column's
name for one, goes through to the data.
"""

from __future__ import annotations

import ast
import io
import re
from contextlib import redirect_stdout
from typing import Any, Final

from tradeassay.code.leak.trace import Columns

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
    """Return whether the guard refuses anything when ``run`` gets the data through it.

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
            continue  # a proxy that is no frame may break honest code; that finds no leak
    return False


def paper_rules(source: str) -> tuple[str, ...]:
    """Return which of the paper's source rules object."""
    tree = ast.parse(source)
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
