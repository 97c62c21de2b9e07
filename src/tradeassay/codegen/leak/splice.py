"""The block-splice screen: many cuts in one run.

Pieces of the series that end where something is decided, and pieces that end anywhere, are shuffled, put one after
the other and run once. On the last rows of a piece, code with a finite memory and no foresight decides what it
decided in the scored run. A difference may also come from a long memory, so it proves nothing by itself: each is
tried again on the true past with other rows behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.codegen.leak.compare import first_difference
from tradeassay.codegen.leak.config import LeakConfig
from tradeassay.codegen.leak.feeds import Feeds, Rows
from tradeassay.codegen.leak.trace import Array, Trace


@dataclass(frozen=True, slots=True)
class Splice:
    """One screen: the last true row of each piece, all rows in their new order, and the columns to run."""

    ends: Rows
    rows: Rows
    columns: dict[str, Array]
    piece: int

    def following(self, number: int, count: int) -> Rows:
        """Return the rows that came after piece ``number``, from the start again after the last."""
        stop = (number + 1) * self.piece
        return np.take(self.rows, np.arange(stop, stop + count), mode="wrap")


def make_splice(
    feeds: Feeds, scored: Trace, config: LeakConfig, used: set[int], rng: np.random.Generator
) -> Splice | None:
    """Return a screen whose pieces end at rows not yet in ``used`` (which is added to); None when the series is too
    short or its feeds do not share rows.
    """
    piece = min(config.piece_rows, max(len(feeds) // 4, 1))
    count = config.splice_rows // piece
    last = len(feeds) - 2
    if not feeds.aligned or last < 2 * piece or count < 2:
        return None
    possible = np.arange(piece - 1, last + 1)
    changes = np.intersect1d(scored.rows, possible)
    fresh = np.setdiff1d(changes, np.fromiter(used, np.int64, len(used)))
    at_changes = rng.permutation(fresh)[: count * 3 // 4]
    anywhere = rng.choice(possible, size=min(count - len(at_changes), len(possible)), replace=False)
    ends = rng.permutation(np.unique(np.concatenate([at_changes, anywhere])))
    used.update(int(end) for end in ends)
    rows = (ends[:, None] + np.arange(1 - piece, 1)).ravel()
    starts = np.zeros(len(rows), dtype=bool)
    starts[::piece] = True
    return Splice(ends, rows, feeds.splice(rows, starts), piece)


def hits(splice: Splice, scored: Trace, spliced: Trace) -> list[int]:
    """Return the pieces whose last rows were decided otherwise, those first that agreed until then.

    Sizes are left out of the screen where there is anything else to compare: they follow the money, which has
    another history in every order of the pieces.
    """
    burn_in = splice.piece // 2
    tail = max(2, splice.piece // 12)
    left, right = _coarse(scored), _coarse(spliced)
    ranked: list[tuple[int, int]] = []
    for number, end in enumerate(splice.ends.tolist()):
        stop = (number + 1) * splice.piece
        shift = stop - 1 - end
        here = _moved(right.between(stop - splice.piece + burn_in, stop - 1), -shift)
        there = left.between(end - splice.piece + 1 + burn_in, end)
        differs = first_difference(there, here, end + 1, 1e-6)
        if differs is None:
            continue
        in_step = differs[0] > end - tail
        if in_step or first_difference(
            there.between(end - tail + 1, end), here.between(end - tail + 1, end), end + 1, 1e-6
        ):
            ranked.append((0 if in_step else 1, number))
    return [number for _, number in sorted(ranked)]


def _moved(trace: Trace, by: int) -> Trace:
    return Trace(rows=trace.rows + by, fields=trace.fields)


def _coarse(trace: Trace) -> Trace:
    kept = {name: values for name, values in trace.fields.items() if values.dtype.kind != "f"}
    return Trace(rows=trace.rows, fields=kept or trace.fields)
