"""Foreign text inside a prompt: marked so that it cannot pass for anything else.

The marks hold a hash of the text between them, and every line of it starts with its number. To end the quotation
early, a text would have to hold its own SHA-256, and a line without a number; it can have neither. There is
nothing random in it, so that the same program is asked about with the same words.
"""

from __future__ import annotations

import ast

from tradeassay.code.extraction import parses
from tradeassay.core.hashing import sha256_bytes


def quote(kind: str, text: str) -> str:
    """Return ``text`` between marks, line by line, control and invisible characters spelt out."""
    mark = quote_mark(kind, text)
    lines = [f"{number:04d}| {_visible(line)}" for number, line in enumerate(text.splitlines(), start=1)]
    return "\n".join([f"<<<{mark}", *lines, f"{mark}>>>"])


def quote_mark(kind: str, text: str) -> str:
    """Return the mark around a quotation, e.g. ``PROGRAM-5f0c...``: 32 hex digits of the text's own hash."""
    return f"{kind.upper()}-{sha256_bytes(text.encode('utf-8', 'surrogatepass'))[:32]}"


def without_remarks(source: str) -> str:
    """Return a program without comments and docstrings: what runs, and no words to its reader.

    A source that is no Python comes back as it is.
    """
    tree = parses(source)
    if tree is None:
        return source
    for node in ast.walk(tree):
        for part in ("body", "orelse", "finalbody"):
            statements = getattr(node, part, None)
            if isinstance(statements, list) and statements:
                kept = [statement for statement in statements if not _is_remark(statement)]
                setattr(node, part, kept or ([ast.Pass()] if part == "body" else []))
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except RecursionError:
        return source


def _is_remark(statement: object) -> bool:
    """Return whether a statement does nothing: an expression of constants, which only a reader can mean."""
    return isinstance(statement, ast.Expr) and all(
        isinstance(node, ast.Constant | ast.JoinedStr | ast.Tuple | ast.List | ast.expr_context)
        for node in ast.walk(statement.value)
    )


def _visible(line: str) -> str:
    return "".join(
        letter if letter.isprintable() or letter == "\t" else f"\\u{{{ord(letter):x}}}" for letter in line
    )
