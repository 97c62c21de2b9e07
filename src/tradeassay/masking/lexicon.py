"""Finds the names of companies in a text: one pass over its tokens, whatever the number of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tradeassay.core.instruments import Instrument
from tradeassay.masking.json_spans import JsonSpans
from tradeassay.masking.spelling import WORD, Term, chinese_terms, name_terms, symbol_terms

_BEFORE_TICKER = re.compile(
    r"(?:\b(?:NYSE|NASDAQ|Nasdaq|AMEX|ARCA|BATS|CBOE|LSE|TSX|OTC|SSE|SZSE|SHA|SHE|[Tt]icker|[Ss]ymbol)"
    r"(?:\s+(?:Arca|American))?\s*[:=]?\s*[\"'“‘]?|[$#])$"
)
_AFTER_TICKER = re.compile(r"\.(?:N|O|US|OQ|K|L)\b|[ :](?:US|UN|UW) (?:[Ee]quity|EQUITY)\b")
_PAIRS = {"(": ")", '"': '"', "'": "'", "“": "”", "‘": "’", "[": "]", "`": "`", "（": "）", "「": "」", "『": "』"}


class Hit(NamedTuple):
    """A place in a text that names a symbol."""

    start: int
    end: int
    symbol: str


class Lexicon:
    """Every spelling of every instrument that has come into view."""

    def __init__(self, instruments: Sequence[Instrument]) -> None:
        terms: dict[tuple[str, ...], Term] = {}
        for term in (t for item in instruments for t in symbol_terms(item)):
            terms.setdefault(term.tokens, term)
        for term in name_terms(instruments):
            terms.setdefault(term.tokens, term)
        by_first: dict[str, list[Term]] = {}
        for term in terms.values():
            by_first.setdefault(term.tokens[0], []).append(term)
        self._by_first = {
            word: sorted(found, key=lambda term: -len(term.tokens)) for word, found in by_first.items()
        }
        self.first_words = frozenset(by_first)
        chinese: dict[str, str] = {}
        for spelling, symbol in chinese_terms(instruments):
            chinese.setdefault(spelling, symbol)
        self._chinese = chinese
        longest = sorted(chinese, key=len, reverse=True)
        self._chinese_pattern = re.compile("|".join(map(re.escape, longest))) if longest else None

    def find(self, text: str, spans: Callable[[], JsonSpans]) -> list[Hit]:
        """Return the places that name an instrument, left to right, none inside another.

        Escapes of JSON strings (``\\n``) must have been blanked out of ``text``.
        """
        places = [(found.start(), found.end()) for found in WORD.finditer(text)]
        words = [text[start:end] for start, end in places]
        hits: list[Hit] = []
        at = 0
        while at < len(words):
            word = words[at].lower()
            if word == "asset" and text[places[at][1] : places[at][1] + 1] == "_":
                at += 2
                continue
            used = self._match(text, places, words, at, word, spans)
            if used is None:
                at += 1
                continue
            term, count = used
            hits.append(Hit(places[at][0], places[at + count - 1][1], term.symbol))
            at += count
        return self._with_chinese(text, hits)

    def _match(
        self,
        text: str,
        places: list[tuple[int, int]],
        words: list[str],
        at: int,
        word: str,
        spans: Callable[[], JsonSpans],
    ) -> tuple[Term, int] | None:
        for term in self._by_first.get(word, ()):
            count = len(term.tokens)
            if count > 1 and not _follow(text, places, words, at, term.tokens):
                continue
            start, end = places[at][0], places[at + count - 1][1]
            if _written(term, words[at], text, start, end, spans):
                return term, count
        return None

    def _with_chinese(self, text: str, hits: list[Hit]) -> list[Hit]:
        if self._chinese_pattern is None or text.isascii():
            return hits
        found = [Hit(*m.span(), self._chinese[m[0]]) for m in self._chinese_pattern.finditer(text)]
        return sorted(hits + found) if found else hits


def _follow(text: str, places: list[tuple[int, int]], words: list[str], at: int, tokens: tuple[str, ...]) -> bool:
    if at + len(tokens) > len(words):
        return False
    for step in range(1, len(tokens)):
        if words[at + step].lower() != tokens[step]:
            return False
        if places[at + step][0] - places[at + step - 1][1] > 3:
            return False
    return True


def _written(term: Term, word: str, text: str, start: int, end: int, spans: Callable[[], JsonSpans]) -> bool:
    """Tell whether the word at a place is meant as the term and not as something else."""
    if term.case == "any":
        return not (word.isdigit() and len(term.tokens) == 1 and _is_number(text, start, end, spans))
    if term.case == "upper":
        return word.isupper()
    if term.case == "capital":
        return word[0].isupper()
    return word.isupper() and _as_ticker(text, start, end)


def _as_ticker(text: str, start: int, end: int) -> bool:
    before = text[start - 1 : start]
    if before in _PAIRS and text[end : end + 1] == _PAIRS[before]:
        return True
    return bool(_BEFORE_TICKER.search(text[max(0, start - 24) : start]) or _AFTER_TICKER.match(text, end))


def _is_number(text: str, start: int, end: int, spans: Callable[[], JsonSpans]) -> bool:
    """Tell whether digits are part of a decimal number or a number of JSON."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before[-1:] == "." and before[:1].isdigit():
        return True
    if after[:1] == "." and after[1:].isdigit():
        return True
    if before[-1:] in ("$", "¥", "€", "£") or after[:1] == "%":
        return True
    return spans().bare(start)
