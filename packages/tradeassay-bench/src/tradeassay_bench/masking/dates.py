"""Find dates in a running text, written in English, in Chinese or in figures.

``tradeassay.tables.dates`` reads columns of dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from datetime import date
from typing import Literal, NamedTuple

from tradeassay.tables.dates import ENGLISH_MONTHS

_EPOCH = date(1970, 1, 1).toordinal()
MONTH_OF = {name.lower(): number for number, name in enumerate(ENGLISH_MONTHS, start=1)}
MONTH_OF |= {name[:3]: number for name, number in list(MONTH_OF.items())} | {"sept": 9}
"""The number of a month by its English name or abbreviation, in lower case."""
_MONTH = "(?:" + "|".join(sorted(MONTH_OF, key=len, reverse=True)) + ")"
_WEEKDAY = r"(?:(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)days?)|(?:Mon|Tue|Tues|Wed|Thu|Thur|Thurs|Fri|Sat|Sun)\b\.?)"
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})(?![A-Za-z0-9]))?)?"
_EDGE, _STOP = r"(?<![A-Za-z0-9])(?<!\d\.)", r"(?![A-Za-z0-9])"
_YEAR_ENDS = r"(?![A-Za-z0-9]|[-/.]\d|\s*年)"
_DAY_OF_MONTH = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"

_ISO = re.compile(
    rf"{_EDGE}(\d{{4}})([-/.]|_)(\d{{1,2}})\2(\d{{1,2}})(?:{_TIME}(?!\d)|(?![\d]))", re.I
)
_US = re.compile(rf"{_EDGE}(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_STOP}")
_COMPACT = re.compile(
    r"(?<![0-9])(?<!\d\.)((?:19|20|21|22)\d{2})(\d{2})(\d{2})(?:T?\d{4,6}Z?)?(?![0-9])(?!\.\d)"
)
_CHINESE = re.compile(
    r"(?:(\d{4}|\d{2})\s*年\s*)?(\d{1,2})\s*月\s*(?:(\d{1,2})\s*[日号])?|(?<!\d)(\d{4}|\d{2})\s*年(?:度|[一二三四1-4]季度)?"
)
_IN_CHARACTERS = re.compile(
    r"([〇零一二三四五六七八九]{4})年([一二三四五六七八九十]{1,2})月([一二三四五六七八九十]{1,3})[日号]"
)
_MONTH_THEN_DAY = re.compile(
    rf"(?<![A-Za-z])({_MONTH})\.?[\s\-]{{0,3}}({_DAY_OF_MONTH})(?![0-9A-Za-z%]|[.:]\d)"
    rf"(?:,?[\s\-]{{0,3}}'?((?:19|20)\d{{2}}|(?<=')\d{{2}}){_YEAR_ENDS})?",
    re.I,
)
_DAY_THEN_MONTH = re.compile(
    rf"(?<![0-9A-Za-z])(?<!\d\.)(?<!_[+\-])({_DAY_OF_MONTH})[\s\-]{{0,3}}(?:of )?({_MONTH})(?![A-Za-z])"
    rf"(?:\.?,?[\s\-]{{0,3}}((?:19|20)\d{{2}}){_YEAR_ENDS})?",
    re.I,
)
_MONTH_YEAR = re.compile(
    rf"(?<![A-Za-z])({_MONTH})\.?,?(?: of)?[ \-']{{1,2}}((?:19|20)\d{{2}}){_YEAR_ENDS}", re.I
)
_YEAR_MONTH = re.compile(rf"{_EDGE}((?:19|20)\d{{2}})[-/](0[1-9]|1[0-2])(?![\d/-])")
_PERIOD = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:Q[1-4]|H[12]|[1-4]Q|[12]H|FY|CY)[ \-]?'?(?:19|20)\d\d|(?:Q[1-4]|H[12])'\d\d"
    r"|(?:[1-4]Q|[12]H|FY|CY)'?\d\d|(?:19|20)\d\d[ \-]?(?:Q[1-4]|H[12]|[1-4]Q|[12]H))E?(?![A-Za-z0-9])",
    re.I,
)
_YEAR = re.compile(
    r"(?<![A-Za-z0-9_.,$¥€£+\-=])((?:19|20)\d{2})(?:s)?(?![A-Za-z0-9%]|[.,]\d|:\d"
    r"| ?(?:shares?|lots?|units?|contracts?|points?|bps|x\b|USD|CNY|RMB|yuan|dollars?|股|手|元|点|份|sessions?"
    r"|days?))"
)
_LONE_MONTH = re.compile(
    r"(?<![A-Za-z])(?:(?:January|February|April|June|July|September|October|November|December)"
    r"|(?<=\b[Ii]n )(?:March|May|August)|(?<=\b(?:by|By|of|to) )(?:March|May|August)"
    r"|(?<=\b(?:mid|end)[ \-])(?:March|May|August)|(?<=\b(?:late|last|next|from|From) )(?:March|May|August)"
    r"|(?<=\b(?:early|until|since|Since|Until) )(?:March|May|August))(?![A-Za-z])"
)
_LONE_WEEKDAY = re.compile(rf"(?<![A-Za-z])(?:{_WEEKDAY}|[周星期]+[一二三四五六日天])(?![A-Za-z])")

_FESTIVAL = re.compile(
    r"(?<![A-Za-z])(?:Christmas|Xmas|Thanksgiving|Easter|Halloween|Hanukkah|Diwali|Ramadan|Juneteenth|Super Bowl"
    r"|(?:Lunar |Chinese )?New Year(?:['’]?s)?(?: (?:Eve|Day))?|Independence Day|Fourth of July|4th of July"
    r"|(?:Labou?r|Memorial|Presidents['’]?|Valentine['’]?s|Mother['’]?s|Father['’]?s|Columbus|Veterans|Prime"
    r"|Singles['’]?|Martin Luther King(?: Jr\.?)?|MLK) Day|Black Friday|Cyber Monday|Good Friday|Golden Week"
    r"|Spring Festival"
    r"|Mid-Autumn(?: Festival)?|Dragon Boat(?: Festival)?|Election Day|Inauguration Day"
    r"|Year of the (?:Rat|Ox|Tiger|Rabbit|Dragon|Snake|Horse|Goat|Sheep|Monkey|Rooster|Dog|Pig))(?![A-Za-z])",
    re.I,
)
_CHINESE_FESTIVAL = re.compile(
    r"春节|国庆节?|中秋节?|端午节?|清明节?|元旦|元宵节?|重阳节?|劳动节|五一|十一黄金周|除夕|七夕|圣诞节?|感恩节|双十一|双11"
    r"|双十二|双12|(?<![\d.])618(?![\d%]|\.\d)|全国两会|两会|[正腊冬]月(?:初[一二三四五六七八九十])?|[鼠牛虎兔龙蛇马羊猴鸡狗猪]年"
    r"|[甲乙丙丁戊己庚辛壬癸][子丑寅卯辰巳午未申酉戌亥]年"
)
_FESTIVE = frozenset(
    "christmas xmas thanksgiving easter halloween hanukkah diwali ramadan juneteenth bowl year independence fourth"
    " 4th labor labour memorial presidents valentine valentines mother mothers father fathers columbus veterans"
    " prime singles mlk luther friday monday week festival autumn boat election inauguration".split()
)
_DOTTED = re.compile(
    r"(?<![\d.])(3[01]|[12]\d|0?[1-9])\.(1[0-2]|0?[1-9])\.((?:19|20)\d\d)(?![\d.]\d)"
)
_DOTTED_SHORT = re.compile(
    r"(?<![\d.])(3[01]|[12]\d|0[1-9])\.(1[0-2]|0[1-9])\.(\d\d)(?![\d.]\d|\d)"
)
_MONTH_SHORT = re.compile(rf"(?<![A-Za-z])({_MONTH})\.?[ \-]{{0,2}}'(\d\d)(?![\dA-Za-z'])", re.I)
_YEAR_SHORT = re.compile(r"'(\d\d)(?<![A-Za-z0-9']'\d\d)(?= [A-Za-z]|[.,;:!?)]?(?:\s|$))")
_YEAR_MARKED = re.compile(
    r"(?<![A-Za-z0-9])(20\d\d)(?:-?W[0-5]\d(?:-?[1-7])?|M(?:0[1-9]|1[0-2])|[EF])(?![A-Za-z0-9])"
)
_YEAR_IN_WORDS = re.compile(
    r"(?<![A-Za-z])twenty[ \-]twenty(?:[ \-](?:one|two|three|four|five|six|seven|eight|nine))?(?![A-Za-z0-9])",
    re.I,
)
_MARKED = re.compile(r"20\d\d-?[wmef]")
_SHORT_PERIOD = re.compile(r"(?<![A-Za-z0-9.])\d\d[ \-]?(?:Q[1-4]|H[12])E?(?![A-Za-z0-9])", re.I)
_LONE_QUARTER = re.compile(
    r"(?<![A-Za-z0-9])(?:Q[1-4]|[1-4]Q|H[12]|[12]H"
    r"|(?:first|second|third|fourth|1st|2nd|3rd|4th)[ \-](?:fiscal[ \-])?(?:quarter|half))(?![A-Za-z0-9])",
    re.I,
)
_CHINESE_QUARTER = re.compile(r"(?:第?[一二三四1-4]季度?|[上下]半年|年报|半年报|中报|[一三]季报)")
_CHARACTERS_DAY = re.compile(
    r"(?<![年〇零一二三四五六七八九十])([一二三四五六七八九十]{1,2})月([一二三四五六七八九十]{1,3})[日号]"
)
_CHARACTERS_MONTH = re.compile(
    r"(?:[〇零一二三四五六七八九]{2,4}年)?[一二三四五六七八九十]{1,2}月(?!份?[一二三四五六七八九十]{1,3}[日号])"
)
_CHARACTERS_YEAR = re.compile(r"(?:二[〇零]|一九)[〇零一二三四五六七八九]{2}年")

Kind = Literal["day", "year", "month", "period", "weekday", "festival"]
_CHINESE_ALONE: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (_CHINESE_FESTIVAL, "festival"),
    (_CHINESE_QUARTER, "period"),
    (_CHARACTERS_MONTH, "month"),
    (_CHARACTERS_YEAR, "year"),
)


class DateHit(NamedTuple):
    """A place in a text with a date.

    ``day`` counts from 1970-01-01. It is None if the date is not a single day.
    """

    start: int
    end: int
    kind: Kind
    day: int | None


class DatesWanted(NamedTuple):
    """The kinds of dates to search for.

    ``bare`` includes months, quarters and years without a day. The years are limited to this range.
    ``festivals`` includes festivals, quarters (``Q3``, ``24Q3``) and Chinese days without a year.
    """

    bare: range | None
    weekdays: bool = False
    festivals: bool = True


def find_dates(
    text: str,
    low: str,
    words: Set[str],
    is_number: Callable[[int], bool],
    today: int,
    wanted: DatesWanted,
) -> list[DateHit]:
    """Return the dates in a text, left to right, without overlap.

    ``words`` are the tokens of the text. They select the spellings to search for. A date without a
    year is interpreted as the date nearest to ``today``.
    """
    found = list(_usual(text, low, words, today, wanted))
    if wanted.festivals:
        found += _unusual(text, low, words, today, wanted.bare)
        if wanted.bare is not None and _MARKED.search(low) is not None:
            # A year with a mark of a week, a month or a forecast is not a bare year.
            found = [*_alone(_YEAR_MARKED, "period", text), *found]
    taken: list[DateHit] = []
    at = 0
    # The leftmost spelling has priority. Of two that begin together, the more specific one has
    # priority; it was yielded first.
    for hit in sorted(found, key=lambda hit: hit.start):
        if hit.start >= at and not (text[hit.start].isdigit() and is_number(hit.start)):
            taken.append(hit)
            at = hit.end
    return taken


# A prompt consists mostly of numbers, and the patterns above are slow. They search only around a
# possible year or month.
Window = tuple[int, int]
_YEARISH = re.compile(r"(?<![0-9])(?<![0-9]\.)(?<!asset_)(?:19|2[012])[0-9][0-9]")
_GLUED = re.compile(
    rf"\d{{1,2}}(?:st|nd|rd|th)?{_MONTH}(?:\d{{2,4}})?|{_MONTH}\d{{1,2}}(?:st|nd|rd|th)?"
)
_PERIOD_WORD = re.compile(
    r"(?:q[1-4]|h[12]|[1-4]q|[12]h|fy|cy)(?:\d{2}|\d{4})?e?|\d{4}(?:q[1-4]|h[12]|[1-4]q|[12]h)e?"
)
_REACH = 40
"""The maximum length of a date's spelling on either side of its year or month."""


