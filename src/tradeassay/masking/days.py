"""Days of one episode, and the dates in its texts.

``day_+12`` is the twelfth session after the first, ``day_-3`` lies in its history. Only sessions are counted, so
neither weekends nor holidays show. Where a type wants a date or an instant, session n of every episode is
the day :data:`ANCHOR` + n: a date that no data set reaches. Dates are found in ISO, compact, Chinese, US and
English spellings, and so are years and months that stand alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Set
from datetime import date
from typing import Literal, NamedTuple

import numpy as np

from tradeassay.core.time import DAY, HOUR, Instant
from tradeassay.core.view import Days
from tradeassay.masking.lexicon import JsonSpans
from tradeassay.masking.mask_config import UnknownAlias

ANCHOR = np.datetime64("2200-01-01", "D")
"""The day that stands for the first session of every episode, where a date has to be given as a date."""
_ANCHOR = int(ANCHOR.astype(np.int64))
_SHOWN = range(_ANCHOR - 18_000, _ANCHOR + 18_000)
_FORM = re.compile(r"day_([+-]\d{1,6})")
_WHOLE = 23 * HOUR
"""This much of a day before a gap keeps its time of day; the rest, and the gap, share the last hour."""


def label_of(index: int) -> str:
    """Return the label of a session counted from the first one (0)."""
    return f"day_{index:+d}"


class DayMap:
    """Real days and instants to masked ones and back.

    ``sessions`` are the snapshot's up to the end of the episode, ``first`` is the row of the episode's first one.
    A day without a session has the label of the session before it. Outside the sessions every calendar day counts.
    """

    def __init__(self, sessions: Days, first: int) -> None:
        self._array = sessions.astype("datetime64[D]", copy=False).astype(np.int64)
        self._days: list[int] = self._array.tolist()
        self._first = first
        self._last = len(self._days) - 1
        first_year, last_year = (date.fromordinal(_EPOCH + day).year for day in (self._days[0], self._days[-1]))
        self.years = range(first_year - 1, last_year + 3)
        """Years that, standing alone in a text, would give the present away."""

    def covers(self, day: int) -> bool:
        """Tell whether a day is near enough to the episode or its history to be counted from there.

        A date far outside is an anchor of its own ("the crash of 1929"): counted, it would give the present away.
        """
        return self._days[0] - 31 <= day <= self._days[-1] + 400

    # -- days ----------------------------------------------------------------------------------------------------

    def index(self, day: int) -> int:
        """Return the session count of a day (given in days since 1970-01-01)."""
        row = bisect_right(self._days, day) - 1
        if row < 0:
            return day - self._days[0] - self._first
        beyond = day - self._days[-1] if row == self._last else 0
        return row - self._first + beyond

    def label(self, day: int) -> str:
        """Return the label of a day (given in days since 1970-01-01)."""
        return label_of(self.index(day))

    def day(self, index: int) -> int:
        """Return the real day of a session count (in days since 1970-01-01)."""
        row = index + self._first
        if row < 0:
            return self._days[0] + row
        return self._days[row] if row <= self._last else self._days[-1] + row - self._last

    def read(self, text: str) -> int:
        """Return the real day of a label; raises :class:`UnknownAlias` for anything that is not a label."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise UnknownAlias("that is no day of this episode", hint="write days as they were shown, e.g. day_-3")
        day = self.day(int(found[1]))
        if not -719_000 < day < 2_900_000:
            raise UnknownAlias(f"'{text}' is no day of this episode", hint="write days as they were shown")
        return day

    # -- dates and instants that have to stay dates and instants -------------------------------------------------

    def shown(self, days: Days) -> Days:
        """Return real session days as read-only days after the anchor."""
        rows = np.searchsorted(self._array, days.astype("datetime64[D]").astype(np.int64))
        result: Days = ANCHOR + (rows - self._first)
        result.setflags(write=False)
        return result

    def shown_index(self, day: int) -> int | None:
        """Return the session count that a day near the anchor stands for, or None for any other day."""
        return day - _ANCHOR if day in _SHOWN else None

    def shown_instant(self, at: Instant) -> Instant:
        """Return a real instant on the masked calendar. The order of instants is kept."""
        day, within = divmod(at, DAY)
        row = bisect_right(self._days, day) - 1
        if row < 0 or row == self._last:
            return (_ANCHOR + self.index(day)) * DAY + within
        gap = self._days[row + 1] - self._days[row]
        within += (day - self._days[row]) * DAY
        if gap > 1 and within > _WHOLE:
            within = _WHOLE + (within - _WHOLE) * HOUR // (gap * DAY - _WHOLE)
        return (_ANCHOR + row - self._first) * DAY + within

    def real_instant(self, shown: Instant) -> Instant:
        """Return the latest real instant that is shown no later than ``shown``."""
        day, within = divmod(shown, DAY)
        row = day - _ANCHOR + self._first
        if row < 0 or row >= self._last:
            return self.day(row - self._first) * DAY + within
        gap = self._days[row + 1] - self._days[row]
        if gap > 1 and within >= _WHOLE:
            squeezed = within - _WHOLE
            within = _WHOLE + ((squeezed + 1) * (gap * DAY - _WHOLE) - 1) // HOUR
        return self._days[row] * DAY + within

    def instant_label(self, at: Instant, *, time_of_day: bool = False) -> str:
        """Return the label of a real instant's day, with its UTC time of day when asked for."""
        day, within = divmod(at, DAY)
        label = self.label(day)
        return f"{label} {within // HOUR:02d}:{within % HOUR // 60_000_000_000:02d}" if time_of_day else label


