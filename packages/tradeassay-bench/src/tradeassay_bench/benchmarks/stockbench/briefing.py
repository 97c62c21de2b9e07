"""Collect the information that a model may see on one day.

This information is the account, the names with prices, news and fundamentals, and the history of
the model's actions.
"""

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import cached_property

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks.stockbench.stockbench_config import StockbenchConfig
from tradeassay_bench.core.agent import Observation
from tradeassay_bench.core.events import Event, Filled
from tradeassay_bench.core.orders import Decision, Order, is_price
from tradeassay_bench.core.time import DAY, iso, midnight, moment, parse_day
from tradeassay_bench.core.view import CorporateAction, Fundamental, MarketView

_SPACE = re.compile(r"\s+")


class NewsBriefed(msgspec.Struct, frozen=True, kw_only=True):
    """One news item. ``text`` is None if it is missing or was dropped for length."""

    published: str
    title: str
    text: str | None


def recent_news(
    view: MarketView, session: str, symbols: Iterable[str], config: StockbenchConfig
) -> dict[str, tuple[NewsBriefed, ...]]:
    """Return the news of each name from the ``news_days`` calendar days (UTC) before the session.

    Items are ordered newest first, at most ``news_items`` per name. Items from the day of the
    session are excluded, even those published before the open.
    """
    today = midnight(parse_day(session))
    start = today - config.news_days * DAY
    names = set(symbols)
    news: dict[str, list[NewsBriefed]] = {symbol: [] for symbol in names}
    for item in view.news(start - 1, symbols=sorted(names)):
        if item.published_at >= today:
            continue
        for symbol in item.symbols:
            items = news.get(symbol)
            if items is not None and len(items) < config.news_items:
                items.append(
                    NewsBriefed(
                        published=iso(item.published_at),
                        title=_plain(item.title, config.news_characters),
                        text=_plain(item.body, config.news_characters) or None,
                    )
                )
    return {symbol: tuple(items) for symbol, items in news.items()}


def _plain(text: str, longest: int) -> str:
    """Return a text on one line, cut to ``longest`` characters."""
    line = _SPACE.sub(" ", text).strip()
    return line if len(line) <= longest else line[: longest - 3].rstrip() + "..."


NOTICE_DAYS = 120
"""Maximum number of days between the announcement of an action and its effect."""


class FundamentalsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The six fundamentals of the paper. Per-share figures refer to today's shares."""

    market_cap: float | None
    pe: float | None
    dividend_yield: float | None
    high_52w: float | None
    low_52w: float | None
    dividend: float | None