def _windows(places: Iterable[int], text: str) -> list[Window]:
    """Return the stretches of text around the places, in order. Adjacent stretches are merged."""
    windows: list[Window] = []
    for place in places:
        start, end = max(0, place - _REACH), min(len(text), place + 2 * _REACH)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return windows


def _usual(
    text: str, low: str, words: Set[str], today: int, wanted: DatesWanted
) -> Iterator[DateHit]:
    """Yield hits, the most specific spellings first."""
    mixed = [word for word in words if not word.isdigit() and not word.isalpha()]
    years = _windows((found.start() for found in _YEARISH.finditer(text)), text)
    names = [*(MONTH_OF.keys() & words), *(word for word in mixed if _GLUED.fullmatch(word))]
    starts: list[int] = []
    for month in names:
        starts += [found.start() for found in re.finditer(month, low)]
    months = _windows(sorted(starts), text)
    for window in years:
        yield from _numeric(text, window)
    if text.count("/") >= 2:
        yield from _numeric(text, (0, len(text)), (_US,))
    if not text.isascii() and ("月" in text or "年" in text):
        yield from _chinese(text, today, wanted.bare)
    for window in months:
        yield from _english(text, window, today, wanted.bare)
    if wanted.bare is not None:
        if not words.isdisjoint(("fy", "cy")) or any(map(_PERIOD_WORD.fullmatch, mixed)):
            yield from _alone(_PERIOD, "period", text)
        for window in years:
            yield from _alone(_YEAR_MONTH, "month", text, window)
            yield from _alone(_YEAR, "year", text, window, wanted.bare)
        for window in months:
            yield from _alone(_LONE_MONTH, "month", text, window)
    if wanted.weekdays:
        yield from _alone(_LONE_WEEKDAY, "weekday", text)


