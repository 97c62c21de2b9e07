"""Make alternative data with the same past: shorter tables, other futures, false next bars, and
changes in place.

A *false bar* replaces the true next bar behind a row. A change *in place* moves the few rows after
a cut against the true continuation. After them the true path continues. Length, dates, row numbers
and all rows far from a cut stay the same, so code cannot use them to detect a test. All prices are
on the price grid of the true series, and bars open near the last close, so code cannot distinguish
false rows from true rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay_programs.code.lookahead.trace import Array, Columns, Flags
from tradeassay_programs.sandbox.strategy import by_table

TIME: Final = "time"
PRICES: Final = ("open", "high", "low", "close")
TIMETABLE: Final = ("session_last",)
"""Columns that are known in advance, so they stay true in an alternative future."""
_NOT_DRAWN: Final = frozenset((*PRICES, TIME, *TIMETABLE))
"""Columns whose values are not drawn from other rows."""
_SWAP: Final = {"open": "open", "close": "close", "high": "low", "low": "high"}
_MOST_DECIMALS: Final = 6
_LENGTHS: Final = (1, 1, 1, 2, 8, 64)
_BLOCK: Final = 10
"""Number of consecutive bars that are drawn together."""
_SIZES: Final = (0.5, 4.0)
_FACTORS: Final = (1.5, 6.0)
_ALONG: Final = {"close": 0.25, "open": 0.1, "volume": 0.1, "wicks": 0.1}
"""Share of false bars that first move in the direction of the true bar, for each part of a bar.

