"""Numbers written as words, English and Chinese, into values."""

from __future__ import annotations

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

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
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
        total = int("".join(str(_DIGITS[char]) for char in whole) or "0")
    else:
        for char in whole:
            if char in _DIGITS:
                digit = _DIGITS[char]
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
    decimals = "".join(str(_DIGITS[char]) for char in part)
    return float(f"{total}.{decimals}") if decimals else float(total)


def chinese_scale(words: str) -> float:
    """Return the factor of a scale behind digits: 亿 is 1e8, 千万 is 1e7, 万亿 is 1e12."""
    factor = 1.0
    for char in words:
        factor *= {**_UNITS, **_LARGE}[char]
    return factor