def _unusual(
    text: str, low: str, words: Set[str], today: int, bare: range | None
) -> Iterator[DateHit]:
    """Yield dates in rare spellings, such as 20.3.2024."""
    if text.count(".") >= 2:
        for found in _DOTTED.finditer(text):
            yield from _dated(found, int(found[3]), int(found[2]), int(found[1]))
        for found in _DOTTED_SHORT.finditer(text):
            if bare is not None and 2000 + int(found[3]) in bare:
                yield from _dated(found, 2000 + int(found[3]), int(found[2]), int(found[1]))
    if not text.isascii():
        for found in _CHARACTERS_DAY.finditer(text):
            yield from _dated(found, None, _characters(found[1]), _characters(found[2]), today)
    if bare is None:
        return
    if "'" in text:
        if not MONTH_OF.keys().isdisjoint(words):
            yield from _alone(_MONTH_SHORT, "month", text)
        yield from _alone(_YEAR_SHORT, "year", text, among=bare)
    if "twenty" in words:
        yield from _alone(_YEAR_IN_WORDS, "year", text)
    if not _FESTIVE.isdisjoint(words):
        yield from _alone(_FESTIVAL, "festival", text)
    if (
        any(len(word) == 4 and word[:2].isdigit() and word[2] in "qh" for word in words)
        or " q" in low
    ):
        yield from _alone(_SHORT_PERIOD, "period", text)
    if not words.isdisjoint(("quarter", "half")) or any(map(_PERIOD_WORD.fullmatch, words)):
        yield from _alone(_LONE_QUARTER, "period", text)
    if not text.isascii():
        for pattern, kind in _CHINESE_ALONE:
            yield from _alone(pattern, kind, text)