_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun",
            "july jul", "august aug", "september sep sept", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + ")"
_WEEKDAY = (
    r"(?:(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)days?)|(?:Mon|Tue|Tues|Wed|Thu|Thur|Thurs|Fri|Sat|Sun)\b\.?)"
)
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})(?![A-Za-z0-9]))?)?"
_EDGE, _STOP = r"(?<![A-Za-z0-9])(?<!\d\.)", r"(?![A-Za-z0-9])"
_YEAR_ENDS = r"(?![A-Za-z0-9]|[-/.]\d|\s*年)"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?"

_ISO = re.compile(rf"{_EDGE}(\d{{4}})([-/.]|_)(\d{{1,2}})\2(\d{{1,2}})(?:{_TIME}(?!\d)|(?![\d]))", re.I)
_US = re.compile(rf"{_EDGE}(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_STOP}")
_COMPACT = re.compile(r"(?<![0-9])(?<!\d\.)((?:19|20|21|22)\d{2})(\d{2})(\d{2})(?:T?\d{4,6}Z?)?(?![0-9])(?!\.\d)")
_CHINESE = re.compile(
    r"(?:(\d{4}|\d{2})\s*年\s*)?(\d{1,2})\s*月\s*(?:(\d{1,2})\s*[日号])?|(?<!\d)(\d{4}|\d{2})\s*年(?:度|[一二三四1-4]季度)?"
)
_IN_CHARACTERS = re.compile(
    r"([〇零一二三四五六七八九]{4})年([一二三四五六七八九十]{1,2})月([一二三四五六七八九十]{1,3})[日号]"
)
_MONTH_FIRST = re.compile(
    rf"(?<![A-Za-z])({_MONTH})\.?[\s\-]{{0,3}}({_DAY})(?![0-9A-Za-z%]|[.:]\d)"
    rf"(?:,?[\s\-]{{0,3}}'?((?:19|20)\d{{2}}|(?<=')\d{{2}}){_YEAR_ENDS})?",
    re.I,
)
_DAY_FIRST = re.compile(
    rf"(?<![0-9A-Za-z])(?<!\d\.)(?<!_[+\-])({_DAY})[\s\-]{{0,3}}(?:of )?({_MONTH})(?![A-Za-z])"
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
    r"(?<![A-Za-z])(?:twenty[ \-]twenty(?:[ \-](?:one|two|three|four|five|six|seven|eight|nine))?"
    r"|MMX(?=[XVI])(?:X|IX|V?I{0,3}|IV)?(?:IX|IV|V?I{0,3})|2k[12]\d)(?![A-Za-z0-9])",
    re.I,
)
_YEAR_WORDS = frozenset(["twenty", *(f"2k{year}" for year in range(10, 30))]) | frozenset(
    "mmxv mmxvi mmxvii mmxviii mmxix mmxx mmxxi mmxxii mmxxiii mmxxiv mmxxv mmxxvi mmxxvii".split()
)
_MARKED = re.compile(r"20\d\d-?[wmef]")
_SHORT_PERIOD = re.compile(r"(?<![A-Za-z0-9.])\d\d[ \-]?(?:Q[1-4]|H[12])E?(?![A-Za-z0-9])", re.I)
_CHINESE_QUARTER = re.compile(r"(?:第?[一二三四1-4]季度?|[上下]半年|年报|半年报|中报|[一三]季报)")
_CHARACTERS_DAY = re.compile(
    r"(?<![年〇零一二三四五六七八九十])([一二三四五六七八九十]{1,2})月([一二三四五六七八九十]{1,3})[日号]"
)
_CHARACTERS_MONTH = re.compile(
    r"(?:[〇零一二三四五六七八九]{2,4}年)?[一二三四五六七八九十]{1,2}月(?!份?[一二三四五六七八九十]{1,3}[日号])"
)
_CHARACTERS_YEAR = re.compile(r"(?:二[〇零]|一九)[〇零一二三四五六七八九]{2}年")

