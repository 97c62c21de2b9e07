"""The word lists of the checks, read from ``vocabulary.toml`` beside this file."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files

import msgspec

_HAN = re.compile(r"[\u3400-\u9fff]")


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words by what they do: ``quantities`` by name, directions, and what a neutral text does without."""

    up: tuple[str, ...]
    down: tuple[str, ...]
    quantities: dict[str, tuple[str, ...]]
    bases: dict[str, tuple[str, ...]]
    loaded: tuple[str, ...]
    advice: tuple[str, ...]
    superlatives: tuple[str, ...]
    titles: tuple[str, ...]
    common: tuple[str, ...]
    same: tuple[tuple[str, ...], ...]
    organisations: tuple[str, ...]
    surnames: str
    speakers: tuple[str, ...]
    denials: tuple[str, ...]
    full_year: tuple[str, ...]


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """Return the word lists."""
    content = (files(__package__) / "vocabulary.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(content), Vocabulary)


def pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of words and phrases; English ones whole, Chinese ones anywhere. Longer ones go first.

    An English entry may be a regular expression of its own.
    """
    chinese = sorted((w for w in words if _HAN.search(w)), key=len, reverse=True)
    english = sorted((w for w in words if not _HAN.search(w)), key=len, reverse=True)
    parts = []
    if english:
        parts.append(rf"(?<![A-Za-z])(?:{'|'.join(english)})(?![A-Za-z])")
    if chinese:
        parts.append("|".join(chinese))
    return re.compile("|".join(parts), re.I)
