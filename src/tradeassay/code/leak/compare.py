"""The first decision on which two runs differ."""

from __future__ import annotations

import numpy as np

from tradeassay.code.leak.trace import Trace, same


def first_difference(scored: Trace, other: Trace, before: int, rtol: float) -> tuple[int, str, str] | None:
    """Return bar and both sides in words of the first action that differs on bars strictly before ``before``.

    None when both runs decided the same there. A field that only one of them has is a difference.
    """
    left, right = scored.before(before), other.before(before)
    if set(left.fields) != set(right.fields) and (len(left) or len(right)):
        names = [", ".join(sorted(trace.fields)) or "nothing" for trace in (left, right)]
        row = int(min(trace.rows[0] for trace in (left, right) if len(trace)))
        return row, f"on {names[0]}", f"on {names[1]}"
    shared = min(len(left), len(right))
    agree = left.rows[:shared] == right.rows[:shared]
    for name, values in left.fields.items():
        agree &= same(values[:shared], right.fields[name][:shared], rtol)
    differing = np.flatnonzero(~agree)
    place = int(differing[0]) if differing.size else shared
    if place == max(len(left), len(right)):
        return None
    row = int(min(trace.rows[place] for trace in (left, right) if place < len(trace)))
    return row, _side(left, place, row), _side(right, place, row)


def _side(trace: Trace, place: int, row: int) -> str:
    if place < len(trace) and trace.rows[place] == row:
        return trace.words(place)
    return "nothing"


def equal_traces(left: Trace, right: Trace) -> bool:
    """Return whether two whole runs decided the same, to the bit."""
    end = int(max((trace.rows[-1] for trace in (left, right) if len(trace)), default=-1)) + 1
    return first_difference(left, right, end, 0.0) is None