Kind = Literal["day", "year", "month", "period", "weekday", "festival"]


_CHINESE_LONE: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (_CHINESE_FESTIVAL, "festival"), (_CHINESE_QUARTER, "period"), (_CHARACTERS_MONTH, "month"),
    (_CHARACTERS_YEAR, "year"),
)  # fmt: skip


class DateHit(NamedTuple):
    """A place in a text that gives a date. ``day`` counts from 1970-01-01; None when it names no single day."""

    start: int
    end: int
    kind: Kind
    day: int | None


class DatesWanted(NamedTuple):
    """Which dates are looked for. ``bare`` also finds lone months and quarters, and lone years of that range;
    ``all_spellings`` also festivals, ``24Q3`` and Chinese days and quarters without a year.
    """

    bare: range | None
    weekdays: bool = False
    all_spellings: bool = True


def find_dates(
    text: str, low: str, words: Set[str], spans: Callable[[], JsonSpans], today: int, wanted: DatesWanted
) -> list[DateHit]:
    """Return the dates in a text, left to right, none inside another.

    ``low`` is the text in lower case and ``words`` its tokens: they tell which spellings are worth looking for.
    A date without a year is taken to be the one nearest to ``today``.
    """
    bare, weekdays, all_spellings = wanted
    taken: list[DateHit] = []
    at = 0
    # The leftmost spelling wins; of two that begin together, the more telling one, which was yielded first.
    every = _all(text, low, words, today, bare, weekdays)
    more = _more(text, low, words, today, bare) if all_spellings else ()
    # A year with the mark of a week, a month or a forecast is more than a year.
    marked = all_spellings and bare is not None and _MARKED.search(low) is not None
    first = _lone(_YEAR_MARKED, "period", text, (0, len(text))) if marked else ()
    for hit in sorted((*first, *every, *more), key=lambda found: found.start):
        if hit.start >= at and not (text[hit.start].isdigit() and spans().bare(hit.start)):
            taken.append(hit)
            at = hit.end
    return taken


def _all(
    text: str, low: str, words: Set[str], today: int, bare: range | None, weekdays: bool
) -> Iterator[DateHit]:
    """Yield hits, the most telling spellings first."""
    mixed = [word for word in words if not word.isdigit() and not word.isalpha()]
    years = _windows(_year_places(text), text)
    months = _windows(_month_places(low, words, mixed), text)
    for window in years:
        yield from _numeric(text, window)
    if text.count("/") >= 2:
        yield from _us(text, (0, len(text)))
    if not text.isascii() and ("月" in text or "年" in text):
        yield from _chinese(text, today, bare)
    for window in months:
        yield from _english(text, window, today, bare)
    if bare is not None:
        if _has_period(words, mixed):
            yield from _lone(_PERIOD, "period", text, (0, len(text)))
        for window in years:
            yield from _lone(_YEAR_MONTH, "month", text, window)
            lone = (found for found in _YEAR.finditer(text, *window) if int(found[1]) in bare)
            yield from (DateHit(*found.span(), "year", None) for found in lone)
        for window in months:
            yield from _lone(_LONE_MONTH, "month", text, window)
    if weekdays:
        yield from _lone(_LONE_WEEKDAY, "weekday", text, (0, len(text)))


