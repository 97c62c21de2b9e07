"""Python source made into a tree, in any thread."""

from __future__ import annotations

import ast
import threading
from typing import Any, Final

PARSING: Final = threading.RLock()
"""Held while a tree is made. In CPython 3.11 two threads that build trees at once (a collection of garbage in the
middle of one lets the other go on) disturb each other's count of nested nodes, and one gets a SystemError."""

_TRIES: Final = 10


def syntax_tree(source: str, file: str = "<unknown>") -> ast.Module:
    """Return the tree of a program; raises what :func:`ast.parse` raises for a text that is none."""
    made: ast.Module = _parsed(source, file, "exec")
    return made


def expression_tree(text: str) -> ast.expr:
    """Return the tree of one expression; raises what :func:`ast.parse` raises for a text that is none."""
    made: ast.Expression = _parsed(text, "<unknown>", "eval")
    return made.body


def _parsed(source: str, file: str, mode: str) -> Any:
    with PARSING:
        for _ in range(_TRIES):
            try:
                return ast.parse(source, file, mode)
            except SystemError:
                continue  # a library parses in another thread, and does not ask for the lock
        return ast.parse(source, file, mode)
