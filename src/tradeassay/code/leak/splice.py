"""The block-splice screen: many cuts in one run.

Pieces of the series that end where something is decided, and pieces that end anywhere, are shuffled, put one after
the other and run once. On the last rows of a piece, code with a finite memory and no foresight decides what it
decided in the scored run. A difference may also come from a long memory, so it proves nothing by itself: each is
tried again on the true past with the same rows behind it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.leak.compare import first_difference
from tradeassay.code.leak.config import LeakConfig
from tradeassay.code.leak.feeds import TIME, Feeds, Rows
from tradeassay.code.leak.futures import mirrored
from tradeassay.code.leak.trace import Array, Trace

_TAIL: Final = 8
_SCREEN_RTOL: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Splice:
    """One screen: the last true row of each piece, the pieces' length, and the columns to run.

    ``stops`` are the places in the new order where the true rows of a piece end and other rows begin.
    """

    ends: Rows
    stops: Rows
    piece: int
    columns: dict[str, Array]

    def confirmation(self, feeds: Feeds, number: int, count: int) -> dict[str, Array]:
        """Return the true past of piece ``number``, then up to ``count`` of the rows that followed it here, on the
        true clock.
        """
        known, place = int(self.ends[number]) + 1, int(self.stops[number])
        size = len(next(iter(self.columns.values())))
        count = min(count, len(feeds) - known)
        following = np.arange(place, place + count) % size
        grown = feeds.head(known + count)
        for name, values in grown.items():
            if name.rpartition("/")[2] != TIME:
                grown[name] = np.concatenate([values[:known], self.columns[name][following]])
        return grown


def make_splice(
    feeds: Feeds,
    scored: Trace,
    config: LeakConfig,
    visits: Counter[int],
    rng: np.random.Generator,
    *,
    mirror: bool,
) -> Splice | None:
    """Return a screen whose pieces end at the decisions that ``visits`` (which is added to) has seen least.

    With ``mirror`` the true next rows, turned upside down, follow each piece; else the next piece follows at once.
    None when the series is too short or its feeds do not share rows.
    """
    tail = _TAIL if mirror else 0
    piece = min(config.piece_rows, len(feeds) // 4)
    count = config.splice_rows // max(piece + tail, 1)
    last = len(feeds) - 2 - tail
    if not feeds.aligned or piece < 4 or last < 2 * piece or count < 2:
        return None
    possible = np.arange(piece - 1, last + 1)
    changes = rng.permutation(np.intersect1d(scored.rows, possible))
    seen = np.asarray([visits[row] for row in changes.tolist()], dtype=np.int64)
    at_changes = changes[np.argsort(seen, kind="stable")][: count * 3 // 4]
    anywhere = rng.choice(possible, size=min(count - len(at_changes), len(possible)), replace=False)
    ends = rng.permutation(np.unique(np.concatenate([at_changes, anywhere])))
    visits.update(ends.tolist())
    steps = np.arange(1 - piece, 1 + tail)
    rows = (ends[:, None] + steps).ravel()
    starts = np.zeros(len(rows), dtype=bool)
    starts[:: piece + tail] = True
    columns = feeds.splice(rows, starts)
    if mirror:
        ahead = np.tile(steps > 0, len(ends))
        _turn(columns, feeds, np.repeat(ends, tail), rows[ahead], ahead, rng)
    return Splice(ends, np.arange(len(ends)) * (piece + tail) + piece, piece, columns)


def hits(splice: Splice, scored: Trace, spliced: Trace) -> list[int]:
    """Return the pieces whose last rows were decided otherwise, those first that agreed until then.

    Sizes are left out of the screen where there is anything else to compare: they follow the money, which has
    another history in every order of the pieces.
    """
    burn_in = splice.piece // 2
    late = max(2, splice.piece // 12)
    left, right = _coarse(scored), _coarse(spliced)
    ranked: list[tuple[int, int]] = []
    for number, (end, stop) in enumerate(zip(splice.ends.tolist(), splice.stops.tolist(), strict=True)):
        here = _moved(right.between(stop - splice.piece + burn_in, stop - 1), end + 1 - stop)
        there = left.between(end - splice.piece + 1 + burn_in, end)
        differs = first_difference(there, here, end + 1, _SCREEN_RTOL)
        if differs is None:
            continue
        from_row = end - late + 1
        tails = there.between(from_row, end), here.between(from_row, end)
        if differs[0] >= from_row:
            ranked.append((0, number))
        elif first_difference(*tails, end + 1, _SCREEN_RTOL):
            ranked.append((1, number))
    return [number for _, number in sorted(ranked)]


def _turn(
    columns: dict[str, Array],
    feeds: Feeds,
    anchors: Rows,
    rows: Rows,
    ahead: NDArray[np.bool_],
    rng: np.random.Generator,
) -> None:
    """Turn the rows marked ``ahead`` upside down; columns that are no prices take values of anywhere."""
    foreign = rng.integers(0, len(feeds), len(rows))
    for feed, group in feeds.groups.items():
        turned = mirrored(group, anchors, rows)
        for name, values in group.items():
            full = f"{feed}/{name}" if feed else name
            if name != TIME:
                other = turned.get(name, values[foreign])
                columns[full][ahead] = np.rint(other) if values.dtype.kind in "iu" else other


def _moved(trace: Trace, by: int) -> Trace:
    return Trace(rows=trace.rows + by, fields=trace.fields)


def _coarse(trace: Trace) -> Trace:
    kept = {name: values for name, values in trace.fields.items() if values.dtype.kind != "f"}
    return Trace(rows=trace.rows, fields=kept or trace.fields)
