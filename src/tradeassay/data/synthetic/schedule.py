"""What will happen to names as such: suspensions, and planned dividends and splits.

Plans carry no prices; the day loop fixes a dividend's amount and a split's ratio when they are announced.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tradeassay.core.view import Bools, Ints
from tradeassay.data.synthetic.config import SyntheticConfig
from tradeassay.data.synthetic.draws import Draws
from tradeassay.data.synthetic.universe import Universe

_NOTICE = {"dividend": 12, "split": 15}


@dataclass(frozen=True, slots=True)
class Plan:
    """A corporate action to come: announced at the close of row ``announced``, effective at row ``ex``.

    ``size`` is the share of the price that a dividend pays, or a number in [0, 1) that picks a split's ratio.
    """

    column: int
    kind: Literal["dividend", "split"]
    announced: int
    ex: int
    size: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """Suspended cells, shape (rows, names), and plans by the row of their announcement."""

    suspended: Bools
    plans: dict[int, list[Plan]]


def make_schedule(config: SyntheticConfig, universe: Universe, burn: int) -> Schedule:
    """Draw suspensions and plans over hidden and visible rows."""
    rows = burn + config.sessions
    first = np.where(universe.first == 0, 0, universe.first + burn)
    last = universe.last + burn
    suspended = _suspensions(config, first, last, rows, burn)
    busy: dict[int, list[tuple[int, int]]] = defaultdict(list)
    plans: dict[int, list[Plan]] = defaultdict(list)
    found = _dividends(config, first, last, rows) + _splits(config, first, last, rows)
    for plan in found:
        halted = (
            suspended[max(plan.ex - 1, 0) : plan.ex + 1, plan.column].any()
            or suspended[plan.announced, plan.column]
        )
        clash = any(plan.announced <= b + 1 and a <= plan.ex + 1 for a, b in busy[plan.column])
        if not halted and not clash:
            busy[plan.column].append((plan.announced, plan.ex))
            plans[plan.announced].append(plan)
    return Schedule(suspended, dict(plans))


def _suspensions(config: SyntheticConfig, first: Ints, last: Ints, rows: int, burn: int) -> Bools:
    draws = Draws(config.seed, "suspensions")
    longest = 12 if config.preset == "ashare" else 2
    suspended = np.zeros((rows, first.size), dtype=np.bool_)
    for cell in draws.rare(config.trading.suspensions / config.year, suspended.size).tolist():
        row, column = divmod(cell, first.size)
        length = draws.integer(1, longest)
        if row > max(burn, first[column] + 10) and row + length < last[column] - 3:
            suspended[row : row + length, column] = True
    return suspended


def _dividends(config: SyntheticConfig, first: Ints, last: Ints, rows: int) -> list[Plan]:
    model, draws = config.actions, Draws(config.seed, "dividends")
    if model.per_year == 0:
        return []
    every = config.year // model.per_year
    n = first.size
    pays = draws.chance(model.payers, n)
    phase = draws.below(every, n)
    size = model.dividend_yield * draws.between(0.5, 1.5, n) / model.per_year
    plans = []
    for i in np.flatnonzero(pays).tolist():
        for ex in range(int(phase[i]), rows, every):
            announced = ex - _NOTICE["dividend"]
            if announced >= max(first[i] + 20, 1) and ex <= last[i] - 2:
                plans.append(Plan(i, "dividend", announced, ex, float(size[i])))
    return plans


def _splits(config: SyntheticConfig, first: Ints, last: Ints, rows: int) -> list[Plan]:
    draws = Draws(config.seed, "splits")
    plans = []
    for cell in draws.rare(config.actions.splits / config.year, rows * first.size).tolist():
        ex, column = divmod(cell, first.size)
        size = float(draws.uniform(1)[0])
        announced = ex - _NOTICE["split"]
        if announced >= max(first[column] + 20, 1) and ex <= last[column] - 2:
            plans.append(Plan(column, "split", announced, ex, size))
    return plans


def split_ratio(market: str, price: float, pick: float) -> tuple[int, int] | None:
    """Return (new, old) shares for a split at ``price``, or None when no one would split there."""
    if market == "ashare":
        if price < 12.0:
            return None
        return ((13, 10), (14, 10), (15, 10), (2, 1))[int(pick * 4)]
    if price < 4.0:
        return (1, 5)
    if price < 60.0:
        return None
    if price < 150.0:
        return ((3, 2), (2, 1))[int(pick * 2)]
    return ((2, 1), (3, 1), (4, 1))[int(pick * 3)]
