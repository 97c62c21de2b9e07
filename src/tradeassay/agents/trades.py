"""From wanted weights to orders that a venue will accept: sells first, whole lots, costs kept in cash."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tradeassay.agents.history import known_prices
from tradeassay.core.account import Position
from tradeassay.core.agent import Observation
from tradeassay.core.orders import Order


def trades_towards(
    observation: Observation, targets: Mapping[str, float], *, buffer: float, band: float
) -> tuple[Order, ...]:
    """Return the orders that bring the account towards ``targets`` (weights that sum to at most 1).

    Targets are scaled so that ``buffer`` of NAV stays in cash and holdings that cannot be sold now are
    paid for. Held names without a target are sold. Left alone are names that do not trade or have no price,
    changes smaller than ``band`` times the target, and changes below one lot: the venue would refuse them.
    """
    account, rules = observation.account, observation.rules
    if account.nav <= 0:
        return ()
    wanted = _scaled(observation, targets, buffer)
    prices = known_prices(observation)
    tradable = observation.view.tradable()
    sells: list[Order] = []
    buys: list[Order] = []
    for symbol, position in account.positions.items():
        column = observation.view.column(symbol)
        if not tradable[column]:
            continue
        target = wanted.get(symbol, 0.0)
        if target <= 0.0:
            if position.sellable > 0:
                sells.append(Order(symbol=symbol, amount=position.sellable, side="SELL"))
            continue
        change = target - position.value / account.nav
        if abs(change) <= band * target or not _worth_a_lot(observation, symbol, prices[column], change):
            continue
        (buys if change > 0 else sells).append(Order(symbol=symbol, amount=target, unit="target_weight"))
    free = _free_places(observation, wanted, rules.max_positions)
    for symbol, target in wanted.items():
        if symbol in account.positions or target <= 0.0:
            continue
        column = observation.view.column(symbol)
        if free <= 0 or not tradable[column] or not _worth_a_lot(observation, symbol, prices[column], target):
            continue
        free -= 1
        buys.append(Order(symbol=symbol, amount=target, unit="target_weight"))
    return (*sells, *buys)


def _scaled(observation: Observation, targets: Mapping[str, float], buffer: float) -> dict[str, float]:
    """Shrink the targets to what can be paid for, and cap each at the venue's largest single weight."""
    account, rules = observation.account, observation.rules
    tradable = observation.view.tradable()
    stuck = sum(
        _locked(position, targets.get(symbol, 0.0), bool(tradable[observation.view.column(symbol)]))
        for symbol, position in account.positions.items()
    )
    asked = sum(
        weight
        for symbol, weight in targets.items()
        if symbol not in account.positions or tradable[observation.view.column(symbol)]
    )
    room = max(0.0, 1.0 - buffer - stuck / account.nav)
    scale = min(1.0 - buffer, room / asked) if asked > 0 else 0.0
    cap = math.inf if rules.max_weight is None else rules.max_weight
    return {symbol: min(weight * scale, cap) for symbol, weight in targets.items()}


def _locked(position: Position, target: float, tradable: bool) -> float:
    """Return the value of a holding that cannot be turned into money this session."""
    if not tradable:
        return abs(position.value)
    if target > 0.0:
        return 0.0
    return abs(position.quantity - position.sellable) * position.mark * position.multiplier


def _worth_a_lot(observation: Observation, symbol: str, price: float, change: float) -> bool:
    if not price > 0.0:
        return False
    instrument = observation.view.instrument(symbol)
    return abs(change) * observation.account.nav >= instrument.lot * price * instrument.multiplier


def _free_places(observation: Observation, wanted: Mapping[str, float], limit: int | None) -> int:
    """Return how many new names may be opened beside those that stay."""
    if limit is None:
        return len(wanted)
    tradable = observation.view.tradable()
    staying = sum(
        wanted.get(symbol, 0.0) > 0.0 or position.sellable < position.quantity
        or not tradable[observation.view.column(symbol)]
        for symbol, position in observation.account.positions.items()
    )  # fmt: skip
    return limit - staying
