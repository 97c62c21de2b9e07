import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra import numpy as hnp

from tradeassay_programs.sandbox.codec import (
    MAGIC,
    MAX_HEAD,
    Caps,
    ClaimHead,
    CodecError,
    decode,
    encode,
    encode_claim,
)

CAPS = Caps(columns=8, rows=1_000, words=500, total=1 << 20)


def message(head: Any, body: bytes = b"") -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    text += b" " * (-(8 + len(text)) % 8)
    return MAGIC + struct.pack("<I", len(text)) + text + body


def column(**facts: Any) -> dict[str, Any]:
    return {"columns": [{"name": "a", "kind": "f8", "rows": 1} | facts]}


def test_the_bytes_of_one_column_by_hand():
    raw = b"".join(encode({"a": [1.5, -2.0]}))
    magic, length = struct.unpack_from("<4sI", raw)
    (head,) = json.loads(raw[8 : 8 + length])["columns"]
    assert magic == b"TAS1" and (8 + length) % 8 == 0
    assert (head["name"], head["kind"], head["rows"]) == ("a", "f8", 2)
    assert raw[8 + length :] == struct.pack("<2d", 1.5, -2.0)


def test_every_kind_comes_back():
    columns = {
        "price": np.array([1.0, np.nan]),
        "count": np.array([1, -(2**63)], dtype=np.int64),
        "flag": [True, False, True],
        "time": np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
        "name": ["x", None, "é", "x", ""],
        "nothing": [],
        "single": 3.0,
        "small": np.array([1, 2], dtype=np.uint8),
    }
    back = decode(b"".join(encode(columns)), CAPS)
    assert isinstance(back, dict) and not any(array.flags.writeable for array in back.values())
    for name, values in columns.items():
        np.testing.assert_array_equal(back[name], np.atleast_1d(np.asarray(values)))
    assert back["time"].dtype == np.dtype("M8[ns]")


COLUMN = st.one_of(
    hnp.arrays(np.float64, st.integers(0, 20)),
    hnp.arrays(np.int64, st.integers(0, 20)),
    hnp.arrays(np.bool_, st.integers(0, 20)),
    hnp.arrays(np.dtype("M8[ns]"), st.integers(0, 20)),
    st.lists(
        st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
        max_size=20,
    ),
)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
        COLUMN,
        max_size=8,
    )
)
def test_what_is_encoded_is_decoded(columns):
    back = decode(b"".join(encode(columns)), CAPS)
    assert isinstance(back, dict)
    assert list(back) == list(columns)
    for name, values in columns.items():
        if isinstance(values, list) and values:
            assert back[name].tolist() == values
        else:
            np.testing.assert_array_equal(back[name], np.asarray(values))


