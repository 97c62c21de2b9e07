"""Cells as people have them: bytes to titles and texts, texts to days and to numbers.

Nothing here knows what a column means. What can be read in two ways is refused with a line that says how to tell.
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

DayOrder = Literal["dmy", "mdy"]
DATES = (
    "date", "day", "session", "datetime", "time", "timestamp", "datum", "fecha", "as of", "asof", "as of date",
    "trade date", "month", "period", "\u65e5\u671f", "\u4ea4\u6613\u65e5\u671f", "\u51c0\u503c\u65e5\u671f",
    "\u65f6\u95f4", "\u65e5\u4ed8", "index", "",
)  # fmt: skip
"""Titles of a column of days, the surest first; also in Chinese and Japanese."""
_DAY = re.compile(
    r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{4})(\d{2})(\d{2})|(\d{4})\u5e74(\d{1,2})\u6708(\d{1,2})\u65e5"
)
_OTHER_DAY = re.compile(r"(\d{1,2})([-/.])(\d{1,2})[-/.](\d{4}|\d{2})")
_CLOCK = re.compile(r"\d{10}(\d{3}){0,3}")
"""Seconds since 1970, or a thousandth, millionth or billionth of them."""
_TIME = re.compile(r"\s+\d{1,2}:\d{2}(:\d{2})?(\s*[AP]M)?(\s+[A-Z]{3,4})?$")
_SERIAL = re.compile(r"[2-6]\d{4}(\.\d+)?")
"""Days since 1899-12-30, as spreadsheets count them; behind the point is the time of day."""
_OF_MONTH = re.compile(r"((?:19|20)\d{2})[-/.]?(0[1-9]|1[0-2])")
_WEEKDAY = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+", re.IGNORECASE)
_MONTH = re.compile(r"[^\W\d_]{3,}")
_FORMS = ("%b %d %Y", "%d %b %Y", "%d %b %y")
_MONTH_FORMS = ("%b %Y", "%b %y")
_MONTHS = (
    ("jan", "gen", "ene"), ("feb", "fev", "f\u00e9v"), ("mar", "m\u00e4r"), ("apr", "abr", "avr"),
    ("may", "mai", "mag"), ("jun", "giu", "juin"), ("jul", "lug", "juil"), ("aug", "ago", "ao\u00fb", "aou"),
    ("sep", "set"), ("oct", "okt", "ott", "out"), ("nov",), ("dec", "dez", "dic", "d\u00e9c"),
)  # fmt: skip
"""How the names of months begin in English, German, French, Italian, Spanish and Portuguese."""
_PREAMBLE = 15
"""Lines above the titles that are looked through."""
_NO_TEXT = (
    (b"PK\x03\x04", "an Excel workbook or a zip file"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook"),
    (b"%PDF", "a PDF"),
)


def read_days(name: str, values: Sequence[Any], asked: DayOrder | None) -> list[str]:
    """Return a column as ISO days; raises :class:`UserError` for what is none, or could be two."""
    texts = [_WEEKDAY.sub("", _day_text(value), count=1) for value in values]
    first = next((text for text in texts if text), "")
    for form, made in ((_CLOCK, _of_clock), (_SERIAL, _of_serial), (_OF_MONTH, _of_month)):
        if form.fullmatch(first) and all(map(form.fullmatch, texts)):
            return [made(text) for text in texts]
    spelled = _spelled(texts) if _MONTH.search(first) else None
    if spelled is not None:
        return spelled
    if _DAY.match(first):
        return [_iso(name, row, text) for row, text in enumerate(texts)]
    parts = [_OTHER_DAY.match(text) for text in texts]
    if not first or parts[0] is None:
        raise UserError(f"{name}: '{first}' is not a day", hint="write days as 2024-01-31")
    for row, part in enumerate(parts):
        if part is None:
            raise UserError(f"{name}: row {row + 1}: '{texts[row]}' is not a day", hint="write days as 2024-01-31")
    found = [part for part in parts if part is not None]
    order = asked or _order(name, found)
    days = []
    for row, part in enumerate(found):
        a, b, year = int(part[1]), int(part[3]), int(part[4])
        day, month = (a, b) if order == "dmy" else (b, a)
        days.append(_checked(name, row, year if year > 99 else 2000 + year, month, day))
    return days


def _of_clock(text: str) -> str:
    return datetime.fromtimestamp(int(text[:10]), UTC).date().isoformat()


def _of_serial(text: str) -> str:
    return (date(1899, 12, 30) + timedelta(days=int(float(text)))).isoformat()


def _of_month(text: str) -> str:
    """Return the last day of a month: its return is known then."""
    part = _OF_MONTH.fullmatch(text)
    assert part is not None
    year, month = int(part[1]), int(part[2])
    return date(year, month, calendar.monthrange(year, month)[1]).isoformat()


def _spelled(texts: Sequence[str]) -> list[str] | None:
    """Return days whose months are written as words; None where they are not all written in the same way.

    A month without a day is its last day: its return is known then.
    """
    plain = [
        " ".join(re.sub(r"[-/.,]", " ", _MONTH.sub(_in_english, _TIME.sub("", text))).split()) for text in texts
    ]
    for form in (*_FORMS, *_MONTH_FORMS):
        try:
            found = [datetime.strptime(text, form).replace(tzinfo=UTC).date() for text in plain]
        except ValueError:
            continue
        if form in _MONTH_FORMS:
            found = [one.replace(day=calendar.monthrange(one.year, one.month)[1]) for one in found]
        return [one.isoformat() for one in found]
    return None


def _in_english(word: re.Match[str]) -> str:
    """Return a month's name as three English letters; what is none stays as it is."""
    text = word[0].lower()
    return next((months[0] for months in _MONTHS if text.startswith(months)), word[0])


