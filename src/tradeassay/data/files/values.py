"""Text to values: numbers (cell by cell only where one is odd), dates and times in the spellings vendors use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tradeassay.core.errors import UserError
from tradeassay.core.view import Bools, Floats, Ints
from tradeassay.data.fault import DataFault
from tradeassay.data.files.table import RawTable

_NOTHING = pa.array(["", "nan", "NaN", "NAN", "null", "NULL", "None", "none", "N/A", "n/a", "NA", "-", "--"])
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?[A-Za-z万亿]?")
_SURELY_GROUPED = re.compile(r",\d{3}[,.]")
"""Where semicolons stand between columns, ``10,500`` is as likely ten and a half: another cell has to tell."""
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "万": 1e4, "亿": 1e8}


def to_floats(table: RawTable, name: str) -> tuple[Floats, list[DataFault]]:
    """Return a column as numbers, NaN where it is empty; a cell that is no finite number is a fault and NaN.

    ``1,234.5`` and units (``1.2M``, ``3万``) are understood, a decimal comma is not. Raises :class:`UserError` for
    a column of a type that holds no numbers.
    """
    column = table.columns[name]
    if not _is_text(column.type):
        try:
            values = np.array(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise UserError(
                f"{table.file}: column {name} holds {column.type}, not numbers", hint="name another with --columns"
            ) from error
        return _finite(table, name, values)
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.is_in(text, value_set=_NOTHING), None, text)
    try:
        return _finite(table, name, _numpy(pc.cast(text, pa.float64())))
    except pa.ArrowInvalid:
        pass
    values = np.full(len(text), np.nan)
    faults = []
    cells = text.to_pylist()
    groups = table.delimiter == "," or any(cell and _SURELY_GROUPED.search(cell) for cell in cells)
    for index, cell in enumerate(cells):
        if cell is None:
            continue
        number = _number(cell) if groups or "," not in cell else None
        if number is None:
            faults.append(
                DataFault(
                    check="no number",
                    file=table.file,
                    row=int(table.rows[index]),
                    reason=f"{name} '{cell}' is not a number",
                )
            )
        else:
            values[index] = number
    values, infinite = _finite(table, name, values)
    return values, faults + infinite


def _finite(table: RawTable, name: str, values: Floats) -> tuple[Floats, list[DataFault]]:
    """Return values with every infinity as NaN, and a fault for each."""
    rows = np.flatnonzero(np.isinf(values)).tolist()
    faults = [
        DataFault(
            check="no number",
            file=table.file,
            row=int(table.rows[row]),
            reason=f"{name} {values[row]} is infinite",
        )
        for row in rows
    ]
    if rows:
        values[rows] = np.nan
    return values, faults


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))


def _numpy(column: pa.ChunkedArray) -> Floats:
    values: Floats = np.array(column.to_numpy(), dtype=np.float64)
    return values


def _number(cell: str) -> float | None:
    plain = cell.replace("$", "")
    if "," in plain:
        # Commas group thousands; anywhere else one may be a decimal point, and ten times the price is no reading.
        if _GROUPED.fullmatch(plain) is None:
            return None
        plain = plain.replace(",", "")
    scale = _UNITS.get(plain[-1:].upper())
    try:
        return float(plain) if scale is None else float(plain[:-1]) * scale
    except ValueError:
        return None


Parser = Callable[[str], datetime]
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local wall time before its zone is known


@dataclass(frozen=True, slots=True)
class Stamps:
    """Time stamps of rows: ``local`` wall time in nanoseconds, ``offset`` from UTC where ``zoned``.

    ``good`` is False for rows whose stamp could not be read. ``spelling`` says how they were read.
    """

    local: Ints
    offset: Ints
    zoned: Bools
    good: Bools
    spelling: str

    @property
    def midnight(self) -> Bools:
        """Rows whose wall time is 00:00."""
        result: Bools = self.local % 86_400_000_000_000 == 0
        return result


def read_stamps(table: RawTable, date: str, time: str | None = None) -> tuple[Stamps, list[DataFault]]:
    """Read the stamps of a table from its date column (and its column with the time of day, if there is one)."""
    column = table.columns[date]
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        try:
            typed = _typed(column)
        except pa.ArrowException as error:
            raise UserError(f"{table.file}: {date} holds dates out of range", hint="fix the column") from error
        return typed, [
            DataFault(
                check="unreadable date", file=table.file, row=int(table.rows[row]), reason=f"{date} is empty"
            )
            for row in np.flatnonzero(~typed.good).tolist()
        ]
    try:
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    except pa.ArrowException as error:
        raise UserError(
            f"{table.file}: column {date} holds {column.type}, not dates", hint="name another with --columns"
        ) from error
    if time is not None:
        text = pc.binary_join_element_wise(text, _times(table.columns[time]), " ")
    quick = _quick(text)
    if quick is not None:
        return quick, []
    encoded = text.combine_chunks().dictionary_encode()
    unique = encoded.dictionary.to_pylist()
    spelling, parse = _spelling([cell for cell in unique if cell])
    local, offset, zoned, good = (np.zeros(len(unique) + 1, dtype=np.int64) for _ in range(4))
    for index, cell in enumerate(unique):
        try:
            moment = parse(cell or "")
        except (ValueError, OverflowError, OSError):
            continue
        if not 1700 <= moment.year <= 2200:  # beyond what nanoseconds since 1970 can count
            continue
        shift = moment.utcoffset()
        wall = moment.replace(tzinfo=None) - _EPOCH
        local[index] = (wall.days * 86_400 + wall.seconds) * 10**9 + wall.microseconds * 1000
        offset[index] = 0 if shift is None else (shift // timedelta(microseconds=1)) * 1000
        zoned[index], good[index] = shift is not None, 1
    codes = encoded.indices.fill_null(len(unique)).to_numpy(zero_copy_only=False)
    stamps = Stamps(local[codes], offset[codes], zoned[codes] > 0, good[codes] > 0, spelling)
    faults = [
        DataFault(
            check="unreadable date",
            file=table.file,
            row=int(table.rows[row]),
            reason=f"{date} '{text[row].as_py() or ''}' is not a date",
        )
        for row in np.flatnonzero(~stamps.good).tolist()
    ]
    return stamps, faults


_PLAIN = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?$"
_EIGHT = r"^(18|19|20)\d{6}$"


def _quick(text: pa.ChunkedArray) -> Stamps | None:
    """Return the stamps of a column that is plain ISO without a zone, or yyyymmdd, throughout; else None."""
    if text.null_count or not len(text):
        return None
    spelling = "ISO"
    if pc.all(pc.match_substring_regex(text, _EIGHT)).as_py():
        text = pc.replace_substring_regex(text, r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3")
        spelling = "digits"
    elif not pc.all(pc.match_substring_regex(text, _PLAIN)).as_py():
        return None
    try:
        local = np.asarray(text.cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy(), dtype=np.int64)
    except pa.ArrowInvalid:
        return None
    return Stamps(local, same(0, local.size), same(False, local.size), same(True, local.size), spelling)


def same(value: int, count: int) -> NDArray[Any]:
    """Return an array that says the same of every row and takes no memory for it; nobody can write to it."""
    return np.broadcast_to(np.array(value), (count,))


def _typed(column: pa.ChunkedArray) -> Stamps:
    zone = getattr(column.type, "tz", None)
    good = ~np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
    utc = column.cast(pa.timestamp("ns", tz=zone)).cast(pa.int64()).fill_null(0).to_numpy()
    local = np.asarray(utc, dtype=np.int64)
    if zone is not None:
        wall = pc.local_timestamp(column.cast(pa.timestamp("ns", tz=zone))).cast(pa.int64()).fill_null(0)
        local = np.asarray(wall.to_numpy(), dtype=np.int64)
    spelling = "a typed column" if zone is None else f"a typed column in {zone}"
    return Stamps(local, local - utc, np.full(local.size, zone is not None), good, spelling)


def _times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    # 93000, 930 and 9:30 mean 09:30:00, 09:30 and 09:30.
    digits = pc.match_substring_regex(text, r"^\d+$")
    width = pc.if_else(pc.greater(pc.utf8_length(text), 4), pc.utf8_lpad(text, 6, "0"), pc.utf8_lpad(text, 4, "0"))
    short = pc.match_substring_regex(text, r"^\d:")
    return pc.if_else(digits, width, pc.if_else(short, pc.utf8_lpad(text, 5, "0"), text))


_PER_SECOND = {9: 1, 10: 1, 12: 10**3, 13: 10**3, 16: 10**6, 19: 10**9}
"""How many units of an epoch make a second, by its number of digits."""


def _digits(cell: str) -> datetime:
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


_PARTS = re.compile(r"(\d{1,4})[-/.年](\d{1,2})[-/.月](\d{1,4})日?(?:[ T]+(.+))?")


def _ordered(order: str) -> Parser:
    places = {letter: index + 1 for index, letter in enumerate(order)}

    def parse(cell: str) -> datetime:
        match = _PARTS.fullmatch(cell)
        if match is None:
            raise ValueError(cell)
        year, month, day = (match[places[letter]] for letter in "ymd")
        if len(year) != 4:
            raise ValueError(cell)
        clock = match[4]
        if clock is not None and re.match(r"\d:", clock):
            clock = "0" + clock
        tail = "" if clock is None else f"T{clock}"
        return datetime.fromisoformat(f"{year}-{int(month):02d}-{int(day):02d}{tail}")

    return parse


def _spelled(pattern: str) -> Parser:
    return lambda cell: datetime.strptime(cell, pattern)  # noqa: DTZ007


_SPELLINGS: tuple[tuple[str, Parser], ...] = (
    ("ISO", datetime.fromisoformat),
    ("digits", _digits),
    ("year-month-day", _ordered("ymd")),
    ("month/day/year", _ordered("mdy")),
    ("day/month/year", _ordered("dmy")),
    ("Jan 02, 2024", _spelled("%b %d, %Y")),
    ("02-Jan-2024", _spelled("%d-%b-%Y")),
    ("02 Jan 2024", _spelled("%d %b %Y")),
)


def _spelling(cells: list[str]) -> tuple[str, Parser]:
    """Return the spelling that reads most cells; ties go to the one higher in the list."""
    best, most = _SPELLINGS[0], -1
    digits = bool(cells) and all(cell.removesuffix(".0").isdigit() for cell in cells[:50])
    candidates = [_SPELLINGS[1]] if digits else list(_SPELLINGS)
    for name, parse in candidates:
        read = sum(_reads(parse, cell) for cell in cells)
        if read > most:
            best, most = (name, parse), read
        if read == len(cells):
            break
    return best


def _reads(parse: Parser, cell: str) -> bool:
    try:
        parse(cell)
    except (ValueError, OverflowError, OSError):
        return False
    return True
