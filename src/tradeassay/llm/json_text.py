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
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SLIPS = (
    (re.compile(r"<[^<>\n]*>"), "a < > of the form stands in it where a value belongs"),
    (re.compile(r",\s*[}\]]"), "there is a comma before a closing bracket"),
    (re.compile(r"'"), "names and texts need double quotation marks"),
    (re.compile(r"//|#|/\*"), "there is a comment in it"),
    (re.compile(r"\}\s*\S"), "something follows its last bracket, or a comma is missing"),
)
"""Common slips, looked for outside of quoted texts."""


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
    """Yield each beginning with the first end behind it, left to right, in time that grows with the text. One
    pattern for both would look for the end of every beginning again, up to the end of the text: minutes for an
    answer that loops."""
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


def unreadable(text: str) -> str:
    """Return in words why a text holds no JSON object that can be read. Nothing of the text is repeated."""
    start = text.find("{")
    if start < 0:
        return "it is empty" if not text.strip() else "there is no { in it"
    open_ones: list[str] = []
    if _closing(text, start, open_ones) is None and open_ones:
        if open_ones[-1] == '"':
            return "a quotation mark is opened and not closed"
        missing = "".join(reversed(open_ones))
        return f"{missing} is missing at its end: not every bracket that is opened is closed"
    # In words of ours: those of a JSON library change with its version, and a recorded question would too.
    bare = _QUOTED.sub('""', text[start:])
    return next((said for sign, said in _SLIPS if sign.search(bare)), "it breaks the rules of JSON")


def _closing(text: str, start: int, left_open: list[str] | None = None) -> int | None:
    """Return where the bracket at ``start`` is closed, or None: ``left_open`` then says what is not."""
    stack = [] if left_open is None else left_open
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
                stack.clear()
                return None
            if not stack:
                return at
        at += 1
    if inside:
        stack.append('"')
    return None
