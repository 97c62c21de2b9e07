"""Python source made into a tree, in any thread; and what is wrong with a source, the same on every interpreter.

A program is Python 3.11 here, whichever interpreter reads it: what 3.11 refuses is refused, and the words about it
are ours. Interpreters word their errors differently, and from 3.12 on they read f-strings in another way, which
moves errors to other lines. So an error's place is looked for in a copy whose f-strings are plain strings, and the
fields of the f-strings are looked at one by one.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from typing import Any, Final, NamedTuple

PARSING: Final = threading.RLock()
"""Held while a tree is made. In CPython 3.11 two threads that build trees at once (a collection of garbage in the
middle of one lets the other go on) disturb each other's count of nested nodes, and one gets a SystemError."""

_TRIES: Final = 10
_LANGUAGE: Final = (3, 11)


def syntax_tree(source: str, file: str = "<unknown>") -> ast.Module:
    """Return the tree of a program; raises what :func:`ast.parse` raises for a text that is none."""
    made: ast.Module = _parsed(source, file, "exec")
    return made


def expression_tree(text: str) -> ast.expr:
    """Return the tree of one expression; raises what :func:`ast.parse` raises for a text that is none."""
    made: ast.Expression = _parsed(text, "<unknown>", "eval")
    return made.body


def _parsed(source: str, file: str, mode: str, version: tuple[int, int] | None = None) -> Any:
    with PARSING:
        for _ in range(_TRIES):
            try:
                return ast.parse(source, file, mode, feature_version=version)
            except SystemError:
                continue  # a library parses in another thread, and does not ask for the lock
        return ast.parse(source, file, mode, feature_version=version)


class SourceFault(NamedTuple):
    """Why a source is no program: the error's name, its line if it has one, and a sentence."""

    error: str
    line: int | None
    words: str

    @property
    def syntax(self) -> bool:
        """Whether it is a syntax error (otherwise the parser gave up on it)."""
        return self.error == "SyntaxError" or self.error in _INDENTATION


UNREADABLE: Final = (ValueError, RecursionError, MemoryError, OverflowError, SystemError)
"""What a parser raises, besides a SyntaxError, for a text that it gives up on."""
DEEPEST: Final = 800
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
    """Return the tree of a program of Python 3.11, or what keeps a source from being one; with ``compiles`` it
    must compile as well. Neither the verdict nor a word of it depends on the interpreter."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        return _fault(text, "SyntaxError", text.count("\n", 0, text.index("\0")) + 1, "a null character")
    seen = _scan(text)
    try:
        with PARSING, warnings.catch_warnings():  # the filters of warnings belong to all threads
            warnings.simplefilter("ignore")
            try:
                tree: ast.Module = _parsed(seen.plain, "strategy.py", "exec", _LANGUAGE)
            except SyntaxError as error:
                what = seen.hints.get(error.lineno or 0, "this cannot be read as Python")
                return _fault(text, type(error).__name__, error.lineno, what)
            for line, prefix, body, quote in seen.formatted:
                if not _holds_fields(prefix, body, quote):
                    return _fault(
                        text, "SyntaxError", line, "an f-string that Python 3.11 cannot read begins here"
                    )
            tree = _parsed(text, "strategy.py", "exec", _LANGUAGE) if seen.formatted else tree
            if is_too_deep(tree):
                return _gave_up("RecursionError")
            if compiles:
                compile(tree, "strategy.py", "exec", dont_inherit=True)
            return tree
    except SyntaxError as error:
        return _fault(text, type(error).__name__, error.lineno, "this cannot stand here")
    except (RecursionError, MemoryError):  # which of them is raised depends on the interpreter
        return _gave_up("RecursionError")
    except UNREADABLE as error:
        return _gave_up(type(error).__name__)


def is_too_deep(tree: ast.AST) -> bool:
    """Return whether a tree has more than ``DEEPEST`` levels, without recursion of its own."""
    level = [tree]
    for _ in range(DEEPEST):
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


class _Scanned(NamedTuple):
    """A source as Python 3.11 cuts it up. ``plain`` has plain strings for f-strings, ``formatted`` the f-strings
    (line, prefix, body, quote), ``hints`` what is wrong with brackets and quotes in which line."""

    plain: str
    formatted: list[tuple[int, str, str, str]]
    hints: dict[int, str]


_PIECE: Final = re.compile(
    r"""\#[^\n]*|(?P<prefix>(?<!\w)(?:[rR][bBfF]?|[bBfF][rR]?|[uU]))?(?P<quote>\"\"\"|'''|\"|')|[()\[\]{}]"""
)
_REST: Final = {
    '"': re.compile(r'(?:[^"\\\n]++|\\.)*+"', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]++|\\.)*+'", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+"""', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]++|\\.|'(?!''))*+'''", re.DOTALL),
}
_CLOSES: Final = {")": "(", "]": "[", "}": "{"}