class Fundamentals:
    """The fundamentals of one day, computed per name on request."""

    def __init__(self, view: MarketView, session: str, config: StockbenchConfig) -> None:
        self._view, self._session, self._config = view, session, config
        since = view.clock - (config.year_days + NOTICE_DAYS) * DAY
        self._since = since
        self._actions: dict[str, list[CorporateAction]] = {}
        self._knows_actions = False
        for action in view.actions(since):
            self._knows_actions = True
            if action.ex_date <= session:
                self._actions.setdefault(action.symbol, []).append(action)

    def of(self, symbol: str, price: float | None) -> FundamentalsShown:
        """Return the figures of a name.

        ``price`` is today's open, or None if the name does not trade. Without a price the figures
        that depend on a price are None too.
        """
        # The newest report of every field. If two reports cover the same period, the later one is
        # used.
        latest: dict[str, Fundamental] = {}
        for figure in self._view.fundamentals(symbol):
            old = latest.get(figure.field)
            if old is None or (figure.period_end, figure.known_at) >= (
                old.period_end,
                old.known_at,
            ):
                latest[figure.field] = figure
        shares = self._now(latest.get("shares_outstanding"), symbol, grows=True)
        earnings = self._now(latest.get("eps_ttm"), symbol, grows=False)
        dividend = self._dividend(symbol, latest)
        high, low = self._range(symbol)
        cap = None
        ratio = None
        paid = None
        if price is not None:
            cap = None if shares is None else _rounded(shares * price, 0)
            ratio = None if earnings is None or earnings <= 0 else _rounded(price / earnings, 2)
            paid = None if dividend is None else _rounded(dividend / price, 4)
        dividend = None if dividend is None else _rounded(dividend, 4)
        return FundamentalsShown(
            market_cap=cap,
            pe=ratio,
            dividend_yield=paid,
            high_52w=high,
            low_52w=low,
            dividend=dividend,
        )

    def _now(self, figure: Fundamental | None, symbol: str, *, grows: bool) -> float | None:
        """Return a figure in terms of today's shares, adjusted for splits since its publication.

        ``grows`` marks a number of shares, as opposed to an amount per share. Return None for a
        figure that is older than the available actions.
        """
        if figure is None or figure.known_at < self._since or not math.isfinite(figure.value):
            return None
        ratio = self._splits(symbol, moment(figure.known_at).date().isoformat())
        return figure.value * ratio if grows else figure.value / ratio

    def _splits(self, symbol: str, after: str) -> float:
        """Return the product of the split ratios that took effect after a day."""
        actions = self._actions.get(symbol, ())
        splits = [a.value for a in actions if a.kind == "split" and a.ex_date > after]
        return math.prod(splits, start=1.0)

    def _dividend(self, symbol: str, latest: dict[str, Fundamental]) -> float | None:
        """Return the dividends of the last year per share of today.

        The source is the corporate actions, or a reported figure if the data has no actions.
        """
        if not self._knows_actions:
            return self._now(latest.get("dividend_per_share_ttm"), symbol, grows=False)
        start = (parse_day(self._session) - timedelta(days=self._config.year_days)).isoformat()
        total = 0.0
        for action in self._actions.get(symbol, ()):
            if action.kind == "dividend" and action.ex_date > start:
                # A dividend is per share held before a split on the same day, so that split is
                # included.
                day = (parse_day(action.ex_date) - timedelta(days=1)).isoformat()
                total += action.value / self._splits(symbol, day)
        return total

    @cached_property
    def _year(self) -> tuple[Floats, Floats]:
        view, sessions = self._view, self._config.year_sessions
        return view.bars("high", sessions), view.bars("low", sessions)

    def _range(self, symbol: str) -> tuple[float | None, float | None]:
        """Return the 52-week high and low, or None if too many sessions have no bar."""
        column = self._view.column(symbol)
        highs, lows = (bars[:, column] for bars in self._year)
        enough = self._config.year_coverage * self._config.year_sessions
        if np.count_nonzero(np.isfinite(highs) & np.isfinite(lows)) < enough:
            return None, None
        return _rounded(float(np.nanmax(highs)), 4), _rounded(float(np.nanmin(lows)), 4)


def _rounded(value: float, digits: int) -> float | None:
    return round(value, digits) if math.isfinite(value) else None


class ActionShown(msgspec.Struct, frozen=True, kw_only=True):
    """One past decision. ``traded`` is the signed number of shares that were traded."""

    symbol: str
    action: str
    target: float
    unit: str
    traded: float


class DayShown(msgspec.Struct, frozen=True, kw_only=True):
    """One past session.

    ``answered`` is False if there was no usable answer. All positions were then held.
    """

    session: str
    answered: bool
    actions: tuple[ActionShown, ...]