The parts are drawn independently. If all parts turned together, their product would reveal the true
bar.
"""

_ENDS: Final = (("high", np.maximum), ("low", np.minimum))

Group = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Feeds:
    """The columns of a table, also grouped by feed.

    ``A/close`` is column ``close`` of feed ``A``.
    """

    columns: Columns
    groups: Mapping[str, Group]

    @classmethod
    def of(cls, columns: Columns) -> Feeds:
        """Return the feeds of columns.

        Raises UserError for no columns or columns of different lengths.
        """
        if not columns:
            raise UserError(
                "there are no columns to check", hint="give at least a column of prices"
            )
        if len({len(values) for values in columns.values()}) != 1:
            raise UserError(
                "the columns differ in length", hint="give all feeds rows for the same bars"
            )
        table = {name: np.asarray(values) for name, values in columns.items()}
        return cls(table, by_table(table))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def join(self, groups: Mapping[str, Group]) -> dict[str, Array]:
        """Return the columns of groups by feed, in the order of this table."""
        joined = {}
        for feed, group in groups.items():
            for name, values in group.items():
                joined[f"{feed}/{name}" if feed else name] = values
        return {name: joined[name] for name in self.columns}

    def head(self, rows: int) -> dict[str, Array]:
        """Return the first rows of every column."""
        return {name: values[:rows] for name, values in self.columns.items()}


def grid_of(prices: Array) -> int | None:
    """Return the number of decimals of prices, up to six, or None if they are on no such grid."""
    known = np.asarray(prices, dtype=np.float64)
    known = known[np.isfinite(known)]
    for decimals in range(_MOST_DECIMALS + 1):
        if known.size and bool((np.round(known, decimals) == known).all()):
            return decimals
    return None


def _snapped(new: Array, true: Array, rows: Ints) -> Array:
    """Return changed prices, rounded to the grid of the true prices if there is one."""
    if true.dtype.kind in "iu":
        return np.rint(new).astype(true.dtype)
    decimals = grid_of(true)
    if decimals is not None:
        least = 10.0**-decimals if bool((true > 0).all()) else -np.inf
        new[rows] = np.maximum(np.round(new[rows], decimals), least)
    return new


def _enclose(prices: dict[str, Array]) -> None:
    """Extend highs and lows so that they enclose all prices of their bars."""
    inside = [prices[name] for name in PRICES if name in prices]
    prices |= {name: most.reduce(inside) for name, most in _ENDS if name in prices}


def _prices_of(group: Group) -> dict[str, Floats]:
    return {name: np.asarray(group[name], dtype=np.float64) for name in PRICES if name in group}


def _base_of(group: Group) -> str | None:
    return next((name for name in ("close", *PRICES) if name in group), None)


def other_future(
    feeds: Feeds, known: int, length: int, rng: np.random.Generator, *, mirror: bool
) -> dict[str, Array]:
    """Return ``length`` rows: the first ``known`` rows are true, and the other rows follow another
    plausible path.

    The path repeats the moves of bars that are drawn in short blocks, the same for every feed. With
    ``mirror`` it has the true moves with the opposite sign. Times stay true.
    """
    size, count, rows = len(feeds), length - known, np.arange(known, length)
    bars = np.zeros(max(count, 0), dtype=np.int64)
    if size >= 2 and count >= 1:
        bars = _drawn_bars(size, count, rng)
        # On a short table the true bars may be drawn. A future equal to the true future shows
        # nothing.
        while size > 2 and np.array_equal(bars, rows):
            bars = _drawn_bars(size, count, rng)
    bars = rows if mirror else bars
    groups: dict[str, dict[str, Array]] = {}
    for feed, group in feeds.groups.items():
        made = {name: values[:length].copy() for name, values in group.items()}
        for name in group.keys() - _NOT_DRAWN:
            made[name][known:] = group[name][bars[::-1] if mirror else bars]
        for name, values in _continued(group, known, bars, mirror=mirror).items():
            made[name][known:] = np.rint(values) if made[name].dtype.kind in "iu" else values
            made[name] = _snapped(made[name], group[name], rows)
        groups[feed] = made
    return feeds.join(groups)


def _drawn_bars(size: int, count: int, rng: np.random.Generator) -> Ints:
    """Return the rows of ``count`` bars, in blocks of :data:`_BLOCK` bars that start at random
    rows.
    """
    starts = rng.integers(1, size, -(-count // _BLOCK))
    return 1 + ((starts[:, None] + np.arange(_BLOCK)).ravel()[:count] - 1) % (size - 1)


def _continued(group: Group, start: int, bars: Ints, *, mirror: bool) -> dict[str, Array]:
    """Return prices that continue from the last true close with the moves of ``bars``."""
    base = _base_of(group)
    if base is None:
        return {}
    close = np.asarray(group[base], dtype=np.float64)
    # Gaps get the last known price. Gaps at the start get the first known price.
    known = np.flatnonzero(np.isfinite(close))
    place = np.maximum(np.searchsorted(known, np.arange(len(close)), side="right") - 1, 0)
    close = close[known[place]] if known.size else np.ones_like(close)
    multiply, first = bool((close > 0).all()), close[start - 1]
    last = np.concatenate([close[:1], close[:-1]])[bars]

    def move(values: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            moved: Array = values / last if multiply else values - last
            if not mirror:
                return moved
            return 1.0 / moved if multiply else -moved

    step = move(close[bars])
    path = first * np.cumprod(step) if multiply else first + np.cumsum(step)
    before = np.concatenate([[first], path[:-1]])[: len(path)]
    prices: dict[str, Array] = {}
    for name in (name for name in PRICES if name in group):
        taken = group[_SWAP[name] if mirror and _SWAP[name] in group else name]
        moved = move(np.asarray(taken, dtype=np.float64)[bars])
        prices[name] = before * moved if multiply else before + moved
    _enclose(prices)
    return prices


class _Scale:
    """The scale on which prices are compared: logarithms if all closes are positive, otherwise the
    prices.

    ``known`` are the closes on this scale with gaps filled. ``usual`` is the standard deviation of
    their steps.
    """

    def __init__(self, prices: Array) -> None:
        close = np.asarray(prices, dtype=np.float64)
        self._logarithms = bool((close > 0).all())
        filled = np.nan_to_num(
            close, nan=float(np.nanmean(close)) if np.isfinite(close).any() else 0.0
        )
        self.known = self.of(filled)
        self.usual = float(np.std(np.diff(self.known))) or 1e-6

    def of(self, prices: Array) -> Floats:
        """Return prices on this scale."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(prices) if self._logarithms else prices

    def prices(self, scaled: Floats) -> Floats:
        """Return the prices of values on this scale."""
        return np.exp(scaled) if self._logarithms else scaled

    def moved(self, prices: Array, by: Floats) -> Floats:
        """Return prices moved by distances on this scale."""
        return prices * np.exp(by) if self._logarithms else prices + by


