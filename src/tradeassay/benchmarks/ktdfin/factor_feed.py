"""The nine factors of every day of an episode, each day at the cost of one new bar."""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Field, Floats, Ints, MarketView
from tradeassay.factors import FactorStream

YEAR = 253
"""Bars that the factors look back at: 252 closes and the one before."""
_FIELDS: tuple[Field, ...] = ("open", "high", "close", "volume", "amount")


class FactorFeed:
    """Follows an episode's views, one session at a time.

    Days must come in order; a day that was left out, or a new listing, starts the feed afresh from the view's own
    history. Values are those of :func:`tradeassay.factors.last_row_of` up to rounding (a split rescales what was
    fed), and depend on nothing but the sequence of views.
    """

    def __init__(self) -> None:
        self._symbols: tuple[str, ...] = ()
        self._last: np.datetime64 | None = None
        self._stream = FactorStream(0)
        self._values: Floats = np.empty((9, 0))

    def values(self, view: MarketView) -> Floats:
        """Return the factors known now, shape (9, columns of the view)."""
        days = view.sessions(2)
        last = days[-1] if days.size else None
        symbols = view.symbols
        if len(symbols) == len(self._symbols) and last is not None and last == self._last:
            return self._values
        follows = self._last is not None and days.size == 2 and days[0] == self._last
        if follows and len(symbols) == len(self._symbols):
            self._advance(view)
        else:
            self._restart(view)
        self._symbols, self._last = symbols, last
        self._values = self._stream.values() if last is not None else np.full((9, len(symbols)), np.nan)
        return self._values

    def _restart(self, view: MarketView) -> None:
        self._stream = FactorStream(len(view.symbols))
        self._stream.prime(np.stack([view.bars(field, YEAR) for field in _FIELDS], axis=1))

    def _advance(self, view: MarketView) -> None:
        bars = np.stack([view.bars(field, 2) for field in _FIELDS], axis=1)
        self._follow_splits(view, bars[:, 2])
        self._stream.feed(bars[1])

    def _follow_splits(self, view: MarketView, closes: Floats) -> None:
        """Bring the feed into today's share units.

        A view shows all history in the units of its own day. Where its previous close is not the one that was
        fed, the name has split since. A name that comes back from a suspension is looked up further back.
        """
        before = self._stream.last_close
        with np.errstate(all="ignore"):
            ratio = closes[0] / before
        back = np.flatnonzero(np.isnan(before) & ~np.isnan(closes[1]))
        if back.size:
            ratio[back] = _known(view, back) / self._stream.known_close[back]
        split = np.flatnonzero(np.isfinite(ratio) & (np.abs(ratio - 1.0) > 1e-12))
        if split.size:
            self._stream.rescale(split, ratio[split])


def _known(view: MarketView, columns: Ints) -> Floats:
    """Return the last close before the last session, in today's units; NaN where the last year has none."""
    closes = view.bars("close", YEAR)[:-1, columns]
    known = ~np.isnan(closes)
    last = closes.shape[0] - 1 - np.argmax(known[::-1], axis=0)
    found: Floats = np.where(known.any(axis=0), closes[last, np.arange(columns.size)], np.nan)
    return found
