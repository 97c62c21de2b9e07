"""JSON inside a text: fenced blocks, and an answer that is JSON from its first character to its last.

A fence ends only at the start of a line. A line break inside a JSON string is written ``\\n``, so three
backticks in a quoted text (news, an agent's own reasons) can never end the block they are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from tradeassay.core.errors import UNDECODABLE

_OPEN = re.compile(r"^[ \t]*+```[ \t]*+([\w.+-]*+)[^\n`]*+\n", re.MULTILINE)
FENCE_END = re.compile(r"^[ \t]*+```[ \t]*+$", re.MULTILINE)
_BRACES = {"{": "}", "[": "]"}


class Fenced(msgspec.Struct, frozen=True, kw_only=True):
    """One fenced block: what follows the opening fence on its line, and the text between the fences."""

    label: str
    text: str


def fenced_blocks(text: str) -> tuple[Fenced, ...]:
    """Return the fenced blocks of a text in order. A fence that is never closed is not a block."""
    if "```" not in text:
        return ()
    return tuple(
        Fenced(label=opened[1].lower(), text=text[opened.end() : closed.start()].strip())
        for opened, closed in pairs(text, _OPEN, FENCE_END)
    )


def pairs(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield each beginning with the first end behind it, left to right, in time that grows with the text.

    One pattern for both would look for the end of every beginning again, up to the end of the text: minutes for an
    answer that loops.
    """
    at = 0
    while (opened := opening.search(text, at)) and (closed := closing.search(text, opened.end())):
        yield opened, closed
        at = closed.end()


def parse_object(text: str) -> dict[str, object] | None:
    """Return the JSON object that ``text`` is, or None when it is not one (numbers stay as JSON has them)."""
    body = text.strip()
    if not body.startswith("{") or not body.endswith("}"):
        return None
    try:
        value = msgspec.json.decode(body)
    except UNDECODABLE:
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
