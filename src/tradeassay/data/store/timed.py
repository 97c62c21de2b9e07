"""Dated records read lazily: a binary search over the time they became known, then only the rows asked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from tradeassay.core.time import Instant
from tradeassay.core.view import Ints
from tradeassay.data.store.arrays import plain
from tradeassay.data.store.read import integers, one_chunk, open_table

T = TypeVar("T")
_NO_ROWS: list[int] = []


class TimedTable(Generic[T]):
    """Records in the order they became known. The file is opened on first use, records are made on demand."""

    def __init__(self, path: Path, time_column: str, make: Callable[[dict[str, Any]], T], symbols: str) -> None:
        self._path = path
        self._time_column = time_column
        self._make = make
        self._symbols = symbols
        self._table: pa.Table | None = None
        self._times: Ints = np.empty(0, dtype=np.int64)
        self._by_symbol: dict[str, list[int]] | None = None
        self._columns: dict[str, pa.Array] = {}
        self.record = lru_cache(maxsize=16_384)(self._record)

    def __len__(self) -> int:
        self._open()
        return int(self._times.size)

    def up_to(self, clock: Instant) -> int:
        """Return how many records were known at ``clock``."""
        self._open()
        return int(np.searchsorted(self._times, clock, side="right"))

    def between(self, since: Instant, clock: Instant) -> range:
        """Return the rows of the records that became known in (since, clock]."""
        return range(self.up_to(since), self.up_to(clock))

    def of_symbol(self, symbol: str, rows: range) -> list[int]:
        """Return the rows inside ``rows`` that are about one symbol, oldest first."""
        mine = self._index().get(symbol, _NO_ROWS)
        return mine[bisect_left(mine, rows.start) : bisect_left(mine, rows.stop)]

    def of_symbols(self, symbols: Iterable[str], rows: range) -> list[int]:
        """Return the rows inside ``rows`` that are about any of the symbols, oldest first, each once."""
        found: set[int] = set()
        for symbol in symbols:
            found.update(self.of_symbol(symbol, rows))
        return sorted(found)

    def count_of_symbol(self, symbol: str, stop: int) -> int:
        """Return how many of the first ``stop`` records are about one symbol."""
        return bisect_right(self._index().get(symbol, _NO_ROWS), stop - 1)

    def _record(self, row: int) -> T:
        self._open()
        return self._make({name: column[row].as_py() for name, column in self._columns.items()})

    def _open(self) -> None:
        if self._table is None:
            self._table = open_table(self._path)
            self._times = integers(self._table, self._time_column)
            self._columns = {name: one_chunk(self._table, name) for name in self._table.column_names}

    def _index(self) -> dict[str, list[int]]:
        if self._by_symbol is None:
            self._open()
            column = self._columns[self._symbols]
            if pa.types.is_list(column.type):
                owners = np.repeat(np.arange(len(column)), np.diff(plain(column.offsets)))
                names = column.flatten().to_pylist()
            else:
                owners, names = np.arange(len(column)), column.to_pylist()
            index: dict[str, list[int]] = {}
            for name, row in zip(names, owners.tolist(), strict=True):
                index.setdefault(name, []).append(row)
            self._by_symbol = index
        return self._by_symbol
