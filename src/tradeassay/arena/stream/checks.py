"""What one text says of another: the checks a summary passes before anybody reads it (numbers, dates, names,
neutrality, language), and whether two texts tell the same story or contradict each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from tradeassay.arena.stream.facts import Claim, DateMention, agree, claims, find_mentions, named_days, pattern
from tradeassay.arena.stream.items import HAN, CheckName, ItemCheck, Language, detect, sentences, vocabulary
from tradeassay.core.errors import require
from tradeassay.data.dates import MONTH_OF
from tradeassay.masking.lexicon import GENERIC, LEGAL, ORDINARY


def check_summary(
    summary: str, source: str, published: date, language: Language, known: Sequence[str] = ()
) -> tuple[ItemCheck, ...]:
    """Return the five checks of a summary against its source.

    ``published`` is the source's day, from which a date without a year is understood; ``language`` is the one
    asked for; ``known`` are names that need no source, the asset's own."""
    written = detect(summary)
    return (
        check_of("numbers", _numbers(summary, source, published)),
        check_of("dates", _dates(summary, source, published)),
        check_of("names", _names(summary, source, known)),
        check_of("neutrality", loaded_words(summary)),
        check_of("language", [f"written in '{written}', asked for in '{language}'"] * (written != language)),
    )


def check_of(name: CheckName, issues: Iterable[str]) -> ItemCheck:
    found = tuple(issues)
    return ItemCheck(name=name, ok=not found, issues=found)


def _numbers(summary: str, source: str, published: date) -> Iterator[str]:
    """Yield what is wrong with the numbers of a summary: the value, the unit, the direction, whose they are.

    A number is compared with all numbers of the source, so one that belongs to somebody else passes unless the
    quantity it is said of has other numbers there."""
    told = claims(source, published)
    units = frozenset(claim.number.unit for claim in told)
    for claim in claims(summary, published):
        number = claim.number
        same = [other for other in told if agree(number, other.number, units)]
        # A period that the source does not know is left to the check of dates.
        known_period = claim.part is not None and any(other.part == claim.part for other in told)
        owners = {other.quantity for other in same}
        # Does the source give this quantity another number of the same unit?
        its = [other.number for other in told if other.quantity == claim.quantity]
        plain = number.money or number.unit is None
        rivals = any(one.unit == number.unit or (plain and (one.money or one.unit is None)) for one in its)
        if not same:
            yield f"number '{number.words}' is not in the source"
        elif claim.direction and all(other.direction == -claim.direction for other in same):
            yield f"'{number.words}' goes the other way in the source"
        elif known_period and all(claim.other_period(other) for other in same):
            yield f"'{number.words}' is of another period in the source"
        elif rivals and claim.quantity is not None and not owners & {claim.quantity, None}:
            owner = "/".join(sorted(name for name in owners if name))
            yield f"'{number.words}' is the source's {owner}, not its {claim.quantity}"


def _dates(summary: str, source: str, published: date) -> Iterator[str]:
    """Yield the dates of a summary that are not in the source: in any spelling, or less exact."""
    told = find_mentions(source, published)
    # An article that names a day means that day; the day it came out stands in only where it names none.
    own, replace = DateMention.of(published), msgspec.structs.replace
    if any(one.month for one in told):
        own = replace(own, month=None)
    if any(one.day or one.weekday is not None for one in told):
        own = replace(own, day=None, weekday=None)
    known = [*told, own, *_implied(told, published)]
    fields = ("year", "month", "day", "quarter", "half")
    for one in find_mentions(summary, published):
        if one.weekday is not None and one.day is None:
            stands = any(other.weekday == one.weekday for other in known)
        else:
            said = {name: value for name in fields if (value := getattr(one, name)) is not None}
            stands = any(all(getattr(other, name) == said[name] for name in said) for other in known)
        if not stands:
            yield f"date '{one.words}' is not in the source"


