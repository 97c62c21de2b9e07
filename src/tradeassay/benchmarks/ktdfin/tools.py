"""The six research tools: pure functions from the day's desk to a typed result."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.benchmarks.ktdfin.account import Headline, PositionShown, headlines, show_account
from tradeassay.benchmarks.ktdfin.action import SAME, ActionViolation, check_orders
from tradeassay.benchmarks.ktdfin.desk import BAR_DIGITS, Desk
from tradeassay.benchmarks.ktdfin.wire import Day, Stock, all_rounded, rounded
from tradeassay.core.errors import AgentError
from tradeassay.core.measure import plain_sum
from tradeassay.core.orders import Order
from tradeassay.core.view import FIELDS, Floats, Ints
from tradeassay.factors import FACTOR_NAMES

Args = TypeVar("Args", bound="Arguments")


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every tool's arguments."""


class ToolRefused(AgentError):
    """A well-formed call that cannot be answered. Its message repeats no name, date or word of the caller."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[Args]):
    """One tool. ``answer`` may raise :class:`ToolRefused`; the gate turns that into a masked error."""

    name: str
    description: str
    arguments: type[Args]
    answer: Callable[[Desk, Args], msgspec.Struct]


AnyTool = Tool[Any]


def look_up(desk: Desk, stock: Stock) -> int:
    """Return a stock's column; raises :class:`ToolRefused` for one that is out of reach."""
    if not desk.in_reach(stock):
        hint = "use an id exactly as it was shown"
        raise ToolRefused("no such stock id in the universe or the portfolio", hint=hint)
    return desk.column(stock)


def refuse_future(desk: Desk, day: Day | None) -> None:
    """Raise :class:`ToolRefused` for a day that is not completed yet."""
    if day is not None and (not desk.days or day.iso > desk.days[-1]):
        words = "that day is not over yet: nothing after the data cutoff is known"
        raise ToolRefused(words, hint="leave as_of out")


# -- get_market_context: indices, calendar, sector tone --

HORIZONS = (1, 5, 20, 60)


class ContextArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``as_of`` may only name the last completed day: there is no other context."""

    as_of: Day | None = None


class IndexTone(msgspec.Struct, frozen=True, kw_only=True):
    """An index's returns, and its annualised volatility over 20 sessions. Its level is never shown."""

    name: str
    return_1d: float | None
    return_5d: float | None
    return_20d: float | None
    return_60d: float | None
    volatility_20d: float | None
    drawdown_60d: float | None


class Calendar(msgspec.Struct, frozen=True, kw_only=True):
    """Where we are: the last completed day, the day whose open fills orders, and the step of the episode."""

    data_cutoff: Day | None
    trade_day: Day
    step: int


