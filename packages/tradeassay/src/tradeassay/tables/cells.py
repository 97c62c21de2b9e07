"""Read files as tables of cells: bytes to texts, texts to numbers.

This module does not know the meaning of columns, and nothing is silently misread. Every row keeps
its line number, and a line that is not a row becomes a fault. Parquet files and workbooks need
packages of the extra ``files``, which are imported when such a file is read.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError, require
from tradeassay.tables.columns import DATE_TITLES, FOREIGN_TITLES, plain_title
from tradeassay.tables.dates import is_day
from tradeassay.tables.faults import DataFault

if TYPE_CHECKING:
    import pyarrow as pa

_OPENERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
_CSV_ENDINGS = (".csv", ".txt", ".tsv", ".xlsx")
_PARQUET_ENDINGS = (".parquet", ".pq")
_WORKBOOK = b"PK\x03\x04"
_ENCODINGS = ("utf_8", "gb18030", "cp932", "cp1251", "cp1252")
"""Encodings of tables besides UTF-8: Chinese, Japanese, Cyrillic and Western."""
_NO_TEXT = {
    _WORKBOOK: "a zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls)",
    b"%PDF": "a PDF",
}
_MARKUP = re.compile(r"\s*(?:(?P<page><(?i:!doctype|html|head|body|table|\?xml))|[\[{]\s*[\"\[{])")
_PREAMBLE = 15
"""Largest number of lines above the titles that are searched."""
_MOST_COLUMNS = 20_000
"""Largest number of columns. More are a mistake, and reading them would take minutes."""
_KNOWN_TITLES = frozenset(DATE_TITLES) - {"", "index"}
RULES = " \t|:+-="
"""Characters of ruler lines between the rows of a drawn table."""
NOTHING = ("", "nan", "na", "n/a", "<na>", "nat", "none", "null", "-")
"""Cells of an account's table that mean a missing number."""


class CellTable(msgspec.Struct, frozen=True):
    """A file's columns as Python values: texts of a CSV file, typed values of a Parquet file.

    ``rows`` is the line (CSV, header = 1) or data row (Parquet, from 1) of every row. ``faults``
    are lines that are not rows. ``texts`` means that every column contains texts.
    """

    file: str
    columns: dict[str, list[Any]]
    rows: Sequence[int]
    faults: tuple[DataFault, ...] = ()
    texts: bool = True


class _CsvText(NamedTuple):
    """The text of a CSV file and its layout.

    ``skip`` is the number of rows with titles and remarks above the data. ``remarks`` is the number
    of lines removed from the top of the file. ``plain`` means that only a row of titles is above
    the data.
    """

    text: bytes
    names: tuple[str, ...]
    skip: int
    remarks: int
    delimiter: str
    plain: bool


class _CsvRows(NamedTuple):
    """The rows of a CSV file, their line numbers, and the lines that are not rows."""

    rows: list[list[str]]
    lines: list[int]
    faults: tuple[DataFault, ...]


def one_line(error: BaseException) -> str:
    """Return an error's message on one line of at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def is_table(path: Path) -> bool:
    """Return whether a file's name has the ending of a readable table."""
    name = path.name.lower()
    for ending in _OPENERS:
        name = name.removesuffix(ending)
    return name.endswith((*_CSV_ENDINGS, *_PARQUET_ENDINGS))


def stem_of(path: Path) -> str:
    """Return a table's name without its file endings (``600000.SH.csv.gz`` gives ``600000.SH``)."""
    name = path.name
    for ending in (*_OPENERS, *_CSV_ENDINGS, *_PARQUET_ENDINGS):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name


# -- files ------------------------------------------------------------------------------------


def other_than_file(path: Path) -> str | None:
    """Return a description of ``path`` if it is not a regular file, else None.

    Reading a pipe would wait for a writer.
    """
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError:
        return "a link to nothing" if path.is_symlink() else None
    kinds = {
        stat.S_IFREG: None,
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFDIR: "a folder",
    }
    return kinds.get(kind, "a device")


