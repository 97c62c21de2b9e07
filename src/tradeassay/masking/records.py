"""Events, accounts, orders and facts under a mask, and orders back."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from tradeassay.core.account import AccountState, Position
from tradeassay.core.events import (
    Delisted,
    DividendPaid,
    Event,
    Filled,
    Marked,
    Rejected,
    Rested,
    Rolled,
    Settled,
    SplitApplied,
    Trimmed,
)
from tradeassay.core.instruments import Instrument
from tradeassay.core.orders import Decision, Order

ANY_STEP = 1e-6
"""Lot, step and tick that are shown when shares are another unit: the real ones would give the factor away."""
_replace = msgspec.structs.replace


class Words(msgspec.Struct, frozen=True):
    """How one mask speaks at one moment: symbols, texts, and the price factor of a real symbol."""

    symbol: Callable[[str], str]
    text: Callable[[str], str]
    factor: Callable[[str], float]


def mask_event(event: Event, words: Words) -> Event:
    """Return an event as it is shown: alias, masked detail, and quantities and prices in the shown unit."""
    symbol = getattr(event, "symbol", None)
    if isinstance(event, Marked):
        return _replace(
            event,
            stale=tuple(words.symbol(name) for name in event.stale),
            marks={words.symbol(name): mark * words.factor(name) for name, mark in event.marks.items()},
        )
    if symbol is None:
        return event
    changes: dict[str, object] = {"symbol": words.symbol(symbol)}
    if isinstance(event, Rejected):
        changes["detail"] = words.text(event.detail)
    if isinstance(event, Rolled):
        changes["into"] = words.symbol(event.into)
    factor = words.factor(symbol)
    if factor != 1.0:
        changes |= _in_shown_unit(event, factor)
    return _replace(event, **changes)


_PRICES: dict[type, tuple[str, ...]] = {
    Filled: ("price", "reference"),
    DividendPaid: ("per_share",),
    Delisted: ("price",),
    Settled: ("price",),
}
_QUANTITIES: dict[type, tuple[str, ...]] = {
    Filled: ("quantity",),
    Rejected: ("quantity",),
    Trimmed: ("asked", "filled"),
    Rested: ("quantity",),
    DividendPaid: ("quantity",),
    SplitApplied: ("quantity",),
    Delisted: ("quantity",),
    Settled: ("quantity",),
    Rolled: ("quantity",),
}


def _in_shown_unit(event: Event, factor: float) -> dict[str, object]:
    prices, quantities = _PRICES.get(type(event), ()), _QUANTITIES.get(type(event), ())
    values = {name: getattr(event, name) * factor for name in prices}
    values |= {name: getattr(event, name) / factor for name in quantities if getattr(event, name) is not None}
    return dict(values)


def mask_account(account: AccountState, words: Words) -> AccountState:
    """Return an account as it is shown. Cash, NAV and the value of every position stay what they are."""
    return _replace(
        account,
        positions={
            words.symbol(symbol): _mask_position(position, words) for symbol, position in account.positions.items()
        },
    )


def _mask_position(position: Position, words: Words) -> Position:
    factor = words.factor(position.symbol)
    shown = _replace(position, symbol=words.symbol(position.symbol))
    if factor == 1.0:
        return shown
    return _replace(
        shown,
        quantity=position.quantity / factor,
        sellable=position.sellable / factor,
        cost=position.cost * factor,
        mark=position.mark * factor,
    )


def mask_order(order: Order, words: Words) -> Order:
    """Return an order as it is shown."""
    return _order(order, words.symbol(order.symbol), words.text, words.factor(order.symbol))


def unmask_order(order: Order, symbol: str, text: Callable[[str], str], factor: float, lot: Instrument) -> Order:
    """Return an agent's order on the real instrument.

    Where shares are another unit, a number of shares is brought back to real ones and, when that is no number of
    whole lots, to the next lot towards zero: an agent cannot know the lots of a unit that hides them.
    """
    real = _order(order, symbol, text, 1.0 / factor)
    if factor == 1.0 or order.unit not in ("shares", "target_shares"):
        return real
    return _replace(real, amount=_whole_lots(real.amount, lot))


def _order(order: Order, symbol: str, text: Callable[[str], str], factor: float) -> Order:
    changed = _replace(order, symbol=symbol, reason=text(order.reason))
    if factor == 1.0:
        return changed
    shares = order.unit in ("shares", "target_shares")
    return _replace(
        changed,
        amount=order.amount / factor if shares else order.amount,
        limit_price=None if order.limit_price is None else order.limit_price * factor,
        stop_price=None if order.stop_price is None else order.stop_price * factor,
    )


def _whole_lots(amount: float, instrument: Instrument) -> float:
    steps = amount / instrument.step
    if math.isclose(steps, round(steps), rel_tol=1e-9, abs_tol=1e-6):
        return round(steps) * instrument.step
    return math.trunc(amount / instrument.lot) * instrument.lot


def change_decision(decision: Decision, order: Callable[[Order], Order], text: Callable[[str], str]) -> Decision:
    """Return a decision with its orders and all its texts changed."""
    return _replace(
        decision,
        orders=tuple(order(item) for item in decision.orders),
        reason=text(decision.reason),
        failures=tuple(_replace(failure, detail=text(failure.detail)) for failure in decision.failures),
    )
