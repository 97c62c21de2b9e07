"""Finding in a reason what the observation did not contain: brands, sectors, dates and events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from tradeassay.core.instruments import Instrument
from tradeassay.masking import Truth, find_leaks
from tradeassay.masking.days import DateHit
from tradeassay.masking.lexicon import CHINESE, chinese_terms
from tradeassay.masking.scrubber import Scrubber, Words

Category = Literal["brand", "sector", "date", "event"]
CATEGORIES: tuple[Category, ...] = ("brand", "sector", "date", "event")
_YEARS = range(1990, 2101)
_EPOCH = date(1970, 1, 1)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR = re.compile(r"(?:19|20)\d{2}")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sectors: tuple[str, ...]
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """Something named in a reason."""

    category: Category
    word: str


class Finder:
    """Knows the instruments of a market, and the words of sectors and events."""

    def __init__(self, instruments: Sequence[Instrument]) -> None:
        own = [one.name for one in instruments if one.kind != "index" and one.name not in ("", one.symbol)]
        self._truth = Truth(
            symbols=tuple(one.symbol for one in instruments),
            names=tuple(name for name in own if not CHINESE.search(name)),
            chinese=tuple(dict.fromkeys(spelling for spelling, _ in chinese_terms(instruments))),
        )
        lexicon = _lexicon()
        sectors = {one.sector for one in instruments if one.sector}
        self._sectors = _pattern([*lexicon.sectors, *sectors])
        self._events = _pattern(lexicon.events)

    def unseen(self, reason: str, observed: str, session: str) -> tuple[Named, ...]:
        """Return what a reason names that ``observed`` (lower case) does not contain, each once.

        A date counts as contained when its day, or for a month or a quarter its year and month, can be read
        off the observation. ``session`` is the true ISO day.
        """
        found = [Named("brand", leak.truth) for leak in find_leaks(reason, self._truth)]
        found += [Named("sector", hit[0]) for hit in self._sectors.finditer(reason)]
        found += [Named("event", hit[0]) for hit in self._events.finditer(reason)]
        unseen = [one for one in found if one.word.lower() not in observed]
        unseen += [Named("date", text) for text, hit in _dates(reason, session) if not _known(text, hit, observed)]
        return tuple(dict.fromkeys(unseen))


@cache
def _lexicon() -> _File:
    return msgspec.toml.decode((files(__package__) / "words.toml").read_bytes(), type=_File)


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    plain, chinese = [], []
    for word in dict.fromkeys(words):
        if CHINESE.search(word):
            chinese.append(re.escape(word))
        else:
            plain.append(re.escape(word.removesuffix("*")) + (r"\w*" if word.endswith("*") else ""))
    forms = [rf"(?<!\w)(?:{'|'.join(sorted(plain, key=len, reverse=True))})(?!\w)"] if plain else []
    return re.compile("|".join([*forms, *chinese]), re.IGNORECASE)


def _dates(text: str, session: str) -> Iterator[tuple[str, DateHit]]:
    hits: list[DateHit] = []

    def note(hit: DateHit) -> str:
        hits.append(hit)
        return ""

    today = (date.fromisoformat(session) - _EPOCH).days
    Scrubber(None, dates=True, bare=True, years=_YEARS, today=today).scrub(text, Words(str, note))
    return ((text[hit.start : hit.end], hit) for hit in hits)


def _known(text: str, hit: DateHit, observed: str) -> bool:
    if text.lower() in observed:
        return True
    if hit.day is not None:
        return (_EPOCH + timedelta(days=hit.day)).isoformat() in observed
    year = _YEAR.search(text)
    month = next((k for k, name in enumerate(_MONTHS, start=1) if name in text.lower()), None)
    if month is not None:
        years = year[0] if year else _YEAR.pattern
        return re.search(rf"{years}-{month:02d}-\d\d", observed) is not None
    return year is not None and re.search(rf"(?<!\d){year[0]}(?!\d)", observed) is not None
