"""Call programs on data frames that grow.

A message contains several rows. It ends at the latest on the next row for which the host wants an
answer. On such a row, the program is called on all rows so far, and the harness sends its last
target or all targets. The child never contains a row beyond the first unanswered row, so no answer
can depend on a later row. Once the child has all rows, the program may be called on the whole
table. Several tables are sent one after another.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np

from tradeassay_programs.sandbox.codec import encode, encode_claim
from tradeassay_programs.sandbox.feed import answer, receive
from tradeassay_programs.sandbox.strategy import NoEntry, claim_of, columns_of, shape

ENTRY: Final = "signals"
HEAD: Final = struct.Struct("<II")
"""A message's head: its number of rows, and flags (the last row needs an answer, a new table
begins).
"""
ASKED: Final = 1
NEW_TABLE: Final = 2
ROW_TYPES: Final = {"q": "<i8", "d": "<f8", "?": "?"}
"""The column types of a row, by the letters of :func:`frame_format`."""
ROWS: Final = "rows of the answer"
"""The column of an answer with the number of targets. No asset can have this name."""


def frame_format(columns: Mapping[str, Any]) -> str:
    """Return the struct format of one row.

    The letters are ``q`` for times and integers, ``d`` for floats, and ``?`` for flags.
    """
    codes = {"M": "q", "i": "q", "u": "q", "f": "d", "b": "?"}
    letters = []
    for name, values in columns.items():
        code = codes.get(np.asarray(values).dtype.kind)
        if code is None:
            raise TypeError(
                f"column '{name}' cannot be fed bar by bar: only times, numbers and flags can"
            )
        letters.append(code)
    return "<" + "".join(letters)


def pack_rows(columns: Mapping[str, Any]) -> bytes:
    """Return columns as bytes, row by row, in the format of :func:`frame_format`."""
    types = {"M": "<i8", "i": "<i8", "u": "<i8", "f": "<f8", "b": "?"}
    fields = [np.asarray(values) for values in columns.values()]
    dtype = np.dtype(
        [(f"c{place}", types[values.dtype.kind]) for place, values in enumerate(fields)]
    )
    table = np.empty(len(fields[0]), dtype=dtype)
    for place, values in enumerate(fields):
        table[f"c{place}"] = (
            values.astype("M8[ns]").astype("<i8") if values.dtype.kind == "M" else values
        )
    return table.tobytes()


def grow(
    module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Receive rows a few at a time, and send the program's targets on the requested rows.

    Every call uses a freshly loaded program, so an earlier call cannot leave state in its module.
    """
    _entry(module)
    load = vars(module)["__loader__"]
    names = str(params["columns"]).split("\n")
    form = np.dtype(
        [
            (name, ROW_TYPES[letter])
            for name, letter in zip(names, str(params["format"])[1:], strict=True)
        ]
    )
    bars, pass_as = int(params["bars"]), str(params["pass_as"])
    table = {name: np.empty(bars, form[name]) for name in names}
    size = HEAD.size + int(params["most"]) * form.itemsize
    count = 0

    def first(rows: int) -> Any:
        # Copies protect later calls from a program that writes into its input.
        seen = {name: values[:rows].copy() for name, values in table.items()}
        return shape(
            {
                name: values.view("M8[ns]") if name.rpartition("/")[2] == "time" else values
                for name, values in seen.items()
            },
            pass_as,
        )

    while (frame := receive(size)) is not None:
        many, asked = HEAD.unpack_from(frame)
        if asked & NEW_TABLE:
            count = 0
        rows = np.frombuffer(frame, form, many, HEAD.size)
        for name, values in table.items():
            values[count : count + many] = rows[name]
        count += many
        answer(_answer(_entry(load()), first(count), bool(params["all"])) if asked & ASKED else b"")
    if not params["whole"]:
        return {"rows": [count]}
    return columns_of(_entry(load())(first(bars)))


def _entry(module: ModuleType) -> Any:
    function = vars(module).get(ENTRY)
    if not callable(function):
        raise NoEntry(f"the code defines no function '{ENTRY}'")
    return function


def _answer(function: Any, rows: Any, everything: bool) -> bytes:
    try:
        found = {
            name: np.atleast_1d(np.asarray(values))
            for name, values in columns_of(function(rows)).items()
        }
        if everything:
            return b"".join(encode(found))
        lengths = {len(values) for values in found.values()}
        last = {name: values[-1:] for name, values in found.items()}
        return b"".join(encode({**last, ROWS: [lengths.pop() if len(lengths) == 1 else -1]}))
    except Exception as error:
        return encode_claim(claim_of(error))
