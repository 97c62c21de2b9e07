"""Replaces names and dates in free text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from html import unescape
from typing import Literal, NamedTuple

from tradeassay.data.dates import DateHit, DatesWanted, find_dates
from tradeassay.masking.lexicon import FOLD, WORD, Hit, JsonSpans, Lexicon

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_BLANKS = re.compile(r"\\[nrtbf/]")
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}
Depth = Literal["plain", "thorough"]
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff\u202a-\u202e]")
_ENTITIES = re.compile(r"&(?:#\d{1,6}|#[xX][0-9a-fA-F]{1,5}|[a-zA-Z]{2,8});")


class Words(NamedTuple):
    """What is written in place of a name and of a date."""

    name: Callable[[str], str]
    date: Callable[[DateHit], str]


class _Read(NamedTuple):
    """A text as names and dates are looked for in it: every sign where it was."""

    probe: str
    low: str
    tokens: frozenset[str]
    is_number: Callable[[int], bool]


class Scrubber:
    """One mask's view of free text at one moment.

    ``lexicon`` is None where names are shown, ``dates`` is False where dates are. ``years`` are those that are
    replaced when they stand alone (with ``bare``, and in thorough scrubbing). ``today`` (days since
    1970-01-01) settles dates without a year.
    """

    def __init__(self, lexicon: Lexicon | None, *, dates: bool, bare: bool, years: range, today: int) -> None:
        self._lexicon = lexicon
        self._dates = dates
        self._bare = years if bare else None
        self._years = years
        self._today = today

    def scrub(self, text: str, words: Words, depth: Depth = "plain") -> str:
        """Return the text with every name and date that must be hidden replaced."""
        if not text.isascii():
            # Letters that nobody sees would split a name, and so would accents that stand apart.
            text = unicodedata.normalize("NFC", _UNSEEN.sub("", text))
        if "\\" in text:
            # A letter written as its code would hide a name from every search; a line break written as backslash
            # and n would stick to the word after it.
            text = _ESCAPED.sub(_letter, text)
        read = _read(text)
        hits = self._named(read)
        if "&" in text and self._lexicon is not None:
            # The codes of a page (AT&amp;T) stay unless they hide a name.
            opened = _ENTITIES.sub(lambda found: unescape(found[0]), text)
            other = _read(opened)
            more = self._named(other)
            if sum(hit.end - hit.start for hit in more) > sum(hit.end - hit.start for hit in hits):
                text, read, hits = opened, other, more
        cuts = [(hit.start, hit.end, words.name(hit.symbol)) for hit in hits]
        if self._dates:
            thorough = depth == "thorough"
            wanted = DatesWanted(self._years if thorough else self._bare, thorough)
            cuts += [(hit.start, hit.end, words.date(hit)) for hit in find_dates(*read, self._today, wanted)]
        parts: list[str] = []
        at = 0
        for start, end, word in sorted(cuts):
            if end > at:
                parts += (text[at:start], word) if start >= at else (" ", word)
                at = end
        return "".join((*parts, text[at:]))

    def _named(self, read: _Read) -> list[Hit]:
        lexicon = self._lexicon
        if lexicon is None or not (lexicon.may_hold(read.tokens) or not read.low.isascii()):
            return []
        return lexicon.find(*read)


def _read(text: str) -> _Read:
    probe = _BLANKS.sub("  ", text) if "\\" in text else text
    if not probe.isascii():
        probe = probe.translate(FOLD)
    low = lowered(probe)
    tokens = frozenset(low.translate(_SPACES).split() if low.isascii() else WORD.findall(low))
    spans = cache(lambda: JsonSpans(text))
    return _Read(probe, low, tokens, lambda at: spans().bare(at))


def lowered(text: str) -> str:
    """Return a text in lower case with every letter where it was (a few letters have a longer lower case)."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)


def _letter(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    plain = code >= 0x20 and code not in (0x22, 0x5C) and not 0xD800 <= code <= 0xDFFF
    return chr(code) if plain else found[0]
