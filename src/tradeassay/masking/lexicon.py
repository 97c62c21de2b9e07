"""Finds the names of companies in a text, in a time that does not depend on the number of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple

from tradeassay.core.instruments import Instrument
from tradeassay.masking.json_spans import JsonSpans
from tradeassay.masking.spelling import WORD, Term, chinese_terms, name_terms, symbol_terms

_BEFORE_TICKER = re.compile(
    r"(?:\b(?:NYSE|NASDAQ|Nasdaq|AMEX|ARCA|BATS|CBOE|LSE|TSX|OTC|SSE|SZSE|SHA|SHE|[Tt]icker|[Ss]ymbol)"
    r"(?:\s+(?:Arca|American))?\s*[:=]?\s*[\"'“‘]?|[$#])$"
)
_AFTER_TICKER = re.compile(r"\.(?:N|O|US|OQ|K|L)\b|[ :](?:US|UN|UW) (?:[Ee]quity|EQUITY)\b")
_MARKET_BEHIND = re.compile(r"\.(?:sh|sz|bj|ss|xshg|xshe)(?![a-z0-9])")
_MARKET_BEFORE = re.compile(r"(?<![a-z0-9])(?:sh|sz|bj|ss|xshg|xshe)[.:]$")
_GAP = re.compile(r"[^A-Za-z0-9À-ɏ]{1,3}")
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

    def find(self, text: str, low: str, words: Set[str], spans: Callable[[], JsonSpans]) -> list[Hit]:
        """Return the places that name an instrument, left to right, none inside another.

        ``low`` is the text in lower case, letter by letter; ``words`` are its tokens. Only tokens that begin a
        name are looked up, so that a text without names costs next to nothing. Escapes of JSON strings (``\\n``)
        must have been blanked out.
        """
        found = [
            hit for word in self.first_words.intersection(words) for hit in self._places(text, low, word, spans)
        ]
        if self._chinese_pattern is not None and not text.isascii():
            found += [
                Hit(*match.span(), self._chinese[match[0]]) for match in self._chinese_pattern.finditer(text)
            ]
        hits: list[Hit] = []
        at = 0
        for hit in sorted(found):
            if hit.start >= at:
                hits.append(hit)
                at = hit.end
        return hits

    def _places(self, text: str, low: str, word: str, spans: Callable[[], JsonSpans]) -> Iterator[Hit]:
        """Yield where a name begins with ``word``, each time the longest name that fits."""
        at = low.find(word)
        while at >= 0:
            end = at + len(word)
            if _is_edge(low, at - 1) and _is_edge(low, end) and low[at - 6 : at] != "asset_":
                for term in self._by_first[word]:
                    stop = _end_of(low, end, term.tokens)
                    if stop and _written(term, text[at:end], text, at, stop, spans):
                        yield Hit(*_with_market(low, at, stop), term.symbol)
                        break
            at = low.find(word, end)


def _is_edge(low: str, at: int) -> bool:
    return not 0 <= at < len(low) or WORD.match(low, at) is None


def _with_market(low: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of a six-digit code together with the market written before or behind it."""
    if end - start != 6 or not low[start:end].isdigit():
        return start, end
    behind = _MARKET_BEHIND.match(low, end)
    before = _MARKET_BEFORE.search(low, max(0, start - 6), start)
    return before.start() if before else start, behind.end() if behind else end


def _end_of(low: str, at: int, tokens: tuple[str, ...]) -> int | None:
    """Return where a name ends whose first token ends at ``at``; None when other words follow."""
    for token in tokens[1:]:
        gap = _GAP.match(low, at)
        if gap is None or not low.startswith(token, gap.end()):
            return None
        at = gap.end() + len(token)
        if not _is_edge(low, at):
            return None
    return at


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