def _scan(text: str) -> _Scanned:
    parts: list[str] = []
    formatted: list[tuple[int, str, str, str]] = []
    hints: dict[int, str] = {}
    brackets: list[tuple[str, int]] = []
    at, line, counted = 0, 1, 0
    while piece := _PIECE.search(text, at):
        line, counted = line + text.count("\n", counted, piece.start()), piece.start()
        parts.append(text[at : piece.start()])
        at, found = piece.end(), piece.group()
        if quote := piece["quote"]:
            prefix = piece["prefix"] or ""
            in_fields = "f" in prefix.lower()
            parts.append(f" {'r' * (len(prefix) - 1)}{quote}" if in_fields else found)
            rest = _REST[quote].match(text, at)
            if rest is None:  # nothing behind it matters
                hints.setdefault(line, "a string that begins here is not closed")
                end = text.find("\n", at)
                return _Scanned(
                    "".join(parts) + text[at : end if 0 <= end and len(quote) == 1 else None], [], hints
                )
            at = rest.end()
            parts.append(rest.group())
            if in_fields:
                formatted.append((line, prefix, rest.group()[: -len(quote)], quote))
            continue
        parts.append(found)
        if found in _CLOSES.values():
            brackets.append((found, line))
        elif found in _CLOSES and not brackets:
            hints.setdefault(line, f"'{found}' closes nothing")
        elif found in _CLOSES:
            opened, since = brackets.pop()
            if opened != _CLOSES[found]:
                hints.setdefault(line, f"'{found}' does not close the '{opened}' of line {since}")
    for opened, since in brackets:
        hints.setdefault(since, f"'{opened}' is not closed")
    parts.append(text[at:])
    return _Scanned("".join(parts), formatted, hints)


def _holds_fields(prefix: str, body: str, quote: str) -> bool:
    """Return whether the fields of an f-string are ones of 3.11; raises what :func:`ast.parse` raises."""
    try:
        _parsed(f"({prefix}{quote}{body}{quote})", "strategy.py", "eval", _LANGUAGE)
    except SyntaxError:
        return False
    raw = len(prefix) > 1
    return _fields_end(body.replace("\\N{", "{") if raw else body, 0, 0) is not None


_SIGN: Final = re.compile(r"\\(?:\\|N\{[^}]*\})|\{\{|\}\}|[^{}]")
"""One sign of an f-string's text, outside its fields."""


def _fields_end(body: str, at: int, depth: int) -> int | None:
    """Return where the text of an f-string (or of a field's format, ``depth`` 1 and more) ends, None where a field
    in it is none of 3.11: with a backslash or a comment, or in a format inside a format."""
    while at < len(body):
        if depth and body[at] == "}":
            return at
        sign = _SIGN.match(body, at)
        if sign is not None and not (depth and body[at] == "{"):
            at = sign.end()
            continue
        end = _field_end(body, at + 1, depth) if depth < 2 and body[at] == "{" else None
        if end is None:
            return None
        at = end + 1
    return at


def _field_end(body: str, at: int, depth: int) -> int | None:
    nested, quote = 0, ""
    while at < len(body):
        sign = body[at]
        if sign == "\\":
            return None
        if quote:
            if body.startswith(quote, at):
                at, quote = at + len(quote) - 1, ""
        elif sign in "'\"":
            quote = sign * 3 if body.startswith(sign * 3, at) else sign
            at += len(quote) - 1
        elif sign == "#":
            return None
        elif sign in "([{":
            nested += 1
        elif nested and sign in ")]}":
            nested -= 1
        elif sign == "}":
            return at
        elif sign == ":" and not nested:
            return _fields_end(body, at + 1, depth + 1)
        at += 1
    return None
