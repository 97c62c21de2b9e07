"""What matters more, the architecture or the model? The variance of returns, split.

Daily log returns of every (architecture, model, asset) cell are averaged; the cells' means are split into main
effects and the rest by sums of squares of a balanced design. Missing cells would make it unbalanced: only the
largest complete block of architectures and models is used, and the page says which. Intervals come from resampling
days jointly over all cells, so that they show how much of the split is noise.

Most of what that split calls interaction is the noise of days. So a nested model is given with it: what every
asset did on a day for everybody is taken out, and the rest is a sum of an architecture's effect, a model's within
its architecture, a pair's on one asset, and days. Its components are estimated from mean squares (balanced,
random effects) and may be zero. ``ranges`` is the paper's own question: how far the total return moves when only
the architecture is exchanged, and when only the model is."""

from __future__ import annotations

from itertools import product

import msgspec
import numpy as np

from tradeassay.arena.season import Season
from tradeassay.arena.standings.series import EntrySeries, Lines
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.intervals import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.reliability import axis_shares

PARTS = ("architecture", "model", "asset", "interaction")
NESTED = ("architecture", "model_within", "asset_within", "days")
RANGES = ("architecture", "model")


class VarianceSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of variance that add up to 1, each with an interval; what they were computed from.

    ``nested`` are the shares of the nested model's components in the variance of a pair's mean return on one asset
    over the sessions at hand; ``ranges`` the mean distance from best to worst total return. ``sessions`` counts
    those of each asset that all cells share; days are aligned by date."""

    shares: dict[str, Measure]
    architectures: tuple[str, ...]
    models: tuple[str, ...]
    assets: tuple[str, ...]
    sessions: dict[str, int] = {}
    left_out: tuple[str, ...] = ()
    nested: dict[str, Measure] = {}
    ranges: dict[str, Measure] = {}


def split_variance(season: Season, lines: Lines, bootstrap: BootstrapConfig | None = None) -> VarianceSplit:
    """Return the split; not scored with fewer than two architectures or models that met on the same assets."""
    bootstrap = bootstrap or BootstrapConfig(draws=500)
    cells: Cells = {}
    for (id, asset), line in lines.items():
        entry = season.entry(id)
        if entry.model:
            cells[(entry.architecture, entry.model, asset), id] = line
    architectures, models, assets = _block(cells)
    used = {id for (a, m, _), id in cells if a in architectures and m in models}
    none = not_scored("needs two architectures that were each played with the same two models")
    found = VarianceSplit(
        shares=dict.fromkeys(PARTS, none),
        architectures=architectures,
        models=models,
        assets=assets,
        nested=dict.fromkeys(NESTED, none),
        ranges=dict.fromkeys(RANGES, none),
    )
    if len(architectures) < 2 or len(models) < 2:
        return found
    cube, sessions = _cube(cells, architectures, models, assets)
    n = cube.shape[-1]
    value = axis_shares(cube.mean(axis=-1)[None])[0]
    rows = np.empty((0, n), dtype=np.int64)  # nothing is drawn where it would say nothing
    if n >= bootstrap.least and np.isfinite(value).all():
        flat = cube.reshape(-1, n)
        block = choose_block(flat.mean(axis=0), bootstrap)
        rows = np.concatenate(list(resamples(n, bootstrap.draws, block, content_seed(bootstrap, flat))))
    drawn = [cube[..., row] for row in rows]
    few = drawn[:300]  # the nested model takes longer
    parts = list(axis_shares(np.stack([one.mean(axis=-1) for one in drawn]))) if drawn else []
    return msgspec.structs.replace(
        found,
        shares=_measured(PARTS, value, parts, bootstrap, n),
        sessions=sessions,
        left_out=tuple(sorted({id for _, id in cells} - used)),
        nested=_measured(NESTED, _nested(cube), [_nested(one) for one in few], bootstrap, n),
        ranges=_measured(RANGES, _ranges(cube), [_ranges(one) for one in few], bootstrap, n),
    )


Cells = dict[tuple[tuple[str, str, str], str], EntrySeries]
"""Lines by (architecture, model, asset) and entry."""


def _block(cells: Cells) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the largest set of architectures, models and assets that met in every combination.

    Models are dropped one by one, the one that met the fewest architectures first."""
    there = {key for key, _ in cells}
    assets = tuple(sorted({key[2] for key in there}))
    models = sorted({key[1] for key in there})
    best: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    while models:
        every = tuple(
            a for a in sorted({key[0] for key in there}) if all((a, m, s) in there for m in models for s in assets)
        )
        if min(len(every), len(models)) >= 2 and len(every) * len(models) > len(best[0]) * len(best[1]):
            best = (every, tuple(models))
        fewest = min(models, key=lambda m: (sum(key[1] == m for key in there), m))
        models.remove(fewest)
    return (*best, assets)