def _order(name: str, parts: Sequence[re.Match[str]]) -> DayOrder:
    if parts[0][2] == "." or any(int(part[1]) > 12 for part in parts):
        return "dmy"
    if any(int(part[3]) > 12 for part in parts):
        return "mdy"
    raise UserError(
        f"{name}: days like {parts[0][0]} can be read in two ways", hint="say which: --dates dmy or --dates mdy"
    )


def _day_text(value: Any) -> str:
    if isinstance(value, int | np.integer):
        return str(value)
    return "" if value is None else str(value).strip().strip('"')


def _iso(name: str, row: int, text: str) -> str:
    part = _DAY.match(text)
    if part is None:
        raise UserError(f"{name}: row {row + 1}: '{text}' is not a day", hint="write all days as 2024-01-31")
    numbers = [int(one) for one in part.groups() if one is not None]
    return _checked(name, row, *numbers)


def _checked(name: str, row: int, year: int, month: int, day: int) -> str:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        raise UserError(
            f"{name}: row {row + 1}: there is no day {year}-{month:02}-{day:02}",
            hint="write days as 2024-01-31",
        ) from None


def read_numbers(name: str, title: str, values: Sequence[Any], days: Sequence[str]) -> tuple[Floats, bool]:
    """Return a column as numbers, and whether it is written with per cent signs; ``days`` name its rows."""
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        numbers = np.array(values, dtype=np.float64)
        _finite(name, title, numbers, days)
        return numbers, False
    texts = ["" if value is None else str(value) for value in values]
    percent = any("%" in text for text in texts)
    comma = decimal_comma(texts)
    numbers = np.array([read_number(text, comma=comma) for text in texts])
    _finite(name, title, numbers, days)
    return numbers, percent


def _finite(name: str, title: str, numbers: Floats, days: Sequence[str]) -> None:
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise UserError(
            f"{name}: row {bad[0] + 1} of {days[bad[0]]} has no '{title}' that can be used",
            hint="give a number (0 for nothing), or leave the row out",
        )


