"""Records of a panel as Arrow tables, and back. Every dated table is sorted by the time its rows became known.

Values and Arrow arrays are exchanged over buffers. ``pa.array`` and ``to_numpy`` do the same but first import
pandas to check whether they were given one of its objects: a third of a second and tens of megabytes in every
process that opens a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tradeassay.core.instruments import Board, CorporateAction, Fundamental, Instrument, NewsItem
from tradeassay.core.view import Days, Floats
from tradeassay.data.panel import Listing, Membership, Panel


def numbers(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return a numpy array as an Arrow array, days as ``date32``, without copying where possible."""
    if values.dtype.kind == "M":
        values = values.astype("datetime64[D]").astype(np.int32)
        kind = pa.date32()
    else:
        kind = pa.from_numpy_dtype(values.dtype)
    flat = np.ascontiguousarray(values).reshape(-1)
    return pa.Array.from_buffers(kind, flat.size, [None, pa.py_buffer(flat)])


def texts(values: Sequence[str | None]) -> pa.StringArray:
    """Return strings as an Arrow array; None is null."""
    encoded = [b"" if value is None else value.encode() for value in values]
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    offsets = _offsets([len(value) for value in encoded])
    data = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), data, bitmap, int((~valid).sum()))


def text_lists(values: Sequence[Sequence[str]]) -> pa.ListArray:
    """Return lists of strings as an Arrow array."""
    flat = texts([item for value in values for item in value])
    return pa.ListArray.from_arrays(numbers(_offsets([len(value) for value in values])), flat)


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return Python values as an Arrow array of a type that our tables use."""
    if pa.types.is_string(kind):
        return texts(values)
    if pa.types.is_list(kind):
        return text_lists(values)
    return numbers(np.array(values, dtype=kind.to_pandas_dtype()))


def plain(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return an Arrow array of numbers or days without nulls as a numpy array on the same memory."""
    kind = values.type
    dtype = np.dtype(np.int32) if pa.types.is_date32(kind) else np.dtype(kind.to_pandas_dtype())
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.empty(0, dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=len(values), offset=values.offset * dtype.itemsize)


def days(values: pa.Array) -> np.ndarray[Any, Any]:
    """Return a ``date32`` array as numpy days, read-only."""
    result = plain(values).astype(np.int64).astype("datetime64[D]")
    result.setflags(write=False)
    return result


def _offsets(lengths: list[int]) -> np.ndarray[Any, np.dtype[np.int32]]:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise OverflowError("more than 2 GiB of text in one column")
    return offsets.astype(np.int32)


_INSTRUMENT_FIELDS = (
    "symbol", "name", "kind", "board", "sector", "currency", "lot", "step", "tick", "multiplier", "expiry", "root",
)  # fmt: skip

LISTINGS = pa.schema(
    [(name, pa.float64() if name in ("lot", "step", "tick", "multiplier") else pa.string())
     for name in _INSTRUMENT_FIELDS]
    + [("listed", pa.string()), ("delisted", pa.string())]
)  # fmt: skip
ACTIONS = pa.schema(
    [("known_at", pa.int64()), ("ex_date", pa.string()), ("symbol", pa.string()), ("kind", pa.string()),
     ("value", pa.float64())]
)  # fmt: skip
MEMBERSHIPS = pa.schema(
    [("start", pa.string()), ("index", pa.string()), ("symbol", pa.string()), ("end", pa.string())]
)
FUNDAMENTALS = pa.schema(
    [("known_at", pa.int64()), ("symbol", pa.string()), ("field", pa.string()), ("period_end", pa.string()),
     ("value", pa.float64())]
)  # fmt: skip
NEWS = pa.schema(
    [("published_at", pa.int64()), ("id", pa.string()), ("symbols", pa.list_(pa.string())), ("title", pa.string()),
     ("body", pa.string()), ("source", pa.string()), ("url", pa.string())]
)  # fmt: skip

RECORDS: dict[str, pa.Schema] = {
    "actions": ACTIONS,
    "memberships": MEMBERSHIPS,
    "fundamentals": FUNDAMENTALS,
    "news": NEWS,
}
"""The record tables of a panel, by the attribute that holds them."""