def read_cells(path: Path, label: str) -> CellTable:
    """Return the columns of a CSV file, a workbook's sheet or a Parquet file.

    A CSV file may be plain, gz, bz2 or xz. Raises :class:`UserError` for a file that is not a
    table.
    """
    content = table_content(path, label)
    if isinstance(content, bytes):
        try:
            layout = csv_text(content, label)
            found = csv_rows(layout, label)
        except csv.Error as error:
            raise UserError(
                f"{label} is not a table: {one_line(error)}", hint="check the file"
            ) from error
        columns = {name: [row[k] for row in found.rows] for k, name in enumerate(layout.names)}
        return CellTable(label, columns, found.lines, found.faults)
    table = read_parquet(content, label)
    typed = dict(zip(map(str, table.column_names), table.columns, strict=True))
    return CellTable(
        label,
        {title: column.to_pylist() for title, column in typed.items()},
        range(1, table.num_rows + 1),
        texts=all(str(column.type) == "string" for column in typed.values()),
    )


def table_content(path: Path, label: str) -> bytes | Path | io.BytesIO:
    """Return the text of a CSV file or of a workbook's sheet, or the source of a Parquet file.

    Raises :class:`UserError` for an unreadable file.
    """
    if what := other_than_file(path):
        raise UserError(f"{label} is {what}, not a file", hint="save the table as a file")
    if path.name.lower().endswith(_PARQUET_ENDINGS):
        return path
    try:
        content = path.read_bytes()
        opener = _OPENERS.get(path.suffix.lower())
        content = content if opener is None else opener(content)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise UserError(
            f"{label} cannot be read: {one_line(error)}", hint="check the file"
        ) from error
    if content[:4] == content[-4:] == b"PAR1":
        return io.BytesIO(content)
    try:
        return _sheet(content, label)
    except csv.Error as error:
        raise UserError(
            f"{label} is not a table: {one_line(error)}", hint="check the file"
        ) from error


def read_parquet(source: Path | io.BytesIO, label: str) -> pa.Table:
    """Return a Parquet file's table.

    Raises :class:`UserError` if it is not a Parquet file, or without pyarrow.
    """
    arrow: Any = require("pyarrow", "files", f"{label}: a Parquet file", instead="save it as CSV")
    parquet: Any = require("pyarrow.parquet", "files", f"{label}: a Parquet file")
    try:
        table = parquet.read_table(source)
        table.validate(full=True)  # Arrow accepts column names that are not valid text.
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise UserError(
            f"{label} is not a Parquet file: {one_line(error)}", hint="check the file"
        ) from error
    _refuse_width(table.num_columns, label)
    return table


def _sheet(content: bytes, label: str) -> bytes:
    """Return a workbook's table as CSV, with ISO days and per cent signs as displayed.

    Sheets with the same titles form one table. If the titles differ, the longest sheet is used,
    unless two sheets are long.
    """
    if not content.startswith(_WORKBOOK):
        return content
    openpyxl: Any = require(
        "openpyxl", "files", f"{label}: an Excel workbook", instead="save it as CSV"
    )
    try:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        tables: dict[tuple[str, ...], list[list[str]]] = {}
        for sheet in book.worksheets:
            rows = [
                row for cells in sheet.iter_rows() if any(row := [_shown(cell) for cell in cells])
            ]
            if rows:
                tables.setdefault(tuple(rows[0]), rows[:1]).extend(rows[1:])
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError, zlib.error) as error:
        raise UserError(
            f"{label} is not an Excel workbook: {one_line(error)}", hint="save it as CSV"
        ) from error
    if not tables:
        raise UserError(f"{label} is empty", hint="remove it, or fill it")
    longest, *others = sorted(tables.values(), key=len, reverse=True)
    if others and len(others[0]) > 12:  # a shorter sheet is a cover
        raise UserError(
            f"{label} contains several tables", hint="save the right sheet as a separate file"
        )
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(longest)
    return made.getvalue().encode()


