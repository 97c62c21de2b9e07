"""Numbers found in a text, in digits or English and Chinese words: their value, their unit, their exactness."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: value for value, word in enumerate(_ONES)} | {
    word: 10 * place for place, word in enumerate(_TENS, start=2)
}
ENGLISH = rf"(?:{'|'.join(_TENS)})(?:-(?:{'|'.join(_ONES[1:10])}))?|{'|'.join(reversed(_ONES[1:]))}|a dozen|dozen"
"""A pattern of English number words up to ninety-nine; scales follow it as they follow digits."""

CHINESE = r"[零〇一二两三四五六七八九十百千万亿]+(?:点[零〇一二三四五六七八九]+)?"
"""A pattern of Chinese numerals."""

_CHINESE_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1_000}
_LARGE = {"万": 10_000, "亿": 100_000_000}


def english_value(words: str) -> int:
    """Return the value of what :data:`ENGLISH` matches."""
    low = words.lower()
    if "dozen" in low:
        return 12
    return sum(_VALUES[part] for part in low.split("-"))


def chinese_value(words: str) -> float:
    """Return the value of what :data:`CHINESE` matches: 三千二百万 is 32,000,000, 五点八 is 5.8."""
    whole, _, part = words.partition("点")
    total, section, digit = 0, 0, 0
    if not any(char in _UNITS or char in _LARGE for char in whole):
        total = int("".join(str(_CHINESE_DIGITS[char]) for char in whole) or "0")
    else:
        for char in whole:
            if char in _CHINESE_DIGITS:
                digit = _CHINESE_DIGITS[char]
            elif char in _UNITS:
                section += (digit or 1) * _UNITS[char]
                digit = 0
            elif char == "万":
                total += (section + digit or 1) * _LARGE[char]
                section = digit = 0
            else:
                total = (total + section + digit or 1) * _LARGE[char]
                section = digit = 0
        total += section + digit
    decimals = "".join(str(_CHINESE_DIGITS[char]) for char in part)
    return float(f"{total}.{decimals}") if decimals else float(total)


def chinese_scale(words: str) -> float:
    """Return the factor of a scale after digits: 亿 is 1e8, 千万 is 1e7, 万亿 is 1e12."""
    factor = 1.0
    for char in words:
        factor *= {**_UNITS, **_LARGE}[char]
    return factor


_BEFORE = (
    r"(?P<pre>US\$|HK\$|C\$|A\$|\$|€|£|¥|RMB|CNY|USD|EUR|GBP|HKD|JPY|人民币|百分之)?\s?"
    r"(?P<sign>(?<![\w])[-+])?"
)
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SCALES = {
    "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "mln": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9,
    "b": 1e9, "trillion": 1e12, "tn": 1e12, "hundred": 1e2,
}  # fmt: skip
_SCALE = (
    r"(?:(?:\s|-)?(?P<scale>thousand|millions?|billions?|trillions?|hundred|mn|mln|bn|tn)(?![A-Za-z])"
    r"|(?P<short>[kKmMbB])(?![A-Za-z0-9])|\s?(?P<chinese>[十百千万亿]+)(?!分))?"
)
_UNIT_WORDS = {
    "percent": r"%|per ?cent\b|pct\b|percents\b",
    "points": r"percentage[ -]points?\b|pp\b|ppts?\b|个?百分点",
    "basis": r"basis[ -]points?\b|bps?\b|个?基点",
    "tenths": r"成(?![立为长员功本交])",
    "times": r"times\b|x\b(?!\w)|倍",
    "HKD": r"Hong Kong dollars?\b|港元|港币",
    "USD": r"(?:US |U\.S\. )?dollars?\b|USD\b|美元",
    "EUR": r"euros?\b|EUR\b|欧元",
    "GBP": r"pounds?\b|GBP\b|英镑",
    "JPY": r"yen\b|JPY\b|日元",
    "CNY": r"yuan\b|renminbi\b|RMB\b|CNY\b|元|人民币",
}
_UNIT = "(?:[ -]?(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _UNIT_WORDS.items()) + "))?"
_PREFIXES = {
    "US$": "USD", "$": "USD", "HK$": "HKD", "C$": "CAD", "A$": "AUD", "€": "EUR", "£": "GBP", "¥": "¥",
    "RMB": "CNY", "人民币": "CNY", "百分之": "percent",
}  # fmt: skip
_COUNTED = "家名人股倍成条座台辆项个"
_NUMBER = re.compile(
    rf"{_BEFORE}(?<![A-Za-z0-9.])(?<![A-Za-z]-)(?:(?P<digits>{_DIGITS})(?![\d])(?!-[A-Z]\b)|"
    rf"(?<![A-Za-z])(?P<words>{ENGLISH})(?![A-Za-z])|(?P<numeral>{CHINESE}))"
    rf"{_SCALE}{_UNIT}",
    re.I,
)
_LETTER_AFTER = re.compile(r"[A-Za-z]")
_RANGE = re.compile(r"\s*(?:-|to|~|至|到)\s*", re.I)
_MONEY = frozenset({"USD", "HKD", "EUR", "GBP", "JPY", "CNY", "CAD", "AUD", "¥"})


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """A number in a text. ``step`` is the value of its last written place; ``unit`` None when it has none.

    Units: ``percent``, ``points`` (percentage points; basis points are made into them), ``times``, a currency.
    """

    start: int
    end: int
    words: str
    value: float
    step: float
    unit: str | None
    digits: int

    @property
    def money(self) -> bool:
        """Whether the unit is a currency."""
        return self.unit in _MONEY


@lru_cache(maxsize=8192)
def find(text: str, skip: tuple[tuple[int, int], ...] = ()) -> tuple[Number, ...]:
    """Return the numbers of a text in order, leaving out those inside ``skip`` (dates, say)."""
    found: list[Number] = []
    for match in _NUMBER.finditer(text):
        core = match.start("digits") if match["digits"] else match.start()
        if any(start <= core < end for start, end in skip):
            continue
        number = _number(text, match)
        if number is not None:
            found.append(number)
    return tuple(_ranges(text, found))


def agree(said: Number, told: Number, units: frozenset[str | None]) -> bool:
    """Return whether a source's number supports a summary's: equal, or correctly rounded to two digits or more.

    ``units`` are all units of the source: a currency may be carried over from another number of it.
    """
    if not _same_unit(said.unit, told.unit, units):
        return False
    one, other = abs(said.value), abs(told.value)
    if abs(one - other) <= 1e-9 * max(one, other):
        return True
    rounded = said.digits >= 2 and told.step <= said.step
    return rounded and abs(one - other) <= said.step / 2 * (1 + 1e-9)


def _same_unit(said: str | None, told: str | None, units: frozenset[str | None]) -> bool:
    if said == told:
        return True
    if "¥" in (said, told):
        return {said, told} <= {"¥", "CNY", "JPY", None}
    if said is None:
        return told in _MONEY
    return told is None and said in _MONEY and said in units


def _number(text: str, match: re.Match[str]) -> Number | None:
    if match["digits"]:
        raw = match["digits"].replace(",", "")
        value, decimals = float(raw), len(raw.partition(".")[2])
        if match.end() < len(text) and _LETTER_AFTER.match(text, match.end()) and text[match.end() - 1].isdigit():
            return None  # 5G, 10th, A320neo: part of a name
    elif match["words"]:
        value, decimals = float(english_value(match["words"])), 0
        if value == 1 and not match["scale"]:
            return None  # "one of the", "one day"
    else:
        numeral = _plain_numeral(text, match)
        if numeral is None:
            return None
        value, decimals = numeral
    factor = _factor(match)
    unit = _unit(match)
    if unit == "basis":
        unit, factor = "points", factor / 100
    if unit == "tenths":
        unit, factor = "percent", factor * 10
    digits, step = _exactness(value, decimals)
    sign = -1.0 if match["sign"] == "-" else 1.0
    return Number(
        start=match.start(),
        end=match.end(),
        words=match[0].strip(),
        value=sign * value * factor,
        step=step * factor,
        unit=unit,
        digits=digits,
    )


def _plain_numeral(text: str, match: re.Match[str]) -> tuple[float, int] | None:
    """Return a Chinese numeral's value where it is one: 一 and 三 are more often parts of words."""
    numeral = match["numeral"]
    behind = text[match.end("numeral") : match.end("numeral") + 1]
    marked = match["pre"] == "百分之" or any(match[name] for name in _UNIT_WORDS)
    digits = any(char in "一二两三四五六七八九" for char in numeral)
    many = digits and any(char in "十百千万亿点" for char in numeral) and numeral[0] not in "万亿千百"
    counted = numeral not in ("一", "十") and behind != "" and behind in _COUNTED and digits
    if not digits and numeral != "十":
        return None
    if not (marked or many or counted):
        return None
    return chinese_value(numeral), len(numeral.partition("点")[2])


