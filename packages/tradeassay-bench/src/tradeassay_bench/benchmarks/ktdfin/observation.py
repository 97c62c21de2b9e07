"""Build the payload that a model sees at the start of a day.

It contains the account, its performance, the outcome of the last orders and, by mode, some names.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec

from tradeassay.factors import FACTOR_NAMES
from tradeassay_bench.benchmarks.ktdfin.day_view import BAR_DIGITS, DayView
from tradeassay_bench.benchmarks.ktdfin.ktdfin_config import Mode
from tradeassay_bench.benchmarks.ktdfin.wire import Day, Prose, Stock, Wire, rounded
from tradeassay_bench.core.events import Filled, Rejected, Trimmed
from tradeassay_bench.core.time import DAY, moment

HIDDEN_LOT = 1e-6
"""The displayed lot if shares are rescaled. The true lot would reveal the scale."""


class PositionShown(msgspec.Struct, frozen=True, kw_only=True):
    """A holding.

    ``sellable`` excludes shares that T+1 locks. ``profit`` is relative to the average price paid.
    """

    stock_id: Stock
    board: str
    shares: float
    sellable: float
    price: float | None
    value: float
    weight: float
    profit: float | None
    held_days: int


class AccountShown(msgspec.Struct, frozen=True, kw_only=True):
    """Cash, value and holdings."""

    cash: float
    nav: float
    cash_ratio: float
    positions: tuple[PositionShown, ...]


class FillShown(msgspec.Struct, frozen=True, kw_only=True):
    """A trade of the last session."""

    stock_id: Stock
    side: str
    shares: float
    price: float | None
    costs: float


class RefusalShown(msgspec.Struct, frozen=True, kw_only=True):
    """An order of the last session that was refused or cut, with the reason."""

    stock_id: Stock
    reason: str


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """Returns since the start and over the last session, of the account and of the index."""

    total_return: float | None
    index_return: float | None
    excess_return: float | None
    last_return: float | None
    last_index_return: float | None


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """One news item: its day, its title, and the names it mentions that the tools may show."""

    day: Day
    stock_ids: tuple[Stock, ...]
    title: Prose


class Constraints(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for an action. Costs are fractions of the traded value."""

    max_weight: float
    max_positions: int
    max_candidates: int
    lot: float
    t_plus_1: bool
    long_only: bool
    buy_cost: float
    sell_cost: float
    min_reason_length: int
    tool_calls: int


class CandidateRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One name in the table of ``fixed-candidate``: its last bar, recent returns and factors."""

    stock_id: Stock
    board: str
    state: str
    last_bar: dict[str, float | None]
    returns: dict[str, float | None]
    factors: dict[str, float | None]
    news: tuple[Headline, ...] = ()


class ObservationShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The payload of a day.

    ``memory-only`` has ``universe``. ``fixed-candidate`` has ``candidates`` and ``held``.
    """

    kind: str
    mode: Mode
    step: int
    as_of: Day | None
    trade_day: Day
    account: AccountShown
    performance: Performance
    last_fills: tuple[FillShown, ...]
    last_rejections: tuple[RefusalShown, ...]
    constraints: Constraints
    universe: tuple[Stock, ...] | None = None
    candidates: tuple[CandidateRow, ...] | None = None
    held: tuple[CandidateRow, ...] | None = None
    not_sent: tuple[Prose, ...] = ()


def observe(
    day_view: DayView, wire: Wire, performance: Performance, not_sent: Sequence[str] = ()
) -> ObservationShown:
    """Return today's payload. Names are sorted by their displayed names, never by true symbols.

    ``not_sent`` describes yesterday's orders that broke a rule and were dropped.
    """
    config, rules, mode, roster = (
        day_view.config,
        day_view.rules,
        day_view.config.mode,
        day_view.roster,
    )
    since = day_view.observation.since_last
    universe = None
    candidates = None
    held = None
    if mode == "memory-only":
        stocks = [roster.stocks[column] for column in day_view.observation.columns.tolist()]
        universe = tuple(sorted(stocks, key=wire.stock_id))
    elif mode == "fixed-candidate":
        columns = day_view.top_of_each(config.table_top, config.table_size).tolist()
        columns.sort(key=lambda column: wire.stock_id(roster.stocks[column]))
        candidates = tuple(_row(day_view, column) for column in columns)
        held = tuple(
            _row(day_view, day_view.column(Stock(symbol))) for symbol in day_view.account.positions
        )
    return ObservationShown(
        kind="ktdfin.observation",
        mode=mode,
        step=day_view.observation.step,
        as_of=day_view.as_of,
        trade_day=day_view.today,
        account=show_account(day_view),
        performance=performance,
        last_fills=tuple(_fills(day_view)),
        last_rejections=tuple(
            RefusalShown(stock_id=Stock(event.symbol), reason=event.reason)
            for event in since
            if isinstance(event, Rejected | Trimmed) and event.reason != "no_change"
        ),
        constraints=Constraints(
            max_weight=config.max_weight,
            max_positions=config.max_positions,
            max_candidates=config.max_candidates,
            lot=HIDDEN_LOT if config.rebase_prices else rules.lot,
            t_plus_1=rules.t_plus_1,
            long_only=rules.long_only,
            buy_cost=rules.buy_cost,
            sell_cost=rules.sell_cost,
            min_reason_length=config.min_reason,
            tool_calls=config.tool_calls if mode == "open-research" else 0,
        ),
        universe=universe,
        candidates=candidates,
        held=held,
        not_sent=tuple(map(Prose, not_sent)),
    )