def _shown(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime):
        return (
            value.isoformat(sep=" ")
            if value.time() != datetime.min.time()
            else value.date().isoformat()
        )
    if isinstance(value, float) and "%" in (cell.number_format or ""):
        return f"{value * 100.0!r}%"
    return str(value)


def _utf8(content: bytes, label: str) -> bytes:
    """Return a text in UTF-8. Raises :class:`UserError` if the content is not text."""
    for sign, what in _NO_TEXT.items():
        if content.startswith(sign):
            raise UserError(f"{label} is {what}, not text", hint="save it as CSV or .xlsx")
    encoding = "utf-8"
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif b"\0" in content[:2]:
        encoding = "utf-16-le" if content[1:2] == b"\0" else "utf-16-be"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        try:
            text = content.decode(_encoding_of(content))
        except UnicodeDecodeError as error:
            raise UserError(
                f"{label} is not text in a supported encoding", hint="save it as UTF-8"
            ) from error
        encoding = "other"
    if "\0" in text:
        raise UserError(f"{label} is not text", hint="write it as CSV in UTF-8")
    return content.removeprefix(b"\xef\xbb\xbf") if encoding == "utf-8" else text.encode()


def _encoding_of(content: bytes) -> str:
    """Return the encoding of a text that is not UTF-8, from a known title or from its bytes.

    Most bytes are text in several encodings, so a successful decoding proves nothing.
    """
    for encoding in _ENCODINGS:
        for line in content[:2000].decode(encoding, "replace").splitlines()[:5]:
            cells = re.split("[;,\t|]", line)
            if not FOREIGN_TITLES.isdisjoint(plain_title(cell.strip('" ')) for cell in cells):
                return encoding
    runs = re.findall(rb"[A-Za-z]?[\x80-\xff]+[A-Za-z]?", content[:100_000])
    foreign = bytes(byte for run in runs for byte in run if byte > 0x7F)
    if _share(foreign, 0x81, 0x9F) > 0.25 and _decodes(content, "cp932"):
        return "cp932"  # in other encodings these bytes are rare characters
    accents = [run for run in runs if len(run) == 1 or any(byte <= 0x7F for byte in run)]
    if len(accents) >= len(runs) / 2:
        return "cp1252"  # single symbols, and accents next to plain letters
    if _share(foreign, 0xC0, 0xFF) > 0.9:
        return "cp1251"  # Cyrillic letters; in Chinese the second byte may also be lower
    return "gb18030"


def _share(content: bytes, first: int, last: int) -> float:
    """Return the share of bytes from ``first`` to ``last``."""
    return sum(first <= byte <= last for byte in content) / len(content)


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def csv_text(content: bytes, label: str, header: tuple[str, ...] = ()) -> _CsvText:
    """Return the text and layout of a CSV file.

    It may have remarks around the table, and titles, units or rules above its rows. Raises
    :class:`UserError` for a file that is not a table of text.
    """
    text = _utf8(content, label)
    if b"\n" not in text:  # line ends of an old Macintosh, which Excel still offers
        text = text.replace(b"\r", b"\n")
    remarks = 0
    while text.startswith(b"#"):
        _, _, text = text.partition(b"\n")
        remarks += 1
    source = io.BytesIO(text)
    first = [source.readline().decode().strip("\r\n") for _ in range(50)]
    shown = [line for line in first if line.strip(RULES) and not line.startswith("#")]
    if not shown:
        raise UserError(f"{label} is empty", hint="remove it, or fill it")
    if markup := _MARKUP.match(shown[0]):
        problem = f"{label} is {'a web page' if markup['page'] else 'JSON'}, not a table"
        raise UserError(problem, hint="save it as CSV")
    delimiter = _delimiter(shown)
    if delimiter == " ":
        text, delimiter = (
            re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", text)),
            "\t",
        )
        shown = ["\t".join(line.split()) for line in shown]
    above = list(csv.reader(shown[: _PREAMBLE + 2], delimiter=delimiter))
    names, skip = (header, 0) if header else _titles(above)
    _refuse_width(len(names), label)
    plain = skip <= 1 and len(shown) > skip and text.startswith(shown[0].encode())
    return _CsvText(text, names, skip, remarks, delimiter, plain)