def decimal_comma(cells: Sequence[str]) -> bool:
    """Return whether commas separate decimals: the last sign of two is the decimal one, and so is a lone comma."""
    texts = [_bare_number(cell) for cell in cells]
    for text in texts:
        if "," in text and "." in text:
            return text.rindex(",") > text.rindex(".")
    commas = [text for text in texts if "," in text]
    return bool(commas) and not all(re.fullmatch(r"[^,]*\d{1,3}(,\d{3})+", text) for text in commas)


def read_number(text: str, *, comma: bool) -> float:
    """Return a cell as a number, NaN where it is none; brackets or a minus behind it make it negative."""
    plain = _bare_number(text)
    plain = plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:
        return float("nan")


_CURRENCY = r"(?:[A-Z]{3}|[$\u20ac\u00a3\u00a5])"


def _bare_number(text: str) -> str:
    """Return a cell without blanks, per cent sign and currency, and with its minus in front."""
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    plain = re.sub(r"[\s'\u2019]", "", plain).rstrip("%")
    if plain.startswith("(") and plain.endswith(")"):
        plain = "-" + plain[1:-1].rstrip("%")
    plain = re.sub(rf"^([-+]?){_CURRENCY}([-+]?)(?=[\d.])", r"\1\2", plain)
    plain = re.sub(rf"(?<=\d){_CURRENCY}$", "", plain)
    return "-" + plain[:-1] if re.fullmatch(r"[\d.,]+-", plain) else plain


# -- where tables come from --------------------------------------------------------------------------------------


def table_of(source: Path | object) -> tuple[str, dict[str, list[Any]]]:
    """Return a name for messages, and columns by title."""
    if isinstance(source, Path | str):
        path = Path(source)
        if not path.is_file():
            raise UserError(f"no file {path}", hint="give a CSV or Parquet file")
        raw = path.read_bytes()
        parquet = path.suffix.lower() in (".parquet", ".pq") or raw[:4] == raw[-4:] == b"PAR1"
        columns = read_parquet(path).to_pydict() if parquet else _text(path, raw)
        name = str(path)
    else:
        columns, name = _frame(source), "the table"
    if not columns or not next(iter(columns.values())):
        raise UserError(f"{name} has no rows", hint="write one row per session")
    return name, columns


def _footers(days: Sequence[str]) -> int:
    """Return how many rows at the end of a table are no days but totals and remarks: no digit says when.

    0 where the first row is no day either.
    """
    dated = [k for k, day in enumerate(days) if re.search(r"\d", day)]
    return len(days) - 1 - dated[-1] if dated and dated[0] == 0 else 0


def plain_title(title: str) -> str:
    """Return a title in small letters, with single blanks; empty for one that a program made up."""
    words = re.sub(r"[_\-]+", " ", title.strip().strip("\ufeff").lower())
    return "" if words.startswith("unnamed") else re.sub(r"\s+", " ", words)


def bare_title(title: str) -> str:
    """Return a plain title without its unit: ``Return (%)`` is ``return``."""
    return re.sub(r"\(.*?\)|\[.*?\]|[%,]|\b(bps|pct|percent)\b", "", plain_title(title)).strip()


def read_parquet(path: Path, *, hint: str = "write it as Parquet or CSV") -> Any:
    """Return a Parquet file as an Arrow table; raises :class:`UserError` for a file that is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read: {str(error).splitlines()[0]}", hint=hint) from error


def _decoded(path: Path, raw: bytes) -> str:
    """Return a file's text; raises :class:`UserError` for what is none."""
    for sign, what in _NO_TEXT:
        if raw.startswith(sign):
            raise UserError(f"{path} is {what}, not text", hint="save it as CSV")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        names = ["utf-16"]
    elif raw[1:2] == b"\0" or raw[:1] == b"\0":
        names = ["utf-16-le" if raw[1:2] == b"\0" else "utf-16-be"]
    else:
        names = ["utf-8-sig", *(name for name in ("gb18030", "cp932") if _has_title(raw, name)), "cp1252"]
    for name in names:
        try:
            text = raw.decode(name)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise UserError(f"{path} is not text", hint="write it as CSV in UTF-8")


