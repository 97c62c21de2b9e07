"""Send a random portfolio of the luck baseline as orders to the real exchange, to compare the
money.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.data import Snapshot
from tradeassay_bench.examine.luck import LuckMarket, SeatChanges, Shape
from tradeassay_bench.examine.luck.portfolios import play_numbered
from tradeassay_bench.play import Market, MarketConfig


def decisions_of(
    market: LuckMarket, schedule: SeatChanges, portfolio: int, *, seed: int = 0
) -> tuple[Decision, ...]:
    """Return one random portfolio as decisions for a market, one per session."""
    sessions = len(market.sessions)
    nav, shape = np.empty((1, sessions + 1)), np.zeros((1, len(Shape._fields)))
    log = np.empty((1024, 3))
    while True:
        shape[:] = 0.0
        count = play_numbered(market, schedule, (seed, np.array([portfolio])), nav, shape, log)
        if count <= log.shape[0]:
            break
        log = np.empty((count, 3))
    orders: list[list[Order]] = [[] for _ in range(sessions)]
    for t, column, units in log[:count].tolist():
        symbol = market.symbols[int(column)]
        orders[int(t)].append(
            Order(symbol=symbol, amount=abs(units), side="BUY" if units > 0.0 else "SELL")
        )
    return tuple(Decision(orders=tuple(batch)) for batch in orders)


def replay(snapshot: Snapshot, config: MarketConfig, decisions: tuple[Decision, ...]) -> Floats:
    """Execute decisions in the real market and return the value path, the initial value first."""
    market = Market(snapshot, config)
    market.reset()
    path = [config.cash]
    for decision in decisions:
        market.step(decision)
        path.append(market.ledger.nav())
    return np.array(path)