def _refuse_width(columns: int, label: str) -> None:
    """Raise an error for too many columns.

    Every column takes time, and real tables are narrower.
    """
    if columns > _MOST_COLUMNS:
        problem = f"{label} has {columns:,} columns, at most {_MOST_COLUMNS:,} are read"
        raise UserError(problem, hint="give one row per day and symbol")


def _delimiter(lines: list[str]) -> str:
    """Return the column separator (a blank means any number of blanks).

    It is the separator on most lines that the titles contain too. Remarks above a table contain
    other characters than its rows, and numbers may contain commas.
    """
    bare = [re.sub('"[^"]*"', "", line) if '"' in line else line for line in lines]
    middle = {sign: sorted(line.count(sign) for line in bare)[len(bare) // 2] for sign in ";\t|,"}
    for sign in sorted(";\t|", key=lambda sign: -middle[sign]):
        if not middle[sign]:
            break
        titled = any(
            not _KNOWN_TITLES.isdisjoint(map(plain_title, line.split(sign)))
            for line in bare[:_PREAMBLE]
        )
        if titled or bare[0].count(sign) >= max(1, bare[0].count(",")):
            return sign
    apart = not any(middle.values()) and len(lines[0].split()) > 1
    return " " if apart and len({len(line.split()) for line in lines}) == 1 else ","


def _titles(rows: list[list[str]]) -> tuple[tuple[str, ...], int]:
    """Return the titles, and the number of rows of titles and remarks.

    Units below the titles are appended to them.
    """
    if is_day(rows[0][0].strip()):
        return ("date", *(f"column {n}" for n in range(2, len(rows[0]) + 1))), 0
    titled = (
        k
        for k, row in enumerate(rows[:_PREAMBLE])
        if not _KNOWN_TITLES.isdisjoint(map(plain_title, row))
    )
    at = next(titled, None)
    if at and len(rows[0]) == len(rows[at]) and all(cell.strip() for cell in rows[0]):
        at = None  # a table without dates, with DAY as a ticker
    dated, at = at is not None, at or 0
    titles, below = [title.strip() for title in rows[at]], rows[at + 1 :]
    units = below[0] if dated and len(below) > 1 else []
    skip = at + 1
    if len(units) == len(titles) and not any(re.search(r"\d", cell) for cell in units):
        titles = [
            f"{t} {u.strip()}".strip() if k else t
            for k, (t, u) in enumerate(zip(titles, units, strict=True))
        ]
        skip += 1
    names: list[str] = []
    taken: set[str] = set()  # searching a list of a hundred thousand names takes minutes
    for index, title in enumerate(titles):
        plain = title or f"column{index + 1}"
        names.append(plain if plain not in taken else f"{plain}.{index + 1}")
        taken.add(names[-1])
    return tuple(names), skip


def csv_rows(layout: _CsvText, label: str) -> _CsvRows:
    """Return the rows of a CSV file without empty lines, rules and remarks between them."""
    text, names, skip, remarks, delimiter, _ = layout
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter)
    found: list[tuple[int, int, list[str]]] = []
    previous = 0
    for row in reader:
        line, previous = previous + 1, reader.line_num
        if not row or row[0].startswith("#"):
            continue
        # Most rows begin with a date, and their other cells need no check.
        if row[0].strip(RULES) or any(cell.strip(RULES) for cell in row):
            found.append((line + remarks, previous - line + 1, row))
    found = found[skip:]
    width = len(names)
    if found and all(len(row) == width + 1 and not row[-1].strip() for _, _, row in found):
        found = [
            (line, lines, row[:-1]) for line, lines, row in found
        ]  # a separator at the end of every row
    good, faults = [], []
    for line, lines, row in found:
        if lines == 1 and len(row) == width:
            good.append((line, row))
            continue
        # A cell contains rows if a line in it has as many columns and a date, unlike any text.
        inside = (
            [text.split(delimiter) for cell in row for text in cell.splitlines()[1:]]
            if lines > 1
            else []
        )
        rows = any(
            len(cells) == width and any(is_day(cell.strip()) for cell in cells) for cells in inside
        )
        if lines > 1 and (len(row) != width or rows):
            # Every line inside the quote is lost and counted.
            faults += [
                DataFault(
                    check="broken line",
                    file=label,
                    row=at,
                    reason=f"inside a quote that line {line} opens",
                )
                for at in range(line, line + lines)
            ]
        elif len(row) != width:
            reason = f"{len(row)} columns instead of {width}"
            faults.append(DataFault(check="broken line", file=label, row=line, reason=reason))
        else:
            good.append((line, row))
    return _CsvRows([row for _, row in good], [line for line, _ in good], tuple(faults))


# -- numbers ----------------------------------------------------------------------------------


def read_numbers(
    name: str,
    title: str,
    values: Sequence[Any],
    days: Sequence[str],
    *,
    like: Sequence[Any] = (),
    gaps: bool = False,
) -> tuple[Floats, bool]:
    """Return an account's column as numbers, and whether it has per cent signs.

    Any other cell raises UserError, or gives NaN with ``gaps``. ``like`` are cells of another
    column with the same meaning of commas.
    """
    percent = False
    if all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool)
        for value in values
    ):
        numbers = np.array(values, dtype=np.float64)
    else:
        texts = ["" if value is None else str(value) for value in values]
        percent, comma = (
            any("%" in text for text in texts),
            decimal_comma([*map(str, like), *texts]),
        )
        numbers = np.array([read_number(text, comma=comma) for text in texts])
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size and not gaps:
        problem = f"{name}: row {bad[0] + 1} of {days[bad[0]]} has no valid '{title}'"
        raise UserError(problem, hint="give a number (0 for nothing), or leave the row out")
    return numbers, percent


