"""The six research tools: pure functions from the day's desk to an answer, which is written as JSON."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.benchmarks.ktdfin.action import SAME, check_orders
from tradeassay.benchmarks.ktdfin.desk import BAR_DIGITS, Desk, in_order
from tradeassay.benchmarks.ktdfin.observation import headlines, show_account
from tradeassay.benchmarks.ktdfin.wire import Day, Stock, all_rounded, rounded
from tradeassay.core.errors import AgentError
from tradeassay.core.measure import plain_sum
from tradeassay.core.orders import Order
from tradeassay.core.view import FIELDS, Floats, Ints
from tradeassay.factors import FACTOR_NAMES

Shown = dict[str, Any]
HORIZONS = (1, 5, 20, 60)
RETURNS = {f"return_{sessions}d": sessions for sessions in HORIZONS}
DIMS: tuple[str, ...] = (*FACTOR_NAMES, *RETURNS, "volatility_20d", "drawdown_60d")


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every tool's arguments."""


class ToolRefused(AgentError):
    """A well-formed call that cannot be answered. Its message repeats no name, date or word of the caller."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``answer`` may raise :class:`ToolRefused`; the gate turns that into a masked error."""

    name: str
    description: str
    arguments: type[Arguments]
    answer: Callable[[Desk, Any], Shown]


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


class ContextArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``as_of`` may only name the last completed day: there is no other context."""

    as_of: Day | None = None


def market_context(desk: Desk, arguments: ContextArguments) -> Shown:
    """Return the state of the market at the last close. The level of the index is never shown."""
    refuse_future(desk, arguments.as_of)
    if arguments.as_of is not None and arguments.as_of.iso != desk.days[-1]:
        raise ToolRefused("this tool only knows the state at the data cutoff", hint="leave as_of out")
    columns = desk.observation.columns
    change = desk.change(1)[columns]
    indices = []
    if desk.rules.benchmark_index is not None:
        levels = desk.index_levels(HORIZONS[-1] + 1)
        known = levels.tolist()
        tone: Shown = {"name": "benchmark_index"}
        for name, n in RETURNS.items():
            before = known[-1 - n] if len(known) > n else 0.0
            tone[name] = rounded(known[-1] / before - 1.0) if before else None
        spread = math.nan
        if len(known) > 2:
            daily = levels[-21:]
            off = daily[1:] / daily[:-1] - 1.0
            off -= np.add.reduce(off) / off.size  # to the last bit what np.std does, without its detours
            spread = math.sqrt(np.add.reduce(off * off) / (off.size - 1)) * math.sqrt(252.0)
        tone["volatility_20d"] = rounded(spread)
        tone["drawdown_60d"] = rounded(known[-1] / (levels.max() or math.nan) - 1.0) if known else None
        indices.append(tone)
    news = headlines(desk, None) if desk.config.news else ()
    return {
        "as_of": desk.as_of,
        "calendar": {"data_cutoff": desk.as_of, "trade_day": desk.today, "step": desk.observation.step},
        "indices": indices,
        "breadth": {
            "names": columns.size,
            "advancing": int(np.count_nonzero(change > 0)),
            "declining": int(np.count_nonzero(change < 0)),
            "at_limit_up": int(np.count_nonzero(desk.at_limit_up[columns])),
            "at_limit_down": int(np.count_nonzero(desk.at_limit_down[columns])),
            "suspended": columns.size - int(np.count_nonzero(desk.tradable[columns])),
        },
        "sector_tone": _sectors(desk),
        **({"news": news} if news else {}),
    }


def _sectors(desk: Desk) -> list[Shown]:
    """Return every sector's equal-weighted returns."""
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
    return [
        {"sector": sector, "names": count, **dict(zip(RETURNS, tones, strict=False))}
        for sector, count, *tones in zip(sectors, counts.tolist(), *shown, strict=True)
        if count
    ]


# -- screen_candidates: the universe ranked by factors --


class ScreenArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``factors`` to rank by, each counting the same, a leading minus preferring low values."""

    factors: Annotated[list[str], Meta(min_length=1, max_length=2 * len(FACTOR_NAMES))]
    top_k: Annotated[int, Meta(ge=1)] = 20


def screen_candidates(desk: Desk, arguments: ScreenArguments) -> Shown:
    """Rank what may be bought; raises :class:`ToolRefused` for an unknown factor or too many names.

    A score is the mean of a name's percentile ranks, 1 being best. ``left_out`` counts suspended names, those at
    limit-up and those without a value."""
    if arguments.top_k > desk.config.most_screened:
        raise ToolRefused(f"top_k is at most {desk.config.most_screened}")
    wanted = [name.removeprefix("-") for name in arguments.factors]
    if not set(wanted) <= set(FACTOR_NAMES):
        raise ToolRefused("there is no such factor", hint=f"one of {', '.join(FACTOR_NAMES)}")
    signs = np.array([-1.0 if name.startswith("-") else 1.0 for name in arguments.factors])
    columns = desk.observation.columns
    open_to_buy = columns[desk.tradable[columns] & ~desk.at_limit_up[columns]]
    values = desk.factor_rows(wanted)[:, open_to_buy]
    known = np.isfinite(values).all(axis=0)
    eligible, values = open_to_buy[known], values[:, known]
    ties = None if desk.shown is None else desk.last_bars["close"][eligible]
    # Percentile ranks in every row, from 0 (lowest) to 1 (highest).
    count = values.shape[1]
    ranks, places = np.empty(values.shape), np.arange(count, dtype=np.float64)
    for row, signed in zip(ranks, values * signs[:, None], strict=True):
        row[in_order(signed, ties)] = places
    score = (ranks / max(1, count - 1)).mean(axis=0)
    best = in_order(-score, ties)[: arguments.top_k]
    chosen = eligible[best].tolist()
    factors, rows = desk.factor_values(chosen, tuple(dict.fromkeys(wanted))), list[Shown]()
    for column, points, own in zip(chosen, all_rounded(score[best]), factors, strict=True):
        placed = {"stock_id": desk.roster.stocks[column], "rank": len(rows) + 1, "score": points}
        rows.append({**placed, "board": desk.roster.boards[column], "factors": own})
    return {"as_of": desk.as_of, "candidates": rows, "left_out": int(columns.size - eligible.size)}


# -- get_stock_snapshot: one name's bars, factors and previous close --


class SnapshotArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``lookback`` sessions up to ``as_of`` (the last completed day when left out)."""

    stock_id: Stock
    lookback: Annotated[int, Meta(ge=1)] = 20
    as_of: Day | None = None


def stock_snapshot(desk: Desk, arguments: SnapshotArguments) -> Shown:
    """Return one name's recent past; raises :class:`ToolRefused` for the future or for too long a past.

    Bars are rows, oldest first; factors and limits are those of the data cutoff."""
    config = desk.config
    column = look_up(desk, arguments.stock_id)
    if arguments.lookback > config.longest_lookback:
        raise ToolRefused(f"lookback is at most {config.longest_lookback} sessions")
    refuse_future(desk, arguments.as_of)
    days = desk.days
    stop = len(days) if arguments.as_of is None else sum(day <= arguments.as_of.iso for day in days)
    start = max(0, stop - arguments.lookback)
    shown = {field: desk.bars(field, len(days))[start:stop, column] for field in FIELDS}
    bars = [all_rounded(values, BAR_DIGITS[field]) for field, values in shown.items()]
    news = headlines(desk, arguments.stock_id) if config.news else ()
    return {
        "stock_id": arguments.stock_id,
        "board": desk.roster.boards[column],
        "state": desk.state(column),
        "as_of": desk.as_of,
        "columns": ("day", *FIELDS),
        "bars": [(Day(day), *row) for day, row in zip(days[start:stop], zip(*bars, strict=True), strict=True)],
        "factors": desk.factor_values((column,), FACTOR_NAMES)[0],
        **desk.limits(column),
        **({"news": news} if news else {}),
    }


# -- compare_candidates: several names side by side --


class CompareArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which names, and in which respects."""

    stock_ids: Annotated[list[Stock], Meta(min_length=1)]
    dims: Annotated[list[str], Meta(min_length=1, max_length=20)]


def compare_candidates(desk: Desk, arguments: CompareArguments) -> Shown:
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
    return {"as_of": desk.as_of, "grid": {stock: dict(zip(dims, row, strict=True)) for stock, row in rows}}


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


# -- portfolio_state: holdings, cash, T+1 locks --


class PortfolioArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """None."""


def portfolio_state(desk: Desk, arguments: PortfolioArguments) -> Shown:
    """Return the account; ``locked`` is what was bought too recently to be sold in the coming session."""
    account = show_account(desk)
    locked = {row.stock_id: row.shares - row.sellable for row in account.positions if row.sellable < row.shares}
    return {"as_of": desk.as_of, **msgspec.structs.asdict(account), "locked": locked}


# -- risk_check: would these weights be allowed, and what would the portfolio look like? --


class RiskArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Weights to be held; what is not named stays as it is."""

    target_weights: Annotated[dict[Stock, Annotated[float, Meta(ge=0, le=1)]], Meta(min_length=1, max_length=60)]


def risk_check(desk: Desk, arguments: RiskArguments) -> Shown:
    """Judge target weights by the rules of submission; raises :class:`ToolRefused` for a name out of reach.

    The projected portfolio is the one if all were filled at the last close; its turnover is the traded amount over
    the value."""
    weights, account = arguments.target_weights, desk.account
    limits = {}
    for stock in weights:
        column = look_up(desk, stock)
        limits[stock] = {"state": desk.state(column), **desk.limits(column)}
    orders = [
        Order(symbol=stock.symbol, amount=weight, unit="target_weight", side="BUY" if weight > now else "SELL")
        for stock, weight in weights.items()
        if abs(weight - (now := account.weight(stock.symbol))) > SAME
    ]
    violations = check_orders(orders, desk)
    before = {symbol: account.weight(symbol) for symbol in account.positions}
    after = {**before, **{stock.symbol: weight for stock, weight in weights.items()}}
    bought = plain_sum(max(0.0, weight - before.get(symbol, 0.0)) for symbol, weight in after.items())
    sold = plain_sum(max(0.0, before.get(symbol, 0.0) - weight) for symbol, weight in after.items())
    invested = plain_sum(after.values())
    shares = [weight / invested for weight in after.values()] if invested > 0 else []
    return {
        "as_of": desk.as_of,
        "allowed": not violations,
        "violations": violations,
        "projected": {
            "positions": sum(weight > 0 for weight in after.values()),
            "invested": desk.share(invested),
            "cash_weight": desk.share(1.0 - invested),
            "largest_weight": desk.share(max(after.values(), default=0.0)),
            "hhi": desk.share(plain_sum(share * share for share in shares)),
            "turnover": desk.share(bought + sold),
            "costs": desk.money((bought * desk.rules.buy_cost + sold * desk.rules.sell_cost) * account.nav),
        },
        "limits": limits,
    }


TOOLS = (
    Tool(
        "get_market_context",
        "The market at the last close: returns, volatility and drawdown of the benchmark index, where we are in "
        "the calendar, how many names rose and fell, and the tone of every sector. Takes no arguments.",
        ContextArguments,
        market_context,
    ),
    Tool(
        "screen_candidates",
        "Rank the names that may be bought by one or more factors (equal say, high values first; write -NAME for "
        f"low values first) and return the top_k with their factor values. Factors: {', '.join(FACTOR_NAMES)}.",
        ScreenArguments,
        screen_candidates,
    ),
    Tool(
        "get_stock_snapshot",
        "One name in detail: its last daily bars (split-adjusted), its nine factors, its previous close and the "
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
        "The account: cash, value, holdings and what T+1 keeps from being sold. Takes no arguments.",
        PortfolioArguments,
        portfolio_state,
    ),
    Tool(
        "risk_check",
        "Try target weights before submitting them: which constraints they would break, what the portfolio would "
        "look like, and the price limits of the coming session. Weights are shares of the account's value.",
        RiskArguments,
        risk_check,
    ),
)
BY_NAME = {tool.name: tool for tool in TOOLS}
