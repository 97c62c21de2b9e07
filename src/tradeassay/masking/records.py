"""Events, accounts, orders and facts under a mask, and orders back.

In JSON, fields with identifiers or days are recognised by their names; all other texts are scrubbed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from tradeassay.core.events import (
    AccountState,
    Delisted,
    DividendPaid,
    Event,
    Filled,
    Marked,
    Position,
    Rejected,
    Rested,
    Rolled,
    Settled,
    SplitApplied,
    Trimmed,
)
from tradeassay.core.orders import Decision, Order
from tradeassay.core.view import Instrument

Json: TypeAlias = "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
"""What JSON can hold. Tuples count as arrays."""

NAMED_FIELDS = frozenset(
    """
symbol symbols stock_id stock_ids ticker tickers asset assets alias aliases asset_id asset_ids
instrument instruments
""".split()
)
"""Fields that hold nothing but symbols: what comes in under them must be an asset. Compared in lower case."""
ASSET_FIELDS = NAMED_FIELDS | frozenset(
    "stock stocks universe members constituents held candidates into stale analyse analyze picks".split()
)
"""Fields whose texts may be symbols."""
KEYED_FIELDS = ASSET_FIELDS | frozenset(
    """
marks positions holdings grid target_weights weights decisions notes sellable locked prices names
by_symbol by_asset
""".split()
)
"""Fields that hold an object whose keys may be symbols."""
DAY_FIELDS = frozenset(
    """
date day days dates session sessions as_of as_of_date data_cutoff cutoff since until start end first last from to
ex_date period_end expiry listed delisted time times timestamp datetime clock now published_at known_at decided_at
fetched_at current_date trade_date calendar report_date start_date end_date
""".split()
)
"""Fields whose texts are days or instants, and whose whole numbers above 10^17 are instants in nanoseconds."""

_FIELD_NAMES = KEYED_FIELDS | DAY_FIELDS


class FieldRules(msgspec.Struct, frozen=True):
    """What is done to a symbol, a day, an instant, any other text, and to a number where a symbol belongs.
    ``is_symbol`` tells what counts as a symbol when it is a key; ``certain`` the same without ordinary words."""

    asset: Callable[[str, str], str]
    number: Callable[[float], Json]
    day: Callable[[str], str]
    instant: Callable[[int], Json]
    text: Callable[[str], str]
    is_symbol: Callable[[str], bool]
    certain: Callable[[str], bool]


def walk(value: Json, rules: FieldRules, field: str = "") -> Json:
    if isinstance(value, str):
        if field in ASSET_FIELDS:
            return rules.asset(value, field)
        return rules.day(value) if field in DAY_FIELDS else rules.text(value)
    if isinstance(value, Mapping):
        return _walk_mapping(value, rules, field)
    if isinstance(value, list | tuple):
        return [walk(item, rules, field) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if field in NAMED_FIELDS:
        return rules.number(value)
    return rules.instant(value) if isinstance(value, int) and field in DAY_FIELDS and value > 10**17 else value


def _walk_mapping(value: Mapping[str, Json], rules: FieldRules, field: str) -> Json:
    keyed = bool(value) and (field in KEYED_FIELDS or all(map(rules.is_symbol, value)))
    result: dict[str, Json] = {}
    for key, item in value.items():
        if (keyed and rules.is_symbol(key)) or rules.certain(key):
            shown = rules.asset(key, "symbol")
        else:
            shown = key if key.lower() in _FIELD_NAMES else rules.text(key)
        result[shown] = walk(item, rules, key.lower())
    return result


ANY_STEP = 1e-6
"""Lot, step and tick shown when shares are another unit: the real ones would give the factor away."""
_replace = msgspec.structs.replace


class MaskWords(msgspec.Struct, frozen=True):
    """How one mask speaks at one moment: symbols, texts, and the price factor of a real symbol."""

    symbol: Callable[[str], str]
    text: Callable[[str], str]
    factor: Callable[[str], float]


def mask_event(event: Event, words: MaskWords) -> Event:
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


def mask_account(account: AccountState, words: MaskWords) -> AccountState:
    """Return an account as it is shown. Cash, NAV and the value of every position stay what they are."""
    return _replace(
        account,
        positions={
            words.symbol(symbol): _mask_position(position, words) for symbol, position in account.positions.items()
        },
    )


def _mask_position(position: Position, words: MaskWords) -> Position:
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


def mask_order(order: Order, words: MaskWords) -> Order:
    return _order(order, words.symbol(order.symbol), words.text, words.factor(order.symbol))


def unmask_order(order: Order, symbol: str, text: Callable[[str], str], factor: float, lot: Instrument) -> Order:
    """Return an agent's order on the real instrument. Where shares are another unit, a number of shares is brought
    back to real ones and, unless that makes whole lots, to the next lot towards zero: an agent cannot know the
    lots of a unit that hides them."""
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
    return _replace(
        decision,
        orders=tuple(order(item) for item in decision.orders),
        reason=text(decision.reason),
        failures=tuple(_replace(failure, detail=text(failure.detail)) for failure in decision.failures),
    )
