"""Look for leaks over a whole series: many small changes in place in one run, or a false next bar at every bar.

*In place*: at many rows at once the few rows after a cut are moved against what really followed; then the true
path goes on. Length, dates, row numbers and everything far from a cut stay as they are, so code cannot tell where
it is by any of them. Code that looks back over fewer rows than lie between two cuts holds, just before each cut,
what it held in the scored run. Where it begins to hold something else a few rows before a cut, the cut is a
*hit*, and is tried again by itself on the true past: that decides. A cut that nothing happened before is *clear*.

*Next bars*: the code is run on every prefix with one false bar behind it. No bar is left out, so nothing is left
to chance; it costs as many runs as there are bars and is for short series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.leak.futures import PRICES, TIME, TIMETABLE, Feeds, Rows, snapped
from tradeassay.code.leak.trace import Array, Trace

_NEAR: Final = 8
_LENGTHS: Final = (1, 1, 1, 2, 8, 64)
_SIZES: Final = (0.5, 4.0)
_SAME: Final = 1e-6


@dataclass(frozen=True, slots=True)
class InPlace:
    """One run with many changes. ``cuts`` are the last true rows, ``lengths`` how many rows after each are moved,
    ``gap`` the least distance between two cuts.
    """

    cuts: Rows
    lengths: Rows
    gap: int
    columns: dict[str, Array]


@dataclass(frozen=True, slots=True)
class ScreenedCuts:
    """What a run in place showed, by cut: hits (the nearest to their cut first), and cuts before which nothing
    happened. The others were lost in what earlier changes had done. ``near`` counts the hits that begin within a
    few rows of their cut: those have to be tried.
    """

    hits: tuple[int, ...]
    near: int
    clear: Rows


def choose_places(bars: int, wanted: Rows, visited: NDArray[np.bool_], gap: int, rng: np.random.Generator) -> Rows:
    """Return rows to cut after, at least ``gap`` apart: half of them ``wanted`` ones not yet visited, where there
    are any, the rest anywhere.
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


def change_in_place(feeds: Feeds, cuts: Rows, gap: int, rng: np.random.Generator) -> InPlace:
    """Return the series with the rows after each cut moved against what followed, by half or four deviations."""
    bars = len(feeds)
    lengths = np.minimum(rng.choice(_LENGTHS, cuts.size), np.maximum(gap // 8, 1))
    lengths = np.minimum(lengths, bars - 1 - cuts)
    sizes = np.full(cuts.size, rng.choice(_SIZES))  # one for all: large moves must not give small ones away
    pieces = [np.arange(cut + 1, cut + 1 + n) for cut, n in zip(cuts, lengths, strict=True)]
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *pieces]).astype(np.int64)
    place = np.repeat(np.arange(cuts.size), lengths)
    groups: dict[str, dict[str, Array]] = {}
    for feed, group in feeds.groups.items():
        groups[feed] = dict(group)
        base = next((name for name in ("close", *PRICES) if name in group), None)
        if base is not None:
            factor, shift = _moves(np.asarray(group[base], dtype=np.float64), cuts, lengths, sizes, rng)
            for name in PRICES:
                if name in group:
                    old = np.asarray(group[name], dtype=np.float64)
                    new = old.copy()
                    new[rows] = old[rows] * factor[place] + shift[place]
                    groups[feed][name] = new
            _mend_bars(groups[feed], group, cuts, lengths, factor, shift)
            for name in PRICES:
                if name in group:
                    groups[feed][name] = snapped(
                        groups[feed][name], group[name], np.append(rows, _back(cuts, lengths, bars))
                    )
        for name, values in group.items():
            if name == "volume":
                groups[feed][name] = _other_volume(values, cuts, rows, place)
            elif name not in (*PRICES, TIME, *TIMETABLE):
                changed = values.copy()
                changed[rows] = values[rng.integers(0, bars, rows.size)]
                groups[feed][name] = changed
    return InPlace(cuts, lengths, gap, feeds.join(groups))


