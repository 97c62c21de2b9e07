"""What does not change from day to day: names, boards, sectors and price limits, one entry per column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.account import venues
from tradeassay.benchmarks.ktdfin.words import Stock
from tradeassay.core.view import Floats, Ints, MarketView


@dataclass(frozen=True, slots=True)
class Roster:
    """The columns of a view.

    ``bands`` are the official daily limits, ``limits`` the changes at which a name stops trading (a buffer below);
    both are infinite where there is no limit.
    """

    symbols: tuple[str, ...]
    stocks: tuple[Stock, ...]
    boards: tuple[str, ...]
    sectors: tuple[str, ...]
    sector_of: Ints
    bands: Floats
    limits: Floats


def make_roster(view: MarketView, venue: str) -> Roster:
    """Return the roster of a view under a venue's price limits."""
    rules = venues.get(venue).price_limits
    instruments = [view.instrument(symbol) for symbol in view.symbols]
    sectors = sorted({item.sector for item in instruments if item.sector})
    number = {sector: k for k, sector in enumerate(sectors)}
    limits = [None if rules is None else rules.threshold(item.board) for item in instruments]
    buffer = 0.0 if rules is None else rules.buffer
    return Roster(
        symbols=view.symbols,
        stocks=tuple(Stock(item.symbol) for item in instruments),
        boards=tuple(item.board.value for item in instruments),
        sectors=tuple(sectors),
        sector_of=np.array([number.get(item.sector or "", -1) for item in instruments], dtype=np.int64),
        bands=np.array([np.inf if limit is None else limit + buffer for limit in limits]),
        limits=np.array([np.inf if limit is None else limit for limit in limits]),
    )
