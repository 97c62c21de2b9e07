"""Where numbers stand in a text that holds JSON, so that a mask never turns a number into a word."""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

_FENCE = re.compile(r"^[ \t]*```[ \t]*json[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING = re.compile(r"\s*(?:\{|\[\s*[\[{\"])")


class JsonSpans:
    """The JSON parts of a text: fenced ``json`` blocks, or all of it when it is an object or an array of such.

    What only looks like JSON is none: in it, digits are no numbers that anybody parses.
    """

    def __init__(self, text: str) -> None:
        regions = [(0, len(text))] if _OPENING.match(text) and _is_json(text) else []
        if not regions and "```" in text:
            regions = [found.span(1) for found in _FENCE.finditer(text) if _is_json(found[1])]
        self._regions = regions
        self._literals = [found.span() for start, end in regions for found in _LITERAL.finditer(text, start, end)]
        self._starts = [start for start, _ in self._literals]

    def bare(self, at: int) -> bool:
        """Tell whether a position lies in JSON but not inside a string of it."""
        if not any(start <= at < end for start, end in self._regions):
            return False
        before = bisect_right(self._starts, at) - 1
        return before < 0 or at >= self._literals[before][1]


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True