class Breadth(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the universe rose, fell, closed at a limit or are suspended."""

    names: int
    advancing: int
    declining: int
    at_limit_up: int
    at_limit_down: int
    suspended: int


class SectorTone(msgspec.Struct, frozen=True, kw_only=True):
    """A sector's equal-weighted return."""

    sector: str
    names: int
    return_1d: float | None
    return_5d: float | None
    return_20d: float | None


class MarketContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of the market at the last close."""

    as_of: Day | None
    calendar: Calendar
    indices: tuple[IndexTone, ...]
    breadth: Breadth
    sector_tone: tuple[SectorTone, ...]
    news: tuple[Headline, ...] = ()


def market_context(desk: Desk, arguments: ContextArguments) -> MarketContext:
    """Return the state of the market at the last close."""
    refuse_future(desk, arguments.as_of)
    if arguments.as_of is not None and arguments.as_of.iso != desk.days[-1]:
        raise ToolRefused("this tool only knows the state at the data cutoff", hint="leave as_of out")
    index = desk.rules.benchmark_index
    columns = desk.observation.columns
    change = desk.change(1)[columns]
    return MarketContext(
        as_of=desk.as_of,
        calendar=Calendar(data_cutoff=desk.as_of, trade_day=desk.today, step=desk.observation.step),
        indices=() if index is None else (_index_tone(desk.index_levels(HORIZONS[-1] + 1)),),
        breadth=Breadth(
            names=columns.size,
            advancing=int(np.count_nonzero(change > 0)),
            declining=int(np.count_nonzero(change < 0)),
            at_limit_up=int(np.count_nonzero(desk.at_limit_up[columns])),
            at_limit_down=int(np.count_nonzero(desk.at_limit_down[columns])),
            suspended=columns.size - int(np.count_nonzero(desk.tradable[columns])),
        ),
        sector_tone=_sectors(desk),
        news=headlines(desk, None) if desk.config.news else (),
    )


def _index_tone(levels: Floats) -> IndexTone:
    known = levels.tolist()
    day, week, month, quarter = (
        rounded(known[-1] / known[-1 - n] - 1.0) if len(known) > n and known[-1 - n] else None for n in HORIZONS
    )
    spread = math.nan
    if len(known) > 2:
        daily = levels[-21:]
        off = daily[1:] / daily[:-1] - 1.0
        off -= np.add.reduce(off) / off.size  # to the last bit what np.std does, without its detours
        spread = math.sqrt(np.add.reduce(off * off) / (off.size - 1)) * math.sqrt(252.0)
    return IndexTone(
        name="benchmark_index",
        return_1d=day,
        return_5d=week,
        return_20d=month,
        return_60d=quarter,
        volatility_20d=rounded(spread),
        drawdown_60d=rounded(known[-1] / (levels.max() or math.nan) - 1.0) if known else None,
    )


def _sectors(desk: Desk) -> tuple[SectorTone, ...]:
    columns = desk.observation.columns
    group = desk.roster.sector_of[columns]
    known = group >= 0
    group, columns = group[known], columns[known]
    sectors = desk.roster.sectors
    counts = np.bincount(group, minlength=len(sectors))
    shown = []
    for sessions in HORIZONS[:3]:
        values, of, among = desk.change(sessions)[columns], group, counts
        if not math.isfinite(values.sum()):  # a name without a close in between
            known = np.isfinite(values)
            values, of = values[known], group[known]
            among = np.bincount(of, minlength=counts.size)
        with np.errstate(invalid="ignore"):
            shown.append(all_rounded(np.bincount(of, weights=values, minlength=counts.size) / among))
    return tuple(
        SectorTone(sector=sector, names=count, return_1d=day, return_5d=week, return_20d=month)
        for sector, count, day, week, month in zip(sectors, counts.tolist(), *shown, strict=True)
        if count
    )


MARKET_CONTEXT = Tool(
    "get_market_context",
    "The market at the last close: returns, volatility and drawdown of the benchmark index, where we are in "
    "the calendar, how many names rose and fell, and the tone of every sector. Takes no arguments.",
    ContextArguments,
    market_context,
)


# -- screen_candidates: the universe ranked by factors --


class ScreenArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``factors`` to rank by, each counting the same, a leading minus preferring low values."""

    factors: Annotated[list[str], Meta(min_length=1, max_length=2 * len(FACTOR_NAMES))]
    top_k: Annotated[int, Meta(ge=1)] = 20


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One name. ``score`` is the mean of its percentile ranks, 1 being best."""

    stock_id: Stock
    rank: int
    score: float | None
    board: str
    factors: dict[str, float | None]


class Screened(msgspec.Struct, frozen=True, kw_only=True):
    """Names, best first. ``left_out`` counts suspended names, those at limit-up and those without a value."""

    as_of: Day | None
    candidates: tuple[Candidate, ...]
    left_out: int


def screen_candidates(desk: Desk, arguments: ScreenArguments) -> Screened:
    """Rank what may be bought; raises :class:`ToolRefused` for an unknown factor or too many names."""
    if arguments.top_k > desk.config.most_screened:
        raise ToolRefused(f"top_k is at most {desk.config.most_screened}")
    wanted = [_direction(name) for name in arguments.factors]
    names = tuple(dict.fromkeys(name for name, _ in wanted))
    columns = desk.observation.columns
    open_to_buy = columns[desk.tradable[columns] & ~desk.at_limit_up[columns]]
    values = desk.factor_rows([name for name, _ in wanted])[:, open_to_buy]
    known = np.isfinite(values).all(axis=0)
    eligible, values = open_to_buy[known], values[:, known]
    signs = np.array([sign for _, sign in wanted])
    ties = None if desk.shown is None else desk.last_bars["close"][eligible]
    score = percentile_ranks(values * signs[:, None], ties).mean(axis=0)
    best = _order(-score, ties)[: arguments.top_k]
    chosen, stocks, boards = eligible[best].tolist(), desk.roster.stocks, desk.roster.boards
    shown = zip(chosen, all_rounded(score[best]), desk.factor_values(chosen, names), strict=True)
    return Screened(
        as_of=desk.as_of,
        candidates=tuple(
            Candidate(stock_id=stocks[column], rank=rank, score=points, board=boards[column], factors=factors)
            for rank, (column, points, factors) in enumerate(shown, start=1)
        ),
        left_out=int(columns.size - eligible.size),
    )


def percentile_ranks(values: Floats, ties: Floats | None) -> Floats:
    """Return the ranks in every row, from 0 (lowest) to 1 (highest)."""
    count = values.shape[1]
    ranks, places = np.empty(values.shape), np.arange(count, dtype=np.float64)
    for row, known in zip(ranks, values, strict=True):
        row[_order(known, ties)] = places
    return np.asarray(ranks / max(1, count - 1))


def _order(values: Floats, ties: Floats | None) -> Ints:
    """Return the order of values, lowest first. Equal ones stand as given, which is by their true symbols; under a
    hardened mask by ``ties``, the closes that are shown: two factors of 300 names have hundreds of equal scores,
    from which a program read the alphabet."""
    return np.argsort(values, kind="stable") if ties is None else np.lexsort((ties, values))


def top_of_each(desk: Desk, top: int, most: int) -> Ints:
    """Return the columns of the union of the ``top`` names by each factor, at most ``most``, by column.

    Places are allotted in rounds (the best by each factor, then the second best ...), so that a union cut short
    favours no factor.
    """
    columns = desk.observation.columns
    columns = columns[desk.tradable[columns] & ~desk.at_limit_up[columns]]
    values = np.where(np.isfinite(desk.factors[:, columns]), desk.factors[:, columns], -np.inf)
    ties = None if desk.shown is None else desk.last_bars["close"][columns]
    order = np.array([_order(-row, ties)[:top] for row in values])
    chosen: dict[int, None] = {}
    for place in range(order.shape[1]):
        for factor in range(order.shape[0]):
            at = order[factor, place]
            if np.isfinite(values[factor, at]) and len(chosen) < most:
                chosen[int(columns[at])] = None
    return np.array(sorted(chosen), dtype=np.int64)


def _direction(name: str) -> tuple[str, float]:
    bare, sign = (name[1:], -1.0) if name.startswith("-") else (name, 1.0)
    if bare not in FACTOR_NAMES:
        raise ToolRefused("there is no such factor", hint=f"one of {', '.join(FACTOR_NAMES)}")
    return bare, sign


SCREENING = Tool(
    "screen_candidates",
    "Rank the names that may be bought by one or more factors (equal say, high values first; write -NAME for "
    f"low values first) and return the top_k with their factor values. Factors: {', '.join(FACTOR_NAMES)}.",
    ScreenArguments,
    screen_candidates,
)


# -- get_stock_snapshot: one name's bars, factors and previous close --

COLUMNS = ("day", *FIELDS)


class SnapshotArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``lookback`` sessions up to ``as_of`` (the last completed day when left out)."""

    stock_id: Stock
    lookback: Annotated[int, Meta(ge=1)] = 20
    as_of: Day | None = None


class StockSnapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One name. ``bars`` are rows of ``columns``, oldest first; factors and limits are those of the data cutoff.

    ``limit_up`` and ``limit_down`` are the prices at which the name stops trading in the coming session.
    """

    stock_id: Stock
    board: str
    state: str
    as_of: Day | None
    columns: tuple[str, ...] = msgspec.field(default_factory=tuple)
    bars: tuple[tuple[Day | float | None, ...], ...] = msgspec.field(default_factory=tuple)
    factors: dict[str, float | None]
    prev_close: float | None
    limit_up: float | None
    limit_down: float | None
    news: tuple[Headline, ...] = ()


def stock_snapshot(desk: Desk, arguments: SnapshotArguments) -> StockSnapshot:
    """Return one name's recent past; raises :class:`ToolRefused` for the future or for too long a past."""
    config = desk.config
    column = look_up(desk, arguments.stock_id)
    if arguments.lookback > config.longest_lookback:
        raise ToolRefused(f"lookback is at most {config.longest_lookback} sessions")
    refuse_future(desk, arguments.as_of)
    close, up, down = desk.limits(column)
    days = desk.days
    stop = len(days) if arguments.as_of is None else sum(day <= arguments.as_of.iso for day in days)
    start = max(0, stop - arguments.lookback)
    shown = {field: desk.bars(field, len(days))[start:stop, column] for field in FIELDS}
    bars = [all_rounded(values, BAR_DIGITS[field]) for field, values in shown.items()]
    return StockSnapshot(
        stock_id=arguments.stock_id,
        board=desk.roster.boards[column],
        state=desk.state(column),
        as_of=desk.as_of,
        columns=COLUMNS,
        bars=tuple((Day(day), *row) for day, row in zip(days[start:stop], zip(*bars, strict=True), strict=True)),
        factors=desk.factor_values((column,), FACTOR_NAMES)[0],
        prev_close=close,
        limit_up=up,
        limit_down=down,
        news=headlines(desk, arguments.stock_id) if config.news else (),
    )


SNAPSHOT = Tool(
    "get_stock_snapshot",
    "One name in detail: its last daily bars (split-adjusted), its nine factors, its previous close and the "
    "price limits of the coming session. lookback counts completed sessions.",
    SnapshotArguments,
    stock_snapshot,
)


# -- compare_candidates: several names side by side --


class CompareArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which names, and in which respects."""

    stock_ids: Annotated[list[Stock], Meta(min_length=1)]
    dims: Annotated[list[str], Meta(min_length=1, max_length=20)]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One row per name."""

    as_of: Day | None
    grid: dict[Stock, dict[str, float | None]]


RETURNS = {f"return_{sessions}d": sessions for sessions in HORIZONS}
DIMS: tuple[str, ...] = (*FACTOR_NAMES, *RETURNS, "volatility_20d", "drawdown_60d")


def compare_candidates(desk: Desk, arguments: CompareArguments) -> Comparison:
    """Return a grid; raises :class:`ToolRefused` for an unknown dimension, an unknown name or too many names."""
    if len(arguments.stock_ids) > desk.config.most_compared:
        raise ToolRefused(f"at most {desk.config.most_compared} names can be compared at once")
    dims = tuple(dict.fromkeys(arguments.dims))
    if any(dim not in DIMS for dim in dims):
        raise ToolRefused("there is no such dimension", hint=f"any of {', '.join(DIMS)}")
    stocks = tuple(dict.fromkeys(arguments.stock_ids))
    columns = np.array([look_up(desk, stock) for stock in stocks], dtype=np.int64)
    values = [all_rounded(_dimension(desk, dim, columns)) for dim in dims]
    rows = zip(stocks, zip(*values, strict=True), strict=True)
    return Comparison(as_of=desk.as_of, grid={stock: dict(zip(dims, row, strict=True)) for stock, row in rows})


def _dimension(desk: Desk, dim: str, columns: Ints) -> Floats:
    found: Floats
    if dim in FACTOR_NAMES:
        found = desk.factor_rows((dim,))[0, columns]
    elif desk.closes.shape[0] <= 1:
        found = np.full(columns.size, np.nan)
    elif dim in RETURNS:
        found = desk.change(RETURNS[dim])[columns]
    else:
        closes = desk.shown_closes[:, columns]
        with np.errstate(all="ignore"):
            if dim == "drawdown_60d":
                found = closes[-1] / np.fmax.reduce(closes, axis=0) - 1.0
            else:
                month = closes[-21:]
                found = np.std(month[1:] / month[:-1] - 1.0, axis=0, ddof=1) * np.sqrt(252.0)
    return found


_DIMENSIONS = f"Put one name or several side by side. Dimensions: {', '.join(DIMS)}."
COMPARISON = Tool("compare_candidates", _DIMENSIONS, CompareArguments, compare_candidates)


# -- portfolio_state: holdings, cash, T+1 locks --


class PortfolioArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """None."""


class PortfolioState(msgspec.Struct, frozen=True, kw_only=True):
    """The account. ``locked`` lists what was bought too recently to be sold in the coming session."""

    as_of: Day | None
    cash: float
    nav: float
    cash_ratio: float
    positions: tuple[PositionShown, ...]
    locked: dict[Stock, float]


def portfolio_state(desk: Desk, arguments: PortfolioArguments) -> PortfolioState:
    """Return the account."""
    account = show_account(desk)
    return PortfolioState(
        as_of=desk.as_of,
        cash=account.cash,
        nav=account.nav,
        cash_ratio=account.cash_ratio,
        positions=account.positions,
        locked={row.stock_id: row.shares - row.sellable for row in account.positions if row.sellable < row.shares},
    )


_ACCOUNT = "The account: cash, value, holdings and what T+1 keeps from being sold. Takes no arguments."
PORTFOLIO = Tool("portfolio_state", _ACCOUNT, PortfolioArguments, portfolio_state)


# -- risk_check: would these weights be allowed, and what would the portfolio look like? --


class RiskArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Weights to be held; what is not named stays as it is."""

    target_weights: Annotated[dict[Stock, Annotated[float, Meta(ge=0, le=1)]], Meta(min_length=1, max_length=60)]


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """The portfolio if all were filled at the last close. ``turnover`` is the traded amount over the value."""

    positions: int
    invested: float
    cash_weight: float
    largest_weight: float
    hhi: float
    turnover: float
    costs: float


class LimitsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The prices at which a name stops trading in the coming session, and its state at the last close."""

    state: str
    prev_close: float | None
    limit_up: float | None
    limit_down: float | None


class RiskReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say about the wanted weights, and the portfolio they would give."""

    as_of: Day | None
    allowed: bool
    violations: tuple[ActionViolation, ...]
    projected: Projection
    limits: dict[Stock, LimitsShown]


def risk_check(desk: Desk, arguments: RiskArguments) -> RiskReport:
    """Judge target weights by the rules of submission; raises :class:`ToolRefused` for a name out of reach."""
    weights = arguments.target_weights
    limits = {}
    for stock in weights:
        column = look_up(desk, stock)
        close, up, down = desk.limits(column)
        limits[stock] = LimitsShown(state=desk.state(column), prev_close=close, limit_up=up, limit_down=down)
    orders = [
        Order(symbol=stock.symbol, amount=weight, unit="target_weight", side="BUY" if weight > now else "SELL")
        for stock, weight in weights.items()
        if abs(weight - (now := desk.account.weight(stock.symbol))) > SAME
    ]
    violations = check_orders(orders, desk)
    return RiskReport(
        as_of=desk.as_of,
        allowed=not violations,
        violations=violations,
        projected=_project(desk, weights),
        limits=limits,
    )


def _project(desk: Desk, targets: dict[Stock, float]) -> Projection:
    account = desk.account
    before = {symbol: account.weight(symbol) for symbol in account.positions}
    after = {**before, **{stock.symbol: weight for stock, weight in targets.items()}}
    bought = plain_sum(max(0.0, weight - before.get(symbol, 0.0)) for symbol, weight in after.items())
    sold = plain_sum(max(0.0, before.get(symbol, 0.0) - weight) for symbol, weight in after.items())
    invested = plain_sum(after.values())
    shares = [weight / invested for weight in after.values()] if invested > 0 else []
    return Projection(
        positions=sum(weight > 0 for weight in after.values()),
        invested=desk.share(invested),
        cash_weight=desk.share(1.0 - invested),
        largest_weight=desk.share(max(after.values(), default=0.0)),
        hhi=desk.share(plain_sum(share * share for share in shares)),
        turnover=desk.share(bought + sold),
        costs=desk.money((bought * desk.rules.buy_cost + sold * desk.rules.sell_cost) * account.nav),
    )


RISK = Tool(
    "risk_check",
    "Try target weights before submitting them: which constraints they would break, what the portfolio would "
    "look like, and the price limits of the coming session. Weights are shares of the account's value.",
    RiskArguments,
    risk_check,
)


TOOLS: tuple[AnyTool, ...] = (MARKET_CONTEXT, SCREENING, SNAPSHOT, COMPARISON, PORTFOLIO, RISK)
BY_NAME: dict[str, AnyTool] = {tool.name: tool for tool in TOOLS}
