"""Reliability of a score: the chance of repeated success, and the sources of its variance.

pass^k (Yao et al. 2024, tau-bench) is the chance that k plays all pass, which matters to users who
rely on an agent. With c passes among n plays its unbiased estimate is C(c, k) / C(n, k). The plays
use different seeds, windows (or tasks) or wordings, with everything else equal.

The variance of a score over a balanced block of models, wordings, windows and seeds is split by the
mean squares of random effects. The components are one for each of these, and ``together`` (the
interaction of a model with a window or a wording). A component may be zero. A dimension without
variation has no share. Intervals apply to these models and wordings in other windows. They come
from leaving out each window in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from math import comb
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import significant, student_reach, wilson_interval

_Axis = Literal["seed", "window", "wording"]
_AXES: tuple[_Axis, ...] = ("seed", "window", "wording")
PARTS = ("model", "wording", "window", "together", "seed")
_MOST = 8
"""Largest k of a reported pass^k, and maximum number of models with a sentence.

The pass^k of all plays is reported as well.
"""
_UNITS = 5
"""Minimum number of windows for intervals of the shares of variance."""
_LEAST = 0.01
"""Smallest share used in odds. Smaller shares are raised to it."""


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """One play. ``score`` is None for a failed play, which did not pass.

    Windows of one ``unit`` overlap.
    """

    model: str
    wording: str
    window: str
    seed: int
    passed: bool
    score: float | None
    unit: str = ""


class PlayWords(msgspec.Struct, frozen=True, kw_only=True):
    """Names for a pass, the score, the model, a window and a wording."""

    passes: str = "passes"
    score: str = "scores"
    model: str = "model"
    window: str = "window"
    wording: str = "wording"


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """Reliability of several models.

    ``passes`` are by model and by repeated dimension: pass^1, pass^2 and so on up to pass^8, and
    last the chance that all ``counts`` plays passed. ``spread`` are shares of the variance that sum
    to one, with ``levels`` as the size of each dimension. ``left_out`` is the number of plays
    outside a complete block.
    """

    passes: dict[str, dict[_Axis, tuple[Measure, ...]]]
    counts: dict[str, dict[_Axis, int]]
    spread: dict[str, Measure]
    levels: dict[str, int]
    left_out: int
    called: PlayWords

    @property
    def sentences(self) -> tuple[str, ...]:
        sentences_by_model = []
        for model, rates_by_axis in list(self.passes.items())[:_MOST]:
            parts = [
                f"in all {self.counts[model][axis]} {self.axis_name(axis)}s at once: "
                f"{_share(rates[-1])}"
                for axis, rates in rates_by_axis.items()
            ]
            once = next(iter(rates_by_axis.values()))[0]
            sentences_by_model.append(
                f"{model} {self.called.passes} in {once.value:.1%} of plays; {', '.join(parts)}."
            )
        return (*sentences_by_model, *([self.of_spread] if self.of_spread else []))

    @property
    def of_spread(self) -> str:
        """Return one sentence on the sources of the variance, or an empty text."""
        known = {name: share for name, share in self.spread.items() if share.value is not None}
        shares = ", ".join(
            f"{self.axis_name(name)} {_share(share)}" for name, share in known.items()
        )
        return f"The spread of {self.called.score} by source: {shares}." if shares else ""

    def axis_name(self, axis: str) -> str:
        called = {
            "model": self.called.model,
            "window": self.called.window,
            "wording": self.called.wording,
        }
        return called.get(axis, axis)


def _share(share: Measure) -> str:
    return f"{share.value:.1%}" + (
        "" if share.low is None else f" ({share.low:.1%} to {share.high:.1%})"
    )


def pass_all(
    groups: Sequence[Sequence[bool]], k: int, *, units: int = 1, level: float = 0.95
) -> Measure:
    """Return pass^k: the chance that ``k`` plays of a group all pass, averaged over groups.

    ``units`` of the groups are independent of each other. Wilson's interval over them is valid for
    means of shares too. With one unit, plays are treated as independent, and the interval is that
    of a single pass to the power of k.
    """
    tried = [group for group in groups if len(group) >= k]
    if not tried or k < 1:
        return not_scored(f"no group has {k} plays")
    value = float(np.mean([comb(sum(group), k) / comb(len(group), k) for group in tried]))
    if units > 1:
        low, high = wilson_interval(value * units, units, level)
        return Measure(value=significant(value), low=low, high=high, level=level, n=units)
    n = max(map(len, tried))
    share = float(np.mean([sum(group) / len(group) for group in tried]))
    low, high = (significant(end**k) for end in wilson_interval(share * n, n, level))
    # The unbiased estimate may be below any power of a share. The interval must contain it.
    return Measure(
        value=significant(value), low=min(low, value), high=max(high, value), level=level, n=n
    )


def _squares(means: Floats) -> Floats:
    """Return the sums of squares of every axis except the first, and the total of all cells."""
    axes = tuple(range(1, means.ndim))
    grand = means.mean(axis=axes, keepdims=True)
    axis_sums = []
    for axis in axes:
        effect = (
            means.mean(axis=tuple(other for other in axes if other != axis), keepdims=True) - grand
        )
        axis_sums.append((effect**2).sum(axis=axes) * (means[0].size / effect[0].size))
    return np.stack([*axis_sums, ((means - grand) ** 2).sum(axis=axes)], axis=1)


def spread_shares(table: Floats) -> Floats:
    """Return the shares of :data:`PARTS` in the variance of scores.

    The scores have shape (models, wordings, windows, seeds). A share is NaN for a dimension without
    variation, or if it cannot be separated from seeds because every play ran once.
    """
    cells, seeds = table.mean(axis=-1), table.shape[-1]
    levels = np.array(cells.shape)
    squares = seeds * _squares(cells[None])[0]
    free = cells.size - 1 - int((levels - 1).sum())
    within = (
        ((table - cells[..., None]) ** 2).sum() / (cells.size * (seeds - 1))
        if seeds > 1
        else np.nan
    )
    rest = max(squares[-1] - squares[:-1].sum(), 0.0) / free if free else np.nan
    error = rest if free else within
    with np.errstate(divide="ignore", invalid="ignore"):
        own = (squares[:-1] / (levels - 1) - error) / (seeds * cells.size / levels)
    own = np.where(levels > 1, np.maximum(own, 0.0), np.nan)
    together = np.nan
    if free:
        together = rest if seeds == 1 else max((rest - within) / seeds, 0.0)
    parts = np.append(own, [together, within])
    total = np.nansum(parts)
    # With one play per cell and one varied dimension, no residual variance remains.
    known = total > 0.0 and np.ptp(table) > 0.0 and not np.isnan(error)
    return np.asarray(parts / total if known else np.full(parts.shape, np.nan))


def reliability(
    plays: Iterable[Play], *, called: PlayWords | None = None, level: float = 0.95
) -> Reliability | None:
    """Return the reliability of models, or None if no model was played more than once."""
    all_plays = list(plays)
    passes, counts = {}, {}
    for model in dict.fromkeys(one.model for one in all_plays):
        own = _passes([one for one in all_plays if one.model == model], level)
        if own:
            passes[model] = {axis: rates for axis, (_, rates) in own.items()}
            counts[model] = {axis: longest for axis, (longest, _) in own.items()}
    if not passes:
        return None
    table, used = _block(all_plays)
    levels = dict(zip(("model", "wording", "window", "seed"), table.shape, strict=True))
    scored = any(one.score is not None for one in all_plays)
    why = "no two models have the same wordings and windows" if scored else "no play has a score"
    spread: dict[str, Measure] = dict.fromkeys(PARTS, not_scored(why))
    if table.size:
        value, windows = spread_shares(table), table.shape[2]
        note, without = f"no interval: fewer than {_UNITS} windows vary", np.empty((0, len(PARTS)))
        if windows >= _UNITS:
            without = np.stack(
                [spread_shares(np.delete(table, one, axis=2)) for one in range(windows)]
            )
        once = "each was played once, so it cannot be separated from seeds"
        once = once if np.ptp(table) > 0.0 else "all scores are the same"
        for place, part in enumerate(PARTS):
            if np.isnan(value[place]):
                spread[part] = not_scored(
                    once if levels.get(part, 2) > 1 else f"there is one {part}"
                )
            else:
                share = significant(float(value[place]))
                known = len(without) > 0 and bool(np.isfinite(without[:, place]).all())
                low, high = _share_ends(share, without[:, place], level) if known else (None, None)
                said = None if known else note
                spread[part] = Measure(
                    value=share, low=low, high=high, level=level, n=windows, note=said
                )
    left, called = len(all_plays) - used, called or PlayWords()
    return Reliability(
        passes=passes, counts=counts, spread=spread, levels=levels, left_out=left, called=called
    )


def _share_ends(share: float, without: Floats, level: float) -> tuple[float, float]:
    """Return the interval of a share: the jackknife of its log odds.

    ``without`` are the values of the share without each unit. Resampling ten units as wholes covers
    the true value only in 75 to 90 % (``perf/reliability.py``).
    """
    from scipy.special import expit, logit

    n = without.size
    odds = logit(np.clip(without, _LEAST, 1.0 - _LEAST))
    error = math.sqrt((n - 1) / n * float(((odds - odds.mean()) ** 2).sum()))
    reach, centre = (
        student_reach(n - 1, level) * error,
        logit(min(max(share, _LEAST), 1.0 - _LEAST)),
    )
    low, high = float(expit(centre - reach)), float(expit(centre + reach))
    high = significant(max(high, share)) if high < 1.0 - _LEAST else 1.0
    return (significant(min(low, share)) if low > _LEAST else 0.0), high


def _passes(plays: Sequence[Play], level: float) -> dict[_Axis, tuple[int, tuple[Measure, ...]]]:
    """Return the number of repetitions and pass^1, pass^2 ... by repeated dimension."""
    results: dict[_Axis, tuple[int, tuple[Measure, ...]]] = {}
    units = len({one.unit or one.window for one in plays})
    for axis in _AXES:
        # A play given twice is one play. It passes if both pass.
        groups: dict[tuple[object, ...], dict[object, bool]] = {}
        for one in plays:
            group = groups.setdefault(
                tuple(getattr(one, other) for other in _AXES if other != axis), {}
            )
            group[getattr(one, axis)] = one.passed and group.get(getattr(one, axis), True)
        longest = max(map(len, groups.values()))
        if longest > 1:
            # Windows are then resampled, and every group has the same windows.
            apart = 1 if axis == "window" else units
            lengths = [*range(1, min(longest, _MOST + 1)), longest]
            rates = tuple(
                pass_all([[*one.values()] for one in groups.values()], k, units=apart, level=level)
                for k in lengths
            )
            results[axis] = (longest, rates)
    return results


def _block(plays: Sequence[Play]) -> tuple[Floats, int]:
    """Return the scores of a complete block, and their number.

    The shape is (models, wordings, windows, seeds). The level that lacks the largest share of its
    cells is left out first. Seeds beyond the smallest number per cell are left out too.
    """
    cells: dict[tuple[str, str, str], list[float]] = {}
    for one in plays:
        if one.score is not None and math.isfinite(one.score):
            cells.setdefault((one.model, one.wording, one.window), []).append(one.score)
    names = [list(dict.fromkeys(key[place] for key in cells)) for place in range(3)]
    while any(key not in cells for key in _keys(names)):
        lacking: dict[tuple[int, str], list[bool]] = {}
        for key in _keys(names):
            for place in (2, 1, 0):
                lacking.setdefault((place, key[place]), []).append(key not in cells)
        place, name = max(lacking, key=lambda one: (float(np.mean(lacking[one])), one[0]))
        names[place].remove(name)
    keys = _keys(names)
    if len(keys) < 2 and not (keys and len(cells[keys[0]]) > 1):
        return np.empty((0, 0, 0, 0)), 0
    seeds = min(len(cells[key]) for key in keys)
    table = np.array([cells[key][:seeds] for key in keys])
    return table.reshape(*map(len, names), seeds), table.size


def _keys(names: Sequence[Sequence[str]]) -> list[tuple[str, str, str]]:
    return [
        (model, wording, window)
        for model in names[0]
        for wording in names[1]
        for window in names[2]
    ]
