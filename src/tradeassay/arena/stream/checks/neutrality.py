"""A published text reports: no loaded words, no superlatives, no advice to trade, no shouting."""

from __future__ import annotations

import re
from functools import lru_cache

from tradeassay.arena.stream.checks.vocabulary import pattern, vocabulary

_SHOUT = re.compile(r"!|\b[A-Z]{4,}(?: [A-Z]{3,})+\b")
_QUESTION_TO_READER = re.compile(r"\b(?:are|will|should|would|can) you\b|你(?:还|准备|会|该)", re.I)


def issues(text: str) -> tuple[str, ...]:
    """Return what is not neutral in a text, in order of the kinds."""
    found = [f"{kind}: '{match[0]}'" for kind, words in _patterns().items() for match in words.finditer(text)]
    found += [f"shouting: '{match[0]}'" for match in _SHOUT.finditer(text)]
    found += [f"speaks to the reader: '{match[0]}'" for match in _QUESTION_TO_READER.finditer(text)]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=1)
def _patterns() -> dict[str, re.Pattern[str]]:
    words = vocabulary()
    return {
        "loaded word": pattern(words.loaded),
        "advice to trade": pattern(words.advice),
        "superlative": pattern(words.superlatives),
    }
