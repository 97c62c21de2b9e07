"""Convert columns of bars from Arrow to numbers and timestamps.

No cell is misread silently, because a cell that is neither a number nor a date becomes a fault. The
slow parts of Arrow are imported only when a file is read.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.tables.cells import (
    csv_rows,
    csv_text,
    one_line,
    read_parquet,
    table_content,
)
from tradeassay.tables.dates import UNREADABLE, spelling_of
from tradeassay.tables.faults import DataFault


@dataclass(frozen=True, slots=True)
class RawTable:
    """A file's columns.

    ``rows`` contains the line (CSV, header = 1) or data row (Parquet, from 1) of every row. CSV
    columns are strings, and Parquet columns keep their types. ``faults`` are lines that are not
    rows. ``delimiter`` separates the columns of a CSV.
    """

    file: str
    columns: dict[str, pa.ChunkedArray]
    rows: Ints
    faults: tuple[DataFault, ...] = ()
    delimiter: str = ","

    def fault(self, row: int, check: str, reason: str) -> DataFault:
        return DataFault(check=check, file=self.file, row=int(self.rows[row]), reason=reason)


def read_table(path: Path, label: str, header: tuple[str, ...] = ()) -> RawTable:
    """Return a table from a CSV, a workbook's sheet or a Parquet file.

    Broken lines become faults. A CSV may be plain or compressed (gz, bz2, xz), in any common
    encoding.
    """
    content = table_content(path, label)
    if isinstance(content, bytes):
        try:
            return read_csv(content, label, header)
        except (pa.ArrowException, csv.Error) as error:
            raise UserError(
                f"{label} is not a table: {one_line(error)}", hint="check the file"
            ) from error
    table = read_parquet(content, label)
    names = header or tuple(map(str, table.column_names))
    if len(names) != table.num_columns:
        raise UserError(
            f"{label} has {table.num_columns} columns, but {len(names)} names were given"
        )
    return RawTable(
        label, dict(zip(names, table.columns, strict=True)), np.arange(1, table.num_rows + 1)
    )


def read_csv(content: bytes, label: str, header: tuple[str, ...] = ()) -> RawTable:
    """Return a table from the bytes of a CSV file.

    The file may have remarks around the table, and titles, units or rules above its rows.
    """
    import pyarrow.csv

    layout = csv_text(content, label, header)
    text, names, skip, remarks, delimiter, plain = layout
    if plain:
        table = pyarrow.csv.read_csv(
            io.BytesIO(text),
            read_options=pyarrow.csv.ReadOptions(column_names=list(names), skip_rows=skip),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter,
                invalid_row_handler=lambda _: "skip",
                newlines_in_values=b'"' in text,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in names}, strings_can_be_null=False
            ),
        )
        if text.count(b"\n") + (not text.endswith(b"\n")) == table.num_rows + skip:
            columns = dict(zip(names, table.columns, strict=True))
            return RawTable(
                label, columns, np.arange(table.num_rows) + remarks + skip + 1, (), delimiter
            )
    found = csv_rows(layout, label)
    columns = {
        name: pa.chunked_array([pa.array([row[k] for row in found.rows], pa.string())])
        for k, name in enumerate(names)
    }
    return RawTable(label, columns, np.array(found.lines, dtype=np.int64), found.faults, delimiter)


@cache
def _missing() -> pa.Array:
    """Return the texts that stand for a missing number.

    The array is created on first use, because pyarrow then searches for pandas. It is cached,
    because its creation takes a third of the time of reading a small column.
    """
    return pa.array(
        ["", "nan", "NaN", "NAN", "null", "NULL", "None", "none", "N/A", "n/a", "NA", "-", "--"]
    )


_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?[A-Za-z万亿]?")
_SURELY_GROUPED = re.compile(r",\d{3}[,.]")
"""Pattern of a number whose commas surely group thousands. If semicolons separate columns,
``10,500`` alone may also mean ten and a half, so another cell has to decide.
"""
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "万": 1e4, "亿": 1e8}


def to_floats(table: RawTable, name: str) -> tuple[Floats, list[DataFault]]:
    """Return a column of bars as numbers, with NaN for empty cells.

    ``1,234.5``, ``1.2M`` and ``3万`` are supported. A decimal comma is not, because a misread one
    would multiply the price by ten.
    """
    import pyarrow.compute as pc

    column = table.columns[name]
    kind, faults = column.type, []
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
        text = pc.if_else(pc.is_in(text, value_set=_missing()), None, text)
        try:
            values: Floats = np.array(pc.cast(text, pa.float64()).to_numpy(), dtype=np.float64)
        except pa.ArrowInvalid:
            cells = text.to_pylist()
            values = np.full(len(cells), np.nan)
            groups = table.delimiter == "," or any(
                cell and _SURELY_GROUPED.search(cell) for cell in cells
            )
            for row, cell in enumerate(cells):
                if cell is not None:
                    number = _grouped_number(cell) if groups or "," not in cell else None
                    if number is None:
                        faults.append(
                            table.fault(row, "no number", f"{name} '{cell}' is not a number")
                        )
                    else:
                        values[row] = number
    else:
        try:
            values = np.array(
                pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64
            )
        except (pa.ArrowException, ValueError, TypeError) as error:
            problem = f"{table.file}: column {name} contains {kind}, not numbers"
            raise UserError(problem, hint="name another column with columns=") from error
    for row in np.flatnonzero(np.isinf(values)).tolist():
        faults.append(table.fault(row, "no number", f"{name} {values[row]} is infinite"))
        values[row] = np.nan
    return values, faults


def _grouped_number(cell: str) -> float | None:
    """Return the number in a cell such as ``1,234.5`` or ``1.2M``, or None."""
    plain = cell.replace("$", "")
    if "," in plain:
        # Commas group thousands. In any other place a comma may be a decimal point.
        if _GROUPED.fullmatch(plain) is None:
            return None
        plain = plain.replace(",", "")
    scale = _UNITS.get(plain[-1:].upper())
    try:
        return float(plain) if scale is None else float(plain[:-1]) * scale
    except ValueError:
        return None


# -- timestamps --

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local wall time before its zone is known
_PLAIN = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?$"
_EIGHT = r"^(18|19|20)\d{6}$"


@dataclass(frozen=True, slots=True)
class Stamps:
    """The timestamps of rows.

    ``local`` is the wall time in nanoseconds. ``offset`` is the difference from UTC for ``zoned``
    rows. ``good`` is False for rows with an unreadable timestamp. ``spelling`` describes the format
    of the timestamps.
    """

    local: Ints
    offset: Ints
    zoned: Bools
    good: Bools
    spelling: str


def read_stamps(
    table: RawTable, date: str, time: str | None = None
) -> tuple[Stamps, list[DataFault]]:
    """Return the timestamps of a table, and faults for unreadable dates.

    The timestamps are read from the date column and, if there is one, from the time column.
    """
    import pyarrow.compute as pc

    column = table.columns[date]
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        try:
            zone = getattr(column.type, "tz", None)
            good = ~np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
            utc = column.cast(pa.timestamp("ns", tz=zone)).cast(pa.int64()).fill_null(0).to_numpy()
            local = np.asarray(utc, dtype=np.int64)
            if zone is not None:
                wall = (
                    pc.local_timestamp(column.cast(pa.timestamp("ns", tz=zone)))
                    .cast(pa.int64())
                    .fill_null(0)
                )
                local = np.asarray(wall.to_numpy(), dtype=np.int64)
            spelling = "a typed column" if zone is None else f"a typed column in {zone}"
            typed = Stamps(
                local, local - utc, np.full(local.size, zone is not None), good, spelling
            )
        except pa.ArrowException as error:
            raise UserError(
                f"{table.file}: {date} contains dates out of range", hint="fix the column"
            ) from error
        empty = np.flatnonzero(~typed.good).tolist()
        return typed, [table.fault(row, "unreadable date", f"{date} is empty") for row in empty]
    try:
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    except pa.ArrowException as error:
        problem = f"{table.file}: column {date} contains {column.type}, not dates"
        raise UserError(problem, hint="name another column with columns=") from error
    if time is not None:
        clock = pc.utf8_trim_whitespace(table.columns[time].cast(pa.string()))
        # 93000, 930 and 9:30 mean 09:30:00, 09:30 and 09:30.
        long = pc.greater(pc.utf8_length(clock), 4)
        padded = pc.if_else(long, pc.utf8_lpad(clock, 6, "0"), pc.utf8_lpad(clock, 4, "0"))
        short = pc.if_else(
            pc.match_substring_regex(clock, r"^\d:"), pc.utf8_lpad(clock, 5, "0"), clock
        )
        clock = pc.if_else(pc.match_substring_regex(clock, r"^\d+$"), padded, short)
        text = pc.binary_join_element_wise(text, clock, " ")
    stamps = _quick(text) or _parsed(text)
    bad = np.flatnonzero(~stamps.good).tolist()
    reasons = ((row, f"{date} '{text[row].as_py() or ''}' is not a date") for row in bad)
    return stamps, [table.fault(row, "unreadable date", reason) for row, reason in reasons]


def _parsed(text: pa.ChunkedArray) -> Stamps:
    """Return the timestamps of a column, parsed in the format that fits most distinct cells."""
    encoded = text.combine_chunks().dictionary_encode()
    unique = encoded.dictionary.to_pylist()
    spelling, parse = spelling_of([cell for cell in unique if cell])
    local, offset, zoned, good = (np.zeros(len(unique) + 1, dtype=np.int64) for _ in range(4))
    for index, cell in enumerate(unique):
        try:
            moment = parse(cell or "")
        except UNREADABLE:
            continue
        if not 1700 <= moment.year <= 2200:  # beyond the range of nanoseconds since 1970
            continue
        shift = moment.utcoffset()
        wall = moment.replace(tzinfo=None) - _EPOCH
        local[index] = (wall.days * 86_400 + wall.seconds) * 10**9 + wall.microseconds * 1000
        offset[index] = 0 if shift is None else (shift // timedelta(microseconds=1)) * 1000
        zoned[index], good[index] = shift is not None, 1
    codes = encoded.indices.fill_null(len(unique)).to_numpy(zero_copy_only=False)
    return Stamps(local[codes], offset[codes], zoned[codes] > 0, good[codes] > 0, spelling)


def _quick(text: pa.ChunkedArray) -> Stamps | None:
    """Return the timestamps of a column of plain ISO dates without a zone, or of yyyymmdd.

    Return None for any other column.
    """
    import pyarrow.compute as pc

    if text.null_count or not len(text):
        return None
    spelling = "ISO"
    if pc.all(pc.match_substring_regex(text, _EIGHT)).as_py():
        text = pc.replace_substring_regex(text, r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3")
        spelling = "digits"
    elif not pc.all(pc.match_substring_regex(text, _PLAIN)).as_py():
        return None
    try:
        local = np.asarray(
            text.cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy(), dtype=np.int64
        )
    except pa.ArrowInvalid:
        return None
    return Stamps(
        local, same(0, local.size), same(False, local.size), same(True, local.size), spelling
    )


def same(value: int, count: int) -> NDArray[Any]:
    """Return a read-only array that repeats one value and takes no memory."""
    return np.broadcast_to(np.array(value), (count,))
