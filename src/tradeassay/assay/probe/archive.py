"""The price archive that an attacker may have: every stock, every session, with names and dates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.core.instruments import Instrument
from tradeassay.core.view import Bools, Days, Floats, Ints
from tradeassay.data import Snapshot

_BLOCK = 6_000_000
"""Numbers per block of windows: about 50 MB."""
_PRESENT = 0.8
"""The share of a window's returns that must be there."""


@dataclass(frozen=True, slots=True)
class Archive:
    """T sessions of N names: ``close`` adjusted for splits, ``raw`` and ``amount`` as traded."""

    instruments: tuple[Instrument, ...]
    sessions: Days
    close: Floats
    raw: Floats
    amount: Floats

    @classmethod
    def of(cls, snapshot: Snapshot) -> Archive:
        """Read everything a snapshot holds."""
        view = snapshot.at(len(snapshot.sessions) - 1, "close")
        return cls(
            instruments=view.instruments,
            sessions=snapshot.sessions,
            close=view.bars("close"),
            raw=view.bars("close", adjust="none"),
            amount=view.bars("amount"),
        )

    def change(self, sessions: int) -> Floats:
        """Return returns over some sessions, shape (T, N); NaN where a close is missing."""
        moved = np.full(self.close.shape, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            moved[sessions:] = self.close[sessions:] / self.close[:-sessions] - 1.0
        return moved

    def best_matches(self, queries: Floats) -> tuple[Floats, Ints]:
        """Return for each of P return series of length K how well it matches every name at best, and where.

        The score is the correlation with the window of that name which fits best, -inf where a name has none; the
        place is the row of the session in which that window ends. Both have shape (P, N).
        """
        names = self.close.shape[1]
        best = np.full((queries.shape[0], names), -np.inf)
        place = np.zeros((queries.shape[0], names), dtype=np.int64)
        step = max(1, _BLOCK // (max(queries.shape) * self.close.shape[0]))
        for first in range(0, names, step):
            columns = slice(first, first + step)
            found = self.correlations(queries, columns)
            rows = found.argmax(axis=1)
            place[:, columns] = rows
            best[:, columns] = np.take_along_axis(found, rows[:, None], axis=1)[:, 0]
        return best, place

    def correlations(self, queries: Floats, columns: slice = slice(None)) -> Floats:
        """Return every series' correlation with every window of some names, by the session in which it ends.

        Shape (P, T, names); -inf where the window is not there, or does not move. Missing returns count as zero.
        """
        length = queries.shape[1]
        close = self.close[:, columns]
        with np.errstate(invalid="ignore", divide="ignore"):
            returns = close[1:] / close[:-1] - 1.0
        found = np.full((queries.shape[0], *close.shape), -np.inf)
        if returns.shape[0] >= length:
            wanted = queries - queries.mean(axis=1, keepdims=True)
            size = np.linalg.norm(wanted, axis=1, keepdims=True)
            wanted = np.divide(wanted, size, out=np.zeros_like(wanted), where=size > 0)
            there = np.isfinite(returns)
            found[:, length:] = _correlate(np.where(there, returns, 0.0), there, wanted)
        return found


def _correlate(returns: Floats, there: Bools, wanted: Floats) -> Floats:
    """Return (P, windows, names): the cosine of centred windows with the wanted shapes, which have length one."""
    length = wanted.shape[1]
    windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(returns, length, axis=0))
    present = np.lib.stride_tricks.sliding_window_view(there, length, axis=0).sum(axis=-1)
    sums, squares = windows.sum(axis=-1), np.einsum("tnk,tnk->tn", windows, windows)
    spread = np.sqrt(np.maximum(squares - sums * sums / length, 0.0))
    dots = (wanted @ windows.reshape(-1, length).T).reshape(-1, *spread.shape)
    usable = (present >= _PRESENT * length) & (spread > 1e-12)
    scaled: Floats = np.where(usable, dots / np.where(usable, spread, 1.0), -np.inf)
    return scaled
