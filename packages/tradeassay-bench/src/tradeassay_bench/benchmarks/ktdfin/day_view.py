"""Provide a day's market and account for tools and checks: roster, factors and prices."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay.core.errors import DataError
from tradeassay.factors import FACTOR_NAMES, RECENT, FactorStream
from tradeassay_bench.account import BoardLimits, venues
from tradeassay_bench.benchmarks.ktdfin.ktdfin_config import KtdfinConfig
from tradeassay_bench.benchmarks.ktdfin.wire import Day, Stock, all_rounded, rounded
from tradeassay_bench.core.agent import Observation
from tradeassay_bench.core.view import FIELDS, Field, MarketView
from tradeassay_bench.masking import ShownBars


@dataclass(frozen=True, slots=True)
class Roster:
    """The columns of a view: stocks, boards, sectors and price limits.

    ``bands`` are the official daily limits. ``limits`` are the changes at which a name stops
    trading, a buffer below the bands. Both are infinite without a limit. They cover ordinary names
    and names under special treatment. Only the exchange handles new listings, which have no limits
    in their first sessions. ``key`` identifies the rules for which the roster is valid.
    """

    key: tuple[str, frozenset[str]]
    symbols: tuple[str, ...]
    stocks: tuple[Stock, ...]
    boards: tuple[str, ...]
    sectors: tuple[str, ...]
    sector_of: Ints
    bands: Floats
    limits: Floats


def find_roster(view: MarketView, venue: str, day: str, known: Roster | None) -> Roster:
    """Return the roster of a view under a venue's price limits of a day.

    ``known`` is returned if it is still valid.
    """
    era = venues.get(venue).era(day)
    rules = venues.get(venue).price_limits if era is None else era.price_limits
    special: frozenset[str] = frozenset()
    if era is not None:
        with suppress(DataError):  # the data has no information about special treatment
            special = frozenset(view.members("ST"))
    key = ("" if era is None else era.start, special)
    if known is not None and known.key == key and known.symbols is view.symbols:
        return known
    instruments = [view.instrument(symbol) for symbol in view.symbols]
    sectors = sorted({item.sector for item in instruments if item.sector})
    number = {sector: k for k, sector in enumerate(sectors)}
    if isinstance(rules, BoardLimits):
        limits = [
            rules.threshold(item.board, special=item.symbol in special, age=-1)
            for item in instruments
        ]
    else:
        limits = [None if rules is None else rules.threshold(item.board) for item in instruments]
    buffer = 0.0 if rules is None else rules.buffer
    return Roster(
        key=key,
        symbols=view.symbols,
        stocks=tuple(Stock(item.symbol) for item in instruments),
        boards=tuple(item.board.value for item in instruments),
        sectors=tuple(sectors),
        sector_of=np.array(
            [number.get(item.sector or "", -1) for item in instruments], dtype=np.int64
        ),
        bands=np.array([np.inf if limit is None else limit + buffer for limit in limits]),
        limits=np.array([np.inf if limit is None else limit for limit in limits]),
    )


YEAR = 253
"""Number of bars that the factors need: 252 closes and the close before them."""
_FIELDS: tuple[Field, ...] = ("open", "high", "close", "volume", "amount")


class FactorFeed:
    """Compute factors incrementally from an episode's views, one session at a time.

    Days must be in order. A skipped day or a new listing restarts the computation from the view's
    history. The values equal those of :func:`tradeassay.factors.last_row_of` up to rounding, which
    differs because a split rescales earlier input. They depend only on the sequence of views.
    """

    def __init__(self) -> None:
        self._symbols: tuple[str, ...] = ()
        self._last: np.datetime64 | None = None
        self._view: MarketView | ShownBars | None = None
        self._stream = FactorStream(0)

    def values(self, view: MarketView | ShownBars, names: Sequence[str] = FACTOR_NAMES) -> Floats:
        """Return the factors known now, one row per factor name, shape (names, columns of the
        view).
        """
        self.follow(view)
        if self._last is None:
            return np.full((len(names), len(view.symbols)), np.nan)
        return self._stream.values(names)

    def follow(self, view: MarketView | ShownBars) -> None:
        """Read the last completed session of a view, unless it was read before."""
        if view is self._view:
            return
        self._view = view
        days = view.sessions(2)
        last = days[-1] if days.size else None
        symbols = view.symbols
        if len(symbols) == len(self._symbols) and last is not None and last == self._last:
            return
        follows = self._last is not None and days.size == 2 and days[0] == self._last
        if follows and len(symbols) == len(self._symbols):
            bars = np.array([view.bars(field, 2) for field in _FIELDS])
            # A view expresses all history in shares of its own day. If its previous close differs
            # from the stored one, the name has split since. The last close of a name that returns
            # from a suspension is older.
            closes, before = bars[2], self._stream.last_close
            back = (np.isnan(before) & ~np.isnan(closes[1])).nonzero()[0]
            if back.size or closes[0].tobytes() != before.tobytes():
                with np.errstate(all="ignore"):
                    ratio = closes[0] / before
                if back.size:
                    ratio[back] = _known(view, back) / self._stream.known_close[back]
                split = (np.isfinite(ratio) & (np.abs(ratio - 1.0) > 1e-12)).nonzero()[0]
                if split.size:
                    self._stream.rescale(split, ratio[split])
            self._stream.feed(bars[:, 1])
        else:
            self._stream = FactorStream(len(view.symbols))
            recent = np.array([view.bars(field, RECENT) for field in _FIELDS]).swapaxes(0, 1)
            self._stream.prime(view.bars("high", YEAR), view.bars("close", YEAR), recent)
        self._symbols, self._last = symbols, last


def _known(view: MarketView | ShownBars, columns: Ints) -> Floats:
    """Return the last close before the last session, in terms of today's shares.

    A name without a close in the last year is NaN.
    """
    previous = np.full(columns.size, np.nan)
    # Most suspensions are short, and a year of every column is a large table.
    for lookback in (16, YEAR):
        closes = view.bars("close", lookback)[:-1, columns]
        known = ~np.isnan(closes)
        last = closes.shape[0] - 1 - np.argmax(known[::-1], axis=0)
        previous = np.where(known.any(axis=0), closes[last, np.arange(columns.size)], np.nan)
        if not np.isnan(previous).any():
            break
    return previous


AT_LIMIT = 1e-9
"""Tolerance in comparisons with a price limit, equal to the exchange's tolerance."""
BAR_DIGITS: dict[Field, int] = {
    "open": 4,
    "high": 4,
    "low": 4,
    "close": 4,
    "volume": 0,
    "amount": 0,
}
"""Number of decimals in a model's tables, by field. More decimals would only cost tokens."""
STEP = 0.005
"""Step of displayed weights if levels are hidden. Amounts are displayed in steps of this fraction
of the initial account.
"""
HISTORY = 61
"""Number of closes kept in memory, enough for a return over sixty sessions."""


