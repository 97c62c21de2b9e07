"""A person's own tables: weights, and returns of the account or of the names, as Parquet (or CSV)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean
from tradeassay.core.view import Floats

if TYPE_CHECKING:
    import polars as pl

DATE, SYMBOL, WEIGHT, RETURN, SIZE = "date", "symbol", "weight", "return", "size"
"""Column names. ``date`` is the session in which a weight is held, or a return earned."""


@dataclass(frozen=True, slots=True)
class LongTable:
    """Rows of (date, symbol): ``dates`` ISO days in order, ``symbols`` sorted, each column of shape (dates,
    symbols).

    NaN where there is no row.
    """

    dates: tuple[str, ...]
    symbols: tuple[str, ...]
    columns: Mapping[str, Floats]

    def placed(self, column: str, dates: tuple[str, ...], symbols: tuple[str, ...]) -> Floats:
        """Return a column with other rows and columns; NaN where this table has none."""
        found = np.full((len(dates), len(symbols)), np.nan)
        mine = {symbol: k for k, symbol in enumerate(self.symbols)}
        rows = {date: k for k, date in enumerate(self.dates)}
        there = [(k, rows[date]) for k, date in enumerate(dates) if date in rows]
        names = [(k, mine[symbol]) for k, symbol in enumerate(symbols) if symbol in mine]
        if there and names:
            to_rows, from_rows = (list(side) for side in zip(*there, strict=True))
            to_columns, from_columns = (list(side) for side in zip(*names, strict=True))
            found[np.ix_(to_rows, to_columns)] = self.columns[column][np.ix_(from_rows, from_columns)]
        return found


def read_weights(path: Path) -> LongTable:
    """Read ``date``, ``symbol``, ``weight``: shares of the account at the start of each date, shorts negative.

    What is not listed is not held; what is missing to 1 is cash. Raises :class:`UserError` with one clear line
    for a missing column, a row given twice, or a weight that is no number.
    """
    return read_long(path, (WEIGHT,))


def read_returns(path: Path) -> dict[str, float]:
    """Read ``date``, ``return``: what the account returned each session, net of costs, 0.01 for 1 %.

    Raises :class:`UserError` for a missing column, a date given twice, a return that is no number, and returns in
    per cent.
    """
    frame = _read(path, (DATE, RETURN))
    _complete(path, frame, (DATE, RETURN))
    dates = frame[DATE].to_list()
    values = frame[RETURN].to_numpy().astype(np.float64)
    _once(path, dates)
    # Nobody can lose everything twice.
    if np.count_nonzero(values < -1.0) > 1:
        raise UserError(f"{path}: more than everything is lost again and again", mend="write 0.01 for 1 %")
    return {str(date): float(value) for date, value in sorted(zip(dates, values, strict=True))}


def is_long(path: Path) -> bool:
    """Return whether a table has a ``symbol`` column: returns of names, not of one account."""
    return SYMBOL in _frame(path).columns


def read_long(
    path: Path, wanted: tuple[str, ...], optional: tuple[str, ...] = (), *, gaps: bool = False
) -> LongTable:
    """Read a table of ``date``, ``symbol`` and numbers; with ``gaps`` a name may have none on a date.

    Raises :class:`UserError` for a row given twice and, without ``gaps``, for a number of ``wanted`` that is
    missing or infinite.
    """
    frame = _read(path, (DATE, SYMBOL, *wanted), optional)
    _complete(path, frame, (DATE, SYMBOL) if gaps else (DATE, SYMBOL, *wanted))
    dates, symbols = frame[DATE].to_list(), [str(name) for name in frame[SYMBOL].to_list()]
    _once(path, list(zip(dates, symbols, strict=True)))
    days, names = sorted(set(dates)), sorted(set(symbols))
    rows = np.searchsorted(np.array(days), np.array(dates))
    places = np.searchsorted(np.array(names), np.array(symbols))
    columns = {}
    for name in (*wanted, *optional):
        if name in frame.columns:
            values = np.full((len(days), len(names)), np.nan)
            values[rows, places] = frame[name].to_numpy().astype(np.float64)
            columns[name] = values
    return LongTable(tuple(days), tuple(names), columns)


def _once(path: Path, keys: list[Any]) -> None:
    if len(set(keys)) != len(keys):
        twice = next(key for key, count in Counter(keys).items() if count > 1)
        raise UserError(f"{path}: {twice} is given twice", mend="keep one row of each")


def _read(path: Path, wanted: tuple[str, ...], optional: tuple[str, ...] = ()) -> pl.DataFrame:
    import polars as pl

    frame = _frame(path)
    for name in wanted:
        if name not in frame.columns:
            near = did_you_mean(name, frame.columns, f"it has {', '.join(frame.columns) or 'none'}")
            raise UserError(f"{path} has no column '{name}'", mend=near)
    if frame.height == 0:
        raise UserError(f"{path} has no rows", mend="write one row per session")
    numbers = [name for name in (*wanted, *optional) if name in frame.columns and name not in (DATE, SYMBOL)]
    if frame.schema[DATE].is_integer() or frame.schema[DATE].is_float():
        raise UserError(f"{path}: '{DATE}' holds numbers, not days", mend="write days as 2024-01-31")
    try:
        return frame.with_columns(
            pl.col(DATE).cast(pl.Date).dt.to_string("%Y-%m-%d")
            if frame.schema[DATE] != pl.String
            else pl.col(DATE).str.slice(0, 10).str.to_date("%Y-%m-%d").dt.to_string("%Y-%m-%d"),
            *(pl.col(name).cast(pl.Float64) for name in numbers),
        )
    except pl.exceptions.PolarsError as error:
        line = str(error).splitlines()[0]
        raise UserError(f"{path}: {line}", mend="dates as days, numbers as numbers") from error


def _complete(path: Path, frame: pl.DataFrame, wanted: tuple[str, ...]) -> None:
    """Refuse a row that lacks something: to leave it out would change the account without a word."""
    for name in wanted:
        column = frame[name]
        held = column.is_not_null() if name in (DATE, SYMBOL) else column.is_finite().fill_null(False)
        if not held.all():
            at = int((~held).arg_max() or 0)
            day = "" if name == DATE else f" of {frame[DATE][at]}"
            raise UserError(
                f"{path}: row {at + 1}{day} has no '{name}' that can be used",
                mend="give one (0 for nothing), or leave the row out",
            )


def _frame(path: Path) -> pl.DataFrame:
    import polars as pl

    if not path.is_file():
        raise UserError(f"no file {path}", mend="give a Parquet or CSV file")
    try:
        return pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(
            f"{path} cannot be read: {str(error).splitlines()[0]}", mend="write it as Parquet"
        ) from error
