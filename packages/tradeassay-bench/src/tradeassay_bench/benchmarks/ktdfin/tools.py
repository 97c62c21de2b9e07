"""Implement the six research tools as pure functions of the day's view.

The results are encoded as JSON elsewhere.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.arrays import Floats, Ints
from tradeassay.factors import FACTOR_NAMES
from tradeassay_bench.benchmarks.ktdfin.action import SAME, check_orders
from tradeassay_bench.benchmarks.ktdfin.day_view import BAR_DIGITS, DayView, in_order
from tradeassay_bench.benchmarks.ktdfin.observation import headlines, show_account
from tradeassay_bench.benchmarks.ktdfin.wire import Day, Stock, all_rounded, rounded
from tradeassay_bench.core.errors import AgentError
from tradeassay_bench.core.orders import Order
from tradeassay_bench.core.view import FIELDS

Shown = dict[str, Any]
HORIZONS = (1, 5, 20, 60)
RETURNS = {f"return_{sessions}d": sessions for sessions in HORIZONS}
DIMS: tuple[str, ...] = (*FACTOR_NAMES, *RETURNS, "volatility_20d", "drawdown_60d")


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of every tool's arguments."""


class ToolRefused(AgentError):
    """A well-formed call that cannot be answered.

    Its message repeats no name, date or word of the caller.
    """


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``answer`` may raise :class:`ToolRefused`, which becomes a masked error."""

    name: str
    description: str
    arguments: type[Arguments]
    answer: Callable[[DayView, Any], Shown]


def look_up(day_view: DayView, stock: Stock) -> int:
    """Return a stock's column. Raises :class:`ToolRefused` if tools may not show the stock."""
    if not day_view.in_reach(stock):
        hint = "use an id exactly as it was shown"
        raise ToolRefused("no such stock id in the universe or the portfolio", hint=hint)
    return day_view.column(stock)


def refuse_future(day_view: DayView, day: Day | None) -> None:
    """Raise :class:`ToolRefused` for a day that is not yet completed."""
    if day is not None and (not day_view.days or day.iso > day_view.days[-1]):
        words = "that day is not over yet: nothing after the data cutoff is known"
        raise ToolRefused(words, hint="leave as_of out")


# -- get_market_context: indices, calendar, sector tone --


class ContextArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of the market context. ``as_of`` may only name the last completed day."""

    as_of: Day | None = None


def market_context(day_view: DayView, arguments: ContextArguments) -> Shown:
    """Return the state of the market at the last close. The level of the index is never shown."""
    refuse_future(day_view, arguments.as_of)
    if arguments.as_of is not None and arguments.as_of.iso != day_view.days[-1]:
        raise ToolRefused(
            "this tool only knows the state at the data cutoff", hint="leave as_of out"
        )
    columns = day_view.observation.columns
    change = day_view.change(1)[columns]
    indices = []
    if day_view.rules.benchmark_index is not None:
        levels = day_view.index_levels(HORIZONS[-1] + 1)
        known = levels.tolist()
        tone: Shown = {"name": "benchmark_index"}
        for name, n in RETURNS.items():
            before = known[-1 - n] if len(known) > n else 0.0
            tone[name] = rounded(known[-1] / before - 1.0) if before else None
        spread = math.nan
        if len(known) > 2:
            daily = levels[-21:]
            off = daily[1:] / daily[:-1] - 1.0
            # Equal to np.std to the last bit, but faster.
            off -= np.add.reduce(off) / off.size
            spread = math.sqrt(np.add.reduce(off * off) / (off.size - 1)) * math.sqrt(252.0)
        tone["volatility_20d"] = rounded(spread)
        tone["drawdown_60d"] = (
            rounded(known[-1] / (levels.max() or math.nan) - 1.0) if known else None
        )
        indices.append(tone)
    news = headlines(day_view, None) if day_view.config.news else ()
    return {
        "as_of": day_view.as_of,
        "calendar": {
            "data_cutoff": day_view.as_of,
            "trade_day": day_view.today,
            "step": day_view.observation.step,
        },
        "indices": indices,
        "breadth": {
            "names": columns.size,
            "advancing": int(np.count_nonzero(change > 0)),
            "declining": int(np.count_nonzero(change < 0)),
            "at_limit_up": int(np.count_nonzero(day_view.at_limit_up[columns])),
            "at_limit_down": int(np.count_nonzero(day_view.at_limit_down[columns])),
            "suspended": columns.size - int(np.count_nonzero(day_view.tradable[columns])),
        },
        "sector_tone": _sectors(day_view),
        **({"news": news} if news else {}),
    }


def _sectors(day_view: DayView) -> list[Shown]:
    """Return the equal-weighted returns of each sector."""
    columns = day_view.observation.columns
    group = day_view.roster.sector_of[columns]
    known = group >= 0
    group, columns = group[known], columns[known]
    sectors = day_view.roster.sectors
    counts = np.bincount(group, minlength=len(sectors))
    shown = []
    for sessions in HORIZONS[:3]:
        values, of, among = day_view.change(sessions)[columns], group, counts
        if not math.isfinite(values.sum()):  # a name without a close in this period
            known = np.isfinite(values)
            values, of = values[known], group[known]
            among = np.bincount(of, minlength=counts.size)
        with np.errstate(invalid="ignore"):
            shown.append(
                all_rounded(np.bincount(of, weights=values, minlength=counts.size) / among)
            )
    return [
        {"sector": sector, "names": count, **dict(zip(RETURNS, tones, strict=False))}
        for sector, count, *tones in zip(sectors, counts.tolist(), *shown, strict=True)
        if count
    ]


# -- screen_candidates: the universe ranked by factors --


class ScreenArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a screen.

    ``factors`` are equally weighted. A leading minus prefers low values.
    """

    factors: Annotated[list[str], Meta(min_length=1, max_length=2 * len(FACTOR_NAMES))]
    top_k: Annotated[int, Meta(ge=1)] = 20