class ActionHistory:
    """The last sessions, oldest first: the day, the decision, and the shares traded by symbol."""

    def __init__(self, days: int) -> None:
        self._days: deque[tuple[str, Decision, dict[str, float]]] = deque(maxlen=days)

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Record the decision of a session. Its trades are read from the next observation."""
        self._settle(observation.since_last)
        self._days.append((observation.session, decision, {}))

    def shown(self, since_last: Iterable[Event]) -> tuple[DayShown, ...]:
        """Return the recorded days in the form that a model sees.

        ``since_last`` contains the events after the last recorded day.
        """
        self._settle(since_last)
        days = []
        for session, decision, traded in self._days:
            orders = decision.orders if decision.status != "failed" else ()
            actions = tuple(_action_shown(order, traded) for order in orders)
            answered = decision.status == "ok"
            days.append(DayShown(session=session, answered=answered, actions=actions))
        return tuple(days)

    def _settle(self, events: Iterable[Event]) -> None:
        """Store the trades of the last recorded day."""
        if self._days:
            traded = self._days[-1][2]
            traded.clear()
            for event in events:
                if isinstance(event, Filled):
                    traded[event.symbol] = traded.get(event.symbol, 0.0) + event.quantity


def _action_shown(order: Order, traded: dict[str, float]) -> ActionShown:
    """Return a past order in the form that a model sees."""
    if order.side == "BUY":
        action = "increase"
    elif order.amount == 0.0:
        action = "close"
    else:
        action = "decrease"
    return ActionShown(
        symbol=order.symbol,
        action=action,
        target=round(order.amount, 6),
        unit="shares" if order.unit == "target_shares" else "value",
        traded=round(traded.get(order.symbol, 0.0), 6),
    )


class Name(msgspec.Struct, frozen=True, kw_only=True):
    """One name with exact numbers, for the checks of an answer.

    ``price`` is today's open, or None if the name does not trade. ``value`` is the value of the
    holding at that price, or at its last mark without a price.
    """

    symbol: str
    buyable: bool
    price: float | None
    closes: tuple[float | None, ...]
    shares: float
    value: float
    held: int


class Briefing:
    """The facts of one day, all read through the observation's view."""

    def __init__(
        self, observation: Observation, config: StockbenchConfig, history: tuple[DayShown, ...]
    ) -> None:
        """Read the day. Raises :class:`UserError` if the market does not decide at the open."""
        self.observation = observation
        self.config = config
        self.history = history
        self.session = observation.session
        self.rules = observation.rules
        opens = observation.view.opens()
        if opens is None:
            raise UserError(
                "StockBench needs decisions at the open", hint="use a market with decide: at_open"
            )
        self.names = tuple(self._named(opens))
        self.by_symbol = {name.symbol: name for name in self.names}
        self.cash = observation.account.cash
        self.nav = self.cash + math.fsum(name.value for name in self.names)

    @cached_property
    def news(self) -> dict[str, tuple[NewsBriefed, ...]]:
        """Return the news of every name. The mapping is empty if the inputs exclude news."""
        if not self.config.shows_news:
            return {}
        return recent_news(self.observation.view, self.session, self.by_symbol, self.config)

    @cached_property
    def fundamentals(self) -> Fundamentals:
        return Fundamentals(self.observation.view, self.session, self.config)

    def _named(self, opens: Floats) -> Iterator[Name]:
        """Yield the names of the universe, and holdings that have left it, in column order."""
        seen = self.observation
        view, positions = seen.view, seen.account.positions
        universe = frozenset(seen.universe)
        columns = {symbol: view.column(symbol) for symbol in (*seen.universe, *positions)}
        closes = view.bars("close", self.config.closes)
        trading = view.tradable()
        for symbol, column in sorted(columns.items(), key=lambda item: item[1]):
            price = float(opens[column])
            known = bool(trading[column]) and is_price(price)
            position = positions.get(symbol)
            shares = 0.0 if position is None else position.quantity
            mark = 0.0 if position is None else position.mark
            if known:
                mark = price
            yield Name(
                symbol=symbol,
                buyable=symbol in universe and known,
                price=price if known else None,
                closes=tuple(
                    float(close) if np.isfinite(close) else None
                    for close in closes[:, column].tolist()
                ),
                shares=shares,
                value=shares * mark,
                held=0 if position is None else position.held,
            )
