"""JSON inside a text: fenced blocks, and an answer that is JSON from its first character to its last.

A fence ends only at the start of a line. A line break inside a JSON string is written ``\\n``, so three
backticks in a quoted text (news, an agent's own reasons) can never end the block they are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w.+-]*)[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_BRACES = {"{": "}", "[": "]"}


class Fenced(msgspec.Struct, frozen=True, kw_only=True):
    """One fenced block: what follows the opening fence on its line, and the text between the fences."""

    label: str
    text: str


def fenced_blocks(text: str) -> tuple[Fenced, ...]:
    """Return the fenced blocks of a text in order. A fence that is never closed is not a block."""
    if "```" not in text:
        return ()
    return tuple(Fenced(label=found[1].lower(), text=found[2].strip()) for found in _FENCE.finditer(text))


def parse_object(text: str) -> dict[str, object] | None:
    """Return the JSON object that ``text`` is, or None when it is not one (numbers stay as JSON has them)."""
    body = text.strip()
    if not body.startswith("{") or not body.endswith("}"):
        return None
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def outer_objects(text: str) -> Iterator[str]:
    """Yield the outermost ``{...}`` spans of a text, braces in JSON strings not counted, left to right."""
    start = text.find("{")
    while start >= 0:
        end = _closing(text, start)
        if end is None:
            return
        yield text[start : end + 1]
        start = text.find("{", end + 1)


def _closing(text: str, start: int) -> int | None:
    stack: list[str] = []
    inside = False
    at = start
    while at < len(text):
        char = text[at]
        if inside:
            if char == "\\":
                at += 1
            elif char == '"':
                inside = False
        elif char == '"':
            inside = True
        elif char in _BRACES:
            stack.append(_BRACES[char])
        elif char in "}]":
            if not stack or stack.pop() != char:
                return None
            if not stack:
                return at
        at += 1
    return None