def _more(text: str, low: str, words: Set[str], today: int, bare: range | None) -> Iterator[DateHit]:
    """Yield the spellings that first versions do not know."""
    whole = (0, len(text))
    if text.count(".") >= 2:
        for found in _DOTTED.finditer(text):
            yield from _hit(found, int(found[3]), int(found[2]), int(found[1]))
        for found in _DOTTED_SHORT.finditer(text):
            if bare is not None and 2000 + int(found[3]) in bare:
                yield from _hit(found, 2000 + int(found[3]), int(found[2]), int(found[1]))
    if not text.isascii():
        for found in _CHARACTERS_DAY.finditer(text):
            yield from _nearest(found, _characters(found[1]), _characters(found[2]), today)
    if bare is None:
        return
    yield from _odd_years(text, words, bare)
    if not _FESTIVE.isdisjoint(words):
        yield from _lone(_FESTIVAL, "festival", text, whole)
    if any(len(word) == 4 and word[:2].isdigit() and word[2] in "qh" for word in words) or " q" in low:
        yield from _lone(_SHORT_PERIOD, "period", text, whole)
    if not text.isascii():
        for pattern, kind in _CHINESE_LONE:
            yield from _lone(pattern, kind, text, whole)


def _odd_years(text: str, words: Set[str], bare: range) -> Iterator[DateHit]:
    """Yield years in two digits, in words, or in Roman numerals."""
    whole = (0, len(text))
    if "'" in text:
        if not _MONTHS.keys().isdisjoint(words):
            yield from _lone(_MONTH_SHORT, "month", text, whole)
        short = (found for found in _YEAR_SHORT.finditer(text) if 2000 + int(found[1]) in bare)
        yield from (DateHit(*found.span(), "year", None) for found in short)
    if not _YEAR_WORDS.isdisjoint(words):
        yield from _lone(_YEAR_IN_WORDS, "year", text, whole)


# -- where is it worth looking? A prompt is mostly numbers, and the patterns above are slow. ---------------------

Window = tuple[int, int]
_YEARISH = re.compile(r"(?:19|2[012])[0-9][0-9]")
_GLUED = re.compile(rf"\d{{1,2}}(?:st|nd|rd|th)?{_MONTH}(?:\d{{2,4}})?|{_MONTH}\d{{1,2}}(?:st|nd|rd|th)?")
_PERIOD_WORD = re.compile(
    r"(?:q[1-4]|h[12]|[1-4]q|[12]h|fy|cy)(?:\d{2}|\d{4})?e?|\d{4}(?:q[1-4]|h[12]|[1-4]q|[12]h)e?"
)
_REACH = 40
"""No spelling of a date is longer than this on either side of its year or month."""


def _year_places(text: str) -> Iterator[int]:
    """Yield where four digits may be a year: not after a decimal point, not inside a number or an alias."""
    for found in _YEARISH.finditer(text):
        start = found.start()
        before = text[start - 1] if start else " "
        if before.isdigit() or (before == "." and text[start - 2 : start - 1].isdigit()):
            continue
        if before != "_" or text[start - 6 : start] != "asset_":
            yield start


def _month_places(low: str, words: Set[str], mixed: list[str]) -> Iterator[int]:
    """Yield where the name of a month may be, in order."""
    wanted = [*(_MONTHS.keys() & words), *(word for word in mixed if _GLUED.fullmatch(word))]
    yield from sorted(place for word in wanted for place in _occurrences(low, word))


def _occurrences(low: str, word: str) -> Iterator[int]:
    at = low.find(word)
    while at >= 0:
        yield at
        at = low.find(word, at + 1)


