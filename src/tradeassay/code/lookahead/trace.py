"""What a strategy decided and on which bar, and the first decision on which two runs differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats, Ints

Array = NDArray[Any]
Columns = Mapping[str, Array]
Flags = NDArray[np.bool_]


class RunFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A run that gave no decisions. ``kind`` is a short name for counting, ``text`` one line for a reader."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Actions in the order in which they were decided.

    ``rows`` is the bar on whose close (or during which) each action was decided, non-decreasing; several actions
    may share a bar. ``fields`` says what was decided (side, quantity, kind, price, ...), one value per action.
    ``cpu_s`` is what the run used, when known; it is not compared. ``share`` says for each action which share of
    the account it leaves in its leg, where that is known: sizes that do not depend on the money made before.
    ``say`` puts the fields of one action into words, for those who do not know their names.

    Raises UserError for rows that go backwards, negative rows, or fields of another length.
    """

    rows: Ints
    fields: Mapping[str, Array] = field(default_factory=dict)
    cpu_s: float | None = None
    share: Floats | None = None
    say: Callable[[Mapping[str, Any]], str] | None = None

    def __post_init__(self) -> None:
        rows = np.asarray(self.rows, dtype=np.int64)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "fields", {name: np.asarray(values) for name, values in self.fields.items()})
        if rows.ndim != 1 or (rows.size and (rows[0] < 0 or (np.diff(rows) < 0).any())):
            raise UserError("a trace's rows are bar numbers that never go back", hint="sort the actions by bar")
        for name, values in self.fields.items():
            if values.shape != rows.shape:
                raise UserError(f"trace field '{name}' has {values.shape} values for {rows.shape} actions")

    def __len__(self) -> int:
        return len(self.rows)

    def words(self, position: int, *, plainly: bool = True) -> str:
        """Return an action in words, or all its fields where ``plainly`` is False or nobody has words for it."""
        found = {name: values[position] for name, values in self.fields.items()}
        if plainly and self.say is not None:
            return self.say(found)
        floats = {name: f"{value:.10g}" for name, value in found.items() if isinstance(value, float | np.floating)}
        return ", ".join(f"{name}={value}" for name, value in (found | floats).items()) or "an action"

    @classmethod
    def of_rows(cls, columns: Columns) -> Trace:
        """Return the trace of decisions given row by row: an action is a row on which any column differs from the
        row before (before the first everything is zero, empty or missing). Two tables are equal before a row
        exactly when their traces are.
        """
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        lengths = {len(values) for values in arrays.values()}
        if len(lengths) != 1:
            raise UserError(f"decisions given by row need columns of one length, these have {sorted(lengths)}")
        changed = np.zeros(lengths.pop(), dtype=bool)
        for values in arrays.values() if changed.size else ():
            changed[1:] |= ~same(values[1:], values[:-1])
            first = values[0]
            empty = first is None or first == "" or first != first or (values.dtype.kind in "fiub" and first == 0)
            changed[0] |= not empty
        rows = np.flatnonzero(changed).astype(np.int64)
        return cls(rows=rows, fields={name: values[rows] for name, values in arrays.items()})

    def held(self, bars: int) -> dict[str, Floats]:
        """Return what is held after every row: shares of the account by leg where known, else the fields."""
        if self.share is not None and "leg" in self.fields:
            legs = np.asarray(self.fields["leg"], dtype=np.int64)
            chosen = {f"leg {leg}": legs == leg for leg in np.unique(legs).tolist()}
            return {name: held_after(self.rows[mine], self.share[mine], bars) for name, mine in chosen.items()}
        made = {}
        for name, values in self.fields.items():
            if values.dtype.kind not in "fiub":
                words = [sum((at + 1) * ord(letter) for at, letter in enumerate(str(one))) for one in values]
                values = np.array(words, dtype=np.float64)
            made[name] = held_after(self.rows, values.astype(np.float64), bars)
        return made


def held_after(rows: Ints, values: Floats, bars: int) -> Floats:
    """Return the last value at or before every row; 0 before the first."""
    last = np.zeros(bars, dtype=np.int64)
    inside = rows < bars
    last[rows[inside]] = np.flatnonzero(inside) + 1
    found: Floats = np.concatenate([[0.0], values])[np.maximum.accumulate(last)]
    return found


def same(left: Array, right: Array, rtol: float = 0.0) -> Flags:
    """Return where two columns agree: exactly, or for floats within ``rtol``; two missing values agree."""
    equal: Flags
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        try:
            a, b = left.astype(np.float64), right.astype(np.float64)
        except (TypeError, ValueError):
            return np.zeros(len(left), dtype=bool)
        with np.errstate(invalid="ignore"):
            near = (a == b) | (np.abs(a - b) <= rtol * np.maximum(np.abs(a), np.abs(b)))
        equal = near | (np.isnan(a) & np.isnan(b))
    elif left.dtype.kind == "M" and right.dtype.kind == "M":
        equal = (left == right) | (np.isnat(left) & np.isnat(right))
    else:
        equal = np.array([a == b for a, b in zip(left.tolist(), right.tolist(), strict=True)], dtype=bool)
    return equal


def first_difference(scored: Trace, other: Trace, before: int, rtol: float) -> tuple[int, str, str] | None:
    """Return bar and both sides in words of the first action before ``before`` that differs."""
    one, two = (int(np.searchsorted(trace.rows, before, side="left")) for trace in (scored, other))
    both = ((scored, one), (other, two))
    if scored.fields.keys() != other.fields.keys() and (one or two):
        names = [", ".join(sorted(trace.fields)) or "nothing" for trace in (scored, other)]
        row = int(min(trace.rows[0] for trace, count in both if count))
        return row, f"on {names[0]}", f"on {names[1]}"
    shared = min(one, two)
    agree = scored.rows[:shared] == other.rows[:shared]
    for name, values in scored.fields.items() if shared else ():
        agree &= same(values[:shared], other.fields[name][:shared], rtol)
    differing = np.flatnonzero(~agree)
    place = int(differing[0]) if differing.size else shared
    if place == max(one, two):
        return None
    row = int(min(trace.rows[place] for trace, count in both if place < count))
    for plainly in (True, False):  # two that read the same differ in a field that has no words
        left, right = (
            trace.words(place, plainly=plainly) if place < count and trace.rows[place] == row else "nothing"
            for trace, count in both
        )
        if left != right:
            break
    return row, left, right
