"""Dates of a summary must follow from its source: the same day in any spelling, or something less exact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

import msgspec

from tradeassay.data.dates import DateHit, DatesWanted, find_dates
from tradeassay.masking.lexicon import JsonSpans

_EPOCH = date(1970, 1, 1)
_YEARS = range(1990, 2100)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_CHINESE = {"一": 1, "二": 2, "三": 3, "四": 4, "上": 1, "下": 2}
_WORD = re.compile(r"[A-Za-z0-9]+")
_SPELLED = re.compile(
    r"(?<![A-Za-z])(first|second|third|fourth|1st|2nd|3rd|4th)[ -](quarter|half)\b"
    r"|\b(Q[1-4]|H[12]|[1-4]Q|[12]H)(?![A-Za-z0-9])"
    r"|第?([一二三四1-4])季(?:度|报)?|([上下])半年",
    re.I,
)
_RELATIVE = re.compile(r"\b(today|yesterday|tomorrow)\b|(今日|今天|昨日|昨天|明日|明天)", re.I)
_OFFSETS = {"today": 0, "yesterday": -1, "tomorrow": 1, "今": 0, "昨": -1, "明": 1}
_NEAR_YEAR = re.compile(r"^(?:[\s,']|of|in|fiscal|FY|年|的|第)*$", re.I)
_WEEKDAY_ZH = re.compile(r"(?:周|星期)([一二三四五六日天])")


class DateFact(msgspec.Struct, frozen=True, kw_only=True):
    """A date in a text, as exact as it is written. ``words`` is how it is written, ``start``/``end`` where."""

    start: int
    end: int
    words: str
    year: int | None = None
    month: int | None = None
    day: int | None = None
    quarter: int | None = None
    half: int | None = None
    weekday: int | None = None


def find(text: str, published: date) -> tuple[DateFact, ...]:
    """Return the dates of a text in order; a day without a year is the nearest one to ``published``."""
    low = text.lower()
    today = (published - _EPOCH).days
    wanted = DatesWanted(_YEARS, weekdays=True, festivals=False)
    hits = find_dates(text, low, set(_WORD.findall(low)), JsonSpans(text).bare, today, wanted)
    facts = [fact for hit in hits if (fact := _fact(text, hit)) is not None]
    taken = [(fact.start, fact.end) for fact in facts if fact.quarter or fact.half or fact.day]
    facts += [fact for fact in _spelled(text) if not any(s < fact.end and fact.start < e for s, e in taken)]
    facts += _relative(text, published)
    return tuple(_with_years(text, sorted(facts, key=lambda fact: (fact.start, -fact.end))))


def issues(summary: str, source: str, published: date) -> tuple[str, ...]:
    """Return the dates of a summary that do not follow from the source or its day of publication."""
    told = find(source, published)
    # An article that names a day means that day; the day it came out stands in only where it names none.
    here = DateFact(start=0, end=0, words="", year=published.year)
    if not any(fact.month for fact in told):
        here = msgspec.structs.replace(here, month=published.month)
    if not any(fact.day or fact.weekday is not None for fact in told):
        here = msgspec.structs.replace(here, day=published.day, weekday=published.weekday())
    known = [*told, here, *_implied(told, published)]
    found = find(summary, published)
    return tuple(f"date '{fact.words}' is not in the source" for fact in found if not _follows(fact, known))


def _fact(text: str, hit: DateHit) -> DateFact | None:
    words = text[hit.start : hit.end].strip()
    place = DateFact(start=hit.start, end=hit.end, words=words)
    year = re.search(r"(?:19|20)\d\d", words)
    number = int(year[0]) if year else None
    match hit.kind:
        case "day":
            return None if hit.day is None else _on(place, _EPOCH + timedelta(days=hit.day))
        case "weekday":
            return msgspec.structs.replace(place, weekday=_weekday(words))
        case "month":
            return msgspec.structs.replace(place, year=number, month=_month(words))
        case "year":
            quarter = re.search(r"([一二三四1-4])季度", words)
            part = _CHINESE.get(quarter[1]) or int(quarter[1]) if quarter else None
            return msgspec.structs.replace(place, year=number, quarter=part)
        case "period":
            return _period(place, number)
        case "festival":
            return None


def _on(place: DateFact, day: date) -> DateFact:
    return msgspec.structs.replace(place, year=day.year, month=day.month, day=day.day, weekday=day.weekday())


def _period(place: DateFact, year: int | None) -> DateFact:
    if year is None:
        short = re.search(r"(?<!\d)'?(\d\d)E?$", place.words)
        year = 2000 + int(short[1]) if short else None
    quarter = re.search(r"Q([1-4])|([1-4])Q", place.words, re.I)
    half = re.search(r"H([12])|([12])H", place.words, re.I)
    return msgspec.structs.replace(
        place,
        year=year,
        quarter=int(quarter[1] or quarter[2]) if quarter else None,
        half=int(half[1] or half[2]) if half and not quarter else None,
    )


def _month(words: str) -> int | None:
    chinese = re.search(r"(\d{1,2})\s*月", words)
    if chinese:
        return int(chinese[1])
    name = re.search(r"[A-Za-z]{3}", words)
    if name and name[0].lower() in _MONTHS:
        return _MONTHS.index(name[0].lower()) + 1
    numeric = re.search(r"\d{4}[-/](\d\d)", words)
    return int(numeric[1]) if numeric else None


def _weekday(words: str) -> int | None:
    chinese = _WEEKDAY_ZH.search(words)
    if chinese:
        return "一二三四五六日".index("日" if chinese[1] == "天" else chinese[1])
    name = words[:3].lower()
    return _WEEKDAYS.index(name) if name in _WEEKDAYS else None


def _spelled(text: str) -> Iterable[DateFact]:
    for found in _SPELLED.finditer(text):
        ordinal, what, short, chinese, half = found.groups()
        quarter = None
        part = None
        if ordinal:
            number = _ORDINALS[ordinal.lower()]
            quarter, part = (number, None) if what.lower() == "quarter" else (None, number)
        elif short:
            number = int(next(c for c in short if c.isdigit()))
            quarter, part = (number, None) if "q" in short.lower() else (None, number)
        elif chinese:
            quarter = _CHINESE.get(chinese) or int(chinese)
        else:
            part = _CHINESE[half]
        yield DateFact(start=found.start(), end=found.end(), words=found[0], quarter=quarter, half=part)


def _relative(text: str, published: date) -> Iterable[DateFact]:
    for found in _RELATIVE.finditer(text):
        day = published + timedelta(days=_OFFSETS[found[1].lower() if found[1] else found[2][0]])
        yield _on(DateFact(start=found.start(), end=found.end(), words=found[0]), day)


def _with_years(text: str, facts: Sequence[DateFact]) -> list[DateFact]:
    """Join a quarter or half with the year that stands next to it; the year is then not a separate fact."""
    joined: list[DateFact] = []
    for fact in facts:
        last = joined[-1] if joined else None
        if last is not None and _NEAR_YEAR.match(text[last.end : fact.start]):
            if _is_part(last) and _is_year(fact):
                joined[-1] = _join(text, last, fact, fact.year)
                continue
            if _is_year(last) and _is_part(fact):
                joined[-1] = _join(text, last, msgspec.structs.replace(fact, year=last.year), last.year)
                continue
        joined.append(fact)
    return joined


def _join(text: str, first: DateFact, second: DateFact, year: int | None) -> DateFact:
    part = first if _is_part(first) else second
    return msgspec.structs.replace(
        part, start=first.start, end=second.end, words=text[first.start : second.end], year=year
    )


def _is_part(fact: DateFact) -> bool:
    return (fact.quarter or fact.half) is not None and fact.year is None


def _is_year(fact: DateFact) -> bool:
    return fact.year is not None and fact.month is None and fact.quarter is None and fact.half is None


def _implied(told: Sequence[DateFact], published: date) -> Iterable[DateFact]:
    """Yield what a reader would take from the source: weekdays as days, quarters as those of the likely year."""
    for fact in told:
        if fact.weekday is not None and fact.day is None:
            for back in (*range(7), *range(-6, 0)):
                day = published - timedelta(days=back)
                if day.weekday() == fact.weekday:
                    yield DateFact(start=0, end=0, words="", year=day.year, month=day.month, day=day.day)
        if fact.year is None and (fact.quarter or fact.half):
            for year in (published.year, published.year - 1):
                yield msgspec.structs.replace(fact, year=year)
        if fact.year is None and fact.month is not None:
            yield msgspec.structs.replace(fact, year=published.year)
        if fact.day is not None and fact.month in (3, 6, 9, 12) and fact.day >= 28:
            yield DateFact(start=0, end=0, words="", year=fact.year, quarter=fact.month // 3)


def _follows(fact: DateFact, known: Iterable[DateFact]) -> bool:
    """A known date implies another that says the same or less."""
    if fact.weekday is not None and fact.day is None:
        return any(other.weekday == fact.weekday for other in known)
    wanted = {
        name: value
        for name in ("year", "month", "day", "quarter", "half")
        if (value := getattr(fact, name)) is not None
    }
    return any(all(getattr(other, name) == value for name, value in wanted.items()) for other in known)
