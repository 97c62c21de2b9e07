"""Samples out of a snapshot, through as-of views: a window's samples hold what was known when it ended."""

from __future__ import annotations

import numpy as np

from tradeassay.agents.factor_models.dataset import Samples
from tradeassay.agents.factor_models.features import Matrix, factor_history, features
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.view import Floats, Ints
from tradeassay.data import Snapshot
from tradeassay.factors import standardise
from tradeassay.play import Universe, most_traded

LEAST_NAMES = 5
"""A session on which fewer names have factors and an outcome gives no samples."""


def resolve_universe(snapshot: Snapshot, name: str | None) -> str:
    """Return ``name``, or the index IDX where the data has it, else ``all``."""
    if name is not None:
        return name
    try:
        snapshot.at(len(snapshot.sessions) - 1, "pre_open").members("IDX")
    except DataError:
        return "all"
    return "IDX"


def make_samples(
    snapshot: Snapshot, universe: str, rows: range, *, window: int, horizon: int, purge: int = 0
) -> Samples:
    """Return the samples of the sessions in ``rows`` whose outcome is known ``purge`` sessions before the last.

    Everything is read from the view at the close of the last of these sessions; who could be bought on a day is
    asked of the view before that day's open. Raises :class:`UserError` when no sample remains.
    """
    view = snapshot.at(rows[-1], "close")
    factors = factor_history(view)
    opens = view.bars("open", adjust="total")
    eligible = Universe(universe, most_traded(universe, snapshot.at(rows[0], "pre_open")))
    found: list[tuple[np.datetime64, Ints, Matrix, Floats]] = []
    for row in range(max(rows[0], window), rows[-1] - horizon - purge + 1):
        before = snapshot.at(row, "pre_open")
        columns = eligible.at(before).columns
        matrix, known = features(factors[:, row - window : row, columns])
        with np.errstate(all="ignore"):
            earned = opens[row + horizon, columns] / opens[row, columns] - 1.0
        kept = known & before.tradable()[columns] & np.isfinite(earned)
        if np.count_nonzero(kept) >= LEAST_NAMES:
            found.append((snapshot.sessions[row], columns[kept], matrix[kept], earned[kept]))
    if not found:
        raise UserError(
            f"no session from {snapshot.sessions[rows[0]]} to {snapshot.sessions[rows[-1]]} gives samples",
            mend="start a year after the data does, or take a longer window",
        )
    return Samples(
        days=np.concatenate([np.full(len(columns), day) for day, columns, _, _ in found]),
        columns=np.concatenate([columns for _, columns, _, _ in found]),
        features=np.concatenate([matrix for _, _, matrix, _ in found]),
        returns=np.concatenate([earned for _, _, _, earned in found]),
        labels=np.concatenate([standardise(earned[None])[0] for _, _, _, earned in found]),
    )