def _fills(day_view: DayView) -> Iterator[FillShown]:
    for event in day_view.observation.since_last:
        if isinstance(event, Filled):
            column = day_view.column(Stock(event.symbol))
            yield FillShown(
                stock_id=Stock(event.symbol),
                side="BUY" if event.quantity > 0 else "SELL",
                shares=day_view.shares_shown(column, abs(event.quantity)),
                price=day_view.price(column, event.price, "open"),
                costs=day_view.money(event.fee + event.tax),
            )


def _row(day_view: DayView, column: int) -> CandidateRow:
    stock, last = day_view.roster.stocks[column], dict[str, float | None]()
    for field, digits in BAR_DIGITS.items():
        bars = day_view.last_bars[field]
        last[field] = rounded(bars[column], digits) if bars.size else None
    return CandidateRow(
        stock_id=stock,
        board=day_view.roster.boards[column],
        state=day_view.state(column),
        last_bar=last,
        returns={f"return_{n}d": rounded(day_view.change(n)[column]) for n in (1, 5, 20)},
        factors=day_view.factor_values((column,), FACTOR_NAMES)[0],
        news=headlines(day_view, stock) if day_view.config.news else (),
    )


def show_account(day_view: DayView) -> AccountShown:
    """Return the account as displayed values."""
    account, positions = day_view.account, []
    for position in account.positions.values():
        stock = Stock(position.symbol)
        column = day_view.column(stock)
        shown = PositionShown(
            stock_id=stock,
            board=day_view.roster.boards[column],
            shares=day_view.shares_shown(column, position.quantity),
            sellable=day_view.shares_shown(column, position.sellable),
            price=day_view.price(column, position.mark, "close"),
            value=day_view.money(position.value),
            weight=day_view.share(account.weight(position.symbol)),
            profit=day_view.share(position.mark / position.cost - 1.0)
            if position.cost > 0
            else None,
            held_days=position.held,
        )
        positions.append(shown)
    return AccountShown(
        cash=day_view.money(account.cash),
        nav=day_view.money(account.nav),
        cash_ratio=day_view.share(account.cash / account.nav) if account.nav > 0 else 0.0,
        positions=tuple(positions),
    )


def show_performance(
    day_view: DayView, started: float | None, yesterday: float | None
) -> Performance:
    """Return the performance of the account and of the index.

    ``started`` is the index level before the first session of the episode. ``yesterday`` is the
    value of the account one session ago. Either is None if unknown.
    """
    account = day_view.account
    total = account.nav / account.initial - 1.0 if account.initial > 0 else math.nan
    levels = day_view.index_levels(2).tolist()
    market = levels[-1] / started - 1.0 if levels and started else math.nan
    last_market = levels[-1] / levels[-2] - 1.0 if len(levels) == 2 and yesterday else math.nan
    last = account.nav / yesterday - 1.0 if yesterday else math.nan
    own = [
        day_view.share(value) if math.isfinite(value) else None
        for value in (total, total - market, last)
    ]
    return Performance(
        total_return=own[0],
        index_return=rounded(market),
        excess_return=own[1],
        last_return=own[2],
        last_index_return=rounded(last_market),
    )


def headlines(day_view: DayView, stock: Stock | None) -> tuple[Headline, ...]:
    """Return the newest headlines about a stock, or about no stock in particular if ``stock`` is
    None.

    Only headlines up to the view's clock are included.
    """
    since = day_view.view.clock - day_view.config.news_days * DAY
    most = day_view.config.news_items
    if stock is not None:
        items = day_view.view.news(since, symbols=(stock.symbol,), limit=most)
    else:
        items = tuple(
            item for item in day_view.view.news(since, limit=50 * most) if not item.symbols
        )[:most]
    return tuple(
        Headline(
            day=Day(moment(item.published_at).date().isoformat()),
            stock_ids=tuple(
                Stock(symbol) for symbol in item.symbols if day_view.in_reach(Stock(symbol))
            ),
            title=Prose(item.title),
        )
        for item in items
    )
