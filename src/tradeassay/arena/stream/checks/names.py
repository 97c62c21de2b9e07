"""Names in a summary must stand in its source, word by word and in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tradeassay.arena.stream.checks.vocabulary import vocabulary
from tradeassay.arena.stream.items import sentences
from tradeassay.masking.lexicon import GENERIC, LEGAL, ORDINARY

_TOKEN = re.compile(r"(?:[A-Z]\.){2,}|[A-Za-zÀ-ɏ0-9&]+(?:['.-][A-Za-zÀ-ɏ0-9]+)*")
_NAME = re.compile(r"(?:[A-Z]\.){2,}|[A-Za-z]*[A-ZÀ-Þ][A-Za-zÀ-ɏ0-9&.'-]*")
_CALENDAR = re.compile(
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|[qh][1-4]|[1-4][qh]\d*|fy\d*)\.?",
    re.I,
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_GAP = 2
"""How many other words may stand between two words of a name in the source: a middle name, a bracketed ticker."""


def issues(summary: str, source: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of a summary that are not in the source. ``known`` names are the asset's own."""
    ground = "\n".join((source, *known))
    words = tuple(_plain(token) for token in _TOKEN.findall(ground))
    found = [name for name in _english(summary, words) if not _stands(name, words, ground)]
    found += [name for name in _chinese(summary) if name not in ground]
    return tuple(f"name '{name}' is not in the source" for name in dict.fromkeys(found))


def name_runs(text: str) -> tuple[str, ...]:
    """Return what looks like a name in a text, in order, whatever its language."""
    return (*_english(text, ()), *_chinese(text))


def _english(summary: str, words: Sequence[str]) -> Iterable[str]:
    """Yield runs of words that look like names; the first word of a sentence only when nothing explains it."""
    common = _common()
    spoken = set(words)
    for sentence in sentences(summary):
        run: list[str] = []
        last_end = 0
        for place, match in enumerate(_TOKEN.finditer(sentence)):
            token = match[0]
            apart = re.search(r"[^\s&-]", sentence[last_end : match.start()]) is not None
            if run and (apart or not _is_name(token, place, common, spoken)):
                yield " ".join(run)
                run = []
            if _is_name(token, place, common, spoken):
                run.append(_bare(token))
            last_end = match.end()
        if run:
            yield " ".join(run)


def _is_name(token: str, place: int, common: frozenset[str], spoken: set[str]) -> bool:
    if not _NAME.fullmatch(token) or _HAN.search(token):
        return False
    plain = _plain(token)
    if not plain or plain in common or _CALENDAR.fullmatch(plain):
        return False
    if place == 0 and plain not in spoken:
        return plain not in ORDINARY and plain not in GENERIC and not re.fullmatch(r"\w+(?:ing|ed|ly)", plain)
    return True


def _stands(name: str, words: Sequence[str], ground: str) -> bool:
    tokens = [_plain(token) for token in name.split()]
    tokens = [token for token in tokens if token not in LEGAL] or tokens
    low = ground.lower()
    if len(tokens) == 1 and any(_same(tokens[0], other, low) for other in _spellings(tokens[0])):
        return True
    if _in_order(tokens, words):
        return True
    joined = " ".join(tokens)
    if any(spelling in low for spelling in _spellings(joined)):
        return True
    if len(tokens) == 1 and len(tokens[0]) > 1 and tokens[0] in _initials(ground):
        return True
    # A long run may be two names side by side ("Acme and Lopez" keeps none of the small words).
    return len(tokens) > 2 and any(
        _in_order(tokens[:cut], words) and _in_order(tokens[cut:], words) for cut in range(1, len(tokens))
    )


def _same(token: str, spelling: str, low: str) -> bool:
    return spelling != token and re.search(rf"(?<![a-z]){re.escape(spelling)}(?![a-z])", low) is not None


def _in_order(tokens: Sequence[str], words: Sequence[str]) -> bool:
    for start, word in enumerate(words):
        if word != tokens[0]:
            continue
        at = start
        for token in tokens[1:]:
            window = words[at + 1 : at + 2 + _GAP]
            if token not in window:
                break
            at += 1 + window.index(token)
        else:
            return True
    return False


def _initials(ground: str) -> set[str]:
    """Return the acronyms a reader would make of the capitalised runs of the source."""
    runs = re.findall(r"(?:[A-Z][\w&]+(?: (?:of|and|for|the))?[ -]){1,6}[A-Z][\w&]+", ground)
    found = set()
    for run in runs:
        capitals = [word[0] for word in re.split(r"[ -]", run) if word[:1].isupper()]
        found |= {
            "".join(capitals[a:b]).lower() for a in range(len(capitals)) for b in range(a + 2, len(capitals) + 1)
        }
    return found


def _chinese(summary: str) -> Iterable[str]:
    if not _HAN.search(summary):
        return
    yield from (match[0] for match in _organisation().finditer(summary))
    yield from (match[1] for match in _person().finditer(summary))


@lru_cache(maxsize=1)
def _organisation() -> re.Pattern[str]:
    """Two characters and what makes them an organisation; more would swallow the words before."""
    forms = "|".join(sorted(vocabulary().organisations, key=len, reverse=True))
    # 本公司, 该集团 and the like name nobody.
    return re.compile(
        rf"(?<![本该此家])(?![\u3400-\u9fff]?[本该此家各的在与和对由])[\u3400-\u9fff]{{2}}(?:{forms})"
    )


@lru_cache(maxsize=1)
def _person() -> re.Pattern[str]:
    known = vocabulary()
    return re.compile(rf"([{known.surnames}][\u3400-\u9fff]{{1,2}})(?={'|'.join(known.speakers)})")


@lru_cache(maxsize=1)
def _common() -> frozenset[str]:
    words = vocabulary()
    return frozenset(words.common) | {title.lower() for title in words.titles}


@lru_cache(maxsize=512)
def _spellings(name: str) -> tuple[str, ...]:
    return next((group for group in vocabulary().same if name in group), ())


def _bare(token: str) -> str:
    return re.sub(r"'s?$", "", token)


def _plain(token: str) -> str:
    low = _bare(token).lower()
    return low.replace(".", "") if re.fullmatch(r"(?:[a-z]\.)+[a-z]?", low) else low.strip(".")