def sort_actions(actions: Sequence[CorporateAction]) -> tuple[CorporateAction, ...]:
    """Return actions in the store's order: by ``known_at``, ties by content."""
    return tuple(sorted(actions, key=lambda a: (a.known_at, a.ex_date, a.symbol, a.kind, a.value)))


def sort_memberships(memberships: Sequence[Membership]) -> tuple[Membership, ...]:
    """Return memberships in the store's order: by ``start``, ties by content."""
    return tuple(sorted(memberships, key=lambda m: (m.start, m.index, m.symbol, m.end or "")))


def sort_fundamentals(fundamentals: Sequence[Fundamental]) -> tuple[Fundamental, ...]:
    """Return figures in the store's order: by ``known_at``, ties by content."""
    return tuple(sorted(fundamentals, key=lambda f: (f.known_at, f.symbol, f.field, f.period_end, f.value)))


def sort_news(news: Sequence[NewsItem]) -> tuple[NewsItem, ...]:
    """Return news in the store's order: by ``published_at``, ties by id."""
    return tuple(sorted(news, key=lambda n: (n.published_at, n.id)))


def records_table(records: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """Return structs as a table with the columns of ``schema``."""
    return _table({name: [getattr(record, name) for record in records] for name in schema.names}, schema)


def _table(values: Mapping[str, list[Any]], schema: pa.Schema) -> pa.Table:
    return pa.table([column(values[name], schema.field(name).type) for name in schema.names], schema=schema)


def record_tables(panel: Panel) -> dict[str, pa.Table]:
    """Return all record tables of a panel, by the attribute that holds the records."""
    return {name: records_table(getattr(panel, name), schema) for name, schema in RECORDS.items()}


def listings_table(listings: Sequence[Listing]) -> pa.Table:
    """Return listings as a table."""
    columns = {name: [getattr(entry.instrument, name) for entry in listings] for name in _INSTRUMENT_FIELDS}
    columns["board"] = [str(board) for board in columns["board"]]
    columns["listed"] = [entry.listed for entry in listings]
    columns["delisted"] = [entry.delisted for entry in listings]
    return _table(columns, LISTINGS)


def read_listings(table: pa.Table) -> tuple[Listing, ...]:
    """Return the listings of a table."""
    result = []
    for row in table.to_pylist():
        facts = {name: row[name] for name in _INSTRUMENT_FIELDS}
        facts["board"] = Board(facts["board"])
        result.append(Listing(instrument=Instrument(**facts), listed=row["listed"], delisted=row["delisted"]))
    return tuple(result)


def read_action(row: Mapping[str, Any]) -> CorporateAction:
    """Return the action in a table row."""
    return CorporateAction(**row)


def read_memberships(table: pa.Table) -> tuple[Membership, ...]:
    """Return the memberships of a table."""
    return tuple(Membership(**row) for row in table.to_pylist())


def read_fundamental(row: Mapping[str, Any]) -> Fundamental:
    """Return the figure in a table row."""
    return Fundamental(**row)


def read_news_item(row: Mapping[str, Any]) -> NewsItem:
    """Return the news item in a table row."""
    return NewsItem(**{**row, "symbols": tuple(row["symbols"])})


def indices_table(sessions: Days, indices: Mapping[str, Floats]) -> pa.Table:
    """Return index levels as a table: the session, then one column per index, sorted by name."""
    columns = {"session": numbers(sessions)} | {name: numbers(indices[name]) for name in sorted(indices)}
    return pa.table(columns)


def matrix_column(values: np.ndarray[Any, Any]) -> pa.FixedSizeListArray:
    """Return a (sessions, columns) array as one Arrow column whose values lie contiguous in memory."""
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype == np.bool_:
        flat = flat.view(np.uint8)
    return pa.FixedSizeListArray.from_arrays(numbers(flat), values.shape[1])


def matrix(lists: pa.FixedSizeListArray, rows: int) -> np.ndarray[Any, Any]:
    """Return such a column as a read-only array of shape (rows, columns) without copying."""
    width = lists.type.list_size
    values: np.ndarray[Any, Any] = plain(lists.values)
    return values[lists.offset * width : (lists.offset + rows) * width].reshape(rows, width)
