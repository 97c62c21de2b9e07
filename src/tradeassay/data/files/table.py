"""One file as text columns with line numbers: nothing is interpreted here, so nothing can be misread silently."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tradeassay.core.errors import UserError
from tradeassay.core.view import Ints
from tradeassay.data.fault import DataFault

_OPENERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
CSV_ENDINGS = (".csv", ".txt", ".tsv")
PARQUET_ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class RawTable:
    """A file's columns. ``rows`` holds the line (CSV, header = 1) or data row (Parquet, from 1) of every row.

    CSV columns are strings, Parquet columns keep their types. ``faults`` are lines that are not rows;
    ``delimiter`` stands between the columns of a CSV.
    """

    file: str
    columns: dict[str, pa.ChunkedArray]
    rows: Ints
    faults: tuple[DataFault, ...] = ()
    delimiter: str = ","


def one_line(error: BaseException) -> str:
    """Return an error's text as one short line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def is_table(path: Path) -> bool:
    """Return whether a file's name says it is a table we can read."""
    return _kind(path) is not None


def _kind(path: Path) -> str | None:
    name = path.name.lower()
    for ending in _OPENERS:
        name = name.removesuffix(ending)
    if name.endswith(CSV_ENDINGS):
        return "csv"
    return "parquet" if name.endswith(PARQUET_ENDINGS) else None


def stem_of(path: Path) -> str:
    """Return a table's name without its endings (``600000.SH.csv.gz`` gives ``600000.SH``)."""
    name = path.name
    for ending in (*_OPENERS, *CSV_ENDINGS, *PARQUET_ENDINGS):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name


def read_table(path: Path, label: str, header: tuple[str, ...] = ()) -> RawTable:
    """Read a CSV (plain, gz, bz2, xz; UTF-8 or GB18030) or Parquet file.

    ``header`` names the columns of a file that has none. Raises :class:`UserError` naming the file when it cannot
    be read at all; single broken lines become faults.
    """
    if _kind(path) == "parquet":
        try:
            table = pa.parquet.read_table(path)
            table.validate(full=True)  # texts are read as they stand, also where they are none
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UserError(f"{label} is not a Parquet file: {one_line(error)}", hint="check the file") from error
        names = header or tuple(map(str, table.column_names))
        if len(names) != table.num_columns:
            raise UserError(f"{label} has {table.num_columns} columns, {len(names)} were named")
        columns = dict(zip(names, table.columns, strict=True))
        return RawTable(label, columns, np.arange(1, table.num_rows + 1))
    try:
        content = path.read_bytes()
        opener = _OPENERS.get(path.suffix.lower())
        content = content if opener is None else opener(content)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise UserError(f"{label} cannot be read: {one_line(error)}", hint="check the file") from error
    try:
        return read_csv(content, label, header)
    except (pa.ArrowException, csv.Error) as error:
        raise UserError(f"{label} is not a table: {one_line(error)}", hint="check the file") from error


def read_csv(content: bytes, label: str, header: tuple[str, ...] = ()) -> RawTable:
    """Read the bytes of a CSV file; lines that start with ``#`` before the header are skipped."""
    text = _utf8(content, label)
    skipped = 0
    while text.startswith(b"#"):
        _, _, text = text.partition(b"\n")
        skipped += 1
    first = text.partition(b"\n")[0].decode().rstrip("\r")
    if not first.strip():
        raise UserError(f"{label} is empty", hint="remove it, or fill it")
    delimiter = max(",;\t|", key=first.count)
    names = header or _names(next(csv.reader([first], delimiter=delimiter)))
    skipped += 0 if header else 1
    table = pa.csv.read_csv(
        io.BytesIO(text),
        read_options=pa.csv.ReadOptions(column_names=list(names), skip_rows=0 if header else 1),
        parse_options=pa.csv.ParseOptions(
            delimiter=delimiter, invalid_row_handler=lambda _: "skip", newlines_in_values=b'"' in text
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False
        ),
    )
    columns = dict(zip(names, table.columns, strict=True))
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    if lines == table.num_rows + (0 if header else 1):
        return RawTable(label, columns, np.arange(table.num_rows) + skipped + 1, delimiter=delimiter)
    # Empty lines, broken lines or line breaks inside quotes: count properly.
    rows, broken = _count_lines(text, delimiter, bool(header), len(names))
    before = skipped - (0 if header else 1)
    faults = tuple(
        DataFault(
            check="broken line", file=label, row=line + before, reason=f"{n} columns instead of {len(names)}"
        )
        for line, n in broken
    )
    return RawTable(label, columns, np.array(rows[: table.num_rows], dtype=np.int64) + before, faults, delimiter)


def _names(raw: list[str]) -> tuple[str, ...]:
    names: list[str] = []
    for index, name in enumerate(raw):
        plain = name.strip() or f"column{index + 1}"
        names.append(plain if plain not in names else f"{plain}.{index + 1}")
    return tuple(names)


def _utf8(content: bytes, label: str) -> bytes:
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.decode()
        return content
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("gb18030").encode()
    except UnicodeDecodeError as error:
        raise UserError(f"{label} is neither UTF-8 nor GB18030 text", hint="save it as UTF-8") from error


def _count_lines(
    text: bytes, delimiter: str, headerless: bool, width: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the first lines of the good rows, and (line, columns) of the broken ones."""
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter)
    good: list[int] = []
    broken: list[tuple[int, int]] = []
    previous = 0
    for number, row in enumerate(reader):
        line, previous = previous + 1, reader.line_num
        if not row or (number == 0 and not headerless):
            continue
        if len(row) == width:
            good.append(line)
        else:
            broken.append((line, len(row)))
    return good, broken
