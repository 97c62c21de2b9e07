"""``portfolio_state``: holdings, cash, T+1 locks."""

from __future__ import annotations

import msgspec

from tradeassay.benchmarks.ktdfin.account import PositionShown, show_account
from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.tools.tool import Arguments, Tool
from tradeassay.benchmarks.ktdfin.wire import Day, Stock


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


TOOL = Tool(
    name="portfolio_state",
    description="The account: cash, value, holdings and what T+1 keeps from being sold. Takes no arguments.",
    arguments=PortfolioArguments,
    answer=portfolio_state,
)
