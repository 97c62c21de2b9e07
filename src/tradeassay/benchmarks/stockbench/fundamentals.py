"""What was known of a company on the day: worked out from dated figures, dated actions and completed bars.

Nothing comes from a snapshot of "current" data. What a data set does not know by the day is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta

import msgspec
import numpy as np

from tradeassay.benchmarks.stockbench.config import StockbenchConfig
from tradeassay.core.instruments import CorporateAction, Fundamental
from tradeassay.core.time import DAY, moment, parse_day
from tradeassay.core.view import Floats, MarketView

NOTICE_DAYS = 120
"""An action may have been announced this many days before it took effect."""


class FundamentalsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The six figures of the paper; prices and amounts are in shares of today."""

    market_cap: float | None
    pe: float | None
    dividend_yield: float | None
    high_52w: float | None
    low_52w: float | None
    dividend: float | None


class Fundamentals:
    """The figures of a day, worked out for the names that are asked for."""

    def __init__(self, view: MarketView, session: str, config: StockbenchConfig) -> None:
        self._view, self._session, self._config = view, session, config
        self._since = since = view.clock - (config.year_days + NOTICE_DAYS) * DAY
        self._actions: dict[str, list[CorporateAction]] = {}
        self._knows_actions = False
        for action in view.actions(since):
            self._knows_actions = True
            if action.ex_date <= session:
                self._actions.setdefault(action.symbol, []).append(action)
        self._high: Floats | None = None
        self._low: Floats | None = None

    def of(self, symbol: str, price: float | None) -> FundamentalsShown:
        """Return one name's figures; ``price`` is today's open, None when there is none."""
        latest = _latest(self._view.fundamentals(symbol))
        shares = self._now(latest.get("shares_outstanding"), symbol, grows=True)
        earnings = self._now(latest.get("eps_ttm"), symbol, grows=False)
        dividend = self._dividend(symbol, latest)
        high, low = self._range(symbol)
        return FundamentalsShown(
            market_cap=_rounded(shares * price, 0) if shares is not None and price is not None else None,
            pe=_rounded(price / earnings, 2)
            if price is not None and earnings is not None and earnings > 0
            else None,
            dividend_yield=_rounded(dividend / price, 4) if dividend is not None and price is not None else None,
            high_52w=high,
            low_52w=low,
            dividend=None if dividend is None else _rounded(dividend, 4),
        )

    def _now(self, figure: Fundamental | None, symbol: str, *, grows: bool) -> float | None:
        """Return a figure in shares of today: a split since it was published changes what "per share" means.

        A figure older than the actions that are looked at says nothing about today.
        """
        if figure is None or figure.known_at < self._since or not math.isfinite(figure.value):
            return None
        ratio = self._splits(symbol, moment(figure.known_at).date().isoformat())
        return figure.value * ratio if grows else figure.value / ratio

    def _splits(self, symbol: str, after: str) -> float:
        """Return the product of the split ratios that took effect after a day."""
        ratio = 1.0
        for action in self._actions.get(symbol, ()):
            if action.kind == "split" and action.ex_date > after:
                ratio *= action.value
        return ratio

    def _dividend(self, symbol: str, latest: dict[str, Fundamental]) -> float | None:
        if not self._knows_actions:
            return self._now(latest.get("dividend_per_share_ttm"), symbol, grows=False)
        start = (parse_day(self._session) - timedelta(days=self._config.year_days)).isoformat()
        total = 0.0
        for action in self._actions.get(symbol, ()):
            if action.kind == "dividend" and action.ex_date > start:
                # A dividend is per share held before a split of the same day.
                day = (parse_day(action.ex_date) - timedelta(days=1)).isoformat()
                total += action.value / self._splits(symbol, day)
        return total

    def _range(self, symbol: str) -> tuple[float | None, float | None]:
        if self._high is None or self._low is None:
            self._high = self._view.bars("high", self._config.year_sessions)
            self._low = self._view.bars("low", self._config.year_sessions)
        column = self._view.column(symbol)
        highs, lows = self._high[:, column], self._low[:, column]
        enough = self._config.year_coverage * self._config.year_sessions
        if np.count_nonzero(np.isfinite(highs) & np.isfinite(lows)) < enough:
            return None, None
        return _rounded(float(np.nanmax(highs)), 4), _rounded(float(np.nanmin(lows)), 4)


def _latest(figures: Iterable[Fundamental]) -> dict[str, Fundamental]:
    """Return the newest report of every field; of two reports for one period the later word counts."""
    found: dict[str, Fundamental] = {}
    for figure in figures:
        old = found.get(figure.field)
        if old is None or (figure.period_end, figure.known_at) >= (old.period_end, old.known_at):
            found[figure.field] = figure
    return found


def _rounded(value: float, digits: int) -> float | None:
    return round(value, digits) if math.isfinite(value) else None
