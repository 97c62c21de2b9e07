"""What a model is shown at the start of a day: account, performance, what became of orders, and by mode names."""

import math
from collections.abc import Iterator, Sequence

import msgspec

from tradeassay.benchmarks.ktdfin.desk import BAR_DIGITS, Desk
from tradeassay.benchmarks.ktdfin.ktdfin_config import Mode
from tradeassay.benchmarks.ktdfin.wire import Day, Prose, Stock, Wire, rounded
from tradeassay.core.events import Filled, Rejected, Trimmed
from tradeassay.core.time import DAY, moment
from tradeassay.factors import FACTOR_NAMES

HIDDEN_LOT = 1e-6
"""The lot that is shown where shares are rescaled: the real one would give the scale away."""


class PositionShown(msgspec.Struct, frozen=True, kw_only=True):
    """A holding. ``sellable`` leaves out what T+1 locks; ``profit`` is against the average price paid."""

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
    """An order of the last session that was refused or cut, and why."""

    stock_id: Stock
    reason: str


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """Returns since the start and over the last session, and the index's over the same sessions."""

    total_return: float | None
    index_return: float | None
    excess_return: float | None
    last_return: float | None
    last_index_return: float | None


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """One item: the day it appeared, the names it is about (those in reach only) and its title."""

    day: Day
    stock_ids: tuple[Stock, ...]
    title: Prose


class Constraints(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that an action must obey. Costs are shares of what is traded."""

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
    """One name of the table in ``fixed-candidate``: its last bar, recent returns and factors."""

    stock_id: Stock
    board: str
    state: str
    last_bar: dict[str, float | None]
    returns: dict[str, float | None]
    factors: dict[str, float | None]
    news: tuple[Headline, ...] = ()


class ObservationShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The payload. ``memory-only`` has ``universe``, ``fixed-candidate`` has ``candidates`` and ``held``."""

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


def observe(desk: Desk, wire: Wire, performance: Performance, not_sent: Sequence[str] = ()) -> ObservationShown:
    """Return today's payload. Names are ordered as they are shown, never by their true symbols.

    ``not_sent`` says which of yesterday's orders broke a rule and were left out, and why."""
    config, rules, mode, roster = desk.config, desk.rules, desk.config.mode, desk.roster
    since = desk.observation.since_last
    universe = candidates = held = None
    if mode == "memory-only":
        everybody = (roster.stocks[column] for column in desk.observation.columns.tolist())
        universe = tuple(sorted(everybody, key=wire.stock_id))
    elif mode == "fixed-candidate":
        columns = desk.top_of_each(config.table_top, config.table_size).tolist()
        columns.sort(key=lambda column: wire.stock_id(roster.stocks[column]))
        candidates = tuple(_row(desk, column) for column in columns)
        held = tuple(_row(desk, desk.column(Stock(symbol))) for symbol in desk.account.positions)
    return ObservationShown(
        kind="ktdfin.observation",
        mode=mode,
        step=desk.observation.step,
        as_of=desk.as_of,
        trade_day=desk.today,
        account=show_account(desk),
        performance=performance,
        last_fills=tuple(_fills(desk)),
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


def _fills(desk: Desk) -> Iterator[FillShown]:
    for event in desk.observation.since_last:
        if isinstance(event, Filled):
            column = desk.column(Stock(event.symbol))
            yield FillShown(
                stock_id=Stock(event.symbol),
                side="BUY" if event.quantity > 0 else "SELL",
                shares=desk.shares_shown(column, abs(event.quantity)),
                price=desk.price(column, event.price, "open"),
                costs=desk.money(event.fee + event.tax),
            )


def _row(desk: Desk, column: int) -> CandidateRow:
    stock, last = desk.roster.stocks[column], dict[str, float | None]()
    for field, digits in BAR_DIGITS.items():
        bars = desk.last_bars[field]
        last[field] = rounded(bars[column], digits) if bars.size else None
    return CandidateRow(
        stock_id=stock,
        board=desk.roster.boards[column],
        state=desk.state(column),
        last_bar=last,
        returns={f"return_{n}d": rounded(desk.change(n)[column]) for n in (1, 5, 20)},
        factors=desk.factor_values((column,), FACTOR_NAMES)[0],
        news=headlines(desk, stock) if desk.config.news else (),
    )


def show_account(desk: Desk) -> AccountShown:
    account, positions = desk.account, []
    for position in account.positions.values():
        stock = Stock(position.symbol)
        column = desk.column(stock)
        shown = PositionShown(
            stock_id=stock,
            board=desk.roster.boards[column],
            shares=desk.shares_shown(column, position.quantity),
            sellable=desk.shares_shown(column, position.sellable),
            price=desk.price(column, position.mark, "close"),
            value=desk.money(position.value),
            weight=desk.share(account.weight(position.symbol)),
            profit=desk.share(position.mark / position.cost - 1.0) if position.cost > 0 else None,
            held_days=position.held,
        )
        positions.append(shown)
    return AccountShown(
        cash=desk.money(account.cash),
        nav=desk.money(account.nav),
        cash_ratio=desk.share(account.cash / account.nav) if account.nav > 0 else 0.0,
        positions=tuple(positions),
    )


def show_performance(desk: Desk, started: float | None, yesterday: float | None) -> Performance:
    """Return the account beside the index.

    ``started`` is the index level before the first session of the episode, ``yesterday`` the account's value a
    session ago; None where unknown."""
    account = desk.account
    total = account.nav / account.initial - 1.0 if account.initial > 0 else math.nan
    levels = desk.index_levels(2).tolist()
    market = levels[-1] / started - 1.0 if levels and started else math.nan
    last_market = levels[-1] / levels[-2] - 1.0 if len(levels) == 2 and yesterday else math.nan
    last = account.nav / yesterday - 1.0 if yesterday else math.nan
    own = [desk.share(value) if math.isfinite(value) else None for value in (total, total - market, last)]
    return Performance(
        total_return=own[0],
        index_return=rounded(market),
        excess_return=own[1],
        last_return=own[2],
        last_index_return=rounded(last_market),
    )


def headlines(desk: Desk, stock: Stock | None) -> tuple[Headline, ...]:
    """Return the newest items about a stock, or about the market as a whole; nothing later than the clock."""
    since = desk.view.clock - desk.config.news_days * DAY
    most = desk.config.news_items
    if stock is not None:
        items = desk.view.news(since, symbols=(stock.symbol,), limit=most)
    else:
        items = tuple(item for item in desk.view.news(since, limit=50 * most) if not item.symbols)[:most]
    return tuple(
        Headline(
            day=Day(moment(item.published_at).date().isoformat()),
            stock_ids=tuple(Stock(symbol) for symbol in item.symbols if desk.in_reach(Stock(symbol))),
            title=Prose(item.title),
        )
        for item in items
    )
