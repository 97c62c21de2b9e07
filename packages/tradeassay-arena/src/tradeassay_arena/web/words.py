"""Provide the texts of the pages, in English and Chinese.

Texts from agents and models are displayed unchanged.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
NAMES: dict[Language, str] = {"en": "English", "zh": "中文"}


class PageWords:
    """The catalogue of one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._said = catalogue(language)

    def __call__(self, key: str, **values: object) -> str:
        """Return a text filled with values. Raises :class:`KeyError` for an unknown key."""
        text = self._said[key]
        return text.format(**values) if values else text

    def maybe(self, key: str, otherwise: str) -> str:
        return self._said.get(key, otherwise)

    def kind(self, architecture: str) -> str:
        """Return an architecture's name. An architecture of another package keeps its own name."""
        return self.maybe(f"architecture.{architecture}", architecture)

    def some(self, *groups: str) -> dict[str, str]:
        """Return the texts of some groups with their placeholders, for scripts that fill them."""
        return {key: text for key, text in self._said.items() if key.partition(".")[0] in groups}

    def reason(self, text: str | None) -> str:
        """Translate a sentence of the library, clause by clause.

        Unknown clauses stay in English.
        """
        if not text or self.language == "en":
            return text or ""
        whole = self._clause(text)
        if whole is not None:
            return whole
        parts = [(one, self._clause(one)) for one in text.split("; ")]
        if any(said is not None for _, said in parts):
            return "；".join(said or one for one, said in parts)
        return text

    def _clause(self, text: str) -> str | None:
        for pattern, key in _patterns():
            found = pattern.fullmatch(text)
            if found:
                values = found.groupdict()
                if "why" in values:  # a nested reason
                    values["why"] = self.reason(values["why"])
                return self._said[key].format(**values)
        return None


words = cache(PageWords)


@cache
def catalogue(language: Language) -> dict[str, str]:
    """Return the texts of a language by ``group.key``."""
    text = (
        resources.files(__package__)
        .joinpath("words", f"{language}.toml")
        .read_text(encoding="utf-8")
    )
    texts: dict[str, str] = {}
    for group, members in tomllib.loads(text).items():
        for key, value in members.items():
            texts[f"{group}.{key}"] = value
    return texts


_ANY = ".+?"
_CLAUSE = "(?:(?!; ).)+?"
"""Patterns for a value: any text, or any text within one clause."""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the library's sentences as patterns. ``{n}`` in the English catalogue matches any
    value.
    """
    found = []
    for key, text in catalogue("en").items():
        if key.startswith("reason."):
            parts = re.split(r"\{(\w+)\}", text)
            pattern = ""
            for number, part in enumerate(parts):
                value = _ANY if part == "why" else _CLAUSE
                pattern += re.escape(part) if number % 2 == 0 else f"(?P<{part}>{value})"
            found.append((re.compile(pattern), key))
    # Patterns that begin with fixed words come first, because a leading value could match too much.
    return tuple(sorted(found, key=lambda one: one[0].pattern.startswith("(")))
