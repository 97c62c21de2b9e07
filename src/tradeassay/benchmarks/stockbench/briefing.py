"""What a model may know on one day: account, names, prices, news, its own history."""

from __future__ import annotations

import math
from functools import cached_property

import msgspec
import numpy as np

from tradeassay.benchmarks.stockbench.config import StockbenchConfig
from tradeassay.benchmarks.stockbench.fundamentals import Fundamentals, FundamentalsShown
from tradeassay.benchmarks.stockbench.history import DayShown
from tradeassay.benchmarks.stockbench.news import NewsShown, recent_news
from tradeassay.core.agent import Observation
from tradeassay.core.errors import UserError


class Name(msgspec.Struct, frozen=True, kw_only=True):
    """One name with exact numbers, for the checks.

    ``price`` is today's open, None when the name does not trade; ``value`` is the holding at that price (at its
    last mark when there is none).
    """

    symbol: str
    buyable: bool
    price: float | None
    closes: tuple[float | None, ...]
    shares: float
    value: float
    held: int


class Briefing:
    """One day's facts, all read through the observation's view."""

    def __init__(self, observation: Observation, config: StockbenchConfig, history: tuple[DayShown, ...]) -> None:
        """Raise :class:`UserError` when the market does not decide at the open, where this protocol is played."""
        self.observation = observation
        self.config = config
        self.history = history
        self.session = observation.session
        self.rules = observation.rules
        self.names: tuple[Name, ...] = self._names()
        self.by_symbol = {name.symbol: name for name in self.names}
        self.cash = observation.account.cash
        self.nav = self.cash + math.fsum(name.value for name in self.names)

    @cached_property
    def news(self) -> dict[str, tuple[NewsShown, ...]]:
        """The news of every name; empty where the inputs leave it out."""
        if not self.config.shows_news:
            return {}
        return recent_news(self.observation.view, self.session, self.by_symbol, self.config)

    def fundamentals(self, symbol: str) -> FundamentalsShown:
        """Return what was known of one name."""
        return self._fundamentals.of(symbol, self.by_symbol[symbol].price)

    @cached_property
    def _fundamentals(self) -> Fundamentals:
        return Fundamentals(self.observation.view, self.session, self.config)

    def _names(self) -> tuple[Name, ...]:
        """Return the universe, and what is still held of names that left it, in column order."""
        seen = self.observation
        view, positions = seen.view, seen.account.positions
        opens = view.opens()
        if opens is None:
            raise UserError("StockBench is played at the open", mend="use a market with decide: at_open")
        universe = frozenset(seen.universe)
        columns = {symbol: view.column(symbol) for symbol in (*seen.universe, *positions)}
        closes = view.bars("close", self.config.closes)
        trading = view.tradable()
        names = []
        for symbol, column in sorted(columns.items(), key=lambda item: item[1]):
            price = float(opens[column])
            known = bool(trading[column]) and math.isfinite(price) and price > 0
            position = positions.get(symbol)
            shares = 0.0 if position is None else position.quantity
            mark = price if known else 0.0 if position is None else position.mark
            names.append(
                Name(
                    symbol=symbol,
                    buyable=symbol in universe and known,
                    price=price if known else None,
                    closes=tuple(
                        float(close) if np.isfinite(close) else None for close in closes[:, column].tolist()
                    ),
                    shares=shares,
                    value=shares * mark,
                    held=0 if position is None else position.held,
                )
            )
        return tuple(names)