def _alone(
    pattern: re.Pattern[str],
    kind: Kind,
    text: str,
    window: Window | None = None,
    among: range | None = None,
) -> Iterator[DateHit]:
    """Yield dates that are not a single day. ``among`` is the range of years to accept."""
    for found in pattern.finditer(text, *(window or (0, len(text)))):
        if among is None or _full_year(found[1]) in among:
            yield DateHit(*found.span(), kind, None)


def _numeric(
    text: str, window: Window, patterns: Sequence[re.Pattern[str]] = (_ISO, _US, _COMPACT)
) -> Iterator[DateHit]:
    for pattern in patterns:
        for found in pattern.finditer(text, *window):
            if pattern is _ISO:
                yield from _dated(found, int(found[1]), int(found[3]), int(found[4]))
            elif pattern is _COMPACT:
                yield from _dated(found, int(found[1]), int(found[2]), int(found[3]))
            elif len(found[4]) == 4 or found[2] == "/":
                first, second, year = int(found[1]), int(found[3]), _full_year(found[4])
                yield from _dated(found, year, first, second) or _dated(found, year, second, first)


def _chinese(text: str, today: int, bare: range | None) -> Iterator[DateHit]:
    for found in _IN_CHARACTERS.finditer(text):
        yield from _dated(found, *map(_characters, found.groups()))
    for found in _CHINESE.finditer(text):
        year, month, day, lone = found.groups()
        if lone is not None:
            if bare is not None and int(lone) in bare:
                yield DateHit(*found.span(), "year", None)
        elif day is not None:
            yield from _dated(
                found, None if year is None else _full_year(year), int(month), int(day), today
            )
        elif bare is not None or year is not None:
            yield DateHit(*found.span(), "month", None)


