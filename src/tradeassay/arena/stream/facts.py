"""What a text states: numbers with their units, dates as exact as they are written, and claims that join the two.

Numbers are read in digits and in English and Chinese words; dates come from :mod:`tradeassay.data.dates`. The
words that have a meaning for the checks (directions, quantities, units, names ...) are in ``vocabulary.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from math import prod
from typing import Any
from unicodedata import numeric

import msgspec

from tradeassay.arena.stream.items import HAN, sentences, vocabulary
from tradeassay.data.dates import MONTH_OF, DateHit, DatesWanted, find_dates
from tradeassay.masking.lexicon import JsonSpans


@cache
def pattern(*names: str) -> re.Pattern[str]:
    """Compile lists of the vocabulary, or a table of lists; ``lastgroup`` of a match says which list it is from.

    English entries match whole words, Chinese ones anywhere; the longer one and the list that comes first win."""
    parts = []
    for name in names:
        found = vocabulary()[name]
        for kind, words in (found if isinstance(found, dict) else {name: found}).items():
            longest_first = sorted(words, key=len, reverse=True)
            english = "|".join(word for word in longest_first if not HAN.search(word))
            whole = [rf"(?<![A-Za-z])(?:{english})(?![A-Za-z])"] if english else []
            chinese = [word for word in longest_first if HAN.search(word)]
            parts.append(f"(?P<{kind}>{'|'.join([*whole, *chinese])})")
    return re.compile("|".join(parts), re.I)


# -- numbers -----------------------------------------------------------------------------------------------------

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ENGLISH = {word: value for value, word in enumerate(_ONES)} | {"a dozen": 12, "dozen": 12}
_ENGLISH |= {word: 10 * place for place, word in enumerate(_TENS, start=2)}
_ENGLISH_WORDS = (
    rf"(?:{'|'.join(_TENS)})(?:-(?:{'|'.join(_ONES[1:10])}))?|{'|'.join(reversed(_ONES[1:]))}|a dozen|dozen"
)
_NUMERALS = r"[零〇一二两三四五六七八九十百千万亿]+(?:点[零〇一二三四五六七八九]+)?"
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_UNITS: dict[str, str] = vocabulary()["units"]
_SCALES: dict[str, float] = vocabulary()["scales"]
_PREFIXES: dict[str, str] = vocabulary()["prefixes"]
_MONEY = frozenset({"USD", "HKD", "EUR", "GBP", "JPY", "CNY", "CAD", "AUD", "¥"})
_NUMBER = re.compile(
    r"(?P<pre>US\$|HK\$|C\$|A\$|\$|€|£|¥|RMB|CNY|USD|EUR|GBP|HKD|JPY|人民币|百分之)?\s?(?P<sign>(?<![\w])[-+])?"
    rf"(?<![A-Za-z0-9.])(?<![A-Za-z]-)(?:(?P<digits>{_DIGITS})(?![\d])(?!-[A-Z]\b)|"
    rf"(?<![A-Za-z])(?P<words>{_ENGLISH_WORDS})(?![A-Za-z])|(?P<numeral>{_NUMERALS}))"
    r"(?:(?:\s|-)?(?P<scale>thousand|millions?|billions?|trillions?|hundred|mn|mln|bn|tn)(?![A-Za-z])"
    r"|(?P<short>[kKmMbB])(?![A-Za-z0-9])|\s?(?P<chinese>[十百千万亿]+)(?!分))?"
    "(?:[ -]?(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _UNITS.items()) + "))?",
    re.I,
)
_RANGE = re.compile(r"\s*(?:-|to|~|至|到)\s*", re.I)
_COUNTED = frozenset("家名人股倍成条座台辆项个")


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """A number in a text. ``step`` is the value of its last written place; ``unit`` None when it has none;
    ``scale`` by how much more than its digits it is worth (a million, say).

    Units: ``percent``, ``points`` (percentage points; basis points are made into them), ``times``, a currency."""

    start: int
    end: int
    words: str
    value: float
    step: float
    unit: str | None
    digits: int
    scale: float

    @property
    def money(self) -> bool:
        return self.unit in _MONEY


@lru_cache(maxsize=8192)
def find_numbers(text: str, skip: tuple[tuple[int, int], ...] = ()) -> tuple[Number, ...]:
    """Return the numbers of a text in order, leaving out those inside ``skip`` (dates, say)."""
    found: list[Number] = []
    for match in _NUMBER.finditer(text):
        core = match.start("digits") if match["digits"] else match.start()
        inside = any(start <= core < end for start, end in skip)
        if not inside and (number := _number(text, match)) is not None:
            found.append(number)
    # "5 to 7 percent": the first number takes unit and scale of the second.
    for place in range(len(found) - 2, -1, -1):
        one, other = found[place], found[place + 1]
        between = text[one.end : other.start]
        both = between.strip().lower() in ("and", "和") and "between" in text[max(0, one.start - 12) : one.start]
        if one.unit is not None or not (_RANGE.fullmatch(between) or both):
            continue
        if abs(one.value) < abs(other.value) / max(other.scale, 1.0) * 10:
            scaled = {name: getattr(one, name) * other.scale for name in ("value", "step", "scale")}
            one = msgspec.structs.replace(one, **scaled)
        found[place] = msgspec.structs.replace(one, unit=other.unit)
    return tuple(found)


def agree(said: Number, told: Number, units: frozenset[str | None]) -> bool:
    """Return whether a source's number supports a summary's: equal, or correctly rounded to two digits or more.

    ``units`` are all units of the source: a currency may be carried over from another number of it."""
    if "¥" in (said.unit, told.unit):
        same = {said.unit, told.unit} <= {"¥", "CNY", "JPY", None}
    elif said.unit is None:
        same = told.unit is None or told.money
    else:
        same = said.unit == told.unit or (told.unit is None and said.money and said.unit in units)
    if not same:
        return False
    one, other = abs(said.value), abs(told.value)
    if abs(one - other) <= 1e-9 * max(one, other):
        return True
    rounded = said.digits >= 2 and told.step <= said.step
    return rounded and abs(one - other) <= said.step / 2 * (1 + 1e-9)


def _number(text: str, match: re.Match[str]) -> Number | None:
    if match["digits"]:
        written = Decimal(match["digits"].replace(",", ""))
        if text[match.end() - 1].isdigit() and re.match("[A-Za-z]", text[match.end() : match.end() + 1]):
            return None  # 5G, 10th, A320neo: part of a name
    elif match["words"]:
        written = Decimal(sum(_ENGLISH[part] for part in match["words"].lower().split("-")))
        if written == 1 and not match["scale"]:
            return None  # "one of the", "one day"
    else:
        value = _chinese_value(text, match)
        if value is None:
            return None
        written = value
    factor = 1.0
    if scale := match["scale"] or match["short"]:
        factor = _SCALES[scale.lower().removesuffix("s")]
    elif match["chinese"]:
        factor = prod(map(numeric, match["chinese"]))
    unit = next((name for name in _UNITS if match[name]), None)
    if unit is None and match["pre"] is not None:
        unit = _PREFIXES.get(match["pre"].upper(), match["pre"].upper())
    if unit == "basis":
        unit, factor = "points", factor / 100
    if unit == "tenths":
        unit, factor = "percent", factor * 10
    # Trailing zeros of an integer may be rounding, so they do not count.
    exact = written if written.as_tuple().exponent else written.normalize()
    _, places, exponent = exact.as_tuple()
    return Number(
        start=match.start(),
        end=match.end(),
        words=match[0].strip(),
        value=(-1.0 if match["sign"] == "-" else 1.0) * float(written) * factor,
        step=10.0 ** int(exponent) * factor,
        unit=unit,
        digits=len(places),
        scale=factor,
    )


def _chinese_value(text: str, match: re.Match[str]) -> Decimal | None:
    """Return the value of a Chinese numeral: 三千二百万 is 32,000,000, 五点八 is 5.8.

    None where the characters are not meant as a number: 一 and 三 are more often parts of words."""
    numeral = match["numeral"]
    marked = match["pre"] == "百分之" or any(match[name] for name in _UNITS)
    if any(char in "一二两三四五六七八九" for char in numeral):
        many = any(char in "十百千万亿点" for char in numeral) and numeral[0] not in "万亿千百"
        counted = numeral != "一" and text[match.end("numeral") : match.end("numeral") + 1] in _COUNTED
        if not (marked or many or counted):
            return None
    elif not marked or numeral != "十":
        return None
    whole, _, decimals = numeral.replace("两", "二").partition("点")
    total = section = digit = 0.0
    for value in map(numeric, whole):
        if value < 10:
            digit = 10 * digit + value  # 二〇二五: digits in a row are one number
        elif value < 10_000:
            section, digit = section + (digit or 1) * value, 0.0
        elif value > total:  # 亿 counts all that came before it, 万 only what came after the last 亿
            total, section, digit = (total + section + digit or 1) * value, 0.0, 0.0
        else:
            total, section, digit = total + (section + digit) * value, 0.0, 0.0
    part = "".join(f"{numeric(one):g}" for one in decimals)
    return Decimal(f"{total + section + digit:.0f}.{part}")


# -- dates -------------------------------------------------------------------------------------------------------

_EPOCH = date(1970, 1, 1)
_WANTED = DatesWanted(range(1990, 2100), weekdays=True)
_TOKEN = re.compile(r"[A-Za-z0-9]+")
_WEEKDAYS: dict[str, int] = vocabulary()["weekdays"]
# The number of a quarter or half. The year's last digit does not count: 2024Q1 is not a fourth quarter.
_NUMBERED = re.compile(
    r"(?<=[qh])[1-4]|(?:(?<!\d)|(?<=\d{4}))[1-4](?=[qhsnrt季])|[一二三四](?=季)|[上下](?=半)|first|second|third|fourth"
)
_SHORT_YEAR = re.compile(r"(?<=['QHY])\d\d(?!\d)|(?<!\d)\d\d(?=[ -]?[QH]\d)", re.I)
_NTH: dict[str, int] = vocabulary()["nth"]
_AWAY = {"yesterday": -1, "today": 0, "tomorrow": 1}
_NEAR_YEAR = re.compile(r"^(?:[\s,']|of|in|fiscal|FY|年|的|第)*$", re.I)


class DateMention(msgspec.Struct, frozen=True, kw_only=True):
    """A date in a text, as exact as it is written. ``words`` is how it is written, ``start``/``end`` where."""

    start: int = 0
    end: int = 0
    words: str = ""
    year: int | None = None
    month: int | None = None
    day: int | None = None
    quarter: int | None = None
    half: int | None = None
    weekday: int | None = None

    @classmethod
    def of(cls, day: date, **written: Any) -> DateMention:
        return cls(year=day.year, month=day.month, day=day.day, weekday=day.weekday(), **written)


@lru_cache(maxsize=4096)
def find_mentions(text: str, published: date) -> tuple[DateMention, ...]:
    """Return the dates of a text in order; a day without a year is the nearest one to ``published``."""
    low = text.lower()
    today = (published - _EPOCH).days
    hits = find_dates(text, low, set(_TOKEN.findall(low)), JsonSpans(text).bare, today, _WANTED)
    found = []
    for hit in hits:
        words = text[hit.start : hit.end].strip()
        place: dict[str, Any] = {"start": hit.start, "end": hit.end, "words": words}
        if hit.day is not None and hit.kind != "festival":
            found.append(DateMention.of(_EPOCH + timedelta(days=hit.day), **place))
        elif hit.kind != "festival":
            found.append(DateMention(**place, **_as_written(words, hit)))
    for word in pattern("relative").finditer(text):
        day = published + timedelta(days=_AWAY[word.lastgroup or ""])
        found.append(DateMention.of(day, start=word.start(), end=word.end(), words=word[0]))
    joined: list[DateMention] = []
    for one in sorted(found, key=lambda mention: (mention.start, -mention.end)):
        last = joined[-1] if joined else DateMention()
        # A quarter or half and the year next to it are one date.
        part, year = (last, one) if last.quarter or last.half else (one, last)
        fits = (part.quarter or part.half) and part.year is None
        lone = year.year is not None and not (year.month or year.quarter or year.half)
        if fits and lone and _NEAR_YEAR.match(text[last.end : one.start]):
            words = text[last.start : one.end]
            joined[-1] = msgspec.structs.replace(part, start=last.start, end=one.end, words=words, year=year.year)
        else:
            joined.append(one)
    return tuple(joined)


def _as_written(words: str, hit: DateHit) -> dict[str, Any]:
    """Return the fields of a mention that its words give."""
    if hit.kind == "weekday":
        return {"weekday": _WEEKDAYS[words[:3].lower() if words.isascii() else words[-1]]}
    written, short = re.search(r"(?:19|20)\d\d", words), _SHORT_YEAR.search(words)
    year = int(written[0]) if written else 2000 + int(short[0]) if short else None
    if hit.kind == "month":
        number, name = re.search(r"(\d{1,2})\s*月|\d{4}[-/](\d\d)", words), re.search("[A-Za-z]+", words)
        month = int(number[1] or number[2]) if number else MONTH_OF[name[0].lower()] if name else None
        return {"year": year, "month": month}
    nth, half = _NUMBERED.search(words.lower()), re.search("half|半|h[12]|[12]h", words, re.I)
    return {"year": year, **({"half" if half else "quarter": _NTH[nth[0]]} if nth else {})}


def named_days(text: str, published: date) -> set[str]:
    """Return the days that a text names, whatever their year: ``5-14``, or the number of a weekday."""
    told = find_mentions(text, published)
    days = {f"{one.month}-{one.day}" for one in told if one.day is not None}
    return days | {f"{one.weekday}" for one in told if one.day is None and one.weekday is not None}


# -- claims ------------------------------------------------------------------------------------------------------


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One number and what it is said of. ``quantity`` and ``basis`` are None when the words are not known.

    ``direction`` is 1 for more, -1 for less, 0 when nothing is said. ``year`` and ``part`` are the period, each
    None when not told; a part is a quarter, a half, a month, nine months or the full year (``q1``, ``h2``, ``m5``,
    ``9m``, ``year``), or some quarter (``q``). ``days`` are the days that are named, ``scopes`` the parts of the
    business, ``kind`` is what sort of figure it is (gross, net ...)."""

    number: Number
    quantity: str | None
    direction: int
    basis: str | None
    year: int | None
    part: str | None
    days: frozenset[str]
    scopes: frozenset[str]
    kind: str | None

    def other_period(self, other: Claim) -> bool:
        years = self.year is not None and other.year is not None and self.year != other.year
        parts = {self.part, other.part}
        some = "q" in parts and any(part and part[0] == "q" and part != "q" for part in parts)
        return years or (len(parts) == 2 and None not in parts and not some)


