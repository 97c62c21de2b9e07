"""The checks a summary passes before anybody reads it: numbers, dates, names, neutrality, language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import msgspec

from tradeassay.arena.stream.facts import Claim, DateMention, agree, claims, day_fields, find_mentions, pattern
from tradeassay.arena.stream.items import HAN, ItemCheck, Language, detect, sentences, vocabulary
from tradeassay.data.dates import MONTH_OF
from tradeassay.masking.lexicon import GENERIC, LEGAL, ORDINARY


def check_summary(
    summary: str, source: str, published: date, language: Language, known: Sequence[str] = ()
) -> tuple[ItemCheck, ...]:
    """Return the five checks of a summary against its source.

    ``published`` is the source's day, from which a date without a year is understood; ``language`` is the one
    asked for; ``known`` are names that need no source, the asset's own.
    """
    written = detect(summary)
    return (
        ItemCheck.of("numbers", _numbers(summary, source, published)),
        ItemCheck.of("dates", _dates(summary, source, published)),
        ItemCheck.of("names", _names(summary, source, known)),
        ItemCheck.of("neutrality", loaded_words(summary)),
        ItemCheck.of(
            "language", [] if written == language else [f"written in '{written}', asked for in '{language}'"]
        ),
    )


# -- numbers: the value, the unit, the direction, and what they are said of ---------------------------------------


def _numbers(summary: str, source: str, published: date) -> Iterator[str]:
    """Yield what is wrong with the numbers of a summary.

    A number is compared with all numbers of the source, so one that belongs to somebody else passes unless the
    quantity it is said of has other numbers there.
    """
    told = claims(source, published)
    units = frozenset(claim.number.unit for claim in told)
    for claim in claims(summary, published):
        same = [other for other in told if agree(claim.number, other.number, units)]
        words = claim.number.words
        # A period that the source does not know is left to the check of dates.
        known_period = claim.part is not None and any(other.part == claim.part for other in told)
        if not same:
            yield f"number '{words}' is not in the source"
        elif claim.direction and all(other.direction == -claim.direction for other in same):
            yield f"'{words}' goes the other way in the source"
        elif known_period and all(claim.other_period(other) for other in same):
            yield f"'{words}' is of another period in the source"
        elif owner := _swapped(claim, same, told):
            yield f"'{words}' is the source's {owner}, not its {claim.quantity}"


def _swapped(claim: Claim, same: Sequence[Claim], told: Sequence[Claim]) -> str | None:
    """Return whose number it is when the source gives this quantity another number of the same unit."""
    owners = {other.quantity for other in same}
    if claim.quantity is None or claim.quantity in owners or None in owners:
        return None
    for rival in told:
        pair = (rival.number, claim.number)
        alike = pair[0].unit == pair[1].unit or all(number.money or number.unit is None for number in pair)
        if rival.quantity == claim.quantity and alike:
            return "/".join(sorted(name for name in owners if name))
    return None


# -- dates: the same day in any spelling, or something less exact -------------------------------------------------


def _dates(summary: str, source: str, published: date) -> Iterator[str]:
    told = find_mentions(source, published)
    # An article that names a day means that day; the day it came out stands in only where it names none.
    own = day_fields(published)
    if any(one.month for one in told):
        del own["month"]
    if any(one.day or one.weekday is not None for one in told):
        del own["day"], own["weekday"]
    known = [*told, DateMention(**own), *_implied(told, published)]
    for one in find_mentions(summary, published):
        if not any(other.implies(one) for other in known):
            yield f"date '{one.words}' is not in the source"


def _implied(told: Sequence[DateMention], published: date) -> Iterator[DateMention]:
    """Yield what a reader would take from the source: weekdays as days, quarters as those of the likely year."""
    for one in told:
        if one.weekday is not None and one.day is None:
            for back in range(-6, 7):
                day = published - timedelta(days=back)
                if day.weekday() == one.weekday:
                    yield DateMention(**day_fields(day))
        if one.year is None and (one.quarter or one.half):
            for year in (published.year, published.year - 1):
                yield msgspec.structs.replace(one, year=year)
        if one.year is None and one.month is not None:
            yield msgspec.structs.replace(one, year=published.year)
        if one.day is not None and one.month in (3, 6, 9, 12) and one.day >= 28:
            yield DateMention(year=one.year, quarter=one.month // 3)


# -- names: in the source, word by word and in order --------------------------------------------------------------

_TOKEN = re.compile(r"(?:[A-Z]\.){2,}|[A-Za-zÀ-ɏ0-9&]+(?:['.-][A-Za-zÀ-ɏ0-9]+)*")
_NAME = re.compile(r"(?:[A-Z]\.){2,}|[A-Za-z]*[A-ZÀ-Þ][A-Za-zÀ-ɏ0-9&.'-]*")
_CALENDAR = re.compile(
    rf"(?:{'|'.join(MONTH_OF)}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|[qh][1-4]|[1-4][qh]\d*|fy\d*)\.?"
)
_COMMON = frozenset((*vocabulary()["common"], *(title.lower() for title in vocabulary()["titles"])))
_FORMS = "|".join(sorted(vocabulary()["organisations"], key=len, reverse=True))
_SPEAKERS = "|".join(vocabulary()["speakers"])
_CHINESE_NAMES = (
    # Two characters and what makes them an organisation; more would swallow the words before. 本公司, 该集团 and
    # the like name nobody.
    re.compile(rf"(?<![本该此家])(?![\u3400-\u9fff]?[本该此家各的在与和对由])[\u3400-\u9fff]{{2}}(?:{_FORMS})"),
    re.compile(rf"[{vocabulary()['surnames']}][\u3400-\u9fff]{{1,2}}(?={_SPEAKERS})"),
)
_GAP = 2
"""How many other words may stand between two words of a name in the source: a middle name, a bracketed ticker."""


def _names(summary: str, source: str, known: Sequence[str]) -> Iterator[str]:
    ground = "\n".join((source, *known))
    words = [_plain(token) for token in _TOKEN.findall(ground)]
    line = f" {' '.join(words)} "
    english = (name for name in _english_names(summary, words) if not _stands(name, line, ground))
    chinese = (name for name in _chinese_names(summary) if name not in ground)
    for name in dict.fromkeys((*english, *chinese)):
        yield f"name '{name}' is not in the source"


def names_of(text: str) -> list[str]:
    """Return what looks like a name in a text, in order, whatever its language."""
    return [*_english_names(text, ()), *_chinese_names(text)]


def _english_names(summary: str, words: Sequence[str]) -> Iterator[str]:
    """Yield runs of words that look like names; the first word of a sentence only when nothing explains it."""
    spoken = set(words)
    for sentence in sentences(summary):
        run: list[str] = []
        last_end = 0
        for place, match in enumerate(_TOKEN.finditer(sentence)):
            named = _is_name(match[0], first=place == 0, spoken=spoken)
            apart = re.search(r"[^\s&-]", sentence[last_end : match.start()]) is not None
            if run and (apart or not named):
                yield " ".join(run)
                run = []
            if named:
                run.append(re.sub(r"'s?$", "", match[0]))
            last_end = match.end()
        if run:
            yield " ".join(run)


def _is_name(token: str, *, first: bool, spoken: set[str]) -> bool:
    plain = _plain(token)
    if not _NAME.fullmatch(token) or HAN.search(token) or not plain:
        return False
    if plain in _COMMON or _CALENDAR.fullmatch(plain):
        return False
    if first and plain not in spoken:
        return plain not in ORDINARY and plain not in GENERIC and not re.fullmatch(r"\w+(?:ing|ed|ly)", plain)
    return True


def _stands(name: str, line: str, ground: str) -> bool:
    """Return whether a source knows a name: ``line`` are its words in one line, ``ground`` is its text."""
    tokens = [_plain(token) for token in name.split()]
    tokens = [token for token in tokens if token not in LEGAL] or tokens
    joined, low = " ".join(tokens), ground.lower()
    spellings = next((group for group in vocabulary()["same"] if joined in group), ())
    if _in_order(tokens, line):
        return True
    if any(re.search(rf"(?<![a-z]){re.escape(one)}(?![a-z])", low) for one in spellings if one != joined):
        return True
    if len(tokens) == 1:
        return len(joined) > 1 and joined in _initials(ground)
    # A long run may be two names side by side ("Acme and Lopez" keeps none of the small words).
    return len(tokens) > 2 and any(
        _in_order(tokens[:cut], line) and _in_order(tokens[cut:], line) for cut in range(1, len(tokens))
    )


def _in_order(tokens: Sequence[str], line: str) -> bool:
    between = rf"(?: \S+){{0,{_GAP}}} "
    return re.search(f" {between.join(map(re.escape, tokens))} ", line) is not None


def _initials(ground: str) -> set[str]:
    """Return the acronyms a reader would make of the capitalised runs of the source."""
    found: set[str] = set()
    for run in re.findall(r"(?:[A-Z][\w&]+(?: (?:of|and|for|the))?[ -]){1,6}[A-Z][\w&]+", ground):
        letters = "".join(word[0] for word in re.split(r"[ -]", run) if word[:1].isupper()).lower()
        found |= {letters[a:b] for a in range(len(letters)) for b in range(a + 2, len(letters) + 1)}
    return found


def _chinese_names(text: str) -> Iterator[str]:
    return (match[0] for form in _CHINESE_NAMES for match in form.finditer(text))


def _plain(token: str) -> str:
    low = re.sub(r"'s?$", "", token).lower()
    return low.replace(".", "") if re.fullmatch(r"(?:[a-z]\.)+[a-z]?", low) else low.strip(".")


# -- neutrality: no loaded words, no superlatives, no advice to trade, no shouting --------------------------------

_SHOUT = re.compile(r"!|\b[A-Z]{4,}(?: [A-Z]{3,})+\b")
_TO_READER = re.compile(r"\b(?:are|will|should|would|can) you\b|你(?:还|准备|会|该)", re.I)


def loaded_words(text: str) -> list[str]:
    """Return what is not neutral in a text, in order of the kinds."""
    kinds = {
        "loaded word": pattern("loaded"),
        "advice to trade": pattern("advice"),
        "superlative": pattern("superlatives"),
        "shouting": _SHOUT,
        "speaks to the reader": _TO_READER,
    }
    found = (f"{kind}: '{match[0]}'" for kind, words in kinds.items() for match in words.finditer(text))
    return list(dict.fromkeys(found))
