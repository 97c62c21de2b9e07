"""Record the decisions of a run by bar, and find the first decision on which two runs differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError

Array = NDArray[Any]
Columns = Mapping[str, Array]
Flags = NDArray[np.bool_]


class RunFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A run without decisions.

    ``kind`` is a short name for counting, and ``text`` one line for a reader.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The actions of a run, in the order of the decisions.

    - ``rows`` contains the bar at whose close, or during which, each action was decided. The bars
      never decrease, and several actions may share a bar.
    - ``fields`` contains the decisions (side, quantity, kind, price, ...), with one value per
      action.
    - ``cpu_s`` is the processor time of the run, if known. It is not compared.
    - ``share`` is the traded leg's share of the account after each action, if known. These sizes do
      not depend on earlier profits.
    - ``say`` describes the fields of one action in words.

    Raises UserError for rows that decrease or are negative, and for fields of another length.
    """

    rows: Ints
    fields: Mapping[str, Array] = field(default_factory=dict)
    cpu_s: float | None = None
    share: Floats | None = None
    say: Callable[[Mapping[str, Any]], str] | None = None

    def __post_init__(self) -> None:
        rows = np.asarray(self.rows, dtype=np.int64)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(
            self, "fields", {name: np.asarray(values) for name, values in self.fields.items()}
        )
        if rows.ndim != 1 or (rows.size and (rows[0] < 0 or (np.diff(rows) < 0).any())):
            raise UserError(
                "a trace's rows are bar numbers that never go back", hint="sort the actions by bar"
            )
        for name, values in self.fields.items():
            if values.shape != rows.shape:
                raise UserError(
                    f"trace field '{name}' has {values.shape} values for {rows.shape} actions"
                )

    def __len__(self) -> int:
        return len(self.rows)

    def words(self, position: int, *, plainly: bool = True) -> str:
        """Return a phrase for an action.

        With ``plainly=False``, or without :attr:`say`, the phrase contains all fields of the
        action.
        """
        values = {name: column[position] for name, column in self.fields.items()}
        if plainly and self.say is not None:
            return self.say(values)
        parts = []
        for name, value in values.items():
            text = f"{value:.10g}" if isinstance(value, float | np.floating) else f"{value}"
            parts.append(f"{name}={text}")
        return ", ".join(parts) or "an action"

    @classmethod
    def of_rows(cls, columns: Columns) -> Trace:
        """Return the trace of a table with one row of decisions per bar.

        An action is a row in which any column differs from the previous row. Before the first row
        all values are zero, empty or missing. Two tables are equal before a row exactly if their
        traces are equal.
        """
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        lengths = {len(values) for values in arrays.values()}
        if len(lengths) != 1:
            raise UserError(
                f"decisions by row need columns of one length, these have {sorted(lengths)}"
            )
        changed = np.zeros(lengths.pop(), dtype=bool)
        for values in arrays.values() if changed.size else ():
            changed[1:] |= ~same(values[1:], values[:-1])
            first = values[0]
            empty = (
                first is None
                or first == ""
                or first != first
                or (values.dtype.kind in "fiub" and first == 0)
            )
            changed[0] |= not empty
        rows = np.flatnonzero(changed).astype(np.int64)
        return cls(rows=rows, fields={name: values[rows] for name, values in arrays.items()})

    def held(self, bars: int) -> dict[str, Floats]:
        """Return the positions after every row.

        These are shares of the account by leg if known, otherwise the fields.
        """
        if self.share is not None and "leg" in self.fields:
            legs = np.asarray(self.fields["leg"], dtype=np.int64)
            positions = {}
            for leg in np.unique(legs).tolist():
                chosen = legs == leg
                shares = held_after(self.rows[chosen], self.share[chosen], bars)
                positions[f"leg {leg}"] = shares
            return positions
        held = {}
        for name, values in self.fields.items():
            if values.dtype.kind not in "fiub":
                # Texts are compared by a number that depends on every letter and its position.
                values = np.array([_text_number(str(value)) for value in values], dtype=np.float64)
            held[name] = held_after(self.rows, values.astype(np.float64), bars)
        return held


def _text_number(text: str) -> int:
    return sum((place + 1) * ord(letter) for place, letter in enumerate(text))


def held_after(rows: Ints, values: Floats, bars: int) -> Floats:
    """Return the last value at or before every row; 0 before the first value."""
    last = np.zeros(bars, dtype=np.int64)
    inside = rows < bars
    last[rows[inside]] = np.flatnonzero(inside) + 1
    held: Floats = np.concatenate([[0.0], values])[np.maximum.accumulate(last)]
    return held


def same(left: Array, right: Array, rtol: float = 0.0) -> Flags:
    """Return a mask of the values that agree: floats within ``rtol``, other values exactly.

    Two missing values agree.
    """
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
        equal = np.array(
            [a == b for a, b in zip(left.tolist(), right.tolist(), strict=True)], dtype=bool
        )
    return equal


def first_difference(
    scored: Trace, other: Trace, before: int, rtol: float
) -> tuple[int, str, str] | None:
    """Return the first action before bar ``before`` that differs: its bar, and both actions in
    words.

    Returns None if there is no difference.
    """
    scored_count = int(np.searchsorted(scored.rows, before, side="left"))
    other_count = int(np.searchsorted(other.rows, before, side="left"))
    both = ((scored, scored_count), (other, other_count))
    if scored.fields.keys() != other.fields.keys() and (scored_count or other_count):
        names = [", ".join(sorted(trace.fields)) or "nothing" for trace in (scored, other)]
        row = int(min(trace.rows[0] for trace, count in both if count))
        return row, f"on {names[0]}", f"on {names[1]}"
    shared = min(scored_count, other_count)
    agree = scored.rows[:shared] == other.rows[:shared]
    for name, values in scored.fields.items() if shared else ():
        agree &= same(values[:shared], other.fields[name][:shared], rtol)
    differing = np.flatnonzero(~agree)
    place = int(differing[0]) if differing.size else shared
    if place == max(scored_count, other_count):
        return None
    row = int(min(trace.rows[place] for trace, count in both if place < count))
    # If two different actions have the same description, they differ in a field without words. All
    # fields are then shown.
    for plainly in (True, False):
        sides = []
        for trace, count in both:
            acts = place < count and trace.rows[place] == row
            sides.append(trace.words(place, plainly=plainly) if acts else "nothing")
        left, right = sides
        if left != right:
            break
    return row, left, right