def screen_candidates(day_view: DayView, arguments: ScreenArguments) -> Shown:
    """Return the names that may be bought, ranked by factors.

    A score is the mean of a name's percentile ranks, with 1 as the best. ``left_out`` counts the
    names that are suspended, closed limit-up or have no value. Raises :class:`ToolRefused` for an
    unknown factor or too many names.
    """
    if arguments.top_k > day_view.config.most_screened:
        raise ToolRefused(f"top_k is at most {day_view.config.most_screened}")
    wanted = [name.removeprefix("-") for name in arguments.factors]
    if not set(wanted) <= set(FACTOR_NAMES):
        raise ToolRefused("there is no such factor", hint=f"one of {', '.join(FACTOR_NAMES)}")
    signs = np.array([-1.0 if name.startswith("-") else 1.0 for name in arguments.factors])
    columns = day_view.observation.columns
    open_to_buy = columns[day_view.tradable[columns] & ~day_view.at_limit_up[columns]]
    values = day_view.factor_rows(wanted)[:, open_to_buy]
    known = np.isfinite(values).all(axis=0)
    eligible, values = open_to_buy[known], values[:, known]
    ties = None if day_view.shown is None else day_view.last_bars["close"][eligible]
    # Percentile ranks in every row, from 0 (lowest) to 1 (highest).
    count = values.shape[1]
    ranks, places = np.empty(values.shape), np.arange(count, dtype=np.float64)
    for row, signed in zip(ranks, values * signs[:, None], strict=True):
        row[in_order(signed, ties)] = places
    score = (ranks / max(1, count - 1)).mean(axis=0)
    best = in_order(-score, ties)[: arguments.top_k]
    chosen = eligible[best].tolist()
    factors, rows = day_view.factor_values(chosen, tuple(dict.fromkeys(wanted))), list[Shown]()
    for column, points, own in zip(chosen, all_rounded(score[best]), factors, strict=True):
        placed = {
            "stock_id": day_view.roster.stocks[column],
            "rank": len(rows) + 1,
            "score": points,
        }
        rows.append({**placed, "board": day_view.roster.boards[column], "factors": own})
    return {
        "as_of": day_view.as_of,
        "candidates": rows,
        "left_out": int(columns.size - eligible.size),
    }


# -- get_stock_snapshot: one name's bars, factors and previous close --


class SnapshotArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a snapshot: ``lookback`` sessions up to ``as_of`` (default: the last completed
    day).
    """

    stock_id: Stock
    lookback: Annotated[int, Meta(ge=1)] = 20
    as_of: Day | None = None


def stock_snapshot(day_view: DayView, arguments: SnapshotArguments) -> Shown:
    """Return the recent bars of one name, oldest first, with its factors and price limits.

    Factors and limits are as of the data cutoff. Raises :class:`ToolRefused` for a future day or an
    excessive lookback.
    """
    config = day_view.config
    column = look_up(day_view, arguments.stock_id)
    if arguments.lookback > config.longest_lookback:
        raise ToolRefused(f"lookback is at most {config.longest_lookback} sessions")
    refuse_future(day_view, arguments.as_of)
    days = day_view.days
    stop = len(days) if arguments.as_of is None else sum(day <= arguments.as_of.iso for day in days)
    start = max(0, stop - arguments.lookback)
    shown = {field: day_view.bars(field, len(days))[start:stop, column] for field in FIELDS}
    bars = [all_rounded(values, BAR_DIGITS[field]) for field, values in shown.items()]
    news = headlines(day_view, arguments.stock_id) if config.news else ()
    return {
        "stock_id": arguments.stock_id,
        "board": day_view.roster.boards[column],
        "state": day_view.state(column),
        "as_of": day_view.as_of,
        "columns": ("day", *FIELDS),
        "bars": [
            (Day(day), *row)
            for day, row in zip(days[start:stop], zip(*bars, strict=True), strict=True)
        ],
        "factors": day_view.factor_values((column,), FACTOR_NAMES)[0],
        **day_view.limits(column),
        **({"news": news} if news else {}),
    }


# -- compare_candidates: several names side by side --


class CompareArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a comparison: the names and the dimensions."""

    stock_ids: Annotated[list[Stock], Meta(min_length=1)]
    dims: Annotated[list[str], Meta(min_length=1, max_length=20)]


def compare_candidates(day_view: DayView, arguments: CompareArguments) -> Shown:
    """Return a grid of names and dimensions.

    Raises :class:`ToolRefused` for an unknown dimension, an unknown name or too many names.
    """
    if len(arguments.stock_ids) > day_view.config.most_compared:
        raise ToolRefused(f"at most {day_view.config.most_compared} names can be compared at once")
    dims = tuple(dict.fromkeys(arguments.dims))
    if any(dim not in DIMS for dim in dims):
        raise ToolRefused("there is no such dimension", hint=f"any of {', '.join(DIMS)}")
    stocks = tuple(dict.fromkeys(arguments.stock_ids))
    columns = np.array([look_up(day_view, stock) for stock in stocks], dtype=np.int64)
    values = [all_rounded(_dimension(day_view, dim, columns)) for dim in dims]
    rows = zip(stocks, zip(*values, strict=True), strict=True)
    return {
        "as_of": day_view.as_of,
        "grid": {stock: dict(zip(dims, row, strict=True)) for stock, row in rows},
    }


def _dimension(day_view: DayView, dim: str, columns: Ints) -> Floats:
    """Return the values of one dimension for some columns."""
    values: Floats
    if dim in FACTOR_NAMES:
        values = day_view.factor_rows((dim,))[0, columns]
    elif day_view.closes.shape[0] <= 1:
        values = np.full(columns.size, np.nan)
    elif dim in RETURNS:
        values = day_view.change(RETURNS[dim])[columns]
    else:
        closes = day_view.shown_closes[:, columns]
        with np.errstate(all="ignore"):
            if dim == "drawdown_60d":
                values = closes[-1] / np.fmax.reduce(closes, axis=0) - 1.0
            else:
                month = closes[-21:]
                values = np.std(month[1:] / month[:-1] - 1.0, axis=0, ddof=1) * np.sqrt(252.0)
    return values


# -- portfolio_state: holdings, cash, T+1 locks --


class PortfolioArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of the portfolio state. There are none."""


def portfolio_state(day_view: DayView, arguments: PortfolioArguments) -> Shown:
    """Return the account. ``locked`` counts shares that cannot be sold in the coming session."""
    account = show_account(day_view)
    locked = {
        row.stock_id: row.shares - row.sellable
        for row in account.positions
        if row.sellable < row.shares
    }
    return {"as_of": day_view.as_of, **msgspec.structs.asdict(account), "locked": locked}


# -- risk_check: whether weights are allowed, and the resulting portfolio --


class RiskArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Target weights. Positions without a weight do not change."""

    target_weights: Annotated[
        dict[Stock, Annotated[float, Meta(ge=0, le=1)]], Meta(min_length=1, max_length=60)
    ]


def risk_check(day_view: DayView, arguments: RiskArguments) -> Shown:
    """Return the violations by target weights, and the resulting portfolio.

    The projection assumes fills at the last close. Its turnover is the traded amount over the value
    of the account. Raises :class:`ToolRefused` for a stock that tools may not show.
    """
    weights, account = arguments.target_weights, day_view.account
    limits = {}
    for stock in weights:
        column = look_up(day_view, stock)
        limits[stock] = {"state": day_view.state(column), **day_view.limits(column)}
    orders = [
        Order(
            symbol=stock.symbol,
            amount=weight,
            unit="target_weight",
            side="BUY" if weight > now else "SELL",
        )
        for stock, weight in weights.items()
        if abs(weight - (now := account.weight(stock.symbol))) > SAME
    ]
    violations = check_orders(orders, day_view)
    before = {symbol: account.weight(symbol) for symbol in account.positions}
    after = {**before, **{stock.symbol: weight for stock, weight in weights.items()}}
    bought = math.fsum(
        max(0.0, weight - before.get(symbol, 0.0)) for symbol, weight in after.items()
    )
    sold = math.fsum(max(0.0, before.get(symbol, 0.0) - weight) for symbol, weight in after.items())
    invested = math.fsum(after.values())
    shares = [weight / invested for weight in after.values()] if invested > 0 else []
    return {
        "as_of": day_view.as_of,
        "allowed": not violations,
        "violations": violations,
        "projected": {
            "positions": sum(weight > 0 for weight in after.values()),
            "invested": day_view.share(invested),
            "cash_weight": day_view.share(1.0 - invested),
            "largest_weight": day_view.share(max(after.values(), default=0.0)),
            "hhi": day_view.share(math.fsum(share * share for share in shares)),
            "turnover": day_view.share(bought + sold),
            "costs": day_view.money(
                (bought * day_view.rules.buy_cost + sold * day_view.rules.sell_cost) * account.nav
            ),
        },
        "limits": limits,
    }


TOOLS = (
    Tool(
        "get_market_context",
        "The market at the last close: returns, volatility and drawdown of the benchmark index, "
        "where we are in "
        "the calendar, how many names rose and fell, and the tone of every sector. Takes no "
        "arguments.",
        ContextArguments,
        market_context,
    ),
    Tool(
        "screen_candidates",
        "Rank the names that may be bought by one or more factors (equal say, high values first; "
        "write -NAME for "
        "low values first) and return the top_k with their factor values. Factors: "
        f"{', '.join(FACTOR_NAMES)}.",
        ScreenArguments,
        screen_candidates,
    ),
    Tool(
        "get_stock_snapshot",
        "One name in detail: its last daily bars (split-adjusted), its nine factors, its previous "
        "close and the "
        "price limits of the coming session. lookback counts completed sessions.",
        SnapshotArguments,
        stock_snapshot,
    ),
    Tool(
        "compare_candidates",
        f"Put one name or several side by side. Dimensions: {', '.join(DIMS)}.",
        CompareArguments,
        compare_candidates,
    ),
    Tool(
        "portfolio_state",
        "The account: cash, value, holdings and what T+1 keeps from being sold. Takes no "
        "arguments.",
        PortfolioArguments,
        portfolio_state,
    ),
    Tool(
        "risk_check",
        "Try target weights before submitting them: which constraints they would break, what the "
        "portfolio would "
        "look like, and the price limits of the coming session. Weights are shares of the "
        "account's value.",
        RiskArguments,
        risk_check,
    ),
)
BY_NAME = {tool.name: tool for tool in TOOLS}