def _signs(true: Floats, rng: np.random.Generator) -> Floats:
    """Return the signs of moves. A move of zero gets a random sign."""
    return np.where(true == 0, rng.choice((-1.0, 1.0), true.size), np.sign(true))


def _other_volume(
    values: Array,
    cuts: Ints,
    rows: Ints,
    place: Ints,
    rng: np.random.Generator,
    sides: Floats | float,
) -> Array:
    """Return volumes that rise where the true volumes fell, and fall where they rose.

    With ``sides`` 1 they move with the true volumes. The size of a change is another bar's change,
    times 1.5 or 6.
    """
    numbers = np.asarray(values, dtype=np.float64)
    at_cut = np.maximum(np.abs(numbers[cuts]), 1.0)[place]
    ratio = np.maximum(np.abs(numbers[rows]), 1e-9) / at_cut
    others = np.log(np.maximum(np.abs(numbers[1:]), 1.0) / np.maximum(np.abs(numbers[:-1]), 1.0))
    factor = np.exp(np.abs(rng.choice(others, rows.size))) * rng.choice(_FACTORS, rows.size)
    other = np.minimum(at_cut * factor ** (np.where(ratio >= 1.0, 1.0, -1.0) * sides), 1e15)
    changed = numbers.copy()
    changed[rows] = np.rint(other) if bool((np.rint(numbers) == numbers).all()) else other
    return changed.astype(values.dtype) if values.dtype.kind in "iu" else changed


def _change_wicks(
    made: dict[str, Array],
    group: Group,
    rows: Ints,
    rng: np.random.Generator,
    scale: _Scale,
    sides: Floats,
) -> None:
    """Give bars the wicks of other bars, depending on ``sides``.

    The new wicks are short where the true wicks are long and long where they are short, or the
    reverse.
    """
    true = {name: scale.of(values) for name, values in _prices_of(group).items()}
    if not {"close", "high", "low"} <= true.keys():
        return
    body = [values for name, values in true.items() if name in ("open", "close")]
    upper = np.nan_to_num(true["high"] - np.maximum.reduce(body))
    lower = np.nan_to_num(np.minimum.reduce(body) - true["low"])
    order = np.argsort(upper + lower, kind="stable")
    long, half = np.argsort(order, kind="stable")[rows] * 2 >= order.size, order.size // 2
    taken = order[
        rng.integers(0, half, rows.size) + np.where(long == (sides > 0), order.size - half, 0)
    ]
    ends = [made[name][rows] for name in ("open", "close") if name in made]
    for (name, most), wick in zip(_ENDS, (upper, -lower), strict=True):
        tip = most.reduce(ends)
        made[name] = np.asarray(made[name], dtype=np.float64).copy()
        made[name][rows] = most(tip, scale.moved(tip, wick[taken]))


@dataclass(frozen=True, slots=True)
class FalseBars:
    """A false bar for every row, in place of the true next bar.

    The bars in ``first`` move against the true bar, or along with it. The bars in ``second`` move
    in the opposite direction. They are needed on the rows ``again``, so that every row is tested
    against the true bar. If a false bar always moved against the true bar, code could invert it and
    learn the true bar.
    """

    first: dict[str, Array]
    second: dict[str, Array]
    again: Ints


