"""Tables as people have them: a broker's export, a spreadsheet saved in another country, a frame in a notebook.

What is not stated is worked out from the values, and *said*: every guess is a note. What can be read in two ways
is refused with a line that says how to tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tradeassay.assay.own_cells import (
    DATES,
    DayOrder,
    bare_title,
    decimal_comma,
    plain_title,
    read_days,
    read_number,
    read_numbers,
    table_of,
)
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

Unit = Literal["fraction", "percent", "basis points"]
RETURNS = (
    "return", "returns", "ret", "r", "daily return", "daily returns", "net return", "strategy", "portfolio",
    "pnl %", "performance", "change", "change %", "rendite", "total return", "\u6536\u76ca\u7387",
    "\u65e5\u6536\u76ca\u7387", "\u6536\u76ca", "\u56de\u62a5\u7387", "\u6da8\u8dcc\u5e45",
)  # fmt: skip
VALUES = (
    "nav", "equity", "value", "price", "adj close", "adjusted close", "close", "balance",
    "account value", "portfolio value", "level", "net asset value", "net liquidation", "kurs", "total",
    "\u51c0\u503c", "\u5355\u4f4d\u51c0\u503c",
    "\u7d2f\u8ba1\u51c0\u503c", "\u603b\u8d44\u4ea7", "\u6536\u76d8\u4ef7", "\u57fa\u6e96\u4fa1\u984d",
)  # fmt: skip
AGAINST = (
    "benchmark", "market", "index return", "bench", "benchmark return", "benchmark value", "spy", "index",
    "\u57fa\u51c6", "\u57fa\u51c6\u6536\u76ca\u7387", "\u6caa\u6df1300",
)  # fmt: skip
FLOWS = (
    "deposit", "deposits", "withdrawal", "withdrawals", "flow", "flows", "cash flow", "cash flows", "net flow",
    "net flows", "contribution", "contributions", "einzahlungen", "\u51fa\u5165\u91d1",
)  # fmt: skip
"""Titles of money that was paid in or out."""
_TITLE_UNITS: tuple[tuple[str, Unit], ...] = (
    (r"%|\b(percent|per cent|pct|prozent)\b", "percent"),
    (r"\b(bps|bp|basis points)\b", "basis points"),
)
_NO_RETURN = re.compile(
    r"\b(mtd|qtd|ytd|drawdown|excess|active|alpha|relative|rolling|annuali[sz]ed|volatility|sharpe)\b"
)
"""Words of titles over other numbers than an account's returns."""
_CUMULATIVE = re.compile(r"\b(cum|cumul|cumulative|since inception)\b|\u7d2f\u8ba1\u6536\u76ca")
_FRACTION_UNTIL = 0.03
"""A spread per session below which numbers are hardly per cent, whatever their title says."""
_NOTHING = ("", "nan", "na", "n/a", "<na>", "none", "null", "-")
"""Cells that say that there is no number."""
_JUMP = 0.2
"""A move of an account's value that is said when it is also fifteen times the usual one."""
_PERCENT_FROM = 0.2
"""A spread per session from which numbers cannot be fractions."""
_POINTS_FROM = 20.0
_CASH_UNTIL = 0.01
"""Positive numbers below this that hardly change are the returns of cash as likely as a price."""
_MONEY_FROM = 1000.0
"""A spread per session from which numbers cannot be basis points either: ten per cent."""
_MONEY = re.compile(r"^(daily |net |total )?(pnl|p&l|p l|p/l|profit|gain|gains|gewinn|profit and loss)( |$)")
"""Titles of what was earned in money, unless they state another unit."""
_WEEKEND = np.timedelta64(4, "D")
"""By how much a benchmark may end before the account's last row."""
_HOLE = 14.0
"""Days without a row that are said."""
_GAPS = ((1.5, 365), (4.0, 252), (10.0, 52), (45.0, 12), (120.0, 4))
"""From the median number of days between rows to the number of rows in a year."""


@dataclass(frozen=True, slots=True)
class OwnSeries:
    """An account's simple returns by ISO day, in order, and those it is compared with; ``notes`` say what was
    guessed.

    ``year`` is how many rows make one. ``since`` is the day of the first value where returns were made of values:
    each is then what was earned since the row before.
    """

    returns: dict[str, float]
    against: dict[str, float] | None = None
    year: int = 252
    notes: tuple[str, ...] = ()
    since: str | None = None