@lru_cache(maxsize=2048)
def claims(text: str, published: date) -> tuple[Claim, ...]:
    return tuple(claim for sentence in sentences(text) for claim in _claims_of(sentence, published))


def _claims_of(sentence: str, published: date) -> Iterator[Claim]:
    told = find_mentions(sentence, published)
    found = find_numbers(sentence, tuple((one.start, one.end) for one in told))
    if not found:
        return
    ways = list(pattern("up", "down").finditer(sentence))
    named = list(pattern("quantities").finditer(sentence))
    days = {m[0].lower() for m in pattern("moments").finditer(sentence)} | named_days(sentence, published)
    scopes = frozenset(m[0].lower() for m in pattern("scopes").finditer(sentence))
    # The one period that the sentence speaks of; no part where there are several, or none.
    year = next((one.year for one in told if one.year and one.day is None), None)
    parts = {f"q{one.quarter}" if one.quarter else f"h{one.half}" for one in told if one.quarter or one.half}
    if pattern("nine_months").search(sentence):
        parts = {"9m"}
    for name, part in (("full_year", "year"), ("some_quarter", "q")):
        if not parts and pattern(name).search(sentence):
            parts = {part}
    parts = parts or {f"m{one.month}" for one in told if one.month is not None and one.day is None}
    for place, number in enumerate(found):
        start = found[place - 1].end if place else 0
        end = found[place + 1].start if place + 1 < len(found) else len(sentence)
        basis = pattern("bases").search(sentence, start, end)
        kind = pattern("kinds").search(sentence, start, number.start)
        yield Claim(
            number=number,
            quantity=_quantity(sentence, number, named, start),
            direction=_direction(sentence, number, ways, start, end),
            basis=basis.lastgroup if basis else None,
            year=year,
            part=next(iter(parts)) if len(parts) == 1 else None,
            days=frozenset(days),
            scopes=scopes,
            kind=kind[0].lower() if kind else None,
        )


