"""How many strategies were tried: every run of a folder is a try on the sessions it shares with the one judged.

The best of thirty is lucky by construction, and a run does not say how many others there were. The folder does.
Tries that are nearly the same (their returns beyond the baseline are correlated above :data:`SAME`) count once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tradeassay.core.errors import TradeassayError
from tradeassay.core.view import Floats

if TYPE_CHECKING:
    from pathlib import Path

    from tradeassay.runs import Run

SAME = 0.7
"""Correlation of active returns above which two tries are one."""
_LEAST = 20
MOST = 400
"""Episodes that are read and compared; further ones count without being compared."""


@dataclass(frozen=True, slots=True)
class Tried:
    """``found`` tries in other runs of the folder, which amount to ``effective`` different ones."""

    found: int = 0
    effective: int = 0


NO_TRIES = Tried()


def tried_elsewhere(run: Run, dataset: str, sessions: tuple[str, ...]) -> Tried:
    """Return how many other strategies the run's folder has tried on ``dataset`` in these sessions.

    Baselines do not count, and neither does what repeats an agent of the run itself. A folder that cannot be read
    as a finished run is no try.
    """
    if len(sessions) < _LEAST:
        return Tried()
    wanted = {day: place for place, day in enumerate(sessions)}
    mine = _active(run, dataset, wanted)
    others: list[Floats] = []
    found = 0
    for folder in sorted(_siblings(run.folder)):
        try:
            each = _active(_load(folder, run), dataset, wanted)
        except (TradeassayError, OSError):
            continue
        found += len(each)
        others += each[: max(0, MOST - len(others))]
    clusters: list[Floats] = list(mine)
    own = len(clusters)
    for series in others:
        if all(_correlation(series, known) < SAME for known in clusters):
            clusters.append(series)
    return Tried(found=found, effective=len(clusters) - own + max(0, found - len(others)))


def _siblings(folder: Path) -> list[Path]:
    return [
        one
        for one in folder.resolve().parent.iterdir()
        if one.is_dir() and one != folder.resolve() and (one / "scores.json").is_file()
    ]


def _load(folder: Path, like: Run) -> Run:
    from tradeassay.runs import Run

    return Run.load(folder, home=like.home)


def _active(run: Run, dataset: str, wanted: dict[str, int]) -> list[Floats]:
    """Return what each agent earned beyond its baseline on the wanted sessions, NaN where it did not play.

    Agents that share less than half of the sessions are other experiments.
    """
    rows = [row for row in run.scores.agents if row.dataset == dataset]
    bases = {row.cell: _placed(run, row.episodes[0], wanted) for row in rows if row.baseline}
    found = []
    for row in rows:
        if row.baseline:
            continue
        mine = _placed(run, row.episodes[0], wanted)
        if mine is not None:
            base = bases.get(row.cell)
            found.append(mine if base is None else mine - base)
    return found


def _placed(run: Run, key: str, wanted: dict[str, int]) -> Floats | None:
    series = run.series(key)
    if series.failure is not None or not (series.nav > 0).all():
        return None
    places = [wanted.get(day) for day in series.sessions]
    if sum(place is not None for place in places) * 2 < len(wanted):
        return None
    moves = np.diff(np.log(series.nav))
    found = np.full(len(wanted), np.nan)
    for place, move in zip(places, moves.tolist(), strict=True):
        if place is not None:
            found[place] = move
    return found


def _correlation(one: Floats, other: Floats) -> float:
    both = np.isfinite(one) & np.isfinite(other)
    if both.sum() < _LEAST:
        return 0.0
    a, b = one[both] - one[both].mean(), other[both] - other[both].mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else 1.0