def _implied(told: Sequence[DateMention], published: date) -> Iterator[DateMention]:
    """Yield what a reader would take from the source: weekdays as days, quarters as those of the likely year."""
    for one in told:
        if one.weekday is not None and one.day is None:
            days = (published - timedelta(days=back) for back in range(-6, 7))
            yield from (DateMention.of(day) for day in days if day.weekday() == one.weekday)
        if one.year is None and (one.quarter or one.half):
            for year in (published.year, published.year - 1):
                yield msgspec.structs.replace(one, year=year)
        if one.year is None and one.month is not None:
            yield msgspec.structs.replace(one, year=published.year)
        if one.day is not None and one.month in (3, 6, 9, 12) and one.day >= 28:
            yield DateMention(year=one.year, quarter=one.month // 3)


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


def _names(summary: str, source: str, known: Sequence[str]) -> Iterator[str]:
    """Yield the names of a summary that a source does not know, word by word and in order."""
    ground = "\n".join((source, *known))
    low, words = ground.lower(), [_plain(token) for token in _TOKEN.findall(ground)]
    # Between two words of a name may be two others in the source: a middle name, a bracketed ticker.
    line, between = f" {' '.join(words)} ", r"(?: \S+){0,2} "
    acronyms: set[str] = set()  # that a reader would make of the capitalised runs of the source
    for run in re.findall(r"(?:[A-Z][\w&]+(?: (?:of|and|for|the))?[ -]){1,6}[A-Z][\w&]+", ground):
        letters = "".join(word[0] for word in re.split(r"[ -]", run) if word[:1].isupper()).lower()
        acronyms |= {letters[a:b] for a in range(len(letters)) for b in range(a + 2, len(letters) + 1)}

    def in_order(tokens: Sequence[str]) -> bool:
        return re.search(f" {between.join(map(re.escape, tokens))} ", line) is not None

    def stands(name: str) -> bool:
        tokens = [_plain(token) for token in name.split()]
        tokens = [token for token in tokens if token not in LEGAL] or tokens
        joined = " ".join(tokens)
        spellings = next((group for group in vocabulary()["same"] if joined in group), ())
        if in_order(tokens):
            return True
        if any(re.search(rf"(?<![a-z]){re.escape(one)}(?![a-z])", low) for one in spellings if one != joined):
            return True
        if len(tokens) < 3:
            return len(tokens) == 1 and len(joined) > 1 and joined in acronyms
        # A long run may be two names side by side ("Acme and Lopez" keeps none of the small words).
        return any(in_order(tokens[:cut]) and in_order(tokens[cut:]) for cut in range(1, len(tokens)))

    unknown = [name for name in _english_names(summary, words) if not stands(name)]
    unknown += [name for name in _chinese_names(summary) if name not in ground]
    yield from (f"name '{name}' is not in the source" for name in dict.fromkeys(unknown))


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
            plain = _plain(match[0])
            looks = _NAME.fullmatch(match[0]) and not HAN.search(match[0])
            named = bool(looks and plain) and plain not in _COMMON and not _CALENDAR.fullmatch(plain)
            if place == 0 and plain not in spoken:
                usual = plain in ORDINARY or plain in GENERIC or re.fullmatch(r"\w+(?:ing|ed|ly)", plain)
                named = named and not usual
            apart = re.search(r"[^\s&-]", sentence[last_end : match.start()]) is not None
            if run and (apart or not named):
                yield " ".join(run)
                run = []
            if named:
                run.append(re.sub(r"'s?$", "", match[0]))
            last_end = match.end()
        if run:
            yield " ".join(run)


def _chinese_names(text: str) -> Iterator[str]:
    return (match[0] for form in _CHINESE_NAMES for match in form.finditer(text))


def _plain(token: str) -> str:
    low = re.sub(r"'s?$", "", token).lower()
    return low.replace(".", "") if re.fullmatch(r"(?:[a-z]\.)+[a-z]?", low) else low.strip(".")


_NOT_NEUTRAL = {
    "loaded word": pattern("loaded"),
    "advice to trade": pattern("advice"),
    "superlative": pattern("superlatives"),
    "shouting": re.compile(r"!|\b[A-Z]{4,}(?: [A-Z]{3,})+\b"),
    "speaks to the reader": re.compile(r"\b(?:are|will|should|would|can) you\b|你(?:还|准备|会|该)", re.I),
}


def loaded_words(text: str) -> list[str]:
    """Return what is not neutral in a text, in order of the kinds."""
    found = (f"{kind}: '{match[0]}'" for kind, words in _NOT_NEUTRAL.items() for match in words.finditer(text))
    return list(dict.fromkeys(found))


# -- two texts about one asset: the same story, or a contradiction? ----------------------------------------------
#
# Texts that tell one story share most of their words, and so do texts that say the opposite: "inflows" for
# "outflows", 批准 for 否决. So the places where the words differ are looked at before two items are merged. A
# missed repeat shows agents something twice; a wrong merge hides news from them, so a doubt counts against
# merging. A contradiction about one quantity is flagged, never decided.

_STORY_WORD = re.compile(r"[a-z0-9À-ɏ]+(?:['’][a-z]+)?(?:[.,]\d+)*%?|[\u3400-\u9fff]")
_FURNITURE = re.compile(
    r"^(?:recap|update\s?\d*|breaking|in case you missed it|correction|快讯|最新|更新)\s*:\s*"
    r"|\s*-\s*what we know\s*$",
    re.I | re.M,
)
_SMALL = frozenset(vocabulary()["small"])
_NEUTRAL = frozenset(part for word in vocabulary()["neutral"] for part in (word if HAN.match(word) else (word,)))


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """Return the words, figures and Chinese characters of a text, without what wires put around a repeat."""
    return tuple(_STORY_WORD.findall(_FURNITURE.sub("", text.lower().replace("’", "'"))))


@lru_cache(maxsize=4096)
def _telling(text: str) -> str:
    return " ".join(word for word in _words(text) if word not in _SMALL)


def similarity(one: str, other: str) -> float:
    """Return how many words two texts share, 0 to 100; a text that is part of the other has 100."""
    fuzz: Any = require("rapidfuzz.fuzz", "arena")
    return float(fuzz.token_set_ratio(_telling(one), _telling(other)))


def same_story(one: str, other: str, published: date) -> bool:
    """Return whether two texts tell the same story: alike in words, not differing in a figure, a date or a denial,
    and no telling word exchanged for another."""
    if similarity(one, other) < 80:
        return False
    short, whole = sorted((_words(one), _words(other)), key=len)
    # A text that was cut short has the other's figures; the last may have lost its unit ("rose by 75").
    if whole[: len(short)] != short and not _same_figures(one, other, published):
        return False
    # Days that are written in figures; what "yesterday" means depends on when a text came out.
    mentions = [find_mentions(text, published) for text in (one, other)]
    written = [
        {(m.year, m.month, m.day) for m in found if m.day and re.search(r"\d", m.words)} for found in mentions
    ]
    days, more_days = sorted(written, key=len)
    negations = [len(pattern("negators").findall(_lead(text))) for text in (one, other)]
    return days <= more_days and negations[0] == negations[1] and not _exchanged(_words(one), _words(other))


def _same_figures(one: str, other: str, published: date) -> bool:
    """The figures of the text with fewer of them must be in the other, and must not go the other way."""
    fewer, more = sorted((claims(one, published), claims(other, published)), key=len)
    units = frozenset(claim.number.unit for claim in more)
    for claim in fewer:
        unit = frozenset({claim.number.unit})
        same = [c for c in more if agree(claim.number, c.number, units) or agree(c.number, claim.number, unit)]
        if not same or (claim.direction and all(c.direction == -claim.direction for c in same)):
            return False
    return True


def _lead(text: str) -> str:
    return " ".join(sentences(text)[:1])


def _exchanged(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether telling words stand in the place of others that are neither forms of them nor neutral.

    A story that is told again is cut, reordered or dressed up; a few words exchanged in an otherwise equal
    sentence change what is told. English words that the other text has as often were moved, not exchanged."""
    indel: Any = require("rapidfuzz.distance.Indel", "arena")
    more, fewer = Counter(one) - Counter(other), Counter(other) - Counter(one)
    a = b = 0  # where the stretch between two blocks that both texts have begins in each
    for block in indel.editops(one, other).as_matching_blocks():
        left, right = one[a : block.a], other[b : block.b]
        a, b = block.a + block.size, block.b + block.size
        han = [HAN.match(word) is not None for word in (*left, *right)]
        if any(han) and not all(han):
            continue
        if all(han):
            mine, theirs, most = set(left) - set(right), set(right) - set(left), 4
        else:
            mine, theirs, most = {w for w in left if more[w]}, {w for w in right if fewer[w]}, 3
            stems = {word[:4] for word in mine} & {word[:4] for word in theirs}
            mine, theirs = ({word for word in words if word[:4] not in stems} for words in (mine, theirs))
        mine, theirs = mine - _NEUTRAL, theirs - _NEUTRAL
        figures = any(word[0].isdigit() for word in mine | theirs)  # the figures have been compared already
        # More words than that in one place are another wording.
        if 0 < len(mine) <= most and 0 < len(theirs) <= most and not figures:
            return True
    return False


def contradiction(one: str, other: str, published: date) -> str | None:
    """Return what two texts disagree about, or None.

    Both must speak of the same quantity, and not of different periods, yardsticks or companies. They disagree when
    they give it opposite directions, or different numbers of one unit that no rounding explains."""
    first, second = (next(iter(names_of(text)), None) for text in (one, other))
    if first and second and first not in other and second not in one:
        if not {word.lower() for word in first.split()} & {word.lower() for word in second.split()}:
            return None  # each begins with the name of another company
    theirs = claims(other, published)
    for claim in claims(one, published):
        rivals = [c for c in theirs if _comparable(claim, c)]
        if rivals and claim.quantity is not None and all(_differ(claim, c) for c in theirs):
            return f"{claim.quantity}: '{claim.number.words}' here, '{rivals[0].number.words}' there"
    leads = [_lead(text) for text in (one, other)]
    denials = [pattern("denials").search(lead) for lead in leads]
    denied = next((found for found in denials if found), None)
    if denied is None or None not in denials:
        return None
    days, others = (named_days(lead, published) for lead in leads)
    if days and others and not days & others:
        return None
    # Are the first sentences about one thing? The name of whom both are about says nothing of that: half of the
    # other telling words of the shorter must be in the longer.
    if (name := first if first == second else None) is None:
        one_thing = similarity(*leads) >= 60
    else:
        rest = [pattern("denials").sub(" ", lead.replace(name, " ")) for lead in leads]
        told = [{word[:4] for word in _telling(text).split() if word not in _NEUTRAL} for text in rest]
        one_thing = 2 * len(told[0] & told[1]) >= min(map(len, told)) > 0
    return f"what happened: '{denied[0]}'" if one_thing else None


def _comparable(one: Claim, other: Claim) -> bool:
    if one.quantity != other.quantity or one.number.unit != other.number.unit or one.other_period(other):
        return False
    # Both name their days, part of the business, sort of figure or yardstick, and name others.
    for name in ("days", "scopes", "kind", "basis"):
        mine, theirs = getattr(one, name), getattr(other, name)
        same = mine & theirs if isinstance(mine, frozenset) else mine == theirs
        if mine and theirs and not same:
            return False
    # A price is another one every day: only what two items say of the same day can disagree.
    if one.quantity == "price" and not one.days & other.days:
        return False
    # A change ("rose 5%") and a level ("a margin of 31%") do not answer the same question.
    return bool(one.direction) == bool(other.direction) or one.number.money


def _differ(one: Claim, other: Claim) -> bool:
    if one.direction and other.direction and one.direction != other.direction:
        return True
    units = frozenset({one.number.unit, other.number.unit})
    return not (agree(one.number, other.number, units) or agree(other.number, one.number, units))
