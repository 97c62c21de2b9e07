"""Parse Python source in any thread, and describe faults of a source.

Programs are parsed with the interpreter's own ``ast``. Which syntax is valid depends on the
interpreter. The description of a fault does not. Interpreters word their errors differently, and
recorded questions contain our wording.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from typing import Any, Final, NamedTuple

_PARSING: Final = threading.RLock()
"""Lock for building a syntax tree. In CPython 3.11, two threads that build trees at the same time
disturb each other's nesting counter, and one of them gets a SystemError. A garbage collection
during parsing lets the other thread run."""

_TRIES: Final = 10


def syntax_tree(source: str, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a program. Raises the same errors as :func:`ast.parse`."""
    made: ast.Module = _parsed(source, file, "exec")
    return made


def expression_tree(text: str) -> ast.expr:
    """Return the syntax tree of one expression. Raises the same errors as :func:`ast.parse`."""
    made: ast.Expression = _parsed(text, "<unknown>", "eval")
    return made.body


def _parsed(source: str, file: str, mode: str) -> Any:
    with _PARSING:
        for _ in range(_TRIES):
            try:
                return ast.parse(source, file, mode)
            except SystemError:
                continue  # a library in another thread parses without taking the lock
        return ast.parse(source, file, mode)


class SourceFault(NamedTuple):
    """The reason why a source is not a valid program: error name, line if known, and a sentence."""

    error: str
    line: int | None
    words: str

    @property
    def syntax(self) -> bool:
        """Return whether the fault is a syntax error. Otherwise the parser gave up."""
        return self.error == "SyntaxError" or self.error in _INDENTATION


_UNREADABLE: Final = (ValueError, RecursionError, MemoryError, OverflowError, SystemError)
"""Exceptions besides SyntaxError that a parser raises when it gives up on a text."""
_DEEPEST: Final = 800
"""Largest depth of a program's syntax tree. CPython 3.11 compiles almost 1,000 levels, 3.12.1 some
1,500 and 3.13 nearly 10,000, and fewer if its own stack is deep. This limit gives the same result
on all of them."""
TOO_DEEP: Final = "RecursionError: the parser gave up on it"
"""Error for a program that is nested more deeply. Recorded questions contain this wording."""
_LONGEST_LINE: Final = 160
_INDENTATION: Final = {
    "IndentationError": "the indentation fits no block",
    "TabError": "tabs and spaces are mixed in the indentation",
}


def program_tree(source: str, *, compiles: bool = True) -> ast.Module | SourceFault:
    """Return the syntax tree of a program, or the fault of an invalid source.

    With ``compiles`` the program must compile as well as parse.
    """
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:  # Python 3.11 raises a ValueError without a line
        return _fault(
            text, "SyntaxError", text.count("\n", 0, text.index("\0")) + 1, "a null character"
        )
    try:
        with _PARSING, warnings.catch_warnings():  # warning filters are shared by all threads
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
    except (RecursionError, MemoryError):  # which of the two is raised depends on the interpreter
        return _gave_up("RecursionError")
    except _UNREADABLE as error:
        return _gave_up(type(error).__name__)


def is_too_deep(tree: ast.AST) -> bool:
    """Return whether a tree has more than ``_DEEPEST`` levels. The check is not recursive."""
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
"""A comment, the start of a string, or a bracket."""
_STRING_REST: Final = {
    '"': re.compile(r'(?:[^"\\\n]++|\\.)*+"', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]++|\\.)*+'", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+"""', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]++|\\.|'(?!''))*+'''", re.DOTALL),
}
_OPENING: Final = {")": "(", "]": "[", "}": "{"}


def _unclosed(text: str) -> dict[int, str]:
    """Return faults of brackets and quotes by line number."""
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
            if rest is None:  # the rest of the text does not matter
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
