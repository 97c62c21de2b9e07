"""Bar files as one long table: every row knows its file and line, so that every later fault can be located."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tradeassay.core.errors import UserError
from tradeassay.core.view import FIELDS, Bools, Field, Floats, Ints
from tradeassay.data.fault import Fault
from tradeassay.data.files.columns import ColumnMap, guess_columns
from tradeassay.data.files.config import FilesConfig
from tradeassay.data.files.numbers import to_floats
from tradeassay.data.files.stamps import Stamps, read_stamps
from tradeassay.data.files.table import RawTable, read_table, stem_of

SIDE_TABLES = ("actions", "membership", "memberships", "news", "fundamentals", "instruments", "indices")
"""File names (without ending) that are not bars."""


@dataclass(frozen=True, slots=True)
class LongBars:
    """All rows of all bar files. ``symbol`` holds numbers into ``symbols``, ``file`` numbers into ``files``.

    ``absent`` are the price and volume fields that no file has.
    """

    files: tuple[str, ...]
    file: Ints
    row: Ints
    symbols: tuple[str, ...]
    symbol: Ints
    stamps: Stamps
    values: dict[Field, Floats]
    adj_close: Floats | None
    halted: Bools
    absent: tuple[Field, ...]
    columns: dict[str, ColumnMap]


def read_bars(paths: Sequence[Path], root: Path, config: FilesConfig) -> tuple[LongBars, list[Fault]]:
    """Read bar files; raises :class:`UserError` when one cannot be understood, returns faults of single rows."""
    faults: list[Fault] = []
    parts = []
    maps: dict[str, ColumnMap] = {}
    for number, path in enumerate(paths):
        label = str(path.relative_to(root)) if path != root else path.name
        table = read_table(path, label, config.header)
        columns = guess_columns(tuple(table.columns), label, config.columns or _roles(config.header))
        maps[label] = columns
        part, found = _read_part(table, columns, number, stem_of(path), config)
        parts.append(part)
        faults += [*table.faults, *found]
    return _joined(parts, tuple(maps), _summarised(maps)), faults


def _roles(header: tuple[str, ...]) -> dict[str, str]:
    return {name: name for name in header if name != "ignore"}


@dataclass(frozen=True, slots=True)
class _Part:
    file: Ints
    row: Ints
    names: list[str]
    symbol: Ints
    stamps: Stamps
    values: dict[Field, Floats]
    adj_close: Floats | None
    halted: Bools
    present: frozenset[Field]


def _read_part(
    table: RawTable, columns: ColumnMap, number: int, stem: str, config: FilesConfig
) -> tuple[_Part, list[Fault]]:
    roles = columns.roles
    stamps, faults = read_stamps(table, roles["date"], roles.get("time"))
    names, codes = _symbols(table, roles.get("symbol"), stem)
    values: dict[Field, Floats] = {}
    for field in FIELDS:
        if field in roles:
            values[field], found = to_floats(table, roles[field])
            faults += found
    count = len(table.rows)
    adj_close = None
    if "adj_close" in roles:
        adj_close, found = to_floats(table, roles["adj_close"])
        faults += found
    halted = np.zeros(count, dtype=np.bool_)
    if "status" in roles:
        status, found = to_floats(table, roles["status"])
        halted = status == 0
        faults += found
    if "volume" in values and config.volume_unit != 1.0:
        values["volume"] = values["volume"] * config.volume_unit
    present = frozenset(values)
    empty = np.full(count, np.nan)
    values |= {field: empty for field in FIELDS if field not in values}
    files = np.full(count, number, dtype=np.int64)
    return _Part(files, table.rows, names, codes, stamps, values, adj_close, halted, present), faults


def _symbols(table: RawTable, column: str | None, stem: str) -> tuple[list[str], Ints]:
    if column is None:
        return [stem], np.zeros(len(table.rows), dtype=np.int64)
    raw = table.columns[column]
    text = pc.utf8_trim_whitespace(raw.cast(pa.string()))
    if pa.types.is_integer(raw.type):
        text = pc.utf8_lpad(text, 6, "0")  # an integer code has lost its leading zeros
    encoded = text.combine_chunks().dictionary_encode()
    if encoded.null_count:
        row = int(table.rows[int(np.flatnonzero(encoded.is_null().to_numpy(zero_copy_only=False))[0])])
        raise UserError(f"{table.file}:{row}: the row has no {column}", mend="fill it or remove the row")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def _joined(parts: list[_Part], files: tuple[str, ...], columns: dict[str, ColumnMap]) -> LongBars:
    names = sorted({name for part in parts for name in part.names})
    place = {name: index for index, name in enumerate(names)}
    symbol = [np.array([place[name] for name in part.names], dtype=np.int64)[part.symbol] for part in parts]
    present = frozenset[Field]().union(*(part.present for part in parts))
    adjusted = None
    if any(part.adj_close is not None for part in parts):
        adjusted = np.concatenate(
            [part.values["close"] if part.adj_close is None else part.adj_close for part in parts]
        )
    spellings = sorted({part.stamps.spelling for part in parts})
    stamps = Stamps(
        np.concatenate([part.stamps.local for part in parts]),
        np.concatenate([part.stamps.offset for part in parts]),
        np.concatenate([part.stamps.zoned for part in parts]),
        np.concatenate([part.stamps.good for part in parts]),
        " and ".join(spellings),
    )
    return LongBars(
        files=files,
        file=np.concatenate([part.file for part in parts]),
        row=np.concatenate([part.row for part in parts]),
        symbols=tuple(names),
        symbol=np.concatenate(symbol),
        stamps=stamps,
        values={field: np.concatenate([part.values[field] for part in parts]) for field in FIELDS},
        adj_close=adjusted,
        halted=np.concatenate([part.halted for part in parts]),
        absent=tuple(field for field in FIELDS if field not in present),
        columns=columns,
    )


def _summarised(maps: dict[str, ColumnMap]) -> dict[str, ColumnMap]:
    """Return one entry per distinct meaning, labelled with a file and how many more read the same way."""
    seen: dict[str, list[str]] = {}
    for label, columns in maps.items():
        seen.setdefault(str(columns), []).append(label)
    return {
        labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more": maps[labels[0]]
        for labels in seen.values()
    }
