"""Encode typed columns as bytes, for rows sent to a child and decisions returned by it.

The format has no pickle, compression or pointers::

    magic (4 bytes) | u32 length of the head | JSON head, padded with spaces | raw columns

Numbers are little-endian. The head is at most 64 KB and contains the name, kind and row count of
each column. Each column is padded with zeros to eight bytes. The kinds are ``f8``, ``i8``, ``b1``,
``M8`` (nanoseconds) and ``str``. A ``str`` column has int32 codes into a dictionary of words (-1 is
missing), the end offset of each word as uint32, and the words as UTF-8. The head determines every
size, and sizes must match to the byte.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.errors import UNDECODABLE

MAGIC: Final = b"TAS1"
MAX_HEAD: Final = 64 * 1024
MAX_WORD: Final = 4096
_ALIGN: Final = 8
_PREFIX: Final = struct.Struct("<4sI")

Kind = Literal["f8", "i8", "b1", "M8", "str"]
ClaimKind = Literal["exception", "memory", "import", "no_entry", "unreturnable", "exit"]
Array = NDArray[Any]
Buffer = bytes | bytearray | memoryview

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "f8": np.dtype("<f8"),
    "i8": np.dtype("<i8"),
    "b1": np.dtype("|b1"),
    "M8": np.dtype("<M8[ns]"),
}
_KIND_OF: Final[dict[str, Kind]] = {
    "f": "f8",
    "i": "i8",
    "u": "i8",
    "b": "b1",
    "M": "M8",
    "U": "str",
    "O": "str",
}


class CodecError(ValueError):
    """Raised for bytes that are not well-formed columns or exceed a cap.

    The message describes the defect and quotes none of the bytes.
    """


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """The limits on the size of one message."""

    columns: int = 256
    rows: int = 5_000_000
    words: int = 1_000_000
    total: int = 64 << 20


class ColumnHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The head of one column. Only kind ``str`` has ``words`` and ``size`` (bytes of UTF-8)."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    kind: Kind
    rows: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
    words: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    size: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] = 0


class ClaimHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The error that a child reports."""

    kind: ClaimKind
    error: Annotated[str, msgspec.Meta(max_length=200)]
    message: Annotated[str, msgspec.Meta(max_length=4000)]
    trace: Annotated[str, msgspec.Meta(max_length=16000)] = ""


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The head of a message: either columns or a claim."""

    columns: list[ColumnHead] | None = None
    claim: ClaimHead | None = None


_decode_head = msgspec.json.Decoder(Head).decode


def encode(columns: Mapping[str, Any]) -> list[bytes]:
    """Return the message for named array-likes, in parts.

    Raises TypeError or ValueError for values that the format cannot represent.
    """
    heads: list[ColumnHead] = []
    parts: list[bytes] = []
    for key, values in columns.items():
        name, array = str(key), _as_array(values)
        kind = _KIND_OF.get(array.dtype.kind)
        if kind is None or array.ndim != 1:
            raise TypeError(
                f"column '{name}' is {array.ndim}-dimensional {array.dtype}; "
                "one-dimensional float, int, bool, datetime or str can be returned"
            )
        if not 1 <= len(name) <= 200:
            raise ValueError("a column's name has 1 to 200 characters")
        if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise TypeError(f"column '{name}' holds integers beyond 64 bits with sign")
        if kind == "str":
            head, raw = _encode_words(name, array.tolist())
        else:
            head = ColumnHead(name, kind, len(array))
            raw = [np.ascontiguousarray(array, DTYPES[kind]).tobytes()]
        heads.append(head)
        for part in raw:
            parts += [part, bytes(-len(part) % _ALIGN)]
    return [_encode_head(Head(columns=heads)), *parts]


def _as_array(values: Any) -> Array:
    """Return values as an array.

    Strings in a list stay objects, because numpy's string type drops trailing NULs.
    """
    if isinstance(values, list | tuple) and any(isinstance(value, str) for value in values):
        words = np.empty(len(values), dtype=object)
        words[:] = values
        return words
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    # Objects that are all numbers or missing become floats. A frame filled cell by cell has such
    # columns.
    numbers = [math.nan if value is None else value for value in array.tolist()]
    known = all(isinstance(value, _NUMBER) for value in numbers) and any(
        value == value for value in numbers
    )
    return np.array(numbers, dtype=np.float64) if known else array


def _encode_words(name: str, values: list[Any]) -> tuple[ColumnHead, list[bytes]]:
    values = [None if isinstance(value, float) and value != value else value for value in values]
    strange = next(
        (value for value in values if value is not None and not isinstance(value, str)), None
    )
    if strange is not None:
        kind = type(strange).__name__
        raise TypeError(f"column '{name}' holds {kind}; only str and None can stand among objects")
    code_of: dict[str | None, int] = {None: -1}
    for value in values:
        code_of.setdefault(value, len(code_of) - 1)
    codes = np.fromiter(map(code_of.__getitem__, values), "<i4", len(values))
    words = [word.encode() for word in code_of if word is not None]
    if any(len(word) > MAX_WORD for word in words):
        raise ValueError(f"column '{name}' holds a text of more than {MAX_WORD} bytes")
    text = b"".join(words)
    ends = np.cumsum([len(word) for word in words], dtype=np.int64).astype("<u4")
    head = ColumnHead(name, "str", len(codes), len(words), len(text))
    return head, [codes.tobytes(), ends.tobytes(), text]


def encode_claim(claim: ClaimHead) -> bytes:
    return _encode_head(Head(claim=claim))


def decode(data: Buffer, caps: Caps) -> dict[str, Array] | ClaimHead:
    """Return the columns as read-only arrays over ``data``, or the claim.

    The size of ``data`` bounds the memory that is allocated.
    """
    if len(data) > caps.total:
        raise CodecError(f"{len(data)} bytes, more than the {caps.total} allowed")
    if len(data) < _PREFIX.size:
        raise CodecError("no result" if len(data) == 0 else "shorter than a prefix")
    magic, length = _PREFIX.unpack_from(data)
    offset = _PREFIX.size + length
    if magic != MAGIC or length > MAX_HEAD or offset > len(data) or offset % _ALIGN:
        raise CodecError("no well-formed prefix")
    try:
        head = _decode_head(bytes(data[_PREFIX.size : offset]))
    except UNDECODABLE:
        raise CodecError("no well-formed head") from None
    if head.claim is not None:
        if offset != len(data):
            raise CodecError("bytes after a claim")
        return head.claim
    if head.columns is None or len(head.columns) > caps.columns:
        raise CodecError(
            "no columns" if head.columns is None else f"more than {caps.columns} columns"
        )
    # A word of two letters takes ten times its bytes as a Python string, so words have a separate
    # cap.
    if sum(column.words for column in head.columns) > caps.words:
        raise CodecError(f"more than {caps.words} different texts")
    columns: dict[str, Array] = {}
    for column in head.columns:
        if column.name in columns:
            raise CodecError("a column's name comes twice")
        if column.rows > caps.rows:
            raise CodecError(f"a column of more than {caps.rows} rows")
        columns[column.name], offset = _read_column(data, offset, column)
    if offset != len(data):
        raise CodecError("bytes after the last column")
    return columns


def _encode_head(head: Head) -> bytes:
    text = msgspec.json.encode(head)
    text += b" " * (-(_PREFIX.size + len(text)) % _ALIGN)
    if len(text) > MAX_HEAD:
        raise ValueError("too many columns, or names too long: the head is over 64 KB")
    return _PREFIX.pack(MAGIC, len(text)) + text


_NUMBER: Final = (bool, int, float, np.integer, np.floating, np.bool_)


def _take(data: Buffer, offset: int, dtype: np.dtype[Any], count: int) -> tuple[Array, int]:
    size = count * dtype.itemsize
    end = offset + size
    following = end + (-size % _ALIGN)
    if following > len(data):
        raise CodecError("shorter than its head says")
    if any(data[end:following]):
        raise CodecError("padding that is not zero")
    return np.frombuffer(data, dtype, count, offset), following


def _read_column(data: Buffer, offset: int, head: ColumnHead) -> tuple[Array, int]:
    if head.kind != "str":
        if head.words or head.size:
            raise CodecError("words in a column that is no text")
        array, offset = _take(data, offset, DTYPES[head.kind], head.rows)
        if head.kind == "b1" and array.size and array.view(np.uint8).max() > 1:
            raise CodecError("a bool that is neither 0 nor 1")
        return array, offset
    codes, offset = _take(data, offset, np.dtype("<i4"), head.rows)
    raw_ends, offset = _take(data, offset, np.dtype("<u4"), head.words)
    raw_text, offset = _take(data, offset, np.dtype("u1"), head.size)
    text, ends = raw_text.tobytes(), raw_ends.astype(np.int64)
    lengths = np.diff(ends, prepend=0)
    total = int(ends[-1]) if ends.size else 0
    if total != head.size or (lengths < 0).any() or (lengths > MAX_WORD).any():
        raise CodecError("a dictionary whose ends do not fit its text")
    spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    table = np.empty(head.words + 1, dtype=object)
    try:
        table[:-1] = [text[start:end].decode() for start, end in spans]
    except UnicodeDecodeError:
        raise CodecError("a word that is no UTF-8") from None
    if codes.size and (codes.min() < -1 or codes.max() >= head.words):
        raise CodecError("a code outside the dictionary")
    table[-1] = None
    column = table[codes]
    column.flags.writeable = False
    return column, offset
