"""Text to numbers, cell by cell only where a cell is odd."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tradeassay.core.view import Floats
from tradeassay.data.fault import Fault
from tradeassay.data.files.table import RawTable

_NOTHING = pa.array(
    ["", "nan", "NaN", "NAN", "null", "NULL", "None", "none", "N/A", "n/a", "NA", "-", "--", "inf"]
)
_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "万": 1e4, "亿": 1e8}


def to_floats(table: RawTable, name: str) -> tuple[Floats, list[Fault]]:
    """Return a column as numbers, NaN where it is empty; a cell that is no number is a fault and NaN.

    ``1,234.5`` and units (``1.2M``, ``3万``) are understood.
    """
    column = table.columns[name]
    if not _is_text(column.type):
        values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        return np.where(np.isfinite(values), values, np.nan), []
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.is_in(text, value_set=_NOTHING), None, text)
    try:
        return _numpy(pc.cast(text, pa.float64())), []
    except pa.ArrowInvalid:
        pass
    values = np.full(len(text), np.nan)
    faults = []
    for index, cell in enumerate(text.to_pylist()):
        if cell is None:
            continue
        number = _number(cell)
        if number is None:
            faults.append(
                Fault(
                    check="no number",
                    file=table.file,
                    row=int(table.rows[index]),
                    reason=f"{name} '{cell}' is no number",
                )
            )
        else:
            values[index] = number
    return values, faults


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))


def _numpy(column: pa.ChunkedArray) -> Floats:
    values: Floats = np.array(column.to_numpy(), dtype=np.float64)
    return values


def _number(cell: str) -> float | None:
    plain = cell.replace(",", "").replace("$", "")
    scale = _UNITS.get(plain[-1:].upper())
    try:
        return float(plain) if scale is None else float(plain[:-1]) * scale
    except ValueError:
        return None
