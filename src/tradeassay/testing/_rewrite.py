"""Another future: the same panel up to a moment, and something else after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.view import FIELDS
from tradeassay.data import Panel


def rewrite_after(
    panel: Panel, row: int, rng: np.random.Generator, phase: Literal["pre_open", "open", "close"] = "pre_open"
) -> Panel:
    """Return ``panel`` with everything changed that cannot be known in ``phase`` of session ``row``.

    Prices and volumes move, suspensions are drawn anew, delistings and index changes do not happen, and
    unannounced corporate actions, unpublished news and unknown figures are gone.
    """
    clock = int(panel.close_time[row] if phase == "close" else panel.open_time[row])
    if phase == "pre_open":
        clock -= 1
    bars = {field: panel.bars[field].copy() for field in FIELDS}
    suspended = panel.suspended.copy()
    start = row + 1 if phase == "close" else row
    shape = bars["close"][start:].shape
    factor = np.exp(rng.normal(0.0, 0.3, shape))
    known_opens = bars["open"][row].copy(), suspended[row].copy()
    for field in FIELDS:
        bars[field][start:] *= factor if field != "volume" else rng.uniform(0.1, 3.0, shape)
    halted = rng.random(shape) < 0.2
    for field in FIELDS:
        bars[field][start:][halted] = np.nan
    suspended[start:] = np.isnan(bars["close"][start:])
    if phase == "open":
        bars["open"][row], suspended[row] = known_opens
    today = str(panel.sessions[row])
    # A day of the past, and today's own membership and listing, were known.
    return replace(
        panel,
        bars=bars,
        suspended=suspended,
        listings=tuple(
            entry
            if entry.delisted is None or entry.delisted < today
            else msgspec.structs.replace(entry, delisted=None)
            for entry in panel.listings
        ),
        actions=tuple(action for action in panel.actions if action.known_at <= clock),
        memberships=tuple(
            entry if entry.end is None or entry.end < today else msgspec.structs.replace(entry, end=None)
            for entry in panel.memberships
            if entry.start <= today
        ),
        indices={
            name: np.concatenate((levels[:start], levels[start:] * np.exp(rng.normal(0.0, 0.3, shape[0]))))
            for name, levels in panel.indices.items()
        },
        fundamentals=tuple(figure for figure in panel.fundamentals if figure.known_at <= clock),
        news=tuple(item for item in panel.news if item.published_at <= clock),
        minutes=None,
    )
