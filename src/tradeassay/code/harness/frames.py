"""The harnesses of programs on frames that are called more than once.

Fed (:func:`grow`), a program is called again on all rows so far, and says its last target. Rows come in frames of
several, each of which ends at the latest on the next row that the program is asked about: the child never holds a
row after one that it still has to answer for, so no answer can depend on a later one. :func:`glance` has all rows
and asks a program that forgets between two calls. It can clear one, and convicts none.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np

from tradeassay.sandbox.codec import encode, encode_claim
from tradeassay.sandbox.feed import answer, receive
from tradeassay.sandbox.strategy import NoEntry, claim_of, columns_of, shape

ENTRY: Final = "signals"
HEAD: Final = struct.Struct("<II")
"""What every frame begins with: how many of its rows count, and whether the program is asked on the last one."""
ROW_TYPES: Final = {"q": "<i8", "d": "<f8", "?": "?"}
"""The columns of a row, by the letters of :func:`~tradeassay.code.harness.desk.frame_format`."""
ROWS: Final = "rows of the answer"
"""The column of an answer that says how many targets there were; it is no name that an asset can have."""


def grow(module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Take rows a few at a time; where the last of them is wanted, call the program with all rows so far and
    answer its last target.

    A call that raises is answered with the claim; the others go on.
    """
    function = vars(module).get(ENTRY)
    if not callable(function):
        raise NoEntry(f"the code defines no function '{ENTRY}'")
    names = str(params["columns"]).split("\n")
    form = np.dtype(
        [(name, ROW_TYPES[letter]) for name, letter in zip(names, str(params["format"])[1:], strict=True)]
    )
    table = {name: np.empty(int(params["bars"]), form[name]) for name in names}
    size = HEAD.size + int(params["most"]) * form.itemsize
    count = 0

    while (frame := receive(size)) is not None:
        many, wanted = HEAD.unpack_from(frame)
        rows = np.frombuffer(frame, form, many, HEAD.size)
        for name, values in table.items():
            values[count : count + many] = rows[name]
        count += many
        if not wanted:
            answer()
            continue
        seen = {
            name: values[:count].view("M8[ns]") if name.rpartition("/")[2] == "time" else values[:count]
            for name, values in table.items()
        }
        answer(_answer(function, shape(seen, str(params["pass_as"]))))
    return {"rows": [count]}


_CLOSE: Final = 1e-9
DRAWN: Final = "drawn"
SUSPECT: Final = "suspect row"
"""The column with six random numbers that choose rows, and that with the first row on which answers differ (-1:
none)."""


def glance(module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Call the program on all rows, then on the first ones up to six of them: where it changes its mind for the
    shortest time, where it changes it otherwise, anywhere. What it says must be the beginning of what it said.
    """
    function = vars(module).get(ENTRY)
    if not callable(function):
        raise NoEntry(f"the code defines no function '{ENTRY}'")
    table = dict(columns)
    drawn = table.pop(DRAWN).tolist()
    whole = {name: np.atleast_1d(np.asarray(values)) for name, values in _called(function, table, params).items()}
    suspect = -1
    for row in _places(whole, len(next(iter(table.values()))), drawn):
        if not _begins(function, {name: values[: row + 1] for name, values in table.items()}, params, whole):
            suspect = row
            break
    return {**whole, SUSPECT: [suspect]}


def _called(function: Any, table: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    # Of copies: whoever writes into what it is given must not find it changed in the next call.
    return columns_of(
        function(shape({name: values.copy() for name, values in table.items()}, str(params["pass_as"])))
    )


def _places(whole: Mapping[str, Any], rows: int, drawn: list[float]) -> list[int]:
    """Return the rows to ask about; none where the answer is not one number a row, which the host will refuse."""
    if not whole or any(len(values) != rows or values.dtype.kind not in "fiub" for values in whole.values()):
        return []
    changed = np.zeros(rows, bool)
    for values in whole.values():
        changed[1:] |= values[1:] != values[:-1]
    at = np.flatnonzero(changed)
    lasts = np.diff(np.append(at, rows))
    chosen = at[np.argsort(lasts, kind="stable")][:2].tolist() if at.size else []
    chosen += [int(at[int(draw * at.size)]) for draw in drawn[:2]] if at.size else []
    chosen += [int(draw * (rows - 1)) for draw in drawn[2 : 6 - len(chosen) + 2]]
    return sorted(set(chosen))


def _begins(function: Any, table: Mapping[str, Any], params: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    rows = len(next(iter(table.values())))
    try:
        found = {name: np.atleast_1d(np.asarray(one)) for name, one in _called(function, table, params).items()}
        return found.keys() == whole.keys() and all(
            len(found[name]) == rows and bool((np.abs(found[name] - whole[name][:rows] * 1.0) <= _CLOSE).all())
            for name in whole
        )
    except Exception:
        return False


def _answer(function: Any, rows: Any) -> bytes:
    try:
        found = {name: np.atleast_1d(np.asarray(values)) for name, values in columns_of(function(rows)).items()}
        lengths = {len(values) for values in found.values()}
        last = {name: values[-1:] for name, values in found.items()}
        return b"".join(encode({**last, ROWS: [lengths.pop() if len(lengths) == 1 else -1]}))
    except Exception as error:
        return encode_claim(claim_of(error))