def _quantity(sentence: str, number: Number, named: Sequence[re.Match[str]], start: int) -> str | None:
    """The quantity named last before the number, however far; else the first one after it in its clause."""
    before = [name for name in named if name.end() <= number.start]
    # In "6% to 2 million" both numbers are of the same thing: what was named before the first one counts.
    if before and before[-1].start() >= start:
        return before[-1].lastgroup
    clause = re.split(r"[,;。]", sentence[number.end :])[0]
    behind = [name for name in named if number.end <= name.start() < number.end + len(clause)]
    joined = re.search(r"^\s?(?:of|in|的|worth of|from)\b|^的", sentence[number.end :])
    if behind and (not before or joined):
        return behind[0].lastgroup
    return before[-1].lastgroup if before else None


def _direction(sentence: str, number: Number, ways: Sequence[re.Match[str]], start: int, end: int) -> int:
    """The last word of direction before the number, else the first one behind it in its clause."""
    if number.value < 0:
        return -1
    near = number.start - 60  # characters
    before = [way for way in ways if start <= way.start() and near < way.end() <= number.start]
    clause = re.split(r"[,;]| and | but | while ", sentence[number.end : end])[0]
    reach = min(end, number.end + 30, number.end + len(clause))
    behind = [way for way in ways if number.end <= way.start() < reach]
    told = before[-1:] or behind[:1]
    return 0 if not told else 1 if told[0].lastgroup == "up" else -1
