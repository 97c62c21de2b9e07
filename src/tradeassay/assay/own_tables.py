"""Tables as people have them: a broker's export, a spreadsheet saved in another country, a frame in a notebook.

What is not stated is worked out from the values, and *said*: every guess is a note. What can be read in two ways
is refused with a line that says how to tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

Unit = Literal["fraction", "percent", "basis points"]
DayOrder = Literal["dmy", "mdy"]
DATES = ("date", "day", "session", "datetime", "time", "timestamp", "datum", "fecha", "as of", "asof", "index", "")
RETURNS = (
    "return", "returns", "ret", "r", "daily return", "daily returns", "net return", "strategy", "portfolio",
    "pnl %", "performance", "change", "change %", "rendite", "total return",
)  # fmt: skip
VALUES = (
    "nav", "equity", "value", "price", "close", "adj close", "balance", "account value", "portfolio value",
    "level", "net asset value", "net liquidation", "kurs", "total",
)  # fmt: skip
AGAINST = ("benchmark", "market", "index return", "bench", "benchmark return", "spy", "index")
_DAY = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{4})(\d{2})(\d{2})")
_OTHER_DAY = re.compile(r"(\d{1,2})([-/.])(\d{1,2})[-/.](\d{4}|\d{2})")
_CLOCK = re.compile(r"\d{10}|\d{13}")
"""Seconds or milliseconds since 1970."""
_MONTH = re.compile(r"[A-Za-z]{3}")
_FORMS = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d %Y")
_PERCENT_FROM = 0.2
"""A spread per session from which numbers cannot be fractions."""
_POINTS_FROM = 20.0
_HOLE = 14.0
"""Days without a row that are said."""
_GAPS = ((1.5, 365), (4.0, 252), (10.0, 52), (45.0, 12), (120.0, 4))
"""From the median number of days between rows to the number of rows in a year."""


@dataclass(frozen=True, slots=True)
class OwnSeries:
    """An account's simple returns by ISO day, in order, and those it is compared with; ``notes`` say what was
    guessed.

    ``year`` is how many rows make one.
    """

    returns: dict[str, float]
    against: dict[str, float] | None = None
    year: int = 252
    notes: tuple[str, ...] = ()


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
    name, table = _table(source)
    column_of = {_plain(title): title for title in table}
    day_title = _find(name, column_of, DATES, "dates", None)
    days = _days(name, table[day_title], reading.dates)
    # A column without a title is the number of the row.
    rest = {plain: title for plain, title in column_of.items() if title != day_title and plain}
    against_title = _against(name, rest, reading.against)
    rest = {plain: title for plain, title in rest.items() if title != against_title}
    title, by_value = _which(name, rest, reading.column, table, days)
    notes: list[str] = []
    if title not in ("return", "returns"):
        notes.append(f"{name}: the column '{title}' is read as the account's {'value' if by_value else 'returns'}")
    returns = _returns(name, title, days, table[title], by_value, reading.unit, notes)
    against = None
    if against_title is not None:
        against = _returns(name, against_title, days, table[against_title], None, reading.unit, notes)
        notes.append(f"{name}: compared with its column '{against_title}'")
    return OwnSeries(returns=returns, against=against, year=_year(list(returns), notes), notes=tuple(notes))


def read_columns(path: Path, *, words: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Read a text table of several columns: the dates as ISO days, ``words`` as they are, the rest as numbers.

    Titles come in small letters. A cell that is empty is None. Raises :class:`UserError` as :func:`read_series`.
    """
    name, table = _table(path)
    found: dict[str, list[Any]] = {}
    for title, values in table.items():
        plain = _plain(title).replace(" ", "_")
        if plain in words:
            found[plain] = [value or None for value in values]
        elif _plain(title) in DATES:
            found["date"] = _days(name, values, None)
        else:
            comma = _decimal_comma(values)
            numbers = [_number(value, comma=comma) if value else None for value in values]
            found[title.strip()] = values if all(one != one for one in numbers if one is not None) else numbers
    return found


def _plain(title: str) -> str:
    words = re.sub(r"[_\-]+", " ", title.strip().strip("\ufeff").lower())
    return "" if words.startswith("unnamed") else re.sub(r"\s+", " ", words)


