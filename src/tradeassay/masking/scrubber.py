"""Replaces names and dates in free text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from html import unescape
from typing import Literal, NamedTuple
from urllib.parse import unquote

from tradeassay.data.dates import DateHit, DatesWanted, find_dates
from tradeassay.masking.folding import FOLD
from tradeassay.masking.lexicon import WORD, Hit, JsonSpans, Lexicon

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_BLANKS = re.compile(r"\\[nrtbf/]")
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}
Depth = Literal["plain", "thorough"]
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff\u202a-\u202e]")
_CODES = re.compile(r"&(?:#\d{1,6}|#[xX][0-9a-fA-F]{1,5}|[a-zA-Z]{2,8});|(?:%[0-9a-fA-F]{2})+")
_MARKS = re.compile(r"(?<=[^\W_])(?:\*{1,3}|__|~~|</?[a-z]{1,6}(?: [^<>]{0,80})?/?>|-\r?\n)+(?=[^\W_])")


class Words(NamedTuple):
    """What is written in place of a name and of a date."""

    name: Callable[[str], str]
    date: Callable[[DateHit], str]


class Scrubber:
    """One mask's view of free text at one moment.

    ``lexicon`` is None where names are shown, ``dates`` is False where dates are. ``years`` are those that are
    replaced when they stand alone (with ``bare``, and in thorough scrubbing). ``today`` (days since
    1970-01-01) settles dates without a year.
    """

    def __init__(
        self,
        lexicon: Lexicon | None,
        *,
        dates: bool,
        bare: bool,
        years: range,
        today: int,
        all_spellings: bool = True,
    ) -> None:
        self._all_spellings = all_spellings
        self._lexicon = lexicon
        self._dates = dates
        self._bare = years if bare else None
        self._years = years
        self._today = today

    def scrub(self, text: str, words: Words, depth: Depth = "plain") -> str:
        """Return the text with every name and date that must be hidden replaced."""
        if self._all_spellings and not text.isascii():
            # Letters that nobody sees would split a name, and accents that stand apart; what looks like a letter
            # is the letter.
            text = unicodedata.normalize("NFC", _UNSEEN.sub("", text))
        if "\\" in text:
            # A letter written as its code would hide a name from every search; a line break written as backslash
            # and n would stick to the word after it.
            text = _ESCAPED.sub(_letter, text)
        read = self._read(text)
        hits = self._named(read)
        if self._all_spellings and self._lexicon is not None and (opened := _opened(text)) != text:
            # The codes of a page and marks inside a word stay unless they hide a name.
            other = self._read(opened)
            more = self._named(other)
            if _length(more) > _length(hits):
                text, read, hits = opened, other, more
        cuts: list[tuple[int, int, str]] = []
        if self._dates:
            thorough = depth == "thorough"
            bare = self._years if thorough else self._bare
            wanted = DatesWanted(bare, thorough, self._all_spellings)
            number = lambda at: read.spans().bare(at)  # noqa: E731
            found = find_dates(read.probe, read.low, read.tokens, number, self._today, wanted)
            cuts = [(hit.start, hit.end, words.date(hit)) for hit in found]
        cuts += [(hit.start, hit.end, words.name(hit.symbol)) for hit in hits]
        return _replaced(text, cuts) if cuts else text

    def _read(self, text: str) -> _Read:
        probe = _BLANKS.sub("  ", text) if "\\" in text else text
        if self._all_spellings and not probe.isascii():
            probe = probe.translate(FOLD)
        low = lowered(probe)
        tokens = frozenset(low.translate(_SPACES).split() if low.isascii() else WORD.findall(low))
        return _Read(probe, low, tokens, cache(lambda: JsonSpans(text)))

    def _named(self, read: _Read) -> list[Hit]:
        lexicon = self._lexicon
        if lexicon is None or not (lexicon.may_hold(read.tokens) or not read.low.isascii()):
            return []
        return lexicon.find(*read)


class _Read(NamedTuple):
    """A text as names and dates are looked for in it: every sign where it was."""

    probe: str
    low: str
    tokens: frozenset[str]
    spans: Callable[[], JsonSpans]


def _opened(text: str) -> str:
    """Return a text with the codes of pages and addresses read, and without marks inside words."""
    if "&" in text or "%" in text:
        text = _CODES.sub(lambda found: unescape(found[0]) if found[0][0] == "&" else unquote(found[0]), text)
    return _MARKS.sub("", text) if "*" in text or "<" in text or "~~" in text or "-\n" in text else text


def _length(hits: list[Hit]) -> int:
    return sum(hit.end - hit.start for hit in hits)


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


def _replaced(text: str, cuts: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, word in sorted(cuts):
        if end <= at:
            continue
        parts += (text[at:start], word) if start >= at else (" ", word)
        at = end
    parts.append(text[at:])
    return "".join(parts)