@dataclass(frozen=True, slots=True)
class TableReading:
    """How a table is to be read; None is worked out. ``column`` and ``against`` name columns."""

    unit: Unit | None = None
    dates: DayOrder | None = None
    column: str | None = None
    against: str | None = None


def read_series(source: Path | object, reading: TableReading | None = None) -> OwnSeries:
    """Read one account's returns, or its value, from a CSV, TSV or Parquet file, or from a pandas or polars table.

    Raises :class:`UserError` with one line for what cannot be read, or can be read in two ways.
    """
    reading = reading or TableReading()
    name, table = table_of(source)
    column_of = {plain_title(title): title for title in table}
    day_title = _find(name, column_of, DATES, "dates", None)
    days = read_days(name, table[day_title], reading.dates)
    # A column without a title is the number of the row.
    rest = {plain: title for plain, title in column_of.items() if title != day_title and plain}
    against_title = _against(name, rest, reading.against)
    rest = {plain: title for plain, title in rest.items() if title != against_title}
    title, by_value = _which(name, rest, reading.column, table, days)
    notes: list[str] = []
    if title not in ("return", "returns"):
        notes.append(f"{name}: the column '{title}' is read as {'a value' if by_value else 'returns'}")
    if by_value:
        _no_flows(name, rest, table)
    returns = _returns(name, title, days, table[title], by_value, reading.unit, notes)
    against = None
    if against_title is not None:
        against = _returns(name, against_title, days, table[against_title], None, reading.unit, notes)
        notes.append(f"{name}: compared with its column '{against_title}'")
    first = min(days)
    return OwnSeries(
        returns=returns,
        against=against,
        year=_year(list(returns), notes),
        notes=tuple(notes),
        since=None if first in returns else first,
    )


def with_benchmark(series: OwnSeries, other: OwnSeries) -> OwnSeries:
    """Return an account with another table as its benchmark, both over the same spans.

    Where one has fewer rows a year, or is made of values, what the other earned since its row before is
    compounded: a month is not compared with its last day. Rows dated the first of a month may stand for that month
    or for the one before: they are read as what moves more like the other table.
    """
    pairs = [_paired(mine, theirs) for mine in _dated(series) for theirs in _dated(other)]
    return max(pairs, key=_likeness)


def _paired(series: OwnSeries, other: OwnSeries) -> OwnSeries:
    notes = [*series.notes, *other.notes]
    if other.year < series.year:
        notes.append(f"the account is compounded to the benchmark's rows, {other.year} a year")
        returns = _spans(series.returns, other)
        return OwnSeries(returns=returns, against=other.returns, year=other.year, notes=tuple(notes))
    if other.year == series.year and series.since is None:
        return replace(series, against=other.returns, notes=tuple(notes))
    if other.year > series.year:
        notes.append(f"the benchmark is compounded to the account's rows, {series.year} a year")
    return replace(series, against=_spans(other.returns, series), notes=tuple(notes))


def _dated(series: OwnSeries) -> list[OwnSeries]:
    """Return the ways in which a monthly table's rows can be dated by the last days of months; others stay."""
    days = [*series.returns, *([] if series.since is None else [series.since])]
    if series.year != 12 or any(3 < int(day[8:]) < 25 for day in days):
        return [series]
    starts = all(int(day[8:]) <= 3 for day in days)
    found = []
    for back, told in ((0, "that month"), (1, "the month before")) if starts else ((0, ""),):
        ends = {day: _month_end(day, back) for day in days}
        if len(set(ends.values())) < len(days):
            return [series]
        said = (f"rows dated the first of a month are read as {told}'s",) if told else ()
        returns = {ends[day]: value for day, value in series.returns.items()}
        since = None if series.since is None else ends[series.since]
        found.append(replace(series, returns=returns, since=since, notes=(*series.notes, *said)))
    return found


def _month_end(day: str, back: int) -> str:
    following = np.array([day[:7]], dtype="datetime64[M]") + (1 - back)
    return str((following.astype("datetime64[D]") - 1)[0])