def _cube(
    cells: Cells, architectures: tuple[str, ...], models: tuple[str, ...], assets: tuple[str, ...]
) -> tuple[Floats, dict[str, int]]:
    """Return mean log returns by cell and day, shape (architectures, models, assets, days), and how many sessions
    of each asset are in them.

    Days are those on which all cells of some asset were played; an asset that was closed then earned nothing."""
    grouped: dict[tuple[str, str, str], list[EntrySeries]] = {}
    for (key, _), line in cells.items():
        grouped.setdefault(key, []).append(line)
    common: dict[str, set[str]] = {}
    for a, m, s in product(architectures, models, assets):
        for line in grouped[a, m, s]:
            common[s] = common.get(s, set(line.sessions)) & set(line.sessions)
    place = {day: number for number, day in enumerate(sorted(set().union(*common.values())))}
    cube = np.zeros((len(architectures), len(models), len(assets), len(place)))
    for (i, a), (j, m), (k, s) in product(enumerate(architectures), enumerate(models), enumerate(assets)):
        for line in grouped[a, m, s]:
            kept = [day in common[s] for day in line.sessions]
            at = [place[day] for day in line.sessions if day in common[s]]
            logs = np.log1p(np.maximum(line.earned[kept], -0.999999))
            cube[i, j, k, at] += logs / len(grouped[a, m, s])
    return cube, {asset: len(days) for asset, days in sorted(common.items())}


def _nested(cube: Floats) -> Floats:
    """Return the shares of the nested components, shape (4,), from returns of shape (A, M, S, n).

    NaN where nothing varies, or where one asset leaves nothing to tell a pair from its asset by."""
    rest = cube - cube.mean(axis=(0, 1), keepdims=True)  # what the asset did that day is nobody's merit
    architectures, models, assets, n = rest.shape
    cells = rest.mean(axis=-1)
    pairs = cells.mean(axis=2)
    houses = pairs.mean(axis=1)
    day = ((rest - cells[..., None]) ** 2).sum() / max(architectures * models * assets * (n - 1), 1)
    own = n * ((cells - pairs[..., None]) ** 2).sum() / max(architectures * models * (assets - 1), 1)
    model = n * assets * ((pairs - houses[:, None]) ** 2).sum() / max(architectures * (models - 1), 1)
    house = n * assets * models * ((houses - houses.mean()) ** 2).sum() / max(architectures - 1, 1)
    within = max(own - day, 0.0) / n if assets > 1 else 0.0
    below = own if assets > 1 else day
    by_model = max(model - below, 0.0) / (n * assets)
    by_house = max(house - model, 0.0) / (n * assets * models)
    parts = np.array([by_house, by_model, within, day / n])
    total = parts.sum()
    return np.asarray(parts / total if total > 0 else np.full(4, np.nan))


def _ranges(cube: Floats) -> Floats:
    """Return the mean distance from best to worst total return over architectures, and over models, shape (2,)."""
    total = np.expm1(cube.sum(axis=-1))
    return np.array([np.ptp(total, axis=0).mean(), np.ptp(total, axis=1).mean()])


def _measured(
    names: tuple[str, ...], value: Floats, drawn: list[Floats], bootstrap: BootstrapConfig, n: int
) -> dict[str, Measure]:
    if not drawn:
        few = not_scored(f"fewer than {bootstrap.least} sessions: no interval")
        return {name: few if np.isfinite(v) else _SAME for name, v in zip(names, value, strict=True)}
    if not np.isfinite(value).all():
        return dict.fromkeys(names, _SAME)
    tail = (1 - bootstrap.level) / 2
    low, high = np.nanquantile(np.stack(drawn), (tail, 1 - tail), axis=0)
    return {
        # A component that is zero in every draw is too small to be seen, which no interval from 0 to 0 says.
        name: Measure(value=float(v), low=float(a), high=float(b), level=bootstrap.level, n=n) if b > 0 else _SMALL
        for name, v, a, b in zip(names, value, low, high, strict=True)
    }


_SAME = not_scored("returns do not differ")
_SMALL = not_scored("too small to be told from the noise of days")
