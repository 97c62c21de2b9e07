"""Files as tables of cells: bytes to texts, texts to numbers and time stamps.

One reader serves imports and accounts. Nothing here knows what a column means, and nothing is misread silently:
every row keeps its line, and what is not a row becomes a fault.

Nearly every command loads this module, so the slow parts of Arrow are imported only where a file is read.
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
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tradeassay.core.errors import UserError
from tradeassay.core.view import Bools, Floats, Ints
from tradeassay.data.dates import UNREADABLE, is_day, spelling_of
from tradeassay.data.tables.columns import DATE_TITLES, plain_title
from tradeassay.data.tables.faults import DataFault

_OPENERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}
CSV_ENDINGS = (".csv", ".txt", ".tsv", ".xlsx")
PARQUET_ENDINGS = (".parquet", ".pq")
_WORKBOOK = b"PK\x03\x04"
_ENCODINGS = ["utf_8", "gb18030", "cp932", "cp1251", "cp1252"]
_NO_TEXT = {_WORKBOOK: "a zip file", b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls)", b"%PDF": "a PDF"}
_MARKUP = re.compile(r"\s*(?:(?P<page><(?i:!doctype|html|head|body|table|\?xml))|[\[{]\s*[\"\[{])")
_PREAMBLE = 15
"""Lines above the titles that are looked through."""
_MOST_COLUMNS = 20_000
"""Columns of a table; more are a mistake, over which reading would take minutes."""
_KNOWN_TITLES = frozenset(DATE_TITLES) - {"", "index"}
RULES = " \t|:+-="
"""What lines between the rows of a drawn table consist of."""
NOTHING = ("", "nan", "na", "n/a", "<na>", "nat", "none", "null", "-")
"""Cells of an account's table that say that there is no number."""


@dataclass(frozen=True, slots=True)
class RawTable:
    """A file's columns. ``rows`` holds the line (CSV, header = 1) or data row (Parquet, from 1) of every row. CSV
    columns are strings, Parquet columns keep their types. ``faults`` are lines that are not rows; ``delimiter``
    stands between the columns of a CSV."""

    file: str
    columns: dict[str, pa.ChunkedArray]
    rows: Ints
    faults: tuple[DataFault, ...] = ()
    delimiter: str = ","

    def fault(self, row: int, check: str, reason: str) -> DataFault:
        return DataFault(check=check, file=self.file, row=int(self.rows[row]), reason=reason)


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def is_table(path: Path) -> bool:
    """Return whether a file's name says it is a table we can read."""
    name = path.name.lower()
    for ending in _OPENERS:
        name = name.removesuffix(ending)
    return name.endswith((*CSV_ENDINGS, *PARQUET_ENDINGS))


def stem_of(path: Path) -> str:
    """Return a table's name without its endings (``600000.SH.csv.gz`` gives ``600000.SH``)."""
    name = path.name
    for ending in (*_OPENERS, *CSV_ENDINGS, *PARQUET_ENDINGS):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    return name


# -- files -------------------------------------------------------------------------------------------------------