def _find(name: str, column_of: dict[str, str], known: Sequence[str], what: str, asked: str | None) -> str:
    if asked is not None:
        if asked in column_of.values() or _plain(asked) in column_of:
            return column_of.get(_plain(asked), asked)
        raise UserError(f"{name} has no column '{asked}'", mend=f"it has {', '.join(column_of.values())}")
    for one in known:
        if one in column_of:
            return column_of[one]
    raise UserError(
        f"{name} has no column of {what}",
        mend=f"name one 'date'; it has {', '.join(column_of.values()) or 'none'}",
    )


def _against(name: str, columns: dict[str, str], asked: str | None) -> str | None:
    if asked is not None:
        return _find(name, columns, (), "a benchmark", asked)
    found = [columns[one] for one in AGAINST if one in columns]
    return found[0] if found and len(columns) > 1 else None


def _which(
    name: str, columns: dict[str, str], asked: str | None, table: dict[str, list[Any]], days: Sequence[str]
) -> tuple[str, bool]:
    """Return the account's column, and whether it holds its value rather than its returns."""
    if asked is not None:
        title = _find(name, columns, (), "returns", asked)
        return title, _plain(title) in VALUES or _looks_like_value(name, title, table[title], days)
    for one in RETURNS:
        if one in columns:
            return columns[one], False
    for one in VALUES:
        if one in columns:
            return columns[one], True
    if len(columns) == 1:
        title = next(iter(columns.values()))
        return title, _looks_like_value(name, title, table[title], days)
    raise UserError(
        f"{name} does not say which column is the account's",
        mend=f"name it with --column: one of {', '.join(columns.values()) or 'none'}",
    )


def _looks_like_value(name: str, title: str, values: Sequence[Any], days: Sequence[str]) -> bool:
    """Return whether numbers are an account's value: never negative, and hardly moving from row to row."""
    numbers, _ = _numbers(name, title, values, days)
    if numbers.size < 3 or not (numbers > 0).all():
        return False
    return bool(np.median(np.abs(np.diff(numbers))) < 0.2 * np.median(numbers))


def _returns(
    name: str,
    title: str,
    days: Sequence[str],
    values: Sequence[Any],
    by_value: bool | None,
    unit: Unit | None,
    notes: list[str],
) -> dict[str, float]:
    given = days
    numbers, percent = _numbers(name, title, values, given)
    if len(set(days)) != len(days):
        twice = next(day for day in days if list(days).count(day) > 1)
        raise UserError(f"{name}: {twice} is given twice", mend="keep one row of each")
    order = np.argsort(np.array(days))
    days, numbers = [days[place] for place in order.tolist()], numbers[order]
    if by_value is None:
        by_value = _looks_like_value(name, title, values, given) and _plain(title) not in RETURNS
    if by_value:
        if not (numbers > 0).all():
            raise UserError(
                f"{name}: '{title}' is zero or less somewhere", mend="an account's value must be positive"
            )
        earned = numbers[1:] / numbers[:-1] - 1.0
        return {day: float(one) for day, one in zip(days[1:], earned.tolist(), strict=True)}
    scale, said = _scale(numbers, percent, unit)
    if said:
        notes.append(f"{name}: '{title}' is read as {said}")
    earned = numbers * scale
    if "log" in _plain(title).split():
        earned = np.expm1(earned)
        notes.append(f"{name}: '{title}' is read as logarithms, as its name says")
    if np.count_nonzero(earned <= -1.0) > 1:
        raise UserError(
            f"{name}: more than everything is lost again and again",
            mend="say what the numbers are: --unit percent",
        )
    return {day: float(one) for day, one in zip(days, earned.tolist(), strict=True)}


