"""One day's desk: what the tools look things up in. It reads an observation, and keeps what it has worked out."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from tradeassay.benchmarks.ktdfin.config import KtdfinConfig
from tradeassay.benchmarks.ktdfin.factor_feed import FactorFeed
from tradeassay.benchmarks.ktdfin.numbers import rounded
from tradeassay.benchmarks.ktdfin.roster import Roster
from tradeassay.benchmarks.ktdfin.words import Day, Stock
from tradeassay.core.agent import Observation
from tradeassay.core.view import FIELDS, Bools, Floats
from tradeassay.factors import FACTOR_NAMES

AT_LIMIT = 1e-9
"""A change this close to the threshold counts as reaching it, as at the exchange."""
HISTORY = 61
"""Closes kept at hand: enough for a return over sixty sessions."""


class Scales(NamedTuple):
    """What a hardened mask multiplies prices and volumes with, per column; None leaves them as they are."""

    prices: Floats | None = None
    volumes: Floats | None = None


UNSCALED = Scales()


class Desk:
    """The day as the tools see it. Everything is in true names and days; the gate hides what it must.

    Factors, returns and checks use the true series. Only *levels* of prices and volumes, which a hardened mask
    hides, are shown through ``scales``.
    """

    def __init__(
        self,
        observation: Observation,
        roster: Roster,
        config: KtdfinConfig,
        feed: FactorFeed,
        scales: Scales = UNSCALED,
    ) -> None:
        self.observation = observation
        self.roster = roster
        self.config = config
        self.scales = scales
        self._feed = feed
        self.view = observation.view
        self.account = observation.account
        self.rules = observation.rules

    def level(self, column: int) -> float:
        """Return what a price is multiplied with before it is shown."""
        prices = self.scales.prices
        return 1.0 if prices is None or np.isnan(prices[column]) else float(prices[column])

    def shares_shown(self, column: int, quantity: float) -> float:
        """Return a number of shares in the unit that is shown: what price levels gain, shares lose."""
        level = self.level(column)
        return quantity if level == 1.0 else round(quantity / level, 6)

    def field_levels(self, column: int) -> Floats:
        """Return what every field of a bar is multiplied with before it is shown, in the order of ``FIELDS``."""
        price = self.level(column)
        volumes = self.scales.volumes
        volume = 1.0 if volumes is None else float(volumes[column])
        return np.array([price, price, price, price, volume / price, volume])

    @cached_property
    def days(self) -> tuple[str, ...]:
        """The completed sessions within reach of a lookback, oldest first."""
        return tuple(np.datetime_as_string(self.view.sessions(self.config.longest_lookback), unit="D").tolist())

    @cached_property
    def as_of(self) -> Day | None:
        """The last completed session; None before the first."""
        return Day(self.days[-1]) if self.days else None

    @property
    def today(self) -> Day:
        """The session whose open fills the orders."""
        return Day(self.observation.session)

    @cached_property
    def factors(self) -> Floats:
        """The nine factors, shape (9, columns)."""
        return self._feed.values(self.view)

    @cached_property
    def closes(self) -> Floats:
        """The last closes, split-adjusted, shape (at most 61, columns)."""
        return self.view.bars("close", HISTORY)

    @cached_property
    def last_close(self) -> Floats:
        """The last close of every column in today's share unit, however old it is; NaN where there is none."""
        closes = self.closes
        if closes.shape[0] == 0:
            return np.full(closes.shape[1], np.nan)
        last: Floats = closes[-1].copy()
        for column in np.flatnonzero(np.isnan(last)).tolist():
            known = np.flatnonzero(~np.isnan(closes[:, column]))
            if known.size:
                last[column] = closes[known[-1], column]
        return last

    @cached_property
    def last_bars(self) -> dict[str, Floats]:
        """The last bar of every column by field; empty arrays before the first session."""
        rows = {field: self.view.bars(field, 1) for field in FIELDS}
        return {field: bars[-1] if bars.shape[0] else np.empty(0) for field, bars in rows.items()}

    def change(self, sessions: int) -> Floats:
        """Return the return over the last sessions; NaN where either close is missing."""
        closes = self.closes
        if closes.shape[0] <= sessions:
            return np.full(closes.shape[1], np.nan)
        with np.errstate(all="ignore"):
            result: Floats = closes[-1] / closes[-1 - sessions] - 1.0
        return result

    @cached_property
    def last_change(self) -> Floats:
        """The change of the last session."""
        return self.change(1)

    @cached_property
    def at_limit_up(self) -> Bools:
        """Which names closed at or beyond their buffered upper limit."""
        return np.asarray(self.last_change >= self.roster.limits - AT_LIMIT)

    @cached_property
    def at_limit_down(self) -> Bools:
        """Which names closed at or beyond their buffered lower limit."""
        return np.asarray(self.last_change <= AT_LIMIT - self.roster.limits)

    @cached_property
    def tradable(self) -> Bools:
        """Which names were not suspended in the last known state."""
        return self.view.tradable()

    @cached_property
    def members(self) -> frozenset[str]:
        """The symbols that may be bought."""
        return frozenset(self.observation.universe)

    def column(self, stock: Stock) -> int:
        """Return a stock's column; raises :class:`DataError` when it is unknown by now."""
        return self.view.column(stock.symbol)

    def in_reach(self, stock: Stock) -> bool:
        """Whether a stock may be looked at: members of the index and whatever is held."""
        return stock.symbol in self.members or stock.symbol in self.account.positions

    def state(self, column: int) -> str:
        """Return ``normal``, ``suspended``, ``limit_up`` or ``limit_down``, as of the last close."""
        if not self.tradable[column]:
            return "suspended"
        if self.at_limit_up[column]:
            return "limit_up"
        return "limit_down" if self.at_limit_down[column] else "normal"

    def factor_values(self, column: int, names: tuple[str, ...] = FACTOR_NAMES) -> dict[str, float | None]:
        """Return a column's factors by name, as they are shown."""
        values = self.factors[:, column].tolist()
        return {name: rounded(values[_AT[name]], 6) for name in names}


_AT = {name: k for k, name in enumerate(FACTOR_NAMES)}
