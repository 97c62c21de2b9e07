"""Target positions as a program returned them, read strictly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.view import Floats
from tradeassay.sandbox.plain_text import plain_line

_ROUNDING: Final = 1e-9
"""How far beyond one a target may be and still count as one."""
_SHOWN: Final = 40

_UNFIT: Final = {
    "O": "texts or missing values",
    "U": "texts",
    "M": "times",
    "m": "spans of time",
    "c": "complex numbers",
}


class BadTargets(ValueError):
    """What came back is no table of target positions. The text says what is wrong and how to mend it."""


def read_targets(columns: Mapping[str, NDArray[Any]], rows: int, assets: Sequence[str]) -> Floats:
    """Return the targets as an array of shape (rows, assets), each in -1 .. 1.

    One asset: one column of any name. Several: one column per asset, under its label. Raises
    :class:`BadTargets` for missing or additional columns, another length, and values that are no numbers in that
    range.
    """
    named = _by_asset(columns, assets)
    table = np.empty((rows, len(assets)))
    for place, (asset, values) in enumerate(named):
        table[:, place] = _read(asset if len(assets) > 1 else "", values, rows)
    return np.clip(table, -1.0, 1.0)


def _by_asset(columns: Mapping[str, NDArray[Any]], assets: Sequence[str]) -> list[tuple[str, NDArray[Any]]]:
    if len(assets) == 1:
        if len(columns) != 1:
            raise BadTargets(f"signals returned {len(columns)} columns; one asset needs one target per row")
        return [(assets[0], next(iter(columns.values())))]
    missing = [asset for asset in assets if asset not in columns]
    if missing:
        found = ", ".join(plain_line(name, _SHOWN) for name in list(columns)[:8]) or "none"
        raise BadTargets(
            f"signals returned no column for asset {missing[0]} (columns: {found}); "
            f"return one per asset: {', '.join(assets)}"
        )
    extra = [name for name in columns if name not in assets]
    if extra:
        shown = plain_line(extra[0], _SHOWN)
        raise BadTargets(f"signals returned a column '{shown}', which is no asset; drop it")
    return [(asset, columns[asset]) for asset in assets]


def _read(asset: str, values: NDArray[Any], rows: int) -> Floats:
    of = f" for asset {asset}" if asset else ""
    if values.dtype.kind not in "fiub":
        what = _UNFIT.get(values.dtype.kind, "values that are no numbers")
        raise BadTargets(f"signals returned {what}{of}; a target is a number from -1 to 1")
    if len(values) != rows:
        raise BadTargets(f"signals returned {len(values)} targets{of} for {rows} rows; return one per row")
    numbers = values.astype(np.float64)
    unknown = np.flatnonzero(np.isnan(numbers))
    if unknown.size:
        raise BadTargets(
            f"{unknown.size} targets{of} are NaN, the first in row {unknown[0]}; "
            "say 0 where nothing is to be held (fillna(0))"
        )
    beyond = np.flatnonzero(np.abs(numbers) > 1.0 + _ROUNDING)
    if beyond.size:
        raise BadTargets(
            f"{beyond.size} targets{of} are outside -1 .. 1, the first in row {beyond[0]}: {numbers[beyond[0]]:g}"
        )
    return numbers