def _windows(places: Iterator[int], text: str) -> list[Window]:
    """Return the stretches around the places, in order; those that touch are merged."""
    windows: list[Window] = []
    for place in places:
        start, end = max(0, place - _REACH), min(len(text), place + 2 * _REACH)
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return windows


def _has_period(words: Set[str], mixed: list[str]) -> bool:
    return "fy" in words or "cy" in words or any(_PERIOD_WORD.fullmatch(word) for word in mixed)


# -- the spellings -----------------------------------------------------------------------------------------------


def _lone(pattern: re.Pattern[str], kind: Kind, text: str, window: Window) -> Iterator[DateHit]:
    yield from (DateHit(*found.span(), kind, None) for found in pattern.finditer(text, *window))


def _numeric(text: str, window: Window) -> Iterator[DateHit]:
    for found in _ISO.finditer(text, *window):
        yield from _hit(found, int(found[1]), int(found[3]), int(found[4]))
    yield from _us(text, window)
    for found in _COMPACT.finditer(text, *window):
        yield from _hit(found, int(found[1]), int(found[2]), int(found[3]))


def _us(text: str, window: Window) -> Iterator[DateHit]:
    for found in _US.finditer(text, *window):
        first, second, year = int(found[1]), int(found[3]), _full_year(found[4])
        if len(found[4]) == 2 and found[2] != "/":
            continue
        yield from list(_hit(found, year, first, second)) or list(_hit(found, year, second, first))


def _chinese(text: str, today: int, bare: range | None) -> Iterator[DateHit]:
    for found in _IN_CHARACTERS.finditer(text):
        yield from _hit(found, *map(_characters, found.groups()))
    for found in _CHINESE.finditer(text):
        year, month, day, lone = found.groups()
        if lone is not None:
            if bare is not None and int(lone) in bare:
                yield DateHit(*found.span(), "year", None)
        elif day is None:
            if bare is not None or year is not None:
                yield DateHit(*found.span(), "month", None)
        elif year is None:
            yield from _nearest(found, int(month), int(day), today)
        else:
            yield from _hit(found, _full_year(year), int(month), int(day))


def _english(text: str, window: Window, today: int, bare: range | None) -> Iterator[DateHit]:
    if bare is not None:
        # Before the spellings with a day: "March 2024" is not the 20th of March.
        yield from _lone(_MONTH_YEAR, "month", text, window)
    for pattern, month_at, day_at in ((_MONTH_FIRST, 1, 2), (_DAY_FIRST, 2, 1)):
        for found in pattern.finditer(text, *window):
            month, day = _MONTHS[found[month_at].lower()], int(re.sub(r"\D", "", found[day_at]))
            if found[month_at].lower() in ("may", "mar") and found[month_at].islower() and found[3] is None:
                continue
            if found[3] is None:
                yield from _nearest(found, month, day, today)
            else:
                yield from _hit(found, _full_year(found[3]), month, day)


def _characters(text: str) -> int:
    """Return a number written in Chinese characters: a year digit by digit, or a number up to 39."""
    digits = ["〇一二三四五六七八九".find(char) for char in text.replace("零", "〇")]
    if "十" not in text:
        return int("".join(map(str, digits)))
    tens, _, ones = text.partition("十")
    return (_characters(tens) if tens else 1) * 10 + (_characters(ones) if ones else 0)


def _full_year(text: str) -> int:
    return int(text) if len(text) == 4 else 2000 + int(text)


def _hit(found: re.Match[str], year: int, month: int, day: int) -> Iterator[DateHit]:
    number = _number(year, month, day)
    if number is not None:
        yield DateHit(*found.span(), "day", number)


def _nearest(found: re.Match[str], month: int, day: int, today: int) -> Iterator[DateHit]:
    year = date.fromordinal(today + _EPOCH).year
    days = [number for y in (year - 1, year, year + 1) if (number := _number(y, month, day)) is not None]
    if days:
        yield DateHit(*found.span(), "day", min(days, key=lambda number: abs(number - today)))


def _number(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