VALID = b"".join(
    encode({"a": [1.0, 2.0], "s": ["x", "yy", None], "b": [True], "t": np.array([0], "M8[ns]")})
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
PROMISE = st.fixed_dictionaries(
    {
        "name": st.just("a"),
        "kind": st.sampled_from(["f8", "i8", "b1", "M8", "str", "O", "f4"]),
        "rows": st.integers(-5, 2**64),
        "words": st.integers(-5, 2**40),
        "size": st.integers(-5, 2**45),
    }
).map(lambda head: {"columns": [head]})


@given(st.binary(max_size=200))
@example(b"")
@example(b"TAS1")
@example(MAGIC + struct.pack("<I", 2**32 - 1))
def test_random_bytes_are_refused_and_nothing_else_happens(raw):
    with pytest.raises(CodecError):
        decode(raw, CAPS)


@given(
    st.integers(0, len(VALID) - 1),
    st.integers(0, 255),
    st.integers(0, len(VALID)),
    JSON | PROMISE,
    st.binary(max_size=128),
)
def test_a_damaged_message_and_any_head_is_columns_or_refused(position, value, cut, head, body):
    raw = bytearray(VALID)
    raw[position] = value
    promised = message(head, body)
    for damaged in (bytes(raw), bytes(raw[:cut]), bytes(raw) + b"\0" * (cut % 9), promised):
        try:
            back = decode(damaged, CAPS)
        except CodecError:
            continue
        assert isinstance(back, dict)
        assert sum(array.nbytes for array in back.values()) <= 8 * len(damaged)
        if damaged is promised:  # no column is longer or shorter than its head says
            assert [len(array) for array in back.values()] == [
                one["rows"] for one in head["columns"]
            ]


def words(count: int, size: int, ends: tuple[int, ...], text: bytes) -> bytes:
    """One column of texts with one row, which is its first word."""
    body = bytes(8) + struct.pack(f"<{count}I", *ends).ljust(8, b"\0") + text.ljust(8, b"\0")
    return message(column(kind="str", words=count, size=size), body)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "no result"),
        (b"abc", "prefix"),
        (b"XXXX" + bytes(4), "prefix"),
        (MAGIC + struct.pack("<I", MAX_HEAD + 8) + b" " * (MAX_HEAD + 8), "prefix"),
        (message(b"{"), "head"),
        (message(b"[" * 5000), "head"),
        (message(b"{}"), "no columns"),
        (message(b'{"columns": [], "extra": 1}'), "head"),
        (message(b'{"columns": [{"name": "\xff", "kind": "f8", "rows": 0}]}'), "head"),
        (message(b'{"columns": [{"name": "a", "kind": "f8", "rows": 1e3}]}', bytes(8000)), "head"),
        (message(column(rows=2), bytes(8)), "shorter"),
        (message(column(rows=1), bytes(16)), "after the last"),
        (message(column(rows=1_001), bytes(8_008)), "rows"),
        (message(column(name=""), bytes(8)), "head"),
        (message(column(rows=True), bytes(8)), "head"),
        (message(column(words=1), bytes(8)), "no text"),
        (message({"columns": column()["columns"] * 2}, bytes(16)), "twice"),
        (
            message({"columns": [{"name": str(n), "kind": "f8", "rows": 0} for n in range(9)]}),
            "columns",
        ),
        (message(column(kind="b1"), b"\x02" + bytes(7)), "neither 0 nor 1"),
        (message(column(kind="b1"), b"\x01" + b"\x01" * 7), "padding"),
        (message(column(kind="str", words=501, rows=1), bytes(4096)), "texts"),
        (message(column(kind="str", words=0, rows=1), bytes(8)), "code outside"),
        (words(1, 1, (2,), b"x"), "ends"),
        (words(1, 1, (1,), b"\xff"), "UTF-8"),
        (words(2, 1, (2, 1), b"x"), "ends"),
        (bytes((1 << 20) + 1), "bytes"),
        (encode_claim(ClaimHead("exception", "E", "m")) + bytes(8), "after a claim"),
    ],
)
def test_malformed_messages_name_their_fault(raw, reason):
    with pytest.raises(CodecError, match=reason):
        decode(raw, CAPS)


def test_a_claim_comes_back():
    claim = ClaimHead("memory", "MemoryError", "too much", "line 1")
    assert decode(encode_claim(claim), CAPS) == claim


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((2, 2)),
        np.array([1j]),
        np.array([b"x"]),
        np.array([object()]),
        ["x", 1.5, object()],
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([1], dtype="m8[s]"),
    ],
)
def test_what_no_column_can_hold(values):
    with pytest.raises(TypeError, match="column 'a'"):
        encode({"a": values})


def test_objects_that_are_numbers_are_numbers():
    """A column of a frame that was filled value by value; texts and what is missing among them
    stay texts.
    """
    found = decode(
        b"".join(encode({"n": np.array([1, None, 2.5, np.True_], object), "t": [None, "a"]})),
        Caps(),
    )
    assert not isinstance(found, ClaimHead)
    assert (
        found["n"].dtype == np.float64
        and found["n"].tolist()[0::2] == [1.0, 2.5]
        and np.isnan(found["n"][1])
    )
    assert found["n"][3] == 1.0 and found["t"].tolist() == [None, "a"]


def test_names_and_texts_have_a_length():
    with pytest.raises(ValueError, match="200"):
        encode({"": [1.0]})
    with pytest.raises(ValueError, match="4096"):
        encode({"a": ["x" * 5000]})
    with pytest.raises(ValueError, match="64 KB"):
        encode({f"{number:0200}": [1.0] for number in range(400)})
