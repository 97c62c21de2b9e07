"""Cumulative adjustment factors that look backwards only.

``F[s]`` is the product of everything that happened up to session ``s``, so a price of session ``s`` seen from
session ``now`` is ``price[s] * F[s] / F[now]``: nothing after ``now`` enters, and the factor is exactly 1 where
nothing happened in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tradeassay.core.view import CorporateAction, Days, Floats, Ints
from tradeassay.data.panel import Panel

NEVER = -1
"""The ex-row of an action whose ex-date lies before the first session: its effect is in every price."""


@dataclass(frozen=True, slots=True)
class Factors:
    """``split`` and ``total`` of shape (sessions, columns); None when nothing of the kind ever happens.

    ``split`` counts shares, ``total`` adds dividends reinvested at the last close before the ex-date.
    """

    split: Floats | None
    total: Floats | None


def ex_rows(actions: Sequence[CorporateAction], sessions: Days) -> Ints:
    """Return the first row on or after each action's ex-date; :data:`NEVER` for one before the first session."""
    days = np.array([action.ex_date for action in actions], dtype="datetime64[D]")
    rows = np.searchsorted(sessions, days, side="left").astype(np.int64)
    if sessions.size:
        rows[days < sessions[0]] = NEVER
    return rows


def factors(panel: Panel) -> Factors:
    """Return cumulative factors, without what the vendor has applied. A dividend on a split's ex-date is per
    share held *before* it; one that is not smaller than the last close leaves the factor at 1.
    """
    live = panel.facts.live_actions
    rows = ex_rows(panel.actions, panel.sessions)
    shape = panel.bars["close"].shape
    column = {symbol: index for index, symbol in enumerate(panel.symbols)}
    by_column: dict[int, list[tuple[int, int, CorporateAction]]] = {}
    for row, action in zip(rows.tolist(), panel.actions, strict=True):
        if action.kind in live and 0 <= row < shape[0]:
            order = 0 if action.kind == "dividend" else 1
            by_column.setdefault(column[action.symbol], []).append((row, order, action))
    if not by_column:
        return Factors(None, None)
    kinds = {action.kind for entries in by_column.values() for _, _, action in entries}
    split = np.ones(shape) if "split" in kinds else None
    total = np.ones(shape)
    for index, entries in by_column.items():
        entries.sort(key=lambda entry: (entry[0], entry[1], entry[2].value))
        _fill_column(entries, panel.bars["close"][:, index], index, split, total)
    return Factors(split, total)


def _fill_column(
    entries: list[tuple[int, int, CorporateAction]], close: Floats, index: int, split: Floats | None, total: Floats
) -> None:
    quoted = np.flatnonzero(np.isfinite(close))
    shares, value = 1.0, 1.0
    for row, _, action in entries:
        if action.kind == "split":
            shares *= action.value
            value *= action.value
        else:
            before = int(np.searchsorted(quoted, row)) - 1
            if before >= 0:
                last = int(quoted[before])
                price = float(close[last]) * (float(total[last, index]) / value)
                if price > action.value:
                    value *= price / (price - action.value)
        if split is not None:
            split[row:, index] = shares
        total[row:, index] = value


def previous_close(close: Floats, total: Floats | None) -> Floats:
    """Return the last close before each session in that session's terms (splits and dividends taken out)."""
    rows = np.arange(close.shape[0])[:, None]
    last = np.maximum.accumulate(np.where(np.isfinite(close), rows, -1), axis=0)
    result = np.full_like(close, np.nan)
    if close.shape[0] < 2:
        return result
    source = np.maximum(last[:-1], 0)
    prices = np.take_along_axis(close, source, axis=0)
    if total is not None:
        prices = prices * (np.take_along_axis(total, source, axis=0) / total[1:])
    result[1:] = np.where(last[:-1] >= 0, prices, np.nan)
    return result
