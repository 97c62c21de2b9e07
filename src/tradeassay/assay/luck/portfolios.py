"""Random portfolios by the thousand, and any one of them as orders for the real exchange."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tradeassay.assay.luck.market import LuckGround
from tradeassay.assay.luck.schedule import SeatChanges, Shape
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision, Order
from tradeassay.core.view import Floats, Ints

if TYPE_CHECKING:
    from tradeassay.data import Snapshot
    from tradeassay.play import MarketConfig

TOGETHER = 128
"""Portfolios that are played together: enough to share a session's prices, few enough to stay in the cache."""
LEAST = 100
"""Fewer portfolios than this do not make a distribution."""


@dataclass(frozen=True, slots=True)
class RandomPortfolios:
    """``nav`` (portfolios, sessions + 1) with the initial value first; ``shapes`` holds one shape per portfolio.

    ``shapes`` has shape (portfolios, 3): one-way turnover per session, cash ratio and names held, means over the
    sessions. ``seed`` and the place of a row are enough to make that portfolio again.
    """

    nav: Floats
    shapes: Floats
    seed: int


def random_portfolios(
    ground: LuckGround, schedule: SeatChanges, *, n: int = 10_000, seed: int = 0
) -> RandomPortfolios:
    """Play ``n`` random portfolios on a schedule, on all cores; equal arguments give equal numbers.

    Raises :class:`UserError` for fewer than :data:`LEAST`, or a schedule of another number of sessions.
    """
    if n < LEAST:
        raise UserError(
            f"{n} random portfolios make no distribution", hint=f"ask for at least {LEAST}, better 10000"
        )
    sessions = _checked(ground, schedule)
    nav, shapes = np.empty((n, sessions + 1)), np.zeros((n, len(Shape._fields)))
    numbers, nothing = np.arange(n), np.empty((0, 3))

    def play(part: slice) -> None:
        _play(ground, schedule, (seed, numbers[part]), nav[part], shapes[part], nothing)

    play(slice(0, 1))  # compiles once, before the threads start
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = [slice(first, min(first + TOGETHER, n)) for first in range(1, n, TOGETHER)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(play, parts))
    return RandomPortfolios(nav, shapes, seed)


def _play(
    ground: LuckGround, schedule: SeatChanges, numbered: tuple[int, Ints], nav: Floats, shapes: Floats, log: Floats
) -> int:
    """Play the portfolios with these numbers under a seed; returns how many orders the first one gave."""
    from tradeassay.account.compiled.book import blank_books
    from tradeassay.assay.luck.simulate import seeds_for, walk

    tape, seats = ground.market.tape, schedule.seats
    dice = seeds_for(*numbered)
    books = blank_books(dice.size, seats=seats, names=tape.facts.shape[0], cash=ground.cash, log=log)
    return walk(dice, nav, shapes, books, tape, ground.rules, schedule, np.zeros(max(1, schedule.seat.size)))


def decisions_of(
    ground: LuckGround, schedule: SeatChanges, portfolio: int, *, seed: int = 0
) -> tuple[Decision, ...]:
    """Return one random portfolio as decisions, one per session, for a market to carry out."""
    sessions = _checked(ground, schedule)
    nav, shape = np.empty((1, sessions + 1)), np.zeros((1, len(Shape._fields)))
    log = np.empty((1024, 3))
    while True:
        shape[:] = 0.0
        count = _play(ground, schedule, (seed, np.array([portfolio])), nav, shape, log)
        if count <= log.shape[0]:
            break
        log = np.empty((count, 3))
    orders: list[list[Order]] = [[] for _ in range(sessions)]
    for t, column, units in log[:count].tolist():
        symbol = ground.market.symbols[int(column)]
        orders[int(t)].append(Order(symbol=symbol, amount=abs(units), side="BUY" if units > 0.0 else "SELL"))
    return tuple(Decision(orders=tuple(batch)) for batch in orders)


def replay(snapshot: Snapshot, config: MarketConfig, decisions: tuple[Decision, ...]) -> Floats:
    """Carry decisions out in the real market and return the value path, the initial value first."""
    from tradeassay.play import Market

    market = Market(snapshot, config)
    market.reset()
    path = [config.cash]
    for decision in decisions:
        market.step(decision)
        path.append(market.ledger.nav())
    return np.array(path)


def _checked(ground: LuckGround, schedule: SeatChanges) -> int:
    sessions = len(ground.market.sessions)
    if schedule.gross.size != sessions:
        raise UserError(
            f"a schedule of {schedule.gross.size} sessions for a market of {sessions}",
            hint="give both the same window",
        )
    return sessions