def other_than_file(path: Path) -> str | None:
    """Return what is at ``path`` if it is no file with content: reading a pipe would wait for a writer."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError:
        return "a link to nothing" if path.is_symlink() else None
    kinds = {stat.S_IFREG: None, stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
    return kinds.get(kind, "a device")


def read_table(path: Path, label: str, header: tuple[str, ...] = ()) -> RawTable:
    """Read a CSV (plain, gz, bz2, xz; any common encoding), a workbook's sheet or a Parquet file; broken lines
    become faults."""
    import pyarrow.parquet

    if what := other_than_file(path):
        raise UserError(f"{label} is {what}, not a file", hint="save the table as a file")
    parquet: Any = path if path.name.lower().endswith(PARQUET_ENDINGS) else None
    if parquet is None:
        try:
            content = path.read_bytes()
            opener = _OPENERS.get(path.suffix.lower())
            content = content if opener is None else opener(content)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            raise UserError(f"{label} cannot be read: {one_line(error)}", hint="check the file") from error
        if not content[:4] == content[-4:] == b"PAR1":
            try:
                return read_csv(_sheet(content, label), label, header)
            except (pa.ArrowException, csv.Error) as error:
                raise UserError(f"{label} is not a table: {one_line(error)}", hint="check the file") from error
        parquet = pa.BufferReader(content)
    try:
        table = pyarrow.parquet.read_table(parquet)
        table.validate(full=True)  # Arrow takes texts as they stand, also where they are none
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{label} is not a Parquet file: {one_line(error)}", hint="check the file") from error
    names = header or tuple(map(str, table.column_names))
    _refuse_width(len(names), label)
    if len(names) != table.num_columns:
        raise UserError(f"{label} has {table.num_columns} columns, {len(names)} were named")
    return RawTable(label, dict(zip(names, table.columns, strict=True)), np.arange(1, table.num_rows + 1))


def _sheet(content: bytes, label: str) -> bytes:
    """A workbook's table as CSV: days as ISO, numbers shown with a per cent sign with it.

    Sheets with the same titles are one table; of others the longest counts, unless two of them are long."""
    if not content.startswith(_WORKBOOK):
        return content
    import openpyxl  # takes a while, and few files need it

    try:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        tables: dict[tuple[str, ...], list[list[str]]] = {}
        for sheet in book.worksheets:
            rows = [row for cells in sheet.iter_rows() if any(row := [_shown(cell) for cell in cells])]
            if rows:
                tables.setdefault(tuple(rows[0]), rows[:1]).extend(rows[1:])
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError, zlib.error) as error:
        raise UserError(f"{label} is no Excel workbook: {one_line(error)}", hint="save it as CSV") from error
    if not tables:
        raise UserError(f"{label} is empty", hint="remove it, or fill it")
    longest, *others = sorted(tables.values(), key=len, reverse=True)
    if others and len(others[0]) > 12:  # a shorter one is a cover
        raise UserError(f"{label} holds several tables", hint="save the sheet that counts as a file of its own")
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(longest)
    return made.getvalue().encode()


def _shown(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ") if value.time() != datetime.min.time() else value.date().isoformat()
    if isinstance(value, float) and "%" in (cell.number_format or ""):
        return f"{value * 100.0!r}%"
    return str(value)


def _utf8(content: bytes, label: str) -> bytes:
    """Return a text in UTF-8; raises :class:`UserError` for what is no text."""
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
        # Most bytes are text in several encodings: a title that is known tells, or the library says in which one
        # they look like a language.
        import charset_normalizer

        named = None
        for one in _ENCODINGS:
            lines = content[:2000].decode(one, "replace").splitlines()[:5]
            titles = {plain_title(cell.strip('" ')) for line in lines for cell in re.split("[;,\t|]", line)}
            if any(not title.isascii() for title in titles & _KNOWN_TITLES):
                named = one
                break
        found = None if named else charset_normalizer.from_bytes(content[:100_000], cp_isolation=_ENCODINGS).best()
        try:
            text = content.decode(named or ("gb18030" if found is None else found.encoding))
        except UnicodeDecodeError as error:
            raise UserError(f"{label} is not text in any encoding known here", hint="save it as UTF-8") from error
        encoding = "other"
    if "\0" in text:
        raise UserError(f"{label} is not text", hint="write it as CSV in UTF-8")
    return content.removeprefix(b"\xef\xbb\xbf") if encoding == "utf-8" else text.encode()


def read_csv(content: bytes, label: str, header: tuple[str, ...] = ()) -> RawTable:
    """Read the bytes of a CSV file, with remarks around the table and titles, units or rules above its rows."""
    import pyarrow.csv

    text = _utf8(content, label)
    if b"\n" not in text:  # lines end as on an old Macintosh, which Excel still offers
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
        text, delimiter = re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", text)), "\t"
        shown = ["\t".join(line.split()) for line in shown]
    above = list(csv.reader(shown[: _PREAMBLE + 2], delimiter=delimiter))
    names, skip = (header, 0) if header else _titles(above)
    _refuse_width(len(names), label)
    if skip <= 1 and len(shown) > skip and text.startswith(shown[0].encode()):
        table = pyarrow.csv.read_csv(
            io.BytesIO(text),
            read_options=pyarrow.csv.ReadOptions(column_names=list(names), skip_rows=skip),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, invalid_row_handler=lambda _: "skip", newlines_in_values=b'"' in text
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in names}, strings_can_be_null=False
            ),
        )
        if text.count(b"\n") + (not text.endswith(b"\n")) == table.num_rows + skip:
            columns = dict(zip(names, table.columns, strict=True))
            return RawTable(label, columns, np.arange(table.num_rows) + remarks + skip + 1, (), delimiter)
    return _read_slowly(text, label, names, skip, remarks, delimiter)


def _refuse_width(columns: int, label: str) -> None:
    """Refuse a table that is no table of days: every column costs time, and nobody has so many."""
    if columns > _MOST_COLUMNS:
        problem = f"{label} has {columns:,} columns, at most {_MOST_COLUMNS:,} are read"
        raise UserError(problem, hint="give one row per day and symbol")


def _delimiter(lines: list[str]) -> str:
    """Return what separates columns (a blank: any number). What most lines have counts, if the titles have it:
    remarks above a table have other signs than its rows, and commas may stand inside numbers."""
    bare = [re.sub('"[^"]*"', "", line) if '"' in line else line for line in lines]
    middle = {sign: sorted(line.count(sign) for line in bare)[len(bare) // 2] for sign in ";\t|,"}
    for sign in sorted(";\t|", key=lambda sign: -middle[sign]):
        if not middle[sign]:
            break
        titled = any(not _KNOWN_TITLES.isdisjoint(map(plain_title, line.split(sign))) for line in bare[:_PREAMBLE])
        if titled or bare[0].count(sign) >= max(1, bare[0].count(",")):
            return sign
    apart = not any(middle.values()) and len(lines[0].split()) > 1
    return " " if apart and len({len(line.split()) for line in lines}) == 1 else ","


def _titles(rows: list[list[str]]) -> tuple[tuple[str, ...], int]:
    """Return the titles, and how many rows they and what is above them take; units below are put behind them."""
    if is_day(rows[0][0].strip()):
        return ("date", *(f"column {n}" for n in range(2, len(rows[0]) + 1))), 0
    titled = (k for k, row in enumerate(rows[:_PREAMBLE]) if not _KNOWN_TITLES.isdisjoint(map(plain_title, row)))
    at = next(titled, None)
    if at and len(rows[0]) == len(rows[at]) and all(cell.strip() for cell in rows[0]):
        at = None  # a table without dates, in which DAY is a ticker
    dated, at = at is not None, at or 0
    titles, below = [title.strip() for title in rows[at]], rows[at + 1 :]
    units = below[0] if dated and len(below) > 1 else []
    skip = at + 1
    if len(units) == len(titles) and not any(re.search(r"\d", cell) for cell in units):
        titles = [
            f"{t} {u.strip()}".strip() if k else t for k, (t, u) in enumerate(zip(titles, units, strict=True))
        ]
        skip += 1
    names: list[str] = []
    taken: set[str] = set()  # a list of a hundred thousand names takes minutes to search
    for index, title in enumerate(titles):
        plain = title or f"column{index + 1}"
        names.append(plain if plain not in taken else f"{plain}.{index + 1}")
        taken.add(names[-1])
    return tuple(names), skip


def _read_slowly(
    text: bytes, label: str, names: tuple[str, ...], skip: int, remarks: int, delimiter: str
) -> RawTable:
    """Read a table with empty or broken lines, rules, remarks, or line breaks inside quotes, row by row."""
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter)
    found: list[tuple[int, int, list[str]]] = []
    previous = 0
    for row in reader:
        line, previous = previous + 1, reader.line_num
        if row and not row[0].startswith("#") and any(cell.strip(RULES) for cell in row):
            found.append((line + remarks, previous - line + 1, row))
    found = found[skip:]
    width = len(names)
    if found and all(len(row) == width + 1 and not row[-1].strip() for _, _, row in found):
        found = [(line, lines, row[:-1]) for line, lines, row in found]  # a separator behind every row
    good, faults = [], []
    for line, lines, row in found:
        # A cell holds rows where a line in it has as many columns and a date, as no text has.
        inside = [text.split(delimiter) for cell in row for text in cell.splitlines()[1:]] if lines > 1 else []
        rows = any(len(cells) == width and any(is_day(cell.strip()) for cell in cells) for cells in inside)
        if lines > 1 and (len(row) != width or rows):
            # Every line inside the quote is lost, and counted.
            faults += [
                DataFault(check="broken line", file=label, row=at, reason=f"inside a quote that line {line} opens")
                for at in range(line, line + lines)
            ]
        elif len(row) != width:
            reason = f"{len(row)} columns instead of {width}"
            faults.append(DataFault(check="broken line", file=label, row=line, reason=reason))
        else:
            good.append((line, row))
    columns = {
        name: pa.chunked_array([pa.array([row[k] for _, row in good], pa.string())])
        for k, name in enumerate(names)
    }
    lines_of = np.array([line for line, _ in good], dtype=np.int64)
    return RawTable(label, columns, lines_of, tuple(faults), delimiter)


# -- numbers -----------------------------------------------------------------------------------------------------


@cache
def _missing() -> pa.Array:
    """Return the words for a missing number. Made on first use, as pyarrow looks for pandas when it makes an
    array; and once, as that takes a third as long as reading a small column."""
    return pa.array(["", "nan", "NaN", "NAN", "null", "NULL", "None", "none", "N/A", "n/a", "NA", "-", "--"])


_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?[A-Za-z万亿]?")
_SURELY_GROUPED = re.compile(r",\d{3}[,.]")
"""Where semicolons stand between columns, ``10,500`` is as likely ten and a half: another cell has to tell."""
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "万": 1e4, "亿": 1e8}
_CURRENCY = r"(?:[A-Z]{3}|[$€£¥₹])"


def to_floats(table: RawTable, name: str) -> tuple[Floats, list[DataFault]]:
    """Return a column of bars as numbers, NaN where empty. ``1,234.5``, ``1.2M`` and ``3万`` are understood, a
    decimal comma is not: ten times the price is no reading."""
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
            groups = table.delimiter == "," or any(cell and _SURELY_GROUPED.search(cell) for cell in cells)
            for row, cell in enumerate(cells):
                if cell is not None:
                    number = _grouped_number(cell) if groups or "," not in cell else None
                    if number is None:
                        faults.append(table.fault(row, "no number", f"{name} '{cell}' is not a number"))
                    else:
                        values[row] = number
    else:
        try:
            values = np.array(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        except (pa.ArrowException, ValueError, TypeError) as error:
            problem = f"{table.file}: column {name} holds {kind}, not numbers"
            raise UserError(problem, hint="name another with columns=") from error
    for row in np.flatnonzero(np.isinf(values)).tolist():
        faults.append(table.fault(row, "no number", f"{name} {values[row]} is infinite"))
        values[row] = np.nan
    return values, faults


def _grouped_number(cell: str) -> float | None:
    plain = cell.replace("$", "")
    if "," in plain:
        # Commas group thousands; anywhere else one may be a decimal point.
        if _GROUPED.fullmatch(plain) is None:
            return None
        plain = plain.replace(",", "")
    scale = _UNITS.get(plain[-1:].upper())
    try:
        return float(plain) if scale is None else float(plain[:-1]) * scale
    except ValueError:
        return None


def read_numbers(
    name: str,
    title: str,
    values: Sequence[Any],
    days: Sequence[str],
    *,
    like: Sequence[Any] = (),
    gaps: bool = False,
) -> tuple[Floats, bool]:
    """Return an account's column as numbers, and whether it has per cent signs; UserError for any other cell,
    or NaN with ``gaps``. ``like`` are cells of a column beside it, whose commas mean the same."""
    percent = False
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        numbers = np.array(values, dtype=np.float64)
    else:
        texts = ["" if value is None else str(value) for value in values]
        percent, comma = any("%" in text for text in texts), decimal_comma([*map(str, like), *texts])
        numbers = np.array([read_number(text, comma=comma) for text in texts])
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size and not gaps:
        problem = f"{name}: row {bad[0] + 1} of {days[bad[0]]} has no '{title}' that can be used"
        raise UserError(problem, hint="give a number (0 for nothing), or leave the row out")
    return numbers, percent


def decimal_comma(cells: Sequence[str]) -> bool:
    """Return whether commas separate decimals: the last sign of two is the decimal one, and so is a lone comma.
    ``0,762`` is no group of thousands: those begin with another digit than 0."""
    texts = [_bare_number(cell) for cell in cells]
    for text in texts:
        if "," in text and "." in text:
            return text.rindex(",") > text.rindex(".")
    commas = [text for text in texts if "," in text]
    return bool(commas) and not all(re.fullmatch(r"[^,\d]*[1-9]\d{0,2}(,\d{3})+", text) for text in commas)


def read_number(text: str, *, comma: bool) -> float:
    """Return a cell as a number, NaN where it is none; brackets or a minus behind it make it negative."""
    plain = _bare_number(text)
    try:
        return float(plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", ""))
    except ValueError:
        return float("nan")


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


# -- time stamps -------------------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local wall time before its zone is known
_PLAIN = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2})?)?$"
_EIGHT = r"^(18|19|20)\d{6}$"


@dataclass(frozen=True, slots=True)
class Stamps:
    """Time stamps of rows: ``local`` wall time in nanoseconds, ``offset`` from UTC where ``zoned``. ``good`` is
    False for rows whose stamp could not be read. ``spelling`` says how they were read."""

    local: Ints
    offset: Ints
    zoned: Bools
    good: Bools
    spelling: str


def read_stamps(table: RawTable, date: str, time: str | None = None) -> tuple[Stamps, list[DataFault]]:
    """Read the stamps of a table from its date column (and its column with the time of day, if there is one)."""
    import pyarrow.compute as pc

    column = table.columns[date]
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        try:
            zone = getattr(column.type, "tz", None)
            good = ~np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
            utc = column.cast(pa.timestamp("ns", tz=zone)).cast(pa.int64()).fill_null(0).to_numpy()
            local = np.asarray(utc, dtype=np.int64)
            if zone is not None:
                wall = pc.local_timestamp(column.cast(pa.timestamp("ns", tz=zone))).cast(pa.int64()).fill_null(0)
                local = np.asarray(wall.to_numpy(), dtype=np.int64)
            spelling = "a typed column" if zone is None else f"a typed column in {zone}"
            typed = Stamps(local, local - utc, np.full(local.size, zone is not None), good, spelling)
        except pa.ArrowException as error:
            raise UserError(f"{table.file}: {date} holds dates out of range", hint="fix the column") from error
        empty = np.flatnonzero(~typed.good).tolist()
        return typed, [table.fault(row, "unreadable date", f"{date} is empty") for row in empty]
    try:
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    except pa.ArrowException as error:
        problem = f"{table.file}: column {date} holds {column.type}, not dates"
        raise UserError(problem, hint="name another with columns=") from error
    if time is not None:
        clock = pc.utf8_trim_whitespace(table.columns[time].cast(pa.string()))
        # 93000, 930 and 9:30 mean 09:30:00, 09:30 and 09:30.
        long = pc.greater(pc.utf8_length(clock), 4)
        padded = pc.if_else(long, pc.utf8_lpad(clock, 6, "0"), pc.utf8_lpad(clock, 4, "0"))
        short = pc.if_else(pc.match_substring_regex(clock, r"^\d:"), pc.utf8_lpad(clock, 5, "0"), clock)
        clock = pc.if_else(pc.match_substring_regex(clock, r"^\d+$"), padded, short)
        text = pc.binary_join_element_wise(text, clock, " ")
    stamps = _quick(text) or _parsed(text)
    bad = np.flatnonzero(~stamps.good).tolist()
    reasons = ((row, f"{date} '{text[row].as_py() or ''}' is not a date") for row in bad)
    return stamps, [table.fault(row, "unreadable date", reason) for row, reason in reasons]


def _parsed(text: pa.ChunkedArray) -> Stamps:
    """Read every distinct cell in the spelling that reads most of them."""
    encoded = text.combine_chunks().dictionary_encode()
    unique = encoded.dictionary.to_pylist()
    spelling, parse = spelling_of([cell for cell in unique if cell])
    local, offset, zoned, good = (np.zeros(len(unique) + 1, dtype=np.int64) for _ in range(4))
    for index, cell in enumerate(unique):
        try:
            moment = parse(cell or "")
        except UNREADABLE:
            continue
        if not 1700 <= moment.year <= 2200:  # beyond what nanoseconds since 1970 can count
            continue
        shift = moment.utcoffset()
        wall = moment.replace(tzinfo=None) - _EPOCH
        local[index] = (wall.days * 86_400 + wall.seconds) * 10**9 + wall.microseconds * 1000
        offset[index] = 0 if shift is None else (shift // timedelta(microseconds=1)) * 1000
        zoned[index], good[index] = shift is not None, 1
    codes = encoded.indices.fill_null(len(unique)).to_numpy(zero_copy_only=False)
    return Stamps(local[codes], offset[codes], zoned[codes] > 0, good[codes] > 0, spelling)


def _quick(text: pa.ChunkedArray) -> Stamps | None:
    """Return the stamps of a column that is plain ISO without a zone, or yyyymmdd, throughout; else None."""
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
        local = np.asarray(text.cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy(), dtype=np.int64)
    except pa.ArrowInvalid:
        return None
    return Stamps(local, same(0, local.size), same(False, local.size), same(True, local.size), spelling)


def same(value: int, count: int) -> NDArray[Any]:
    """Return an array that says the same of every row and takes no memory for it; nobody can write to it."""
    return np.broadcast_to(np.array(value), (count,))