def false_next_bars(feeds: Feeds, rng: np.random.Generator, hints: Ints) -> FalseBars:
    """Return false bars for every row. Rows in ``hints`` are tried in both directions."""
    both = np.isin(np.arange(len(feeds) - 1), hints)
    sides = {}
    for feed in feeds.groups:
        for part, share in _ALONG.items():
            sides[(feed, part)] = np.where(
                rng.random(both.size) < np.where(both, 0.5, share), 1.0, -1.0
            )
    again = np.flatnonzero(both | np.any([side > 0 for side in sides.values()], axis=0))
    first = _next_bars(feeds, sides, rng)
    return FalseBars(
        first, _next_bars(feeds, {part: -side for part, side in sides.items()}, rng), again
    )


def _next_bars(
    feeds: Feeds, sides: Mapping[tuple[str, str], Floats], rng: np.random.Generator
) -> dict[str, Array]:
    """Return false bars, each part on its side.

    The sizes of their moves are independent of the true moves.
    """
    bars = len(feeds)
    cuts, every = np.arange(bars - 1), np.arange(bars)
    sizes = rng.choice(_SIZES, bars - 1)

    def drawn(true: Floats, side: Floats) -> Floats:
        return side * _signs(true, rng) * np.abs(true[rng.integers(0, true.size, true.size)])

    groups: dict[str, dict[str, Array]] = {}
    for feed, group in feeds.groups.items():
        behind = np.minimum(every + 1, bars - 1)
        made = {name: values[behind].copy() for name, values in group.items()}
        base = _base_of(group)
        if base is not None:
            scale, side = _Scale(group[base]), sides[feed, "close"]
            true = scale.known[1:] - scale.known[:-1]
            moves = drawn(true, side) + side * _signs(true, rng) * sizes * scale.usual
            for name, prices in _prices_of(group).items():
                old = scale.of(prices)
                gaps = old[1:] - scale.known[:-1]
                moved = gaps + moves - true if name != "open" else drawn(gaps, sides[feed, "open"])
                made[name] = scale.prices(np.append(scale.known[:-1] + moved, old[-1]))
            ahead = {name: values[behind] for name, values in group.items()}
            _change_wicks(made, ahead, every, rng, scale, np.append(sides[feed, "wicks"], 1.0))
            made |= {
                name: _snapped(made[name], group[name], every) for name in PRICES if name in group
            }
            _enclose(made)
        for name, values in group.items():
            if name == "volume":
                changed = _other_volume(values, cuts, cuts + 1, cuts, rng, sides[feed, "volume"])
                made[name] = np.append(changed[1:], changed[-1])
            elif name not in _NOT_DRAWN:
                made[name] = values[rng.integers(0, bars, bars)]
        groups[feed] = made
    return feeds.join(groups)


@dataclass(frozen=True, slots=True)
class InPlace:
    """A table with many changes, at least ``gap`` rows apart.

    ``cuts`` are the last true rows before the changes, and ``lengths`` the numbers of changed rows.
    """

    cuts: Ints
    lengths: Ints
    gap: int
    columns: dict[str, Array]

    def alone(self, feeds: Feeds, number: int) -> dict[str, Array]:
        """Return the true rows up to one cut, followed by its changed rows."""
        after = int(self.cuts[number]) + 1
        head = feeds.head(after + int(self.lengths[number]))
        columns = {name: values.copy() for name, values in head.items()}
        for name, values in columns.items():
            values[after:] = self.columns[name][after : len(values)]
        return columns