def _likeness(pair: OwnSeries) -> float:
    """Return how much an account moves like its benchmark; 0 where they hardly meet."""
    against = pair.against or {}
    both = [(value, against[day]) for day, value in pair.returns.items() if day in against]
    mine, theirs = np.array(both).T if len(both) > 2 else (np.zeros(3), np.zeros(3))
    moves = mine.std() > 0.0 and theirs.std() > 0.0
    return abs(float(np.corrcoef(mine, theirs)[0, 1])) if moves else 0.0


def _spans(fine: dict[str, float], coarse: OwnSeries) -> dict[str, float]:
    """Return what ``fine`` earned between the rows of ``coarse``, by the later one; what it does not cover is left
    out."""
    days, found = np.array(list(fine), dtype="datetime64[D]"), {}
    grown = np.cumprod(np.concatenate([[1.0], 1.0 + np.array(list(fine.values()))]))
    before = coarse.since
    for day in coarse.returns:
        if before is not None and days[0] <= np.datetime64(before) and np.datetime64(day) <= days[-1] + _WEEKEND:
            first, last = np.searchsorted(days, np.array([before, day], dtype="datetime64[D]"), side="right")
            if last > first:
                found[day] = float(grown[last] / grown[first]) - 1.0
        before = day
    return found


def read_columns(path: Path, *, words: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Read a text table of several columns: the dates as ISO days, ``words`` as they are, the rest as numbers.

    Titles come in small letters. A cell that is empty is None. Raises :class:`UserError` as :func:`read_series`.
    """
    name, table = table_of(path)
    found: dict[str, list[Any]] = {}
    titled = {plain_title(title): title for title in table}
    day_title = next((titled[one] for one in DATES if one in titled), None)
    for title, values in table.items():
        plain = plain_title(title).replace(" ", "_")
        if plain in words:
            found[plain] = [value or None for value in values]
        elif title == day_title:
            found["date"] = read_days(name, values, None)
        else:
            comma = decimal_comma(values)
            numbers = [read_number(value, comma=comma) if value else None for value in values]
            found[title.strip()] = values if all(one != one for one in numbers if one is not None) else numbers
    return found


def _find(name: str, column_of: dict[str, str], known: Sequence[str], what: str, asked: str | None) -> str:
    if asked is not None:
        if asked in column_of.values() or plain_title(asked) in column_of:
            return column_of.get(plain_title(asked), asked)
        what_it_has = f"it has {', '.join(column_of.values())}"
        if "/" in asked or asked.lower().endswith((".csv", ".tsv", ".txt", ".parquet")):
            raise UserError(f"there is no file {asked}, and {name} has no such column", hint=what_it_has)
        raise UserError(f"{name} has no column '{asked}'", hint=what_it_has)
    for one in known:
        if one in column_of:
            return column_of[one]
    raise UserError(
        f"{name} has no column of {what}",
        hint=f"name one 'date'; it has {', '.join(column_of.values()) or 'none'}",
    )


def _against(name: str, columns: dict[str, str], asked: str | None) -> str | None:
    if asked is not None:
        return _find(name, columns, (), "a benchmark", asked)
    named = _named(columns)
    found = [named[one] for one in AGAINST if one in named]
    return found[0] if found and len(columns) > 1 else None


def _named(columns: dict[str, str]) -> dict[str, str]:
    """Return columns by their plain titles, and by these without their units."""
    return {**{bare_title(title): title for title in columns.values()}, **columns}


def _no_flows(name: str, columns: dict[str, str], table: dict[str, list[Any]]) -> None:
    """Refuse a value beside which money was paid in or out: its moves are not returns."""
    named = _named(columns)
    for title in (named[one] for one in FLOWS if one in named):
        paid = [str(value).strip() for value in table[title]]
        if any(read_number(text, comma=decimal_comma(paid)) for text in paid if text and text.lower() != "nan"):
            raise UserError(
                f"{name}: money was paid in or out ('{title}'), so the value's moves are not returns",
                hint="give time-weighted returns, or the value of one share",
            )


def _which(
    name: str, columns: dict[str, str], asked: str | None, table: dict[str, list[Any]], days: Sequence[str]
) -> tuple[str, bool]:
    """Return the account's column, and whether it holds its value rather than its returns."""
    if asked is not None:
        title = _find(name, columns, (), "returns", asked)
        return title, plain_title(title) in VALUES or _looks_like_value(name, title, table[title], days)
    named = _named(columns)
    for one in RETURNS:
        if one in named:
            return named[one], False
    for one in VALUES:
        if one in named:
            return named[one], True
    if len(columns) == 1:
        title = next(iter(columns.values()))
        if _NO_RETURN.search(plain_title(title)):
            raise UserError(
                f"{name}: '{title}' is not what was earned from one row to the next",
                hint="give returns or values; --column if it is",
            )
        return title, _looks_like_value(name, title, table[title], days)
    raise UserError(
        f"{name} does not say which column is the account's",
        hint=f"name it with --column: one of {', '.join(columns.values()) or 'none'}",
    )


def _looks_like_value(name: str, title: str, values: Sequence[Any], days: Sequence[str]) -> bool:
    """Return whether numbers are an account's value: never negative, and hardly moving from row to row."""
    if _CUMULATIVE.search(plain_title(title)):
        return False
    values, days = _begun(values, days)
    numbers, _ = read_numbers(name, title, values, days)
    if numbers.size < 3 or not (numbers > 0).all():
        return False
    still = bool(np.median(np.abs(np.diff(numbers))) < 0.2 * np.median(numbers))
    if still and numbers.max() < _CASH_UNTIL and not {bare_title(title)} & {*VALUES, *RETURNS}:
        raise UserError(
            f"{name}: '{title}' may be a price or the returns of cash: all its numbers are between 0 and "
            f"{numbers.max():.2g}",
            hint="call the column 'price' or 'return'",
        )
    return still and bare_title(title) not in RETURNS


def _returns(
    name: str,
    title: str,
    days: Sequence[str],
    values: Sequence[Any],
    by_value: bool | None,
    unit: Unit | None,
    notes: list[str],
) -> dict[str, float]:
    begun, given = _begun(values, days)
    if len(given) < len(days):
        notes.append(f"{name}: the first row has no '{title}' and is left out")
    numbers, percent = read_numbers(name, title, begun, given)
    if len(set(given)) != len(given):
        twice = next(day for day in given if list(given).count(day) > 1)
        raise UserError(f"{name}: {twice} is given twice", hint="keep one row of each, one a day")
    order = np.argsort(np.array(given))
    days, numbers = [given[place] for place in order.tolist()], numbers[order]
    if by_value is None:
        by_value = _looks_like_value(name, title, values, given)
    unit = unit or _title_unit(name, title, numbers)
    if _CUMULATIVE.search(plain_title(title)):
        scale, said = _scale(name, title, np.diff(numbers), percent, unit)
        notes.append(f"{name}: '{title}' is read as what was earned since the beginning{said and ', in ' + said}")
        return _moves(name, title, days, 1.0 + numbers * scale, notes)
    _no_factors(name, title, numbers, unit, by_value=by_value)
    if by_value:
        return _moves(name, title, days, numbers, notes)
    scale, said = _scale(name, title, numbers, percent, unit)
    if said:
        notes.append(f"{name}: '{title}' is read as {said}")
    earned = numbers * scale
    if "log" in plain_title(title).split():
        earned = np.expm1(earned)
        notes.append(f"{name}: '{title}' is read as logarithms, as its name says")
    if np.count_nonzero(earned <= -1.0) > 1:
        raise UserError(
            f"{name}: more than everything is lost again and again",
            hint="say what the numbers are: --unit percent",
        )
    return {day: float(one) for day, one in zip(days, earned.tolist(), strict=True)}


def _begun(values: Sequence[Any], days: Sequence[str]) -> tuple[Sequence[Any], Sequence[str]]:
    """Return a column without its earliest row where that is empty, as a difference from the row before it is."""
    at = min(range(len(days)), key=lambda row: days[row], default=0)
    if len(days) < 2 or str(values[at]).strip().lower() not in _NOTHING:
        return values, days
    return [*values[:at], *values[at + 1 :]], [*days[:at], *days[at + 1 :]]


def _moves(name: str, title: str, days: Sequence[str], numbers: Floats, notes: list[str]) -> dict[str, float]:
    """Return the returns of an account's value."""
    if not (numbers > 0).all():
        raise UserError(f"{name}: '{title}' is zero or less somewhere", hint="an account's value must be positive")
    earned = numbers[1:] / numbers[:-1] - 1.0
    if earned.size:
        far = int(np.argmax(np.abs(earned)))
        if abs(earned[far]) > max(_JUMP, 15.0 * float(np.median(np.abs(earned)))):
            notes.append(
                f"{name}: '{title}' moves by {earned[far]:+.0%} on {days[far + 1]}: if money was paid in or out, "
                "give returns instead"
            )
    return {day: float(one) for day, one in zip(days[1:], earned.tolist(), strict=True)}


def _no_factors(name: str, title: str, numbers: Floats, unit: Unit | None, *, by_value: bool) -> None:
    """Refuse growth factors, and a value under the name of returns: positive numbers that hardly move."""
    middle = float(np.median(numbers)) if numbers.size else 0.0
    if unit is not None or numbers.size < 3 or not (numbers > 0.5).all():
        return
    around_one = 0.9 < middle < 1.1
    moves = float(np.median(np.abs(np.diff(numbers)))) >= 0.2 * middle
    if moves and not around_one:
        return
    if by_value and (not around_one or numbers.size < 20 or numbers.std() > np.diff(numbers).std()):
        return
    said = "growth factors, or an account's value?" if around_one else "an account's value?"
    raise UserError(
        f"{name}: '{title}' lies around {middle:,.4g} and hardly moves: {said}",
        hint="give returns (0.01 for 1 %), a value in a column called 'value', or --unit if they are returns",
    )


def _title_unit(name: str, title: str, numbers: Floats) -> Unit | None:
    """Return the unit that a title states; raises :class:`UserError` where the numbers are too small for it."""
    for pattern, unit in _TITLE_UNITS:
        if re.search(pattern, plain_title(title)):
            if unit == "percent" and 0.0 < _spread(numbers) < _FRACTION_UNTIL:
                raise UserError(
                    f"{name}: '{title}' says per cent, its spread of {_spread(numbers):.4f} says fractions",
                    hint="say which: --unit percent or --unit fraction",
                )
            return unit
    return None


def _spread(numbers: Floats) -> float:
    """Return the standard deviation of most numbers: one slip of the pen must not change the unit of all."""
    if numbers.size < 2:
        return 0.0
    return float(np.median(np.abs(numbers - np.median(numbers)))) * 1.4826 or float(numbers.std())


def _scale(name: str, title: str, numbers: Floats, percent: bool, unit: Unit | None) -> tuple[float, str]:
    if unit is not None:
        return {"fraction": 1.0, "percent": 0.01, "basis points": 1e-4}[unit], ""
    if percent:
        return 0.01, "per cent, as its signs say"
    deviation = _spread(numbers)
    if deviation > _MONEY_FROM or (deviation > _PERCENT_FROM and _MONEY.match(bare_title(title))):
        raise UserError(
            f"{name}: '{title}' looks like money (its spread is {deviation:,.4g}), which is no return",
            hint="give the account's value, or what was earned divided by it; --unit if they are returns",
        )
    if deviation > _POINTS_FROM:
        return 1e-4, f"basis points: its spread is {deviation:,.0f} (--unit says otherwise)"
    if deviation > _PERCENT_FROM:
        return 0.01, f"per cent: its spread is {deviation:.2f} (--unit says otherwise)"
    if (numbers < -1.0).any():
        raise UserError(
            f"{name}: most numbers are like {deviation:.2g}, one is {float(numbers.min()):.4g}: fractions or per "
            "cent?",
            hint="say which (--unit fraction or --unit percent), or mend the row",
        )
    return 1.0, f"fractions, 0.01 for 1 %: its spread is {deviation:.4f}"


def _year(days: Sequence[str], notes: list[str]) -> int:
    """Return how many rows make a year, from the days between them."""
    if len(days) < 3:
        return 252
    gaps = np.diff(np.array(days, dtype="datetime64[D]")).astype(float)
    middle = float(np.median(gaps))
    widest = int(np.argmax(gaps))
    if gaps[widest] > max(_HOLE, 4.0 * middle):
        notes.append(f"no rows between {days[widest]} and {days[widest + 1]}: what happened there is not known")
    if middle <= 1.5:
        weekends = bool(np.mean(np.is_busday(np.array(days, dtype="datetime64[D]"))) < 0.95)
        return 365 if weekends else 252
    for most, year in _GAPS[1:]:
        if middle <= most:
            if year != 252:
                notes.append(f"rows are {middle:.0f} days apart: {year} of them make a year")
            return year
    raise UserError(f"rows are {middle:.0f} days apart", hint="give at least four a year")
