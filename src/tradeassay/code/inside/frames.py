"""The harness of a program on frames that is fed: it is called again on all rows so far, and says its last target.

The child never holds a row that it has not answered for, so no answer can depend on a later one.
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
WANTED: Final = "wanted"
"""The column that says on which rows the program is asked."""
ROWS: Final = "rows of the answer"
"""The column of an answer that says how many targets there were; it is no name that an asset can have."""


def grow(module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Take rows one at a time; on the wanted ones call the program with all rows so far and answer its last
    target.

    A call that raises is answered with the claim; the others go on.
    """
    function = vars(module).get(ENTRY)
    if not callable(function):
        raise NoEntry(f"the code defines no function '{ENTRY}'")
    names = str(params["columns"]).split("\n")
    form = str(params["format"])
    row = struct.Struct(form)
    wanted = set(columns[WANTED].tolist())
    table = [np.empty(int(params["bars"]), {"q": "i8", "d": "f8", "?": "?"}[letter]) for letter in form[1:]]
    count = 0
    while (frame := receive(row.size)) is not None:
        for values, value in zip(table, row.unpack(frame), strict=True):
            values[count] = value
        count += 1
        if count - 1 not in wanted:
            answer()
            continue
        seen = {
            name: values[:count].view("M8[ns]") if name.rpartition("/")[2] == "time" else values[:count]
            for name, values in zip(names, table, strict=True)
        }
        answer(_answer(function, shape(seen, str(params["pass_as"]))))
    return {"rows": [count]}


def _answer(function: Any, rows: Any) -> bytes:
    try:
        found = {name: np.atleast_1d(np.asarray(values)) for name, values in columns_of(function(rows)).items()}
        lengths = {len(values) for values in found.values()}
        last = {name: values[-1:] for name, values in found.items()}
        return b"".join(encode({**last, ROWS: [lengths.pop() if len(lengths) == 1 else -1]}))
    except Exception as error:
        return encode_claim(claim_of(error))
