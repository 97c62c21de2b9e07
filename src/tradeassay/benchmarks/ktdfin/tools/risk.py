"""``risk_check``: would these weights be allowed, and what would the portfolio look like?"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tradeassay.benchmarks.ktdfin.action import ActionViolation, check_orders
from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.tools.tool import Arguments, Tool, look_up
from tradeassay.benchmarks.ktdfin.wire import Day, Stock
from tradeassay.core.orders import Order

SAME = 5e-4
"""A target this close to the present weight needs no order."""


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
    columns = {stock: look_up(desk, stock) for stock in weights}
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
        limits={stock: _limits(desk, column) for stock, column in columns.items()},
    )


def _project(desk: Desk, targets: dict[Stock, float]) -> Projection:
    account = desk.account
    before = {symbol: account.weight(symbol) for symbol in account.positions}
    after = {**before, **{stock.symbol: weight for stock, weight in targets.items()}}
    bought = sum(max(0.0, weight - before.get(symbol, 0.0)) for symbol, weight in after.items())
    sold = sum(max(0.0, before.get(symbol, 0.0) - weight) for symbol, weight in after.items())
    invested = sum(after.values())
    shares = [weight / invested for weight in after.values()] if invested > 0 else []
    return Projection(
        positions=sum(weight > 0 for weight in after.values()),
        invested=desk.share(invested),
        cash_weight=desk.share(1.0 - invested),
        largest_weight=desk.share(max(after.values(), default=0.0)),
        hhi=round(sum(share * share for share in shares), 4),
        turnover=desk.share(bought + sold),
        costs=desk.money((bought * desk.rules.buy_cost + sold * desk.rules.sell_cost) * account.nav),
    )


def _limits(desk: Desk, column: int) -> LimitsShown:
    close, up, down = desk.limits(column)
    return LimitsShown(state=desk.state(column), prev_close=close, limit_up=up, limit_down=down)


TOOL = Tool(
    name="risk_check",
    description=(
        "Try target weights before submitting them: which constraints they would break, what the portfolio would "
        "look like, and the price limits of the coming session. Weights are shares of the account's value."
    ),
    arguments=RiskArguments,
    answer=risk_check,
)