def _has_title(raw: bytes, encoding: str) -> bool:
    """Return whether a file read in some encoding has a title that says so: most bytes are text in many."""
    text = raw[:2000].decode(encoding, errors="ignore")
    return any(title in text for title in DATES if title and not title.isascii())


def _text(path: Path, raw: bytes) -> dict[str, list[Any]]:
    import csv

    text = _decoded(path, raw)
    lines = [line for line in text.splitlines() if line.strip(" \t|:+-=") and not line.startswith("#")]
    if not lines:
        return {}
    if lines[0].lstrip()[:1] in ("<", "{", "["):
        raise UserError(
            f"{path} is {'a web page' if '<' in lines[0] else 'JSON'}, not a table", hint="save it as CSV"
        )
    # Titles and remarks above a table have other signs than its rows: what most lines have counts. Commas may also
    # stand inside numbers, the others hardly.
    shown = [re.sub('"[^"]*"', "", line) for line in lines[:50]]
    middle = {sign: sorted(line.count(sign) for line in shown)[len(shown) // 2] for sign in ";\t|"}
    separator = max(middle, key=lambda sign: middle[sign]) if any(middle.values()) else ","
    if separator == "," and sorted(line.count(",") for line in shown)[len(shown) // 2] == 0:
        lines, separator = ["\t".join(line.split()) for line in lines], "\t"  # columns with blanks between
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    head, rows = _titled([row for row in rows if any(row)])
    at = next((k for k, title in enumerate(head) if plain_title(title) in set(DATES) - {""}), 0)
    rows = rows[: len(rows) - _footers([row[at] if at < len(row) else "" for row in rows])]
    if head and all(len(row) == len(head) + 1 and not row[-1] for row in rows):
        rows = [row[:-1] for row in rows]  # a separator behind every row
    wide = [row for row in rows if len(row) != len(head)]
    if wide:
        raise UserError(
            f"{path}: a row has {len(wide[0])} columns, the first {len(head)}: {' '.join(wide[0])[:60]}",
            hint="write every row with the same columns (a decimal comma needs ; between columns)",
        )
    return {title: [row[place] for row in rows] for place, title in enumerate(head)}


def _titled(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return the titles, and the rows below them; a line of units below the titles is put behind them."""
    first = rows[0]
    if _DAY.match(first[0]) or _OTHER_DAY.match(first[0]):
        return ["date", *(f"column {n}" for n in range(2, len(first) + 1))], rows
    known = set(DATES) - {"", "index"}
    at = next((k for k, row in enumerate(rows[:_PREAMBLE]) if known & {plain_title(cell) for cell in row}), 0)
    head, below = rows[at], rows[at + 1 :]
    units = below[0] if below else []
    if len(units) == len(head) and not any(re.search(r"\d", cell) for cell in units) and len(below) > 1:
        return [
            f"{title} {unit}".strip() if k else title
            for k, (title, unit) in enumerate(zip(head, units, strict=True))
        ], below[1:]
    return head, below


def _frame(source: object) -> dict[str, list[Any]]:
    """Return the columns of a pandas Series or DataFrame, or of a polars DataFrame."""
    made: Any = source
    if hasattr(made, "reset_index"):
        if not hasattr(made, "columns"):
            made = made.to_frame(name="return" if made.name is None else str(made.name))
        if not any(plain_title(str(title)) in DATES for title in made.columns):
            made = made.reset_index()
            made = made.rename(columns={made.columns[0]: "date"})
        return {str(title): made[title].tolist() for title in made.columns}
    if hasattr(made, "to_dict") and hasattr(made, "columns"):
        return {str(title): list(values) for title, values in made.to_dict(as_series=False).items()}
    raise UserError(
        f"a {type(source).__name__} is not a table",
        hint="give a file, a pandas Series or DataFrame, or a polars DataFrame",
    )