class DayView:
    """A day's market and account for the tools, with true names and days. :class:`Wire` masks them
    later.

    Checks use the true series. Under a hardened mask every displayed number comes from ``shown``,
    the masked bars, because a factor or return of the true bars would reveal their level or shape.
    """

    def __init__(
        self,
        observation: Observation,
        roster: Roster,
        config: KtdfinConfig,
        feed: FactorFeed,
        shown: ShownBars | None = None,
    ) -> None:
        self.observation = observation
        self.roster = roster
        self.config = config
        self.shown = shown
        self._feed = feed
        self._changes: dict[int, Floats] = {}
        self.view = observation.view
        self.account = observation.account
        self.rules = observation.rules

    def shares_shown(self, column: int, quantity: float) -> float:
        """Return the displayed number of shares: scaled inversely to prices and rounded to two
        digits.

        All digits would reveal the scale, because true shares come in lots.
        """
        if self.shown is None:
            return quantity
        shares = quantity / float(self.shown.levels[column])
        return float(f"{shares:.1e}")

    def money(self, value: float) -> float:
        """Return the displayed amount of money, in cents or in steps if levels are hidden.

        An amount in cents would reveal the price of a lot, because purchases cost a multiple of it.
        """
        if self.shown is None:
            return round(float(value), 2)
        step = self.account.initial * STEP
        return round(round(value / step) * step, 2)

    def share(self, value: float) -> float:
        """Return the displayed value of a weight."""
        return round(value, 4) if self.shown is None else round(round(value / STEP) * STEP, 4)

    def price(self, column: int, value: float, field: Field) -> float | None:
        """Return the displayed value of a true price of the last session.

        ``field`` is the comparable field of the bar. Its masked value determines the scale.
        """
        if self.shown is None or not np.isfinite(value):
            return rounded(value)
        true = self.view.bars(field, 1)[-1, column]
        if np.isfinite(true):
            scale = self.last_bars[field][column] / true
        else:
            scale = self.shown.levels[column]
        return rounded(value * scale, 2)

    def limits(self, column: int) -> dict[str, float | None]:
        """Return the displayed last close and price limits for the coming session of a name."""
        close, band = float(self.last_close[column]), float(self.roster.bands[column])
        shown, digits = rounded(close), 4
        if self.shown is not None:
            shown = self.price(column, close, "close")
            close, digits = math.nan if shown is None else shown, 2
        up, down = rounded(close * (1.0 + band), digits), rounded(close * (1.0 - band), digits)
        return {"prev_close": shown, "limit_up": up, "limit_down": down}

    def bars(self, field: Field, lookback: int) -> Floats:
        """Return a displayed field of all columns, before rounding."""
        return (self.view if self.shown is None else self.shown).bars(field, lookback)

    @cached_property
    def shown_closes(self) -> Floats:
        """Return the displayed last closes, shape (at most 61, columns)."""
        return self.closes if self.shown is None else self.shown.bars("close", HISTORY)

    def index_levels(self, sessions: int) -> Floats:
        """Return the last displayed levels of the benchmark index, or an empty array without an
        index.
        """
        index = self.rules.benchmark_index
        if index is None:
            return np.empty(0)
        if self.shown is not None:
            return self.shown.index(index, sessions)
        return self.view.index_levels(index, sessions)

    @cached_property
    def days(self) -> tuple[str, ...]:
        """Return the completed sessions within the longest lookback, oldest first."""
        return tuple(map(date.isoformat, self.view.sessions(self.config.longest_lookback).tolist()))

    @cached_property
    def as_of(self) -> Day | None:
        """Return the last completed session, or None before the first."""
        last = self.view.sessions(1).tolist()
        return Day(last[0].isoformat()) if last else None

    @cached_property
    def today(self) -> Day:
        """Return the session at whose open the orders are filled."""
        return Day(self.observation.session)

    @cached_property
    def factors(self) -> Floats:
        """Return the nine displayed factors, shape (9, columns)."""
        return self._feed.values(self.shown or self.view)

    def factor_rows(self, names: Sequence[str]) -> Floats:
        """Return the given displayed factors, shape (names, columns)."""
        return self._feed.values(self.shown or self.view, names)

    @cached_property
    def closes(self) -> Floats:
        """Return the last true closes, split-adjusted, shape (at most 61, columns)."""
        return self.view.bars("close", HISTORY)

    @cached_property
    def last_close(self) -> Floats:
        """Return the last known close of every column in terms of today's shares, NaN without a
        close.
        """
        closes = self.closes
        if closes.shape[0] == 0:
            return np.full(closes.shape[1], np.nan)
        last: Floats = closes[-1].copy()
        for column in np.isnan(last).nonzero()[0].tolist():
            known = np.flatnonzero(~np.isnan(closes[:, column]))
            if known.size:
                last[column] = closes[known[-1], column]
        return last

    @cached_property
    def last_bars(self) -> dict[str, Floats]:
        """Return the displayed last bar of every column by field (empty before the first
        session).
        """
        rows = {field: self.bars(field, 1) for field in FIELDS}
        return {field: bars[-1] if bars.shape[0] else np.empty(0) for field, bars in rows.items()}

    def change(self, sessions: int) -> Floats:
        """Return the displayed return over the last sessions, NaN if either close is missing."""
        known = self._changes.get(sessions)
        if known is None:
            known = _change(self.shown_closes, sessions)
            self._changes[sessions] = known
        return known

    @cached_property
    def last_change(self) -> Floats:
        """Return the true change of the last session."""
        return self.change(1) if self.shown is None else _change(self.closes, 1)

    @cached_property
    def at_limit_up(self) -> Bools:
        """Return a mask of the names that closed at or above their upper limit less the buffer."""
        return np.asarray(self.last_change >= self.roster.limits - AT_LIMIT)

    @cached_property
    def at_limit_down(self) -> Bools:
        """Return a mask of the names that closed at or below their lower limit plus the buffer."""
        return np.asarray(self.last_change <= AT_LIMIT - self.roster.limits)

    @cached_property
    def tradable(self) -> Bools:
        """Return a mask of the names that are not known to be suspended."""
        return self.view.tradable()

    @cached_property
    def members(self) -> frozenset[str]:
        """Return the symbols that may be bought."""
        return frozenset(self.observation.universe)

    def column(self, stock: Stock) -> int:
        """Return a stock's column. Raises :class:`DataError` if it is not listed yet."""
        return self.view.column(stock.symbol)

    def in_reach(self, stock: Stock) -> bool:
        """Return whether tools may show a stock: a member of the index or a holding."""
        return stock.symbol in self.members or stock.symbol in self.account.positions

    def state(self, column: int) -> str:
        """Return a name's state at the last close: normal, suspended, limit_up or limit_down."""
        if not self.tradable[column]:
            return "suspended"
        if self.at_limit_up[column]:
            return "limit_up"
        return "limit_down" if self.at_limit_down[column] else "normal"

    def factor_values(
        self, columns: Sequence[int], names: Sequence[str]
    ) -> list[dict[str, float | None]]:
        """Return the displayed factors of some columns by name."""
        rows = map(all_rounded, self.factor_rows(names)[:, list(columns)])
        return [dict(zip(names, values, strict=True)) for values in zip(*rows, strict=True)]

    def top_of_each(self, top: int, most: int) -> Ints:
        """Return the union of the ``top`` names by each factor, at most ``most``, in column order.

        Names are selected in rounds: the best name by each factor, then the second best, and so on.
        A truncated union therefore favours no factor.
        """
        columns = self.observation.columns
        columns = columns[self.tradable[columns] & ~self.at_limit_up[columns]]
        values = np.where(np.isfinite(self.factors[:, columns]), self.factors[:, columns], -np.inf)
        ties = None if self.shown is None else self.last_bars["close"][columns]
        order = np.array([in_order(-row, ties)[:top] for row in values])
        chosen: dict[int, None] = {}
        for place in range(order.shape[1]):
            for factor in range(order.shape[0]):
                at = order[factor, place]
                if np.isfinite(values[factor, at]) and len(chosen) < most:
                    chosen[int(columns[at])] = None
        return np.array(sorted(chosen), dtype=np.int64)


def in_order(values: Floats, ties: Floats | None) -> Ints:
    """Return the indices that sort values, lowest first.

    Equal values keep their order, which follows the true symbols. Under a hardened mask they are
    ordered by ``ties``, the displayed closes. Two factors of 300 names have hundreds of equal
    scores, and their order would reveal the alphabetical order of the true symbols.
    """
    return np.argsort(values, kind="stable") if ties is None else np.lexsort((ties, values))


def _change(closes: Floats, sessions: int) -> Floats:
    """Return the return of every column over the last sessions, NaN if either close is missing."""
    if closes.shape[0] <= sessions:
        return np.full(closes.shape[1], np.nan)
    with np.errstate(all="ignore"):
        result: Floats = closes[-1] / closes[-1 - sessions] - 1.0
    result.setflags(write=False)
    return result
