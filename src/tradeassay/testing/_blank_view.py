"""A view from which something is missing: nothing trades, or nothing has a price."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tradeassay.core.instruments import CorporateAction, Fundamental, Instrument, NewsItem
from tradeassay.core.time import Instant
from tradeassay.core.view import Adjustment, Bools, Days, Field, Floats, Ints, MarketView


class BlankView:
    """A :class:`~tradeassay.core.view.MarketView` that hands on another one, with blanks."""

    def __init__(self, view: MarketView, *, trading: bool = True, prices: bool = True) -> None:
        self._view = view
        self._trading = trading
        self._prices = prices

    @property
    def clock(self) -> Instant:
        """The present of the view."""
        return self._view.clock

    @property
    def symbols(self) -> tuple[str, ...]:
        """Instruments listed so far."""
        return self._view.symbols

    def column(self, symbol: str) -> int:
        """Return a symbol's column."""
        return self._view.column(symbol)

    def instrument(self, symbol: str) -> Instrument:
        """Return the facts about one instrument."""
        return self._view.instrument(symbol)

    def sessions(self, lookback: int | None = None) -> Days:
        """Return the dates of the completed sessions."""
        return self._view.sessions(lookback)

    def bars(self, field: Field, lookback: int | None = None, *, adjust: Adjustment = "split") -> Floats:
        """Return completed bars, or as many without a value."""
        bars = self._view.bars(field, lookback, adjust=adjust)
        return bars if self._prices else _blank(bars)

    def opens(self) -> Floats | None:
        """Return today's opening prices, or as many without a value."""
        opens = self._view.opens()
        return opens if opens is None or self._prices else _blank(opens)

    def minutes(self, symbol: str, lookback: int) -> tuple[Ints, dict[Field, Floats]]:
        """Return the last completed minute bars of one symbol."""
        return self._view.minutes(symbol, lookback)

    def tradable(self) -> Bools:
        """Return which columns trade, or that none does."""
        tradable = self._view.tradable()
        if self._trading:
            return tradable
        nothing = np.zeros_like(tradable)
        nothing.setflags(write=False)
        return nothing

    def members(self, index: str) -> tuple[str, ...]:
        """Return an index's members."""
        return self._view.members(index)

    def index_levels(self, index: str, lookback: int | None = None) -> Floats:
        """Return the completed closing levels of an index."""
        return self._view.index_levels(index, lookback)

    def fundamentals(self, symbol: str) -> tuple[Fundamental, ...]:
        """Return the figures known by now."""
        return self._view.fundamentals(symbol)

    def news(
        self, since: Instant, *, symbols: Sequence[str] | None = None, limit: int | None = None
    ) -> tuple[NewsItem, ...]:
        """Return items published in (since, clock]."""
        return self._view.news(since, symbols=symbols, limit=limit)

    def actions(self, since: Instant) -> tuple[CorporateAction, ...]:
        """Return corporate actions that became known in (since, clock]."""
        return self._view.actions(since)


def _blank(values: Floats) -> Floats:
    blank = np.full_like(values, np.nan)
    blank.setflags(write=False)
    return blank
