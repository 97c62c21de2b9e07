"""Typed columns as bytes: how rows reach a child and its decisions come back. No pickle, compression or pointers.

``magic (4 bytes) | u32 length of the head | JSON head, padded with spaces | raw little-endian columns``. The
head is at most 64 KB and names the columns with kind and rows; each column is padded with zeros to eight bytes.
Kinds: ``f8``, ``i8``, ``b1``, ``M8`` (nanoseconds) and ``str``: int32 codes into a dictionary of words (-1:
missing), the words' ends as uint32, and their UTF-8. The size of everything follows from the head, and must
match to the byte.
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
_KIND_OF: Final[dict[str, Kind]] = {"f": "f8", "i": "i8", "u": "i8", "b": "b1", "M": "M8", "U": "str", "O": "str"}


class CodecError(ValueError):
    """The bytes are not well-formed columns, or exceed a cap. The text says what is wrong and quotes nothing."""


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """How much one message may hold."""

    columns: int = 256
    rows: int = 5_000_000
    words: int = 1_000_000
    total: int = 64 << 20


class ColumnHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column: ``words`` and ``size`` (bytes of UTF-8) belong to kind ``str`` alone."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    kind: Kind
    rows: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
    words: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    size: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] = 0


class ClaimHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a child says went wrong."""

    kind: ClaimKind
    error: Annotated[str, msgspec.Meta(max_length=200)]
    message: Annotated[str, msgspec.Meta(max_length=4000)]
    trace: Annotated[str, msgspec.Meta(max_length=16000)] = ""


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either columns or a claim."""

    columns: list[ColumnHead] | None = None
    claim: ClaimHead | None = None


_decode_head = msgspec.json.Decoder(Head).decode


def encode(columns: Mapping[str, Any]) -> list[bytes]:
    """The message for named array-likes, in parts; TypeError or ValueError for what the format cannot hold."""
    heads: list[ColumnHead] = []
    parts: list[bytes] = []
    for name, values in columns.items():
        head, raw = _encode_column(str(name), values)
        heads.append(head)
        for part in raw:
            parts += [part, bytes(-len(part) % _ALIGN)]
    return [_encode_head(Head(columns=heads)), *parts]


def encode_claim(claim: ClaimHead) -> bytes:
    return _encode_head(Head(claim=claim))


def decode(data: Buffer, caps: Caps) -> dict[str, Array] | ClaimHead:
    """Return the columns as read-only arrays over ``data``, which bounds what is allocated, or the claim."""
    if len(data) > caps.total:
        raise CodecError(f"{len(data)} bytes, more than the {caps.total} allowed")
    head, offset = _read_head(data)
    if head.claim is not None:
        if offset != len(data):
            raise CodecError("bytes after a claim")
        return head.claim
    if head.columns is None or len(head.columns) > caps.columns:
        raise CodecError("no columns" if head.columns is None else f"more than {caps.columns} columns")
    # A word of two letters takes ten times its bytes as a Python string, so words have a cap of their own.
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


def _encode_column(name: str, values: Any) -> tuple[ColumnHead, list[bytes]]:
    array = _as_array(values)
    kind = _KIND_OF.get(array.dtype.kind)
    if kind is None or array.ndim != 1:
        raise TypeError(
            f"column '{name}' is {array.ndim}-dimensional {array.dtype}; "
            "one-dimensional float, int, bool, datetime or str can be returned"
        )
    if not 1 <= len(name) <= 200:
        raise ValueError("a column's name has 1 to 200 characters")
    if kind == "str":
        return _encode_words(name, array)
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise TypeError(f"column '{name}' holds integers beyond 64 bits with sign")
    return ColumnHead(name, kind, len(array)), [np.ascontiguousarray(array, DTYPES[kind]).tobytes()]


def _as_array(values: Any) -> Array:
    """Return values as an array; words in a list stay objects, because numpy's own strings lose trailing NULs."""
    if isinstance(values, list | tuple) and any(isinstance(value, str) for value in values):
        words = np.empty(len(values), dtype=object)
        words[:] = values
        return words
    array = np.atleast_1d(np.asarray(values))
    return _as_numbers(array) if array.dtype.kind == "O" and array.ndim == 1 else array


_NUMBER: Final = (bool, int, float, np.integer, np.floating, np.bool_)


def _as_numbers(array: Array) -> Array:
    """Return objects that are all numbers or missing as floats: a frame filled value by value holds such."""
    values = [math.nan if value is None else value for value in array.tolist()]
    if not all(isinstance(value, _NUMBER) for value in values) or all(value != value for value in values):
        return array
    return np.array(values, dtype=np.float64)


def _encode_words(name: str, array: Array) -> tuple[ColumnHead, list[bytes]]:
    values = array.tolist()
    if set(map(type, values)) - {str, type(None)}:
        values = [_word(name, value) for value in values]
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


def _word(name: str, value: Any) -> str | None:
    if value is None or (isinstance(value, float) and value != value):
        return None
    if not isinstance(value, str):
        raise TypeError(f"column '{name}' holds {type(value).__name__}; only str and None can stand among objects")
    return value


def _read_head(data: Buffer) -> tuple[Head, int]:
    if len(data) < _PREFIX.size:
        raise CodecError("no result" if len(data) == 0 else "shorter than a prefix")
    magic, length = _PREFIX.unpack_from(data)
    end = _PREFIX.size + length
    if magic != MAGIC or length > MAX_HEAD or end > len(data) or end % _ALIGN:
        raise CodecError("no well-formed prefix")
    try:
        head = _decode_head(bytes(data[_PREFIX.size : end]))
    except UNDECODABLE:
        raise CodecError("no well-formed head") from None
    return head, end


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
    ends, offset = _take(data, offset, np.dtype("<u4"), head.words)
    text, offset = _take(data, offset, np.dtype("u1"), head.size)
    words = _split_words(text.tobytes(), ends.astype(np.int64), head)
    if codes.size and (codes.min() < -1 or codes.max() >= head.words):
        raise CodecError("a code outside the dictionary")
    table = np.empty(head.words + 1, dtype=object)
    table[:-1] = words
    table[-1] = None
    column = table[codes]
    column.flags.writeable = False
    return column, offset


def _split_words(text: bytes, ends: NDArray[np.int64], head: ColumnHead) -> list[str]:
    lengths = np.diff(ends, prepend=0)
    total = int(ends[-1]) if ends.size else 0
    if total != head.size or (lengths < 0).any() or (lengths > MAX_WORD).any():
        raise CodecError("a dictionary whose ends do not fit its text")
    starts = ends - lengths
    try:
        return [text[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    except UnicodeDecodeError:
        raise CodecError("a word that is no UTF-8") from None
