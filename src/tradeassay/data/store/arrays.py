"""Between plain values and Arrow arrays, over buffers.

``pa.array`` and ``to_numpy`` do the same but first import pandas to ask whether they have been given something of
its: a third of a second and tens of megabytes in every process that opens a snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def numbers(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return a numpy array as an Arrow array, days as ``date32``, without copying where it can."""
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