def _back(cuts: Rows, lengths: Rows, bars: int) -> Rows:
    """Return the rows on which the true path goes on."""
    rows = cuts + lengths + 1
    return rows[rows < bars]


def _mend_bars(
    made: dict[str, Array],
    true: Mapping[str, Array],
    cuts: Rows,
    lengths: Rows,
    factor: NDArray[np.float64],
    shift: NDArray[np.float64],
) -> None:
    """Let bars open near where the ones before closed, as they did: the first true one, and the first moved one,
    on the other side of that close than the true one opened.
    """
    if "open" in true:
        opened = np.asarray(true["open"], dtype=np.float64)
        near = np.asarray(true.get("close", true["open"]), dtype=np.float64)[cuts]
        turned = near * near / opened[cuts + 1] if bool((opened > 0).all()) else 2 * near - opened[cuts + 1]
        made["open"][cuts + 1] = turned
        back = cuts + lengths + 1
        inside = back < opened.size
        made["open"][back[inside]] = opened[back[inside]] * factor[inside] + shift[inside]
    both = np.unique(np.concatenate([cuts + 1, _back(cuts, lengths, len(made[next(iter(made))]))]))
    prices = [made[name][both] for name in PRICES if name in made]
    if "high" in made:
        made["high"][both] = np.maximum.reduce(prices)
    if "low" in made:
        made["low"][both] = np.minimum.reduce(prices)


def change_one(feeds: Feeds, whole: InPlace, number: int) -> dict[str, Array]:
    """Return the true series with one of the changes alone."""
    cut, length = int(whole.cuts[number]), int(whole.lengths[number])
    made = {}
    for name, values in feeds.head(len(feeds)).items():
        made[name] = values.copy()
        made[name][cut + 1 : cut + 2 + length] = whole.columns[name][cut + 1 : cut + 2 + length]
    return made


