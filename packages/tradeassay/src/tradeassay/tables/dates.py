"""Read columns of dates in all usual spellings."""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from tradeassay.core.errors import UserError

DayOrder = Literal["dmy", "mdy"]
_Parser = Callable[[str], datetime]
ENGLISH_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_STEMS = tuple(
    tuple(stems.split("|"))
    for stems in (
        "jan|gen|ene feb|fev|fév mar|mär apr|abr|avr may|mai|mag jun|giu|juin jul|lug|juil "
        "aug|ago|aoû|aou "
        "sep|set oct|okt|ott|out nov dec|dez|dic|déc"
    ).split()
)
"""Beginnings of month names in English, German, French, Italian, Spanish and Portuguese."""
_PER_SECOND = {9: 1, 10: 1, 12: 10**3, 13: 10**3, 16: 10**6, 19: 10**9}
"""Units per second of an epoch, by its number of digits."""
_SPREADSHEET_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - wall time before its zone is known
_PARTS = re.compile(r"(\d{1,4})[-/.年](\d{1,2})[-/.月](\d{1,4})日?(?:[ T]+(.+))?")
_PLAIN_DAY = re.compile(r"[12]\d{3}-[01]\d-[0-3]\d", re.ASCII)
_MONTH_OF_YEAR = re.compile(r"((?:19|20)\d{2})[-/.]?(0[1-9]|1[0-2])")
_YEAR_BEHIND = re.compile(r"(0?[1-9]|1[0-2])[-/.]((?:19|20)\d{2})")
_QUARTER = re.compile(r"((?:19|20)\d{2})[ -]?Q([1-4])|Q([1-4])[ /-]?((?:19|20)\d{2})", re.I)
_LEADING_WEEKDAY = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+", re.I)
_TIME_BEHIND = re.compile(r"[T\s]+\d{1,2}:\d{2}.*$")
_CLOCK = re.compile(
    r"[T\s]\s*(?P<hour>\d{1,2}):(?P<rest>\d{2}(?::\d{2}(?:[.,]\d+)?)?)"
    r"\s*(?P<half>[ap]\.?m\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?$",
    re.I,
)
"""A time of day behind a date, and the zone that it carries."""
UNREADABLE = (ValueError, OverflowError, OSError)
"""Exceptions of a parser for a cell that is not a date."""


def _digits(cell: str) -> datetime:
    """Read ``20240131``, optionally with a time of day, or an epoch in seconds to nanoseconds."""
    plain = cell.removesuffix(".0").replace(" ", "").replace(":", "")
    if not plain.isdigit():
        raise ValueError(cell)
    if plain[:2] in ("18", "19", "20") and len(plain) in (8, 12, 14):
        parts = [int(plain[start : start + 2]) for start in range(4, len(plain), 2)]
        return datetime(int(plain[:4]), *parts)  # type: ignore[arg-type]  # noqa: DTZ001 - the zone comes later
    if len(plain) not in _PER_SECOND:
        raise ValueError(cell)
    whole, rest = divmod(int(plain), _PER_SECOND[len(plain)])
    return datetime.fromtimestamp(whole, UTC) + timedelta(
        microseconds=rest * 10**6 // _PER_SECOND[len(plain)]
    )


def _serial(cell: str, epoch: datetime = _SPREADSHEET_EPOCH) -> datetime:
    """Read a spreadsheet's number of days since 1899-12-30. The fraction is the time of day."""
    if not re.fullmatch(r"[2-6]\d{4}(\.\d+)?", cell):
        raise ValueError(cell)
    return epoch + timedelta(days=int(float(cell)))


_serial_1904 = partial(_serial, epoch=datetime(1904, 1, 1))  # noqa: DTZ001 - as spreadsheets from older Macs count


def _ordered(order: str, *, short: bool = True) -> _Parser:
    """Return a parser for three numbers. ``short`` allows years with two digits."""
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


def _worded(form: str, *, day: bool = True) -> _Parser:
    """Return a parser for a month in words with any separators. ``form`` has single blanks."""

    def english(word: re.Match[str]) -> str:
        text = word[0].lower()
        return next((stems[0] for stems in _STEMS if text.startswith(stems)), word[0])

    def parse(cell: str) -> datetime:
        plain = re.sub(r"[-/.,]|\b(?:de|del|of)\b", " ", re.sub(r"[^\W\d_]{3,}", english, cell))
        found = datetime.strptime(" ".join(plain.split()), form)  # noqa: DTZ007 - the zone comes later
        return found if day else _last_day(found.year, found.month)

    return parse


def _last_day(year: int, month: int) -> datetime:
    """Return the last day of a month, on which the month's results are known."""
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
_SPELLINGS: dict[str, _Parser] = {
    "ISO": datetime.fromisoformat,
    "digits": _digits,
    "year-month-day": _ordered("ymd", short=False),
    **{name: _ordered(order) for name, order in _ORDER_OF.items()},
    "Jan 02, 2024": _worded("%b %d %Y"),
    "02 Jan 2024": _worded("%d %b %Y"),
    "02 Jan 24": _worded("%d %b %y"),
    "days of a spreadsheet": _serial,
}
_MONTHS_ALONE: dict[str, _Parser] = {
    "2024-01": _month,
    "Jan 2024": _worded("%b %Y", day=False),
    "Jan 24": _worded("%b %y", day=False),
}


