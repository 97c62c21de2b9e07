"""Other data with the same past: cut feeds, other futures, and the block-splice screen.

*Another future* is the same past and the same clock with prices that might have followed. The *block splice* makes
many cuts in one run: pieces of the series that end where something is decided, and pieces that end anywhere, are
shuffled, put one after the other and run once. On the last rows of a piece, code with a finite memory and no
foresight decides what it decided in the scored run. A difference may also come from a long memory, so
it proves nothing by itself: each is tried again on the true past with the same rows behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.leak.report import LeakConfig
from tradeassay.code.leak.trace import Array, Columns, Trace, first_difference
from tradeassay.core.errors import UserError

TIME: Final = "time"
_WEEK: Final = np.timedelta64(7, "D")
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Feeds:
    """Columns, grouped by feed. The first feed is the master: rows and cuts are counted on it.

    Feeds of the master's length share its rows. A feed of another length is cut by time, and needs a column
    ``time`` like the master's. Raises UserError when there are no columns, when columns of one feed differ in
    length, or when a feed cannot be aligned.
    """

    groups: Mapping[str, Mapping[str, Array]]
    names: tuple[str, ...]

    @classmethod
    def of(cls, columns: Columns) -> Feeds:
        """Group columns by what precedes the last slash in their names."""
        groups: dict[str, dict[str, Array]] = {}
        for name, values in columns.items():
            feed, _, column = name.rpartition("/")
            groups.setdefault(feed, {})[column] = np.asarray(values)
        if not groups:
            raise UserError("there are no columns to check on", hint="give at least a column of prices")
        feeds = cls(groups, tuple(columns))
        for feed, group in groups.items():
            if len({len(values) for values in group.values()}) != 1:
                raise UserError(f"the columns of feed '{feed}' differ in length")
            if feeds.length(feed) != len(feeds) and not (TIME in group and TIME in feeds.master):
                raise UserError(
                    f"feed '{feed}' has another length than the first feed and no common clock",
                    hint="give both a column 'time', or rows for the same bars",
                )
        return feeds

    @property
    def master(self) -> Mapping[str, Array]:
        """The columns of the first feed."""
        return next(iter(self.groups.values()))

    def length(self, feed: str) -> int:
        """Return the rows of one feed."""
        return len(next(iter(self.groups[feed].values())))

    def __len__(self) -> int:
        return len(next(iter(self.master.values())))

    def join(self, groups: Mapping[str, Mapping[str, Array]]) -> dict[str, Array]:
        """Return grouped columns under their full names, in the order of the original ones."""
        named = {
            f"{feed}/{name}" if feed else name: values
            for feed, group in groups.items()
            for name, values in group.items()
        }
        return {name: named[name] for name in self.names}

    def count(self, feed: str, rows: int) -> int:
        """Return how many rows of ``feed`` are known when the master has ``rows`` rows."""
        if self.length(feed) == len(self) or rows == len(self):
            return self.length(feed) if rows == len(self) else rows
        if rows == 0:
            return 0
        return int(np.searchsorted(self.groups[feed][TIME], self.master[TIME][rows - 1], side="right"))

    def head(self, rows: int) -> dict[str, Array]:
        """Return the first ``rows`` rows of the master, and what was known from the other feeds by then."""
        return self.join(
            {
                feed: {name: values[: self.count(feed, rows)] for name, values in group.items()}
                for feed, group in self.groups.items()
            }
        )

    def splice(self, rows: Rows, starts: NDArray[np.bool_]) -> dict[str, Array]:
        """Return the given rows of all feeds, one after the other, as if they had happened in this order.

        ``starts`` marks where a new piece begins. Values are untouched; times of a piece are moved by whole weeks
        so that the clock advances while weekdays and hours stay. Only for feeds of equal length.
        """
        groups: dict[str, dict[str, Array]] = {}
        for feed, group in self.groups.items():
            groups[feed] = {name: values[rows] for name, values in group.items()}
            if TIME in group and group[TIME].dtype.kind == "M":
                groups[feed][TIME] = _redate(group[TIME][rows], starts)
        return self.join(groups)

    @property
    def aligned(self) -> bool:
        """Whether all feeds have the master's rows."""
        return all(self.length(feed) == len(self) for feed in self.groups)