def _scale(numbers: Floats, percent: bool, unit: Unit | None) -> tuple[float, str]:
    if unit is not None:
        return {"fraction": 1.0, "percent": 0.01, "basis points": 1e-4}[unit], ""
    if percent:
        return 0.01, "per cent, as its signs say"
    # One slip of the pen must not change the unit of all: the spread is that of most numbers.
    middle = float(np.median(np.abs(numbers - np.median(numbers)))) * 1.4826 if numbers.size > 1 else 0.0
    deviation = middle or (float(numbers.std()) if numbers.size > 1 else 0.0)
    if deviation > _POINTS_FROM:
        return 1e-4, f"basis points: its spread is {deviation:,.0f} (--unit says otherwise)"
    if deviation > _PERCENT_FROM:
        return 0.01, f"per cent: its spread is {deviation:.2f} (--unit says otherwise)"
    if (numbers < -1.0).any():
        raise UserError(
            f"most numbers are like {deviation:.2g}, one is {float(numbers.min()):.4g}: fractions or per cent?",
            mend="say which (--unit fraction or --unit percent), or mend the row",
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
    raise UserError(f"rows are {middle:.0f} days apart", mend="give at least four a year")


# -- dates and numbers -------------------------------------------------------------------------------------------


def _days(name: str, values: Sequence[Any], asked: DayOrder | None) -> list[str]:
    texts = [_day_text(value) for value in values]
    first = next((text for text in texts if text), "")
    if _CLOCK.fullmatch(first) and all(map(_CLOCK.fullmatch, texts)):
        return [_of_clock(text) for text in texts]
    spelled = _spelled(texts) if _MONTH.search(first) else None
    if spelled is not None:
        return spelled
    if _DAY.match(first):
        return [_iso(name, row, text) for row, text in enumerate(texts)]
    parts = [_OTHER_DAY.match(text) for text in texts]
    if not first or parts[0] is None:
        raise UserError(f"{name}: '{first}' is not a day", mend="write days as 2024-01-31")
    for row, part in enumerate(parts):
        if part is None:
            raise UserError(f"{name}: row {row + 1}: '{texts[row]}' is not a day", mend="write days as 2024-01-31")
    found = [part for part in parts if part is not None]
    order = asked or _order(name, found)
    days = []
    for row, part in enumerate(found):
        a, b, year = int(part[1]), int(part[3]), int(part[4])
        day, month = (a, b) if order == "dmy" else (b, a)
        days.append(_checked(name, row, year if year > 99 else 2000 + year, month, day))
    return days


def _of_clock(text: str) -> str:
    seconds = int(text) / (1000 if len(text) == 13 else 1)
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _spelled(texts: Sequence[str]) -> list[str] | None:
    """Return days whose months are written as words; None where they are not all written in the same way."""
    for form in _FORMS:
        try:
            return [datetime.strptime(text, form).replace(tzinfo=UTC).date().isoformat() for text in texts]
        except ValueError:
            continue
    return None


def _order(name: str, parts: Sequence[re.Match[str]]) -> DayOrder:
    if parts[0][2] == "." or any(int(part[1]) > 12 for part in parts):
        return "dmy"
    if any(int(part[3]) > 12 for part in parts):
        return "mdy"
    raise UserError(
        f"{name}: days like {parts[0][0]} can be read in two ways", mend="say which: --dates dmy or --dates mdy"
    )


def _day_text(value: Any) -> str:
    if isinstance(value, int | np.integer):
        return str(value)
    return "" if value is None else str(value).strip().strip('"')


def _iso(name: str, row: int, text: str) -> str:
    part = _DAY.match(text)
    if part is None:
        raise UserError(f"{name}: row {row + 1}: '{text}' is not a day", mend="write all days as 2024-01-31")
    numbers = [int(one) for one in part.groups() if one is not None]
    return _checked(name, row, *numbers)


def _checked(name: str, row: int, year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        raise UserError(
            f"{name}: row {row + 1}: there is no day {year}-{month:02}-{day:02}",
            mend="write days as 2024-01-31",
        ) from None


def _numbers(name: str, title: str, values: Sequence[Any], days: Sequence[str]) -> tuple[Floats, bool]:
    """Return a column as numbers, and whether it is written with per cent signs; ``days`` name its rows."""
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        numbers = np.array(values, dtype=np.float64)
        _finite(name, title, numbers, days)
        return numbers, False
    texts = ["" if value is None else str(value).strip() for value in values]
    percent = any(text.endswith("%") for text in texts)
    comma = _decimal_comma(texts)
    numbers = np.array([_number(text, comma=comma) for text in texts])
    _finite(name, title, numbers, days)
    return numbers, percent


def _finite(name: str, title: str, numbers: Floats, days: Sequence[str]) -> None:
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise UserError(
            f"{name}: row {bad[0] + 1} of {days[bad[0]]} has no '{title}' that can be used",
            mend="give a number (0 for nothing), or leave the row out",
        )


def _decimal_comma(texts: Sequence[str]) -> bool:
    """Return whether commas separate decimals: the last sign of two is the decimal one, and so is a lone comma."""
    for text in texts:
        if "," in text and "." in text:
            return text.rindex(",") > text.rindex(".")
    commas = [text for text in texts if "," in text]
    return bool(commas) and not all(re.fullmatch(r"[^,]*\d{1,3}(,\d{3})+%?\)?", text) for text in commas)


def _number(text: str, *, comma: bool) -> float:
    plain = text.replace("\u2212", "-").replace("\u00a0", "").replace(" ", "").replace("'", "").rstrip("%")
    if plain.startswith("(") and plain.rstrip("%").endswith(")"):
        plain = "-" + plain[1:].rstrip("%")[:-1].rstrip("%")
    plain = plain.lstrip("$\u20ac\u00a3+")
    plain = plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:
        return float("nan")


# -- where tables come from --------------------------------------------------------------------------------------


def _table(source: Path | object) -> tuple[str, dict[str, list[Any]]]:
    """Return a name for messages, and columns by title."""
    if isinstance(source, Path | str):
        path = Path(source)
        if not path.is_file():
            raise UserError(f"no file {path}", mend="give a CSV or Parquet file")
        columns = _parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _text(path)
        name = str(path)
    else:
        columns, name = _frame(source), "the table"
    if not columns or not next(iter(columns.values())):
        raise UserError(f"{name} has no rows", mend="write one row per session")
    return name, columns


def _parquet(path: Path) -> dict[str, list[Any]]:
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        line = str(error).splitlines()[0]
        raise UserError(f"{path} cannot be read: {line}", mend="write it as Parquet or CSV") from error
    return {title: frame[title].to_list() for title in frame.columns}


def _text(path: Path) -> dict[str, list[Any]]:
    import csv

    raw = path.read_bytes()
    for encoding in ("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "cp1252"):
        try:
            text = raw.decode(encoding)
            break
        except UnicodeDecodeError:
            continue
    else:
        raise UserError(f"{path} is not text", mend="write it as CSV in UTF-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return {}
    separator = max(";\t|,", key=lambda sign: min(line.count(sign) for line in lines[:20]))
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    head = rows[0]
    if _DAY.match(head[0]) or _OTHER_DAY.match(head[0]):
        head = ["date", "return", *(f"column {n}" for n in range(3, len(head) + 1))][: len(head)]
    else:
        rows = rows[1:]
    wide = [row for row in rows if len(row) != len(head)]
    if wide:
        raise UserError(
            f"{path}: a row has {len(wide[0])} columns, the first {len(head)}: {' '.join(wide[0])[:60]}",
            mend="write every row with the same columns (a decimal comma needs ; between columns)",
        )
    return {title: [row[place] for row in rows] for place, title in enumerate(head)}


def _frame(source: object) -> dict[str, list[Any]]:
    """Return the columns of a pandas Series or DataFrame, or of a polars DataFrame."""
    made: Any = source
    if hasattr(made, "reset_index"):
        if not hasattr(made, "columns"):
            made = made.to_frame(name="return" if made.name is None else str(made.name))
        if not any(_plain(str(title)) in DATES for title in made.columns):
            made = made.reset_index()
            made = made.rename(columns={made.columns[0]: "date"})
        return {str(title): made[title].tolist() for title in made.columns}
    if hasattr(made, "to_dict") and hasattr(made, "columns"):
        return {str(title): list(values) for title, values in made.to_dict(as_series=False).items()}
    raise UserError(
        f"a {type(source).__name__} is no table",
        mend="give a file, a pandas Series or DataFrame, or a polars DataFrame",
    )
