"""What matters more, the architecture or the model? The variance of returns, split.

Daily log returns of every (architecture, model, asset) cell are averaged; the cells' means are split into main
effects and the rest by sums of squares of a balanced design. Missing cells would make it unbalanced: only the
largest complete block of architectures and models is used, and the page says which. Intervals come from resampling
days jointly over all cells, so that they show how much of the split is noise.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from tradeassay.arena.season import Season
from tradeassay.arena.standings.series import EntrySeries
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples

PARTS = ("architecture", "model", "asset", "interaction")


class VarianceSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of variance that add up to 1, each with an interval; what they were computed from."""

    shares: dict[str, Measure]
    architectures: tuple[str, ...]
    models: tuple[str, ...]
    assets: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def split_variance(
    season: Season, lines: Mapping[tuple[str, str], EntrySeries], bootstrap: BootstrapConfig | None = None
) -> VarianceSplit:
    """Return the split; not scored with fewer than two architectures or models that met on the same assets."""
    bootstrap = bootstrap or BootstrapConfig(draws=500)
    cells = _cells(season, lines)
    architectures, models, assets = _block(cells)
    used = {entry for key, entry in cells if key in _keys(architectures, models, assets)}
    left = tuple(sorted({entry for _, entry in cells} - used))
    if len(architectures) < 2 or len(models) < 2:
        none = not_scored("needs two architectures that were each played with the same two models")
        return VarianceSplit(
            shares=dict.fromkeys(PARTS, none), architectures=architectures, models=models, assets=assets
        )
    cube = _cube(cells, architectures, models, assets)
    value = _shares(cube.mean(axis=-1)[None])[0]
    n = cube.shape[-1]
    if n < bootstrap.least or not np.isfinite(value).all():
        note = f"fewer than {bootstrap.least} common sessions: no interval"
        shares = {p: _plain(v, n, note) for p, v in zip(PARTS, value, strict=True)}
    else:
        flat = cube.reshape(-1, n)
        block = choose_block(flat.mean(axis=0), bootstrap)
        seed = content_seed(bootstrap, flat)
        rows = np.concatenate(list(resamples(n, bootstrap.draws, block, seed)))
        means = np.stack([cube[..., row].mean(axis=-1) for row in rows])
        drawn = _shares(means)
        tail = (1 - bootstrap.level) / 2
        low, high = np.nanquantile(drawn, (tail, 1 - tail), axis=0)
        shares = {
            part: Measure(value=float(v), low=float(a), high=float(b), level=bootstrap.level, n=n)
            for part, v, a, b in zip(PARTS, value, low, high, strict=True)
        }
    return VarianceSplit(shares=shares, architectures=architectures, models=models, assets=assets, left_out=left)


Key = tuple[str, str, str]
Cells = dict[tuple[Key, str], EntrySeries]


def _cells(season: Season, lines: Mapping[tuple[str, str], EntrySeries]) -> Cells:
    found: Cells = {}
    for (id, asset), line in lines.items():
        entry = season.entry(id)
        if entry.model:
            found[(entry.architecture, entry.model, asset), id] = line
    return found


def _keys(architectures: tuple[str, ...], models: tuple[str, ...], assets: tuple[str, ...]) -> set[Key]:
    return {(a, m, s) for a in architectures for m in models for s in assets}


def _block(cells: Cells) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the largest set of architectures, models and assets that met in every combination.

    Models are dropped one by one, the one that met the fewest architectures first.
    """
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
) -> Floats:
    """Return mean log returns by cell and common session number, shape (architectures, models, assets, n).

    Two entries in one cell are averaged. Assets with different calendars are aligned by session number from the
    end, because only the same days of one asset can be compared.
    """
    grouped: dict[Key, list[EntrySeries]] = {}
    for (key, _), line in cells.items():
        grouped.setdefault(key, []).append(line)
    wanted = _keys(architectures, models, assets)
    n = min(line.earned.size for key in wanted for line in grouped[key])
    cube = np.empty((len(architectures), len(models), len(assets), n))
    for i, a in enumerate(architectures):
        for j, m in enumerate(models):
            for k, s in enumerate(assets):
                logs = [np.log1p(np.maximum(line.earned[-n:], -0.999999)) for line in grouped[a, m, s]]
                cube[i, j, k] = np.mean(logs, axis=0)
    return cube


def _shares(means: Floats) -> Floats:
    """Return the shares of the sums of squares, shape (draws, 4), from cell means of shape (draws, A, M, S)."""
    grand = means.mean(axis=(1, 2, 3), keepdims=True)
    cells = means.shape[1] * means.shape[2] * means.shape[3]
    total = ((means - grand) ** 2).sum(axis=(1, 2, 3))
    effects = []
    for axes in ((2, 3), (1, 3), (1, 2)):
        effect = means.mean(axis=axes, keepdims=True) - grand
        effects.append((effect**2).sum(axis=(1, 2, 3)) * (cells / effect[0].size))
    parts = np.stack([*effects, total - sum(effects)], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total[:, None] > 0, parts / total[:, None], np.nan))


def _plain(value: float, n: int, note: str) -> Measure:
    return (
        Measure(value=float(value), n=n, note=note) if np.isfinite(value) else not_scored("returns do not differ")
    )