def choose_places(
    bars: int, wanted: Ints, visited: Flags, gap: int, rng: np.random.Generator
) -> Ints:
    """Return rows to cut after, at least ``gap`` apart.

    About half of them are ``wanted`` rows that were not visited yet. The other rows are anywhere.
    """
    last = bars - 2
    room = max(1, bars // (2 * gap))
    fresh = rng.permutation(wanted[(wanted <= last) & ~visited[np.minimum(wanted, bars - 1)]])
    anywhere = rng.integers(0, last + 1, room)
    taken: list[int] = []
    used = np.zeros(bars // gap + 2, dtype=bool)
    for row in (*fresh[:room].tolist(), *anywhere.tolist(), *fresh[room : 4 * room].tolist()):
        cell = row // gap
        if not used[max(cell - 1, 0) : cell + 2].any():
            used[cell] = True
            taken.append(row)
    return np.array(sorted(taken), dtype=np.int64)


def change_in_place(feeds: Feeds, cuts: Ints, gap: int, rng: np.random.Generator) -> InPlace:
    """Return the table with the rows after each cut moved against the true continuation.

    The moves are 0.5 or 4 standard deviations.
    """
    bars = len(feeds)
    lengths = np.minimum(rng.choice(_LENGTHS, cuts.size), np.maximum(gap // 8, 1))
    lengths = np.minimum(lengths, bars - 1 - cuts)
    # All changes have one size, because large moves could reveal small ones.
    sizes = np.full(cuts.size, rng.choice(_SIZES))
    pieces = [np.arange(cut + 1, cut + 1 + n) for cut, n in zip(cuts, lengths, strict=True)]
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *pieces]).astype(np.int64)
    place = np.repeat(np.arange(cuts.size), lengths)
    # Volumes and wicks turn independently of prices, because their product would reveal the true
    # rows.
    either = rng.choice((-1.0, 1.0), rows.size)
    groups: dict[str, dict[str, Array]] = {}
    for feed, group in feeds.groups.items():
        made, base = dict(group), _base_of(group)
        if base is not None:
            scale = _Scale(group[base])
            true = scale.known[cuts + lengths] - scale.known[cuts]
            away = -_signs(true, rng) * (2 * np.abs(true) + sizes * scale.usual * np.sqrt(lengths))
            moved = _moved_prices(group, (cuts, lengths, rows, place), away, scale)
            _change_wicks(moved, group, rows, rng, scale, either[::-1])
            made |= {name: _snapped(values, group[name], rows) for name, values in moved.items()}
        for name, values in group.items():
            if name == "volume":
                made[name] = _other_volume(values, cuts, rows, place, rng, either)
            elif name not in _NOT_DRAWN:
                made[name] = values.copy()
                made[name][rows] = values[rng.integers(0, bars, rows.size)]
        groups[feed] = made
    return InPlace(cuts, lengths, gap, feeds.join(groups))


def _moved_prices(
    group: Group, moved: tuple[Ints, Ints, Ints, Ints], away: Floats, scale: _Scale
) -> dict[str, Array]:
    """Return prices with some rows moved away from the true prices, by the distance ``away`` of
    their cut.

    ``moved`` contains the cuts, their lengths, the moved rows, and the cut of each row. Bars open
    near the previous close, as true bars do.
    """
    cuts, lengths, rows, place = moved
    true = _prices_of(group)
    made = {name: old.copy() for name, old in true.items()}
    back = cuts + lengths + 1
    inside = back < len(scale.known)
    for name, old in true.items():
        made[name][rows] = scale.moved(old[rows], away[place])
    if "open" in true:
        opened, near = true["open"], true.get("close", true["open"])[cuts]
        after = opened[cuts + 1]
        made["open"][cuts + 1] = (
            near * near / after if bool((opened > 0).all()) else 2 * near - after
        )
        made["open"][back[inside]] = scale.moved(opened[back[inside]], away[inside])
    edges = np.unique(np.concatenate([cuts + 1, back[inside]]))
    widened = {name: values[edges] for name, values in made.items()}
    _enclose(widened)
    for name, values in widened.items():
        made[name][edges] = values
        made[name] = _snapped(made[name], group[name], np.append(rows, back[inside]))
    return made