def decimal_comma(cells: Sequence[str]) -> bool:
    """Return whether commas separate decimals.

    If a cell has two different signs, the last one is the decimal sign. A lone comma is decimal
    too. ``0,762`` is not a group of thousands, because those do not begin with 0.
    """
    texts = [_bare_number(cell) for cell in cells]
    for text in texts:
        if "," in text and "." in text:
            return text.rindex(",") > text.rindex(".")
    commas = [text for text in texts if "," in text]
    return bool(commas) and not all(
        re.fullmatch(r"[^,\d]*[1-9]\d{0,2}(,\d{3})+", text) for text in commas
    )


def read_number(text: str, *, comma: bool) -> float:
    """Return a cell as a number, or NaN. Brackets or a trailing minus mean negative."""
    plain = _bare_number(text)
    try:
        return float(plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", ""))
    except ValueError:
        return float("nan")


_CURRENCY = r"(?:[A-Z]{3}|[$€£¥₹])"
_BARE = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)


def _bare_number(text: str) -> str:
    if _BARE.fullmatch(text):
        return text
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    plain = re.sub(r"[\s'\u2019]", "", plain).rstrip("%")
    if plain.startswith("(") and plain.endswith(")"):
        plain = "-" + plain[1:-1].rstrip("%")
    plain = re.sub(rf"^([-+]?){_CURRENCY}([-+]?)(?=[\d.])", r"\1\2", plain)
    plain = re.sub(rf"(?<=\d){_CURRENCY}$", "", plain)
    return "-" + plain[:-1] if re.fullmatch(r"[\d.,]+-", plain) else plain