def _english(text: str, window: Window, today: int, bare: range | None) -> Iterator[DateHit]:
    if bare is not None:
        # These precede the spellings with a day: "March 2024" is not the 20th of March.
        yield from _alone(_MONTH_YEAR, "month", text, window)
    for pattern, month_at, day_at in ((_MONTH_THEN_DAY, 1, 2), (_DAY_THEN_MONTH, 2, 1)):
        for found in pattern.finditer(text, *window):
            name, year = found[month_at], found[3]
            if name in ("may", "mar") and year is None:  # "may 5 be enough?"
                continue
            day = int(re.sub(r"\D", "", found[day_at]))
            yield from _dated(
                found,
                None if year is None else _full_year(year),
                MONTH_OF[name.lower()],
                day,
                today,
            )


def _characters(text: str) -> int:
    """Return a number written in Chinese characters: a year digit by digit, or a number up to 39."""
    if "十" in text:
        tens, _, ones = text.partition("十")
        return (_characters(tens) if tens else 1) * 10 + (_characters(ones) if ones else 0)
    return int("".join(str("〇一二三四五六七八九".find(char)) for char in text.replace("零", "〇")))


def _full_year(text: str) -> int:
    return int(text) if len(text) == 4 else 2000 + int(text)


def _dated(
    found: re.Match[str], year: int | None, month: int, day: int, today: int = 0
) -> list[DateHit]:
    if year is not None:
        days = [_day_number(year, month, day)]
    else:
        present = date.fromordinal(today + _EPOCH).year
        days = [_day_number(one, month, day) for one in (present - 1, present, present + 1)]
    known = [number for number in days if number is not None]
    return (
        [DateHit(*found.span(), "day", min(known, key=lambda number: abs(number - today)))]
        if known
        else []
    )


def _day_number(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