def _redate(times: Array, starts: NDArray[np.bool_]) -> Array:
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(times)) - 1
    moved = times.copy()
    for piece in range(1, len(first)):
        gap = moved[last[piece - 1]] - times[first[piece]]
        weeks = int(gap // _WEEK) + 1
        moved[first[piece] : last[piece] + 1] = times[first[piece] : last[piece] + 1] + weeks * _WEEK
    return moved


PRICES: Final = ("open", "high", "low", "close")
TIMETABLE: Final = ("session_last",)
"""Columns that are known beforehand and stay true in another future."""
_MOST_DECIMALS: Final = 6
_SWAP: Final = {"open": "open", "close": "close", "high": "low", "low": "high"}


def other_future(
    feeds: Feeds, known: int, length: int, rng: np.random.Generator, *, mirror: bool
) -> dict[str, Array]:
    """Return ``length`` rows of which the first ``known`` are true and the rest are another plausible path.

    Times stay as they are. Prices go on from the last true close by moves of bars drawn from the whole series in
    short blocks, the same bars for every feed, so that high and low enclose open and close as they did. With
    ``mirror`` the moves are the true ones, sign flipped. Other columns take the values of the drawn bars.
    """
    groups: dict[str, dict[str, Array]] = {}
    drawn = _drawn_bars(len(feeds), length - known, rng)
    for feed, group in feeds.groups.items():
        start, stop = feeds.count(feed, known), feeds.count(feed, length)
        size = feeds.length(feed)
        if mirror:
            bars = np.arange(start, stop)
        elif feeds.aligned:
            bars = drawn
        else:
            bars = _drawn_bars(size, stop - start, rng)
        groups[feed] = _continue(group, start, stop, bars, mirror=mirror)
    return feeds.join(groups)


def snapped(new: Array, true: Array, rows: Rows) -> Array:
    """Return changed prices on the grid of the true ones, where those lie on one: whole numbers or decimals."""
    if true.dtype.kind in "iu":
        return np.rint(new).astype(true.dtype)
    decimals = grid_of(true)
    if decimals is not None:
        new[rows] = np.maximum(np.round(new[rows], decimals), 10.0**-decimals)
    return new


def grid_of(prices: Array) -> int | None:
    """Return how many decimals all prices have; None where they lie on no grid."""
    known = np.asarray(prices, dtype=np.float64)
    known = known[np.isfinite(known)]
    for decimals in range(_MOST_DECIMALS + 1):
        if known.size and bool((np.round(known, decimals) == known).all()):
            return decimals
    return None


def on_grid(feeds: Feeds, changed: dict[str, Array], known: int) -> dict[str, Array]:
    """Return another future with its prices on the grid of the true ones, and the true timetable."""
    made = dict(changed)
    for feed, group in feeds.groups.items():
        start = feeds.count(feed, known)
        for name, true in group.items():
            full = f"{feed}/{name}" if feed else name
            stop = len(made[full])
            if name in PRICES:
                made[full] = snapped(made[full].copy(), true, np.arange(start, stop))
            elif name in TIMETABLE:
                made[full] = true[:stop]
    return made


def mirrored(group: Mapping[str, Array], anchors: Rows, rows: Rows) -> dict[str, Array]:
    """Return the prices of ``rows`` turned upside down about the close of ``anchors``: rises become falls.

    Empty for a feed without prices.
    """
    base = next((name for name in ("close", *PRICES) if name in group), None)
    if base is None:
        return {}
    close = _filled(np.asarray(group[base], dtype=np.float64))
    multiply = bool((close > 0).all())
    axis = close[anchors]
    turned: dict[str, Array] = {}
    for name in PRICES:
        if name in group:
            source = group[_SWAP[name] if _SWAP[name] in group else name]
            price = np.asarray(source, dtype=np.float64)[rows]
            turned[name] = axis * axis / price if multiply else 2 * axis - price
    _enclose(turned)
    return turned


def _drawn_bars(size: int, count: int, rng: np.random.Generator, block: int = 10) -> Rows:
    if size < 2 or count < 1:
        return np.zeros(max(count, 0), dtype=np.int64)
    starts = rng.integers(1, size, -(-count // block))
    bars = (starts[:, None] + np.arange(block)).ravel()[:count]
    return np.asarray(1 + (bars - 1) % (size - 1), dtype=np.int64)


def _continue(group: Mapping[str, Array], start: int, stop: int, bars: Rows, *, mirror: bool) -> dict[str, Array]:
    grown = {name: values[:stop].copy() for name, values in group.items()}
    anchor = "close" if "close" in group else next((name for name in PRICES if name in group), None)
    for name, values in group.items():
        if name != TIME and name not in PRICES:
            grown[name][start:stop] = values[bars[::-1] if mirror else bars]
    if anchor is None:
        return grown
    close = _filled(np.asarray(group[anchor], dtype=np.float64))
    multiply = bool((close > 0).all())
    first = close[max(start - 1, 0)]  # a feed that has not begun by then continues from its own first price
    last = np.concatenate([close[:1], close[:-1]])[bars]
    step = _move(close[bars], last, multiply, mirror)
    path = first * np.cumprod(step) if multiply else first + np.cumsum(step)
    before = np.concatenate([[first], path[:-1]])[: len(path)]
    prices = {}
    for name in PRICES:
        if name in group:
            taken = group[_SWAP[name] if mirror and _SWAP[name] in group else name]
            move = _move(np.asarray(taken, dtype=np.float64)[bars], last, multiply, mirror)
            prices[name] = before * move if multiply else before + move
    _enclose(prices)
    for name, values in prices.items():
        grown[name][start:stop] = np.rint(values) if grown[name].dtype.kind in "iu" else values
    return grown


def _enclose(prices: dict[str, Array]) -> None:
    """Undo rounding in the last digit: no open or close may lie outside the bar's range."""
    inside = list(prices.values())
    if "high" in prices:
        prices["high"] = np.maximum.reduce(inside)
    if "low" in prices:
        prices["low"] = np.minimum.reduce(inside)


def _move(value: Array, last: Array, multiply: bool, mirror: bool) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        move: Array = value / last if multiply else value - last
        if mirror:
            move = 1.0 / move if multiply else -move
    return move


def _filled(close: Array) -> Array:
    """Return prices with gaps filled by the last known one (the first known at the start)."""
    known = np.flatnonzero(np.isfinite(close))
    if not known.size:
        return np.ones_like(close)
    place = np.searchsorted(known, np.arange(len(close)), side="right") - 1
    filled: Array = close[known[np.maximum(place, 0)]]
    return filled


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
    """Return a screen whose pieces end at the decisions that ``visits`` (updated here) has seen least.

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
    """Return the pieces whose last rows were decided differently, those that agreed until then first.

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
    """Turn the rows marked ``ahead`` upside down; columns without prices take values from anywhere."""
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