def _factor(match: re.Match[str]) -> float:
    if match["scale"]:
        return _SCALES[match["scale"].lower().removesuffix("s")]
    if match["short"]:
        return _SCALES[match["short"].lower()]
    return chinese_scale(match["chinese"]) if match["chinese"] else 1.0


def _unit(match: re.Match[str]) -> str | None:
    for name in _UNIT_WORDS:
        if match[name]:
            return name
    prefix = match["pre"]
    return None if prefix is None else _PREFIXES.get(prefix.upper(), prefix.upper())


def _exactness(value: float, decimals: int) -> tuple[int, float]:
    """Return how many digits count and what the last one is worth; trailing zeros of an integer do not count."""
    if decimals:
        return max(len(f"{value:.{decimals}f}".replace(".", "").lstrip("0")), 1), 10.0**-decimals
    written = str(int(value))
    bare = written.rstrip("0") or "0"
    return len(bare), 10.0 ** (len(written) - len(bare))


def _ranges(text: str, found: Sequence[Number]) -> list[Number]:
    """Give the first number of "5 to 7 percent" the unit and scale of the second."""
    done = list(found)
    for place in range(len(done) - 2, -1, -1):
        one, other = done[place], done[place + 1]
        between = text[one.end : other.start]
        both = between.strip().lower() in ("and", "和") and "between" in text[max(0, one.start - 12) : one.start]
        if one.unit is not None or not (_RANGE.fullmatch(between) or both):
            continue
        plain = re.search(_DIGITS, other.words)
        scale = abs(other.value) / float(plain[0].replace(",", "")) if plain and other.value else 1.0
        factor = scale if abs(one.value) < abs(other.value) / max(scale, 1.0) * 10 else 1.0
        done[place] = msgspec.structs.replace(
            one, unit=other.unit, value=one.value * factor, step=one.step * factor
        )
    return done
