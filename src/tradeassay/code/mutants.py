"""Wrong programs made from a right one: every constant changed, every condition dropped, one at a time.

A task whose markets cannot tell its reference from one of these does not exercise that constant or condition, and
a judge that accepts one has not noticed it. What is changed is what a task states: numbers (indices of bars and
subscripts are no statements) and the conditions of ``if``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from tradeassay.code.program_source import parses

_SMALL: Final = 10
_STEP: Final = 0.1
_ORDERS: Final = ("buy", "sell", "close", "cancel", "order_target")
"""From ten on a whole number moves by a tenth, below it by one; fractions always move by a tenth."""


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """A program with one change. ``change`` says which, with the line of the original; ``orders`` tells that what
    was taken out is a branch in which orders are placed or cancelled. ``place`` counts the constants.
    """

    kind: Literal["constant", "condition"]
    change: str
    line: int
    source: str
    orders: bool = False
    place: int = -1


def mutants_of(source: str, *, doubled: bool = False) -> tuple[Mutant, ...]:
    """Return all mutants of a program, by line; ``doubled`` doubles constants instead of moving them a little."""
    tree = parses(source)
    if tree is None:
        return ()
    made = [*_constants(tree, doubled=doubled), *_conditions(tree)]
    return tuple(sorted(made, key=lambda mutant: (mutant.line, mutant.change)))


def _constants(tree: ast.Module, *, doubled: bool) -> Iterator[Mutant]:
    for place, node in enumerate(_stated(tree)):
        old = node.value
        assert isinstance(old, int | float)
        new = 2 * old if doubled else _moved(old)
        node.value = new
        change = f"{old:g} -> {new:g}"
        yield Mutant(kind="constant", change=change, line=node.lineno, source=ast.unparse(tree), place=place)
        node.value = old


def _stated(tree: ast.AST) -> Iterator[ast.Constant]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant):
            number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
            if number and node.value:
                yield node
            continue
        parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Subscript):
            parts.remove(node.slice)
        waiting += reversed(parts)


def _moved(value: int | float) -> int | float:
    if isinstance(value, float):
        return value * (1.0 + _STEP)
    return value + (1 if value < _SMALL else round(value * _STEP))


def _conditions(tree: ast.Module) -> Iterator[Mutant]:
    for number, node in enumerate(list(ast.walk(tree))):
        if isinstance(node, ast.If):
            made = _changed(tree, number, lambda one: setattr(one, "test", ast.Constant(False)), "the branch")
            yield msgspec.structs.replace(made, orders=any(map(_places_order, node.body)))
        if isinstance(node, ast.BoolOp):
            for place, operand in enumerate(node.values):
                shown = ast.unparse(operand)[:60]
                yield _changed(tree, number, lambda one, at=place: one.values.pop(at), shown)


def _places_order(body: ast.AST) -> bool:
    calls = (node.func for node in ast.walk(body) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Attribute) and name.attr.startswith(_ORDERS) for name in calls)


def _changed(tree: ast.Module, number: int, change: object, what: str) -> Mutant:
    other = copy.deepcopy(tree)
    node = list(ast.walk(other))[number]
    assert isinstance(node, ast.If | ast.BoolOp) and callable(change)
    change(node)
    text = ast.unparse(ast.fix_missing_locations(other))
    return Mutant(kind="condition", change=f"without {what}", line=node.lineno, source=text)