def screen(whole: InPlace, scored: Trace, other: Trace, bars: int) -> ScreenedCuts:
    """Compare what was held before each cut with the scored run."""
    differs = held_differently(scored, other, bars)
    starts = np.flatnonzero(differs[1:] & ~differs[:-1]) + 1
    ends = whole.cuts
    begins = np.concatenate([[0], (whole.cuts + whole.lengths + whole.gap // 2)[:-1]]).astype(np.int64)
    begins = np.minimum(begins, ends)
    counts = np.concatenate([[0], np.cumsum(differs)])
    clear = (counts[ends + 1] - counts[begins]) == 0
    hits: list[tuple[int, int]] = []
    for number in np.flatnonzero(~clear).tolist():
        low, high = np.searchsorted(starts, (int(begins[number]) + 1, int(ends[number]) + 1))
        if low < high and not differs[begins[number]]:
            hits.append((int(ends[number]) - int(starts[low]), number))
        elif ends[number] == 0 and differs[0]:
            hits.append((0, number))
    ordered = sorted(hits)
    near = sum(distance < _NEAR for distance, _ in ordered)
    return ScreenedCuts(tuple(number for _, number in ordered), near, whole.cuts[clear])


def held_differently(left: Trace, right: Trace, bars: int) -> NDArray[np.bool_]:
    """Return for every row whether two runs hold something else after it."""
    one, two = held(left, bars), held(right, bars)
    found = np.zeros(bars, dtype=bool)
    for name in one.keys() | two.keys():
        a, b = one.get(name), two.get(name)
        a, b = (np.zeros(bars) if x is None else x for x in (a, b))
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= _SAME * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
        found |= ~(near | (np.isnan(a) & np.isnan(b)))
    return found


def held(trace: Trace, bars: int) -> dict[str, NDArray[np.float64]]:
    """Return what is held after every row, by leg or by field: shares of the account where the trace states them,
    decisions themselves where they are given by row.
    """
    made: dict[str, NDArray[np.float64]] = {}
    if trace.share is not None and "leg" in trace.fields:
        legs = np.asarray(trace.fields["leg"], dtype=np.int64)
        for leg in np.unique(legs).tolist():
            mine = legs == leg
            made[f"leg {leg}"] = held_after(trace.rows[mine], trace.share[mine], bars)
        return made
    for name, values in trace.fields.items():
        if values.dtype.kind in "fiub":
            made[name] = held_after(trace.rows, values.astype(np.float64), bars)
        else:
            codes = np.array([_code(str(one)) for one in values.tolist()], dtype=np.float64)
            made[name] = held_after(trace.rows, codes, bars)
    return made


def _code(word: str) -> float:
    return float(sum((at + 1) * ord(letter) for at, letter in enumerate(word)))


def held_after(rows: Rows, values: NDArray[np.float64], bars: int) -> NDArray[np.float64]:
    """Return the last value at or before every row; 0 before the first."""
    last = np.zeros(bars, dtype=np.int64)
    inside = rows < bars
    last[rows[inside]] = np.flatnonzero(inside) + 1
    last = np.maximum.accumulate(last)
    out: NDArray[np.float64] = np.concatenate([[0.0], values])[last]
    return out


def _moves(
    close: NDArray[np.float64], cuts: Rows, lengths: Rows, sizes: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return factors and shifts that take prices to the other side of the close at the cut."""
    scale = _Scale.of(close)
    true = scale.known[cuts + lengths] - scale.known[cuts]
    away = -_signs(true, rng) * (2 * np.abs(true) + sizes * scale.usual * np.sqrt(lengths))
    still = np.zeros(cuts.size)
    return (np.exp(away), still) if scale.logarithms else (still + 1.0, away)


def _other_volume(
    values: Array, cuts: Rows, rows: Rows, place: Rows, sides: NDArray[np.float64] | None = None
) -> Array:
    """Return volumes that rise where they fell from the cut's, and the other way round, by at least a factor 3.

    ``sides`` says for each row whether they do so (-1) or go on the way they went (1).
    """
    numbers = np.asarray(values, dtype=np.float64)
    at_cut = np.maximum(np.abs(numbers[cuts]), 1.0)[place]
    ratio = np.maximum(np.abs(numbers[rows]), 1e-9) / at_cut
    rises = np.where(ratio >= 1.0, 1.0, -1.0) * (-1.0 if sides is None else sides)
    other = at_cut * np.maximum(np.maximum(ratio, 1.0 / ratio), 3.0) ** rises
    changed = numbers.copy()
    whole = bool((np.rint(numbers) == numbers).all())
    changed[rows] = np.rint(np.minimum(other, 1e15)) if whole else np.minimum(other, 1e15)
    return changed.astype(values.dtype) if values.dtype.kind in "iu" else changed


_ALONG: Final = 0.25
"""The share of other bars behind which a false bar first goes the way that the true one went."""


@dataclass(frozen=True, slots=True)
class FalseBars:
    """For every row the bar that is put behind it instead of the true next one.

    ``first`` moves against what followed, or along with it; ``second`` the other way on the rows ``again``, so
    that every row is tried against what followed. A false bar that always moved against the true one would give
    it away: code could turn it round.
    """

    first: dict[str, Array]
    second: dict[str, Array]
    again: Rows


def false_next_bars(feeds: Feeds, rng: np.random.Generator, suspects: Rows) -> FalseBars:
    """Return false bars for every row; behind ``suspects`` both ways are tried. Only for aligned feeds."""
    both = np.isin(np.arange(len(feeds) - 1), suspects)
    sides = np.where(rng.random(both.size) < np.where(both, 0.5, _ALONG), 1.0, -1.0)
    return FalseBars(
        _next_bars(feeds, sides, rng), _next_bars(feeds, -sides, rng), np.flatnonzero(both | (sides > 0))
    )


def _next_bars(feeds: Feeds, sides: NDArray[np.float64], rng: np.random.Generator) -> dict[str, Array]:
    """Return false bars on the given sides; how far they move says nothing about the true ones."""
    bars = len(feeds)
    cuts = np.arange(bars - 1)
    sizes = rng.choice(_SIZES, bars - 1)
    groups: dict[str, dict[str, Array]] = {}
    for feed, group in feeds.groups.items():
        made = {name: values[np.minimum(np.arange(bars) + 1, bars - 1)].copy() for name, values in group.items()}
        base = next((name for name in ("close", *PRICES) if name in group), None)
        if base is not None:
            scale = _Scale.of(np.asarray(group[base], dtype=np.float64))
            true = scale.known[1:] - scale.known[:-1]
            moves = _drawn_moves(true, sides, rng) + sides * _signs(true, rng) * sizes * scale.usual
            for name in PRICES:
                if name in group:
                    old = scale.taken(np.asarray(group[name], dtype=np.float64))
                    gaps = old[1:] - scale.known[:-1]
                    moved = gaps + moves - true if name != "open" else _drawn_moves(gaps, sides, rng)
                    new = scale.given(np.append(scale.known[:-1] + moved, old[-1]))
                    made[name] = snapped(new, group[name], np.arange(bars))
            prices = [made[name] for name in PRICES if name in group]
            if "high" in group:
                made["high"] = np.maximum.reduce(prices)
            if "low" in group:
                made["low"] = np.minimum.reduce(prices)
        for name, values in group.items():
            if name == "volume":
                behind = _other_volume(values, cuts, cuts + 1, cuts, sides)
                made[name] = np.append(behind[1:], behind[-1])
            elif name not in (*PRICES, TIME, *TIMETABLE):
                made[name] = values[rng.integers(0, bars, bars)]
        groups[feed] = made
    return feeds.join(groups)


def _drawn_moves(
    true: NDArray[np.float64], sides: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return moves on the given sides of the true ones, as large as others of the series."""
    return sides * _signs(true, rng) * np.abs(true[rng.integers(0, true.size, true.size)])


def _signs(true: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.where(true == 0, rng.choice((-1.0, 1.0), true.size), np.sign(true))


@dataclass(frozen=True, slots=True)
class _Scale:
    """Prices as they are compared: by their logarithms where all of them are positive, else as they are."""

    known: NDArray[np.float64]
    usual: float
    logarithms: bool

    @classmethod
    def of(cls, close: NDArray[np.float64]) -> _Scale:
        logarithms = bool((close > 0).all())
        if logarithms:
            known = np.log(close)
        else:
            known = np.nan_to_num(close, nan=float(np.nanmean(close)) if np.isfinite(close).any() else 0.0)
        return cls(known, float(np.std(np.diff(known))) or 1e-6, logarithms)

    def taken(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(prices) if self.logarithms else prices

    def given(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(values) if self.logarithms else values


def spread_cuts(bars: int, count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Return last true rows in the last hundredth, the last tenth and, evenly, before; varied by the rng."""
    edges = [*np.linspace(0.05, 0.9, max(count - 1, 1)), 0.99, 0.999] if count > 1 else [0.9, 0.999]
    chosen = list(pairwise(edges))[::-1][:count]
    return tuple(int(bars * rng.uniform(low, high)) for low, high in chosen if bars > 20)


def bound_of(bars: int, clear: int) -> int:
    """Return the number of bars such that a leak in as many, anywhere, would have been met with 95 % chance."""
    return bars if clear < 1 else min(bars, int(np.ceil(bars * (1.0 - 0.05 ** (1.0 / clear)))))


def preferred(scored: Trace, suspects: Sequence[int]) -> Rows:
    """Return the rows to cut at first: what something else points to, and where anything is decided."""
    return np.unique(np.concatenate([np.asarray(suspects, dtype=np.int64), scored.rows]).astype(np.int64))
