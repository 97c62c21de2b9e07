"""The words of the news, read from ``wording.toml`` beside this file."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import msgspec

SOURCES = ("Company Filings", "Harbour Wire", "Meridian News", "The Daily Ledger", "Streetside Talk")
SOURCE_PARTS: dict[str, tuple[int, ...]] = {
    "informative": (40, 32, 16, 8, 4),
    "noise": (18, 22, 20, 22, 18),
    "rumour": (4, 20, 16, 20, 40),
    "duplicate": (10, 30, 26, 22, 12),
}
"""How often each source carries each kind, in hundredths: every source carries every kind."""
REPEATS = ("Recap: {title}", "{title} - what we know", "In case you missed it: {title}", "{title}")


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """One wording. ``group`` says of whom it can be told: a company, a coin, an index, or any of them."""

    group: str
    theme: str
    tone: int
    title: str
    body: str


class _File(msgspec.Struct, frozen=True):
    texts: tuple[Text, ...]


@lru_cache(maxsize=1)
def _all() -> dict[tuple[str, str, int], tuple[Text, ...]]:
    import tomllib

    content = files("tradeassay.data.synthetic").joinpath("wording.toml").read_text(encoding="utf-8")
    stored = msgspec.convert(tomllib.loads(content), _File)
    found: dict[tuple[str, str, int], tuple[Text, ...]] = {}
    for text in stored.texts:
        key = (text.group, text.theme, text.tone)
        found[key] = (*found.get(key, ()), text)
    return found


def choices(group: str, theme: str, tone: int) -> tuple[Text, ...]:
    """Return the wordings for a theme and a tone: those of the group, else those that fit anybody."""
    texts = _all()
    return texts.get((group, theme, tone)) or texts["any", theme, tone]
