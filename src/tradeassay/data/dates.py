"""Dates as people write them: whole columns of a table, and places in a running text.

The one reader of dates in the house. Imports and accounts read columns (:func:`spelling_of`, :func:`read_days`),
masks and the checks of the information stream look for dates in prose (:func:`find_dates`).
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from tradeassay.core.errors import UserError

DayOrder = Literal["dmy", "mdy"]
Parser = Callable[[str], datetime]
ENGLISH_MONTHS = "January February March April May June July August September October November December".split()
_STEMS = tuple(
    tuple(stems.split("|"))
    for stems in (
        "jan|gen|ene feb|fev|fév mar|mär apr|abr|avr may|mai|mag jun|giu|juin jul|lug|juil aug|ago|aoû|aou "
        "sep|set oct|okt|ott|out nov dec|dez|dic|déc"
    ).split()
)
"""How the names of months begin in English, German, French, Italian, Spanish and Portuguese."""
_PER_SECOND = {9: 1, 10: 1, 12: 10**3, 13: 10**3, 16: 10**6, 19: 10**9}
"""How many units of an epoch make a second, by its number of digits."""
_SPREADSHEET_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - wall time before its zone is known
_PARTS = re.compile(r"(\d{1,4})[-/.年](\d{1,2})[-/.月](\d{1,4})日?(?:[ T]+(.+))?")
_MONTH_OF_YEAR = re.compile(r"((?:19|20)\d{2})[-/.]?(0[1-9]|1[0-2])")
_YEAR_BEHIND = re.compile(r"(0?[1-9]|1[0-2])[-/.]((?:19|20)\d{2})")
_QUARTER = re.compile(r"((?:19|20)\d{2})[ -]?Q([1-4])|Q([1-4])[ /-]?((?:19|20)\d{2})", re.I)
_LEADING_WEEKDAY = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+", re.I)
_TIME_BEHIND = re.compile(r"[T\s]+\d{1,2}:\d{2}.*$")
UNREADABLE = (ValueError, OverflowError, OSError)
"""What a parser raises for a cell that is no date."""


# -- columns -----------------------------------------------------------------------------------------------------


def _digits(cell: str) -> datetime:
    """Read ``20240131``, with a time of day behind it, or an epoch in seconds to nanoseconds."""
    plain = cell.removesuffix(".0").replace(" ", "").replace(":", "")
    if not plain.isdigit():
        raise ValueError(cell)
    if plain[:2] in ("18", "19", "20") and len(plain) in (8, 12, 14):
        parts = [int(plain[start : start + 2]) for start in range(4, len(plain), 2)]
        return datetime(int(plain[:4]), *parts)  # type: ignore[arg-type]  # noqa: DTZ001 - the zone comes later
    if len(plain) not in _PER_SECOND:
        raise ValueError(cell)
    whole, rest = divmod(int(plain), _PER_SECOND[len(plain)])
    return datetime.fromtimestamp(whole, UTC) + timedelta(microseconds=rest * 10**6 // _PER_SECOND[len(plain)])


def _serial(cell: str, epoch: datetime = _SPREADSHEET_EPOCH) -> datetime:
    """Read days since 1899-12-30, as spreadsheets count them; behind the point is the time of day."""
    if not re.fullmatch(r"[2-6]\d{4}(\.\d+)?", cell):
        raise ValueError(cell)
    return epoch + timedelta(days=int(float(cell)))


_serial_1904 = partial(_serial, epoch=datetime(1904, 1, 1))  # noqa: DTZ001 - as spreadsheets from older Macs count


def _ordered(order: str, *, short: bool = True) -> Parser:
    """Return a parser for three numbers; ``short`` years have two digits, or four."""
    places = {letter: index + 1 for index, letter in enumerate(order)}

    def parse(cell: str) -> datetime:
        match = _PARTS.fullmatch(cell)
        if match is None:
            raise ValueError(cell)
        year, month, day = (match[places[letter]] for letter in "ymd")
        if len(year) == 2 and short:
            year = str(datetime.strptime(year, "%y").year)  # noqa: DTZ007 - the zone comes later
        if len(year) != 4:
            raise ValueError(cell)
        tail = "" if match[4] is None else "T" + re.sub(r"^(?=\d:)", "0", match[4])
        return datetime.fromisoformat(f"{year}-{int(month):02d}-{int(day):02d}{tail}")

    return parse


def _worded(form: str, *, day: bool = True) -> Parser:
    """Return a parser for a month in words, whatever stands between the parts; ``form`` has single blanks."""

    def english(word: re.Match[str]) -> str:
        text = word[0].lower()
        return next((stems[0] for stems in _STEMS if text.startswith(stems)), word[0])

    def parse(cell: str) -> datetime:
        plain = re.sub(r"[-/.,]|\b(?:de|del|of)\b", " ", re.sub(r"[^\W\d_]{3,}", english, cell))
        found = datetime.strptime(" ".join(plain.split()), form)  # noqa: DTZ007 - the zone comes later
        return found if day else _last_day(found.year, found.month)

    return parse


def _last_day(year: int, month: int) -> datetime:
    """Return the day on which what happened in a month is known."""
    return datetime(year, month, calendar.monthrange(year, month)[1])  # noqa: DTZ001 - the zone comes later


def _month(cell: str) -> datetime:
    if found := _QUARTER.fullmatch(cell):
        return _last_day(int(found[1] or found[4]), 3 * int(found[2] or found[3]))
    if found := _YEAR_BEHIND.fullmatch(cell):
        return _last_day(int(found[2]), int(found[1]))
    if found := _MONTH_OF_YEAR.fullmatch(cell):
        return _last_day(int(found[1]), int(found[2]))
    raise ValueError(cell)


_ORDER_OF: dict[str, DayOrder] = {"month/day/year": "mdy", "day/month/year": "dmy"}
_SPELLINGS: dict[str, Parser] = {
    "ISO": datetime.fromisoformat,
    "digits": _digits,
    "year-month-day": _ordered("ymd", short=False),
    **{name: _ordered(order) for name, order in _ORDER_OF.items()},
    "Jan 02, 2024": _worded("%b %d %Y"),
    "02 Jan 2024": _worded("%d %b %Y"),
    "02 Jan 24": _worded("%d %b %y"),
    "days of a spreadsheet": _serial,
}
_MONTHS_ALONE: dict[str, Parser] = {
    "2024-01": _month,
    "Jan 2024": _worded("%b %Y", day=False),
    "Jan 24": _worded("%b %y", day=False),
}


def _reads(parse: Parser, cell: str) -> bool:
    try:
        parse(cell)
    except UNREADABLE:
        return False
    return True


def spelling_of(cells: Sequence[str], *, months: bool = False) -> tuple[str, Parser]:
    """Return the spelling that reads most cells (``months``: also whole months); ties go to month before day."""
    candidates = _SPELLINGS | _MONTHS_ALONE if months else _SPELLINGS
    if cells and all(cell.removesuffix(".0").isdigit() for cell in cells[:50]):
        numeric = ("digits", "days of a spreadsheet", "2024-01")
        candidates = {name: parse for name, parse in candidates.items() if name in numeric}
    best, most = next(iter(candidates.items())), -1
    for name, parse in candidates.items():
        read = sum(_reads(parse, cell) for cell in cells)
        if read > most:
            best, most = (name, parse), read
        if read == len(cells):
            break
    if best[1] is _serial and len(cells) > 9:
        # The epochs are a day of the week apart: trading days read by the wrong one have Sundays and no Fridays.
        days = [
            [parse(cell).weekday() for cell in cells if _reads(parse, cell)] for parse in (_serial, _serial_1904)
        ]
        weekends = [sum(day > 4 for day in one) / max(1, len(one)) for one in days]
        if weekends[0] > 0.05 > weekends[1]:
            return "days of a spreadsheet that counts from 1904", _serial_1904
    return best


def month_of(text: str) -> int | None:
    """Return the month, 1 to 12, that a word names in one of the languages known here, None if it names none."""
    word = text.strip().strip(".").lower()
    places = (place for place, stems in enumerate(_STEMS, start=1) if word.startswith(stems))
    return next(places, None) if word.isalpha() else None


def _turns(days: Sequence[date]) -> int:
    """Return how many rows are not in the order, up or down, in which most are."""
    return min(sum(one > two for one, two in pairwise(way)) for way in (days, days[::-1]))


def read_days(name: str, values: Sequence[Any], order: DayOrder | None) -> list[str]:
    """Return a column as ISO days (a month is its last); :class:`UserError` for what is no day, or two without
    ``order``."""
    cells = []
    for value in values:
        text = "" if value is None else unicodedata.normalize("NFKC", str(value)).strip().strip('"')
        cells.append(_TIME_BEHIND.sub("", _LEADING_WEEKDAY.sub("", text, count=1)))
    spelling, parse = spelling_of(cells, months=True)
    if spelling in _ORDER_OF:
        both = all(_reads(_SPELLINGS[other], cell) for other in _ORDER_OF for cell in cells)
        if order is None and both and "." not in cells[0]:
            problem = f"{name}: days like {cells[0]} can be read in two ways"
            raise UserError(problem, hint="say which: reading={'dates': 'dmy'} or reading={'dates': 'mdy'}")
        # Where points separate the parts, the day is first.
        chosen = order or ("dmy" if both else _ORDER_OF[spelling])
        parse, years_first = _ordered(chosen), _ordered("ymd")
        if order is None and all(_reads(one, cell) for one in (parse, years_first) for cell in cells):
            # Two digits each: the years come first where that puts the rows closer together, and in order. Month
            # ends of ten years, the year last, would be closer together as days of 2028 to 2031 as well.
            late, early = ([one(cell).date() for cell in cells] for one in (parse, years_first))
            closer = max(early) - min(early) < max(late) - min(late)
            parse = years_first if closer and 3 * _turns(early) < _turns(late) else parse
    days = []
    for row, cell in enumerate(cells):
        try:
            days.append(parse(cell).date().isoformat())
        except UNREADABLE:
            problem = f"{name}: row {row + 1}: '{cell}' is not a day"
            raise UserError(problem, hint="write all days as 2024-01-31") from None
    return days


def is_day(text: str) -> bool:
    compact = re.fullmatch(r"((?:19|20)\d\d)[-_/.]?(\d\d)[-_/.]?(\d\d)(?:[ T].*)?", text)
    if compact:
        return _day_number(*map(int, compact.groups())) is not None
    plain = re.fullmatch(r"(\d\d?)[-_/.](\d\d?)[-_/.]((?:19|20)\d\d)", text)
    if not plain:
        return False
    first, second, year = map(int, plain.groups())
    return _day_number(year, first, second) is not None or _day_number(year, second, first) is not None


# -- prose -------------------------------------------------------------------------------------------------------

_EPOCH = date(1970, 1, 1).toordinal()
MONTH_OF = {name.lower(): number for number, name in enumerate(ENGLISH_MONTHS, start=1)}
MONTH_OF |= {name[:3]: number for name, number in list(MONTH_OF.items())} | {"sept": 9}
"""The number of a month by its English name or abbreviation, in lower case."""
_MONTH = "(?:" + "|".join(sorted(MONTH_OF, key=len, reverse=True)) + ")"
_WEEKDAY = (
    r"(?:(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)days?)|(?:Mon|Tue|Tues|Wed|Thu|Thur|Thurs|Fri|Sat|Sun)\b\.?)"
)
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})(?![A-Za-z0-9]))?)?"
_EDGE, _STOP = r"(?<![A-Za-z0-9])(?<!\d\.)", r"(?![A-Za-z0-9])"
_YEAR_ENDS = r"(?![A-Za-z0-9]|[-/.]\d|\s*年)"
_DAY_OF_MONTH = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"

_ISO = re.compile(rf"{_EDGE}(\d{{4}})([-/.]|_)(\d{{1,2}})\2(\d{{1,2}})(?:{_TIME}(?!\d)|(?![\d]))", re.I)
_US = re.compile(rf"{_EDGE}(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_STOP}")
_COMPACT = re.compile(r"(?<![0-9])(?<!\d\.)((?:19|20|21|22)\d{2})(\d{2})(\d{2})(?:T?\d{4,6}Z?)?(?![0-9])(?!\.\d)")
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
_MONTH_YEAR = re.compile(rf"(?<![A-Za-z])({_MONTH})\.?,?(?: of)?[ \-']{{1,2}}((?:19|20)\d{{2}}){_YEAR_ENDS}", re.I)
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
_DOTTED = re.compile(r"(?<![\d.])(3[01]|[12]\d|0?[1-9])\.(1[0-2]|0?[1-9])\.((?:19|20)\d\d)(?![\d.]\d)")
_DOTTED_SHORT = re.compile(r"(?<![\d.])(3[01]|[12]\d|0[1-9])\.(1[0-2]|0[1-9])\.(\d\d)(?![\d.]\d|\d)")
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
    """A place in a text that gives a date. ``day`` counts from 1970-01-01; None when it names no single day."""

    start: int
    end: int
    kind: Kind
    day: int | None


class DatesWanted(NamedTuple):
    """Which dates are looked for. ``bare`` also finds lone months and quarters, and lone years of that range;
    ``festivals`` also festivals, quarters (``Q3``, ``24Q3``) and Chinese days without a year."""

    bare: range | None
    weekdays: bool = False
    festivals: bool = True


def find_dates(
    text: str, low: str, words: Set[str], is_number: Callable[[int], bool], today: int, wanted: DatesWanted
) -> list[DateHit]:
    """Return the dates in a text, left to right, none inside another. ``words`` (its tokens) tell which spellings
    are worth looking for; a date without a year is taken to be the one nearest to ``today``."""
    found = list(_usual(text, low, words, today, wanted))
    if wanted.festivals:
        found += _unusual(text, low, words, today, wanted.bare)
        if wanted.bare is not None and _MARKED.search(low) is not None:
            # A year with the mark of a week, a month or a forecast is more than a year.
            found = [*_alone(_YEAR_MARKED, "period", text), *found]
    taken: list[DateHit] = []
    at = 0
    # The leftmost spelling wins; of two that begin together, the more telling one, which was yielded first.
    for hit in sorted(found, key=lambda hit: hit.start):
        if hit.start >= at and not (text[hit.start].isdigit() and is_number(hit.start)):
            taken.append(hit)
            at = hit.end
    return taken


# A prompt is mostly numbers, and the patterns above are slow: they only look around what may be a year or a month.
Window = tuple[int, int]
_YEARISH = re.compile(r"(?<![0-9])(?<![0-9]\.)(?<!asset_)(?:19|2[012])[0-9][0-9]")
_GLUED = re.compile(rf"\d{{1,2}}(?:st|nd|rd|th)?{_MONTH}(?:\d{{2,4}})?|{_MONTH}\d{{1,2}}(?:st|nd|rd|th)?")
_PERIOD_WORD = re.compile(
    r"(?:q[1-4]|h[12]|[1-4]q|[12]h|fy|cy)(?:\d{2}|\d{4})?e?|\d{4}(?:q[1-4]|h[12]|[1-4]q|[12]h)e?"
)
_REACH = 40
"""No spelling of a date is longer than this on either side of its year or month."""


def _windows(places: Iterable[int], text: str) -> list[Window]:
    """Return the stretches around the places, in order; those that touch are merged."""
    windows: list[Window] = []
    for place in places:
        start, end = max(0, place - _REACH), min(len(text), place + 2 * _REACH)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return windows


def _usual(text: str, low: str, words: Set[str], today: int, wanted: DatesWanted) -> Iterator[DateHit]:
    """Yield hits, the most telling spellings first."""
    mixed = [word for word in words if not word.isdigit() and not word.isalpha()]
    years = _windows((found.start() for found in _YEARISH.finditer(text)), text)
    names = [*(MONTH_OF.keys() & words), *(word for word in mixed if _GLUED.fullmatch(word))]
    months = _windows(sorted(found.start() for name in names for found in re.finditer(name, low)), text)
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


def _unusual(text: str, low: str, words: Set[str], today: int, bare: range | None) -> Iterator[DateHit]:
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
    if any(len(word) == 4 and word[:2].isdigit() and word[2] in "qh" for word in words) or " q" in low:
        yield from _alone(_SHORT_PERIOD, "period", text)
    if not words.isdisjoint(("quarter", "half")) or any(map(_PERIOD_WORD.fullmatch, words)):
        yield from _alone(_LONE_QUARTER, "period", text)
    if not text.isascii():
        for pattern, kind in _CHINESE_ALONE:
            yield from _alone(pattern, kind, text)


def _alone(
    pattern: re.Pattern[str], kind: Kind, text: str, window: Window | None = None, among: range | None = None
) -> Iterator[DateHit]:
    """Yield what names no single day; ``among`` are the years that count."""
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
            yield from _dated(found, None if year is None else _full_year(year), int(month), int(day), today)
        elif bare is not None or year is not None:
            yield DateHit(*found.span(), "month", None)


def _english(text: str, window: Window, today: int, bare: range | None) -> Iterator[DateHit]:
    if bare is not None:
        # Before the spellings with a day: "March 2024" is not the 20th of March.
        yield from _alone(_MONTH_YEAR, "month", text, window)
    for pattern, month_at, day_at in ((_MONTH_THEN_DAY, 1, 2), (_DAY_THEN_MONTH, 2, 1)):
        for found in pattern.finditer(text, *window):
            name, year = found[month_at], found[3]
            if name in ("may", "mar") and year is None:  # "may 5 be enough?"
                continue
            day = int(re.sub(r"\D", "", found[day_at]))
            yield from _dated(
                found, None if year is None else _full_year(year), MONTH_OF[name.lower()], day, today
            )


def _characters(text: str) -> int:
    """Return a number written in Chinese characters: a year digit by digit, or a number up to 39."""
    if "十" in text:
        tens, _, ones = text.partition("十")
        return (_characters(tens) if tens else 1) * 10 + (_characters(ones) if ones else 0)
    return int("".join(str("〇一二三四五六七八九".find(char)) for char in text.replace("零", "〇")))


def _full_year(text: str) -> int:
    return int(text) if len(text) == 4 else 2000 + int(text)


def _dated(found: re.Match[str], year: int | None, month: int, day: int, today: int = 0) -> list[DateHit]:
    if year is not None:
        days = [_day_number(year, month, day)]
    else:
        present = date.fromordinal(today + _EPOCH).year
        days = [_day_number(one, month, day) for one in (present - 1, present, present + 1)]
    known = [number for number in days if number is not None]
    return [DateHit(*found.span(), "day", min(known, key=lambda number: abs(number - today)))] if known else []


def _day_number(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
