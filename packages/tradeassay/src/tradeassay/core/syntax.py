"""Python source made into a tree, in any thread, and a description of what is wrong with a source.

Programs are parsed with the interpreter's own ``ast``. Which syntax is valid depends on the interpreter. How a
fault is described does not: interpreters word their errors differently, and recorded questions hold our words.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from typing import Any, Final, NamedTuple

_PARSING: Final = threading.RLock()
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
    with _PARSING:
        for _ in range(_TRIES):
            try:
                return ast.parse(source, file, mode)
            except SystemError:
                continue  # a library parses in another thread, and does not ask for the lock
        return ast.parse(source, file, mode)


class SourceFault(NamedTuple):
    """Why a source is no program: the error's name, its line if it has one, and a sentence."""

    error: str
    line: int | None
    words: str

    @property
    def syntax(self) -> bool:
        """Whether it is a syntax error (otherwise the parser gave up on it)."""
        return self.error == "SyntaxError" or self.error in _INDENTATION


_UNREADABLE: Final = (ValueError, RecursionError, MemoryError, OverflowError, SystemError)
"""What a parser raises, besides a SyntaxError, for a text that it gives up on."""
_DEEPEST: Final = 800
"""Levels that the tree of a program may have. CPython 3.11 compiles not quite 1,000 of them, 3.12.1 some 1,500 and
3.13 nearly 10,000, each fewer the deeper its own stack is: a limit of ours gives one verdict on all of them."""
TOO_DEEP: Final = "RecursionError: the parser gave up on it"
"""What a program is told that is nested deeper than that. Recorded questions hold these words."""
_LONGEST_LINE: Final = 160
_INDENTATION: Final = {
    "IndentationError": "the indentation fits no block",
    "TabError": "tabs and spaces are mixed in the indentation",
}


def program_tree(source: str, *, compiles: bool = True) -> ast.Module | SourceFault:
    """Return the tree of a program, or what keeps a source from being one.

    With ``compiles`` the program must compile as well as parse."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:  # Python 3.11 raises a ValueError without a line
        return _fault(
            text, "SyntaxError", text.count("\n", 0, text.index("\0")) + 1, "a null character"
        )
    try:
        with _PARSING, warnings.catch_warnings():  # the filters of warnings belong to all threads
            warnings.simplefilter("ignore")
            try:
                tree: ast.Module = _parsed(text, "strategy.py", "exec")
            except SyntaxError as error:
                what = _unclosed(text).get(error.lineno or 0, "this cannot be read as Python")
                return _fault(text, type(error).__name__, error.lineno, what)
            if is_too_deep(tree):
                return _gave_up("RecursionError")
            if compiles:
                compile(tree, "strategy.py", "exec", dont_inherit=True)
            return tree
    except SyntaxError as error:
        return _fault(text, type(error).__name__, error.lineno, "this cannot stand here")
    except (RecursionError, MemoryError):  # which of them is raised depends on the interpreter
        return _gave_up("RecursionError")
    except _UNREADABLE as error:
        return _gave_up(type(error).__name__)


def is_too_deep(tree: ast.AST) -> bool:
    """Return whether a tree has more than ``_DEEPEST`` levels, without recursion of its own."""
    level = [tree]
    for _ in range(_DEEPEST):
        below: list[ast.AST] = []
        for node in level:
            below.extend(ast.iter_child_nodes(node))
        if not below:
            return False
        level = below
    return True


def _gave_up(error: str) -> SourceFault:
    return SourceFault(error, None, "the parser gave up on it")


def _fault(text: str, error: str, line: int | None, what: str) -> SourceFault:
    lines = text.split("\n")
    shown = lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""
    cut = shown if len(shown) <= _LONGEST_LINE else f"{shown[:_LONGEST_LINE]} ..."
    told = _INDENTATION.get(error, what)
    return SourceFault(error, line, f"{told}: {cut}" if cut else told)


_TOKEN: Final = re.compile(r"""\#[^\n]*|\"\"\"|'''|\"|'|[()\[\]{}]""")
"""A comment, the begin of a string, or a bracket."""
_STRING_REST: Final = {
    '"': re.compile(r'(?:[^"\\\n]++|\\.)*+"', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]++|\\.)*+'", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+"""', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]++|\\.|'(?!''))*+'''", re.DOTALL),
}
_OPENING: Final = {")": "(", "]": "[", "}": "{"}


def _unclosed(text: str) -> dict[int, str]:
    """Return what is wrong with brackets and quotes, by line."""
    faults: dict[int, str] = {}
    brackets: list[tuple[str, int]] = []
    at, line, counted = 0, 1, 0
    while token := _TOKEN.search(text, at):
        at = token.end()
        line += text.count("\n", counted, token.start())
        counted = token.start()
        sign = token.group()
        if sign in _STRING_REST:
            rest = _STRING_REST[sign].match(text, at)
            if rest is None:  # nothing behind it matters
                faults.setdefault(line, "a string that begins here is not closed")
                return faults
            at = rest.end()
        elif sign in _OPENING.values():
            brackets.append((sign, line))
        elif sign in _OPENING and not brackets:
            faults.setdefault(line, f"'{sign}' closes nothing")
        elif sign in _OPENING:
            opened, since = brackets.pop()
            if opened != _OPENING[sign]:
                faults.setdefault(line, f"'{sign}' does not close the '{opened}' of line {since}")
    for opened, since in brackets:
        faults.setdefault(since, f"'{opened}' is not closed")
    return faults
