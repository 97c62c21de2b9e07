"""Bars and decisions as bytes between host and child. Both ends know the layout; the host checks what it gets."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from tradeassay.code.leak.trace import Columns
from tradeassay.code.streaming.desk import KINDS, Decision

ENTRY: Final = struct.Struct("<BHdd")
"""One decision: kind, feed, quantity, price."""


class WireError(ValueError):
    """An answer that is no list of decisions."""


def frame_format(columns: Columns) -> str:
    """Return the struct format of one row: ``q`` for times and integers, ``d`` for floats, ``?`` for flags.

    Raises TypeError for other columns.
    """
    codes = {"M": "q", "i": "q", "u": "q", "f": "d", "b": "?"}
    letters = []
    for name, values in columns.items():
        code = codes.get(np.asarray(values).dtype.kind)
        if code is None:
            raise TypeError(f"column '{name}' cannot be fed bar by bar: only times, numbers and flags can")
        letters.append(code)
    return "<" + "".join(letters)


def pack_rows(columns: Columns) -> bytes:
    """Return all rows, one frame after the other."""
    types = {"M": "<i8", "i": "<i8", "u": "<i8", "f": "<f8", "b": "?"}
    fields = [np.asarray(values) for values in columns.values()]
    dtype = np.dtype([(f"c{place}", types[values.dtype.kind]) for place, values in enumerate(fields)])
    table = np.empty(len(fields[0]), dtype=dtype)
    for place, values in enumerate(fields):
        table[f"c{place}"] = values.astype("M8[ns]").astype("<i8") if values.dtype.kind == "M" else values
    return table.tobytes()


def pack_decisions(decisions: Iterable[Decision], feeds: Sequence[str]) -> bytes:
    """Return the decisions of one bar; raises ValueError for a feed or kind that does not exist."""
    return b"".join(
        ENTRY.pack(KINDS.index(one.kind), feeds.index(one.feed), one.quantity, one.price) for one in decisions
    )


def read_decisions(payload: bytes, row: int, feeds: Sequence[str]) -> list[Decision]:
    """Return the decisions of bar ``row``; raises :class:`WireError` for anything else."""
    if len(payload) % ENTRY.size:
        raise WireError(f"the answer to bar {row} is no whole number of decisions")
    decisions = []
    entries: Iterable[tuple[Any, ...]] = ENTRY.iter_unpack(payload)
    for kind, feed, quantity, price in entries:
        if kind >= len(KINDS) or feed >= len(feeds):
            raise WireError(f"the answer to bar {row} names a kind or feed that does not exist")
        decisions.append(Decision(row, feeds[feed], KINDS[kind], quantity, price))
    return decisions