def _reads(parse: _Parser, cell: str) -> bool:
    try:
        parse(cell)
    except UNREADABLE:
        return False
    return True


def spelling_of(cells: Sequence[str], *, months: bool = False) -> tuple[str, _Parser]:
    """Return the spelling that reads most cells. In a tie, month before day wins.

    ``months`` also allows whole months.
    """
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
        # The epochs differ by one day of the week. Trading days read with the wrong epoch have
        # Sundays and no Fridays.
        days = [
            [parse(cell).weekday() for cell in cells if _reads(parse, cell)]
            for parse in (_serial, _serial_1904)
        ]
        weekends = [sum(day > 4 for day in one) / max(1, len(one)) for one in days]
        if weekends[0] > 0.05 > weekends[1]:
            return "days of a spreadsheet that counts from 1904", _serial_1904
    return best


def month_of(text: str) -> int | None:
    """Return the month, 1 to 12, for a month's name in a supported language, else None."""
    word = text.strip().strip(".").lower()
    places = (place for place, stems in enumerate(_STEMS, start=1) if word.startswith(stems))
    return next(places, None) if word.isalpha() else None


def _turns(days: Sequence[date]) -> int:
    """Return the number of rows against the prevailing order, ascending or descending."""
    return min(sum(one > two for one, two in pairwise(way)) for way in (days, days[::-1]))


def read_days(name: str, values: Sequence[Any], order: DayOrder | None) -> list[str]:
    """Return a column as ISO days. A month becomes its last day.

    Raises :class:`UserError` for a cell that is not a day, or an ambiguous one without ``order``.
    """
    if all(isinstance(value, str) and _PLAIN_DAY.fullmatch(value) for value in values):
        # Most tables use this spelling and need none of the guesses below.
        with suppress(ValueError):
            np.array(values, dtype="datetime64[D]")
            return list(values)
    cells = []
    for value in values:
        text = "" if value is None else unicodedata.normalize("NFKC", str(value)).strip().strip('"')
        cells.append(_TIME_BEHIND.sub("", _LEADING_WEEKDAY.sub("", text, count=1)))
    spelling, parse = spelling_of(cells, months=True)
    if spelling in _ORDER_OF:
        both = all(_reads(_SPELLINGS[other], cell) for other in _ORDER_OF for cell in cells)
        if order is None and both and "." not in cells[0]:
            problem = f"{name}: days like {cells[0]} can be read in two ways"
            raise UserError(
                problem, hint="choose one: reading={'dates': 'dmy'} or reading={'dates': 'mdy'}"
            )
        # If points separate the parts, the day is first.
        chosen = order or ("dmy" if both else _ORDER_OF[spelling])
        parse, years_first = _ordered(chosen), _ordered("ymd")
        if order is None and all(
            _reads(one, cell) for one in (parse, years_first) for cell in cells
        ):
            # All parts have two digits. Years come first if the rows are then closer together and
            # in order. Month ends of ten years with the year last would also be closer together as
            # days of 2028 to 2031.
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


def read_moments(values: Sequence[Any], days: Sequence[str]) -> list[str]:
    """Return each row's day and time of day as text that sorts by time; ``days`` where none is
    given twice.

    A day is that of the zone which its stamp carries, and UTC for seconds since 1970.
    """
    if len(set(days)) == len(days):
        return list(days)
    return [_moment(value, day) for value, day in zip(values, days, strict=True)]


def _moment(value: Any, day: str) -> str:
    cell = unicodedata.normalize("NFKC", str(value)).strip().strip('"')
    clock = _CLOCK.search(cell)
    if clock is None:
        for parse in (_digits, _serial_with_time):
            with suppress(*UNREADABLE):
                return f"{day} {parse(cell).time().isoformat()}"
        return day
    hour = int(clock["hour"])
    if clock["half"]:
        hour = hour % 12 + 12 * (clock["half"][0] in "pP")
    zone = clock["zone"] or ""
    return f"{day} {hour:02d}:{clock['rest']}{zone}"


def _serial_with_time(cell: str) -> datetime:
    return _serial(cell) + timedelta(days=float(cell) % 1.0)


def is_day(text: str) -> bool:
    compact = re.fullmatch(r"((?:19|20)\d\d)[-_/.]?(\d\d)[-_/.]?(\d\d)(?:[ T].*)?", text)
    if compact:
        return _exists(*map(int, compact.groups()))
    plain = re.fullmatch(r"(\d\d?)[-_/.](\d\d?)[-_/.]((?:19|20)\d\d)", text)
    if not plain:
        return False
    first, second, year = map(int, plain.groups())
    return _exists(year, first, second) or _exists(year, second, first)


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
