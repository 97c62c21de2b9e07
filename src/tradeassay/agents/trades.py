"""From wanted weights to orders that a venue will accept: sells first, whole lots, costs kept in cash."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tradeassay.agents.history import known_prices
from tradeassay.core.agent import Observation
from tradeassay.core.orders import Order


def trades_towards(
    observation: Observation, targets: Mapping[str, float], *, buffer: float, band: float
) -> tuple[Order, ...]:
    """Return the orders that bring the account towards ``targets`` (weights that sum to at most 1).

    Held names without a target are sold. Left alone are names that do not trade or have no price, changes
    smaller than ``band`` times the target, and changes below one lot: the venue would refuse them. The other
    targets are scaled so that everything is paid for and ``buffer`` of NAV stays in cash.
    """
    account, rules, column = observation.account, observation.rules, observation.view.column
    nav, positions = account.nav, account.positions
    if nav <= 0.0:
        return ()
    trading = observation.view.tradable().item
    invested = 1.0 - buffer
    cap = math.inf if rules.max_weight is None else rules.max_weight
    exits: list[Order] = []
    changing: dict[str, float] = {}
    untouched, staying = 0.0, 0
    # This runs for every holding of every session: the common case, a name inside its band, comes first.
    for symbol, position in positions.items():
        wanted = targets.get(symbol, 0.0) * invested
        if wanted > cap:
            wanted = cap
        value = position.quantity * position.mark * position.multiplier
        if abs(wanted * nav - value) <= band * wanted * nav or not trading(column(symbol)):
            untouched += value
            staying += 1
        elif wanted > 0.0:
            changing[symbol] = wanted
            staying += 1
        else:
            locked = position.quantity - position.sellable
            untouched += locked * position.mark * position.multiplier
            staying += locked > 0
            if position.sellable > 0:
                exits.append(Order(symbol=symbol, amount=position.sellable, side="SELL"))
    places = math.inf if rules.max_positions is None else rules.max_positions - staying
    for symbol, weight in targets.items():
        if symbol not in positions and weight > 0.0 and places > 0 and trading(column(symbol)):
            changing[symbol] = min(weight * invested, cap)
            places -= 1
    if not changing:
        return tuple(exits)
    asked = sum(changing.values())
    room = max(0.0, invested - untouched / nav)
    sells, buys = _orders(observation, changing, 1.0 if asked <= room else room / asked)
    return (*exits, *sells, *buys)


def _orders(
    observation: Observation, changing: Mapping[str, float], scale: float
) -> tuple[list[Order], list[Order]]:
    """Return target orders, the reductions apart from the rest; changes below one lot are left out."""
    view, account = observation.view, observation.account
    prices, lot = known_prices(observation), observation.rules.lot
    sells: list[Order] = []
    buys: list[Order] = []
    for symbol, wanted in changing.items():
        position = account.positions.get(symbol)
        target = wanted * scale
        change = target * account.nav - (0.0 if position is None else position.value)
        price = float(prices[view.column(symbol)])
        least = lot * price * view.instrument(symbol).multiplier
        if not price > 0.0 or abs(change) < least or target <= 0.0:
            continue
        (buys if change > 0.0 else sells).append(Order(symbol=symbol, amount=target, unit="target_weight"))
    return sells, buys
