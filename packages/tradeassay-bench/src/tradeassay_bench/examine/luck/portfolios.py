"""Run thousands of random portfolios and rank a result among them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError, require
from tradeassay.core.measure import Measure
from tradeassay.metrics import (
    BootstrapConfig,
    rate_measure,
    resamples,
    significant,
    simple_returns,
)
from tradeassay.metrics.intervals import DEFAULT, choose_block, content_seed, measure_from, too_few
from tradeassay_bench.examine.luck.schedule import LuckMarket, SeatChanges, Shape

LEAST = 100
"""The minimum number of portfolios for a distribution."""
PLAIN, PLAIN_WORK = 400, 3_000_000
"""The limits without numba: portfolios, and sessions of one holding (ten seconds of plain Python).
"""


@dataclass(frozen=True, slots=True)
class RandomPortfolios:
    """The value paths and the averages of random portfolios.

    ``nav`` (portfolios, sessions + 1) begins with the initial value. ``shapes`` (portfolios, 3)
    contains one-way turnover per session, cash ratio and number of names held, as means over the
    sessions.
    """

    nav: Floats
    shapes: Floats


def affordable(wanted: int, schedule: SeatChanges, shape: Shape) -> int:
    """Return the number of portfolios to run on a schedule: ``wanted`` if numba is installed.

    Without numba the functions run as plain Python, which is fast enough for a few hundred short or
    small portfolios. Raises :class:`~tradeassay.core.errors.MissingExtra` if that number is too
    small.
    """
    if find_spec("numba") is not None:
        return wanted
    each = schedule.gross.size * max(shape.names, 1.0) + schedule.seat.size
    number = min(wanted, PLAIN, int(PLAIN_WORK / each))
    if number < LEAST:
        require("numba", "fast", f"a luck baseline over {schedule.gross.size:,} sessions")
    return number


def random_portfolios(
    market: LuckMarket, schedule: SeatChanges, *, n: int = 10_000, seed: int = 0
) -> RandomPortfolios:
    """Run ``n`` random portfolios on a schedule, on all cores. Equal arguments give equal numbers.

    Raises :class:`UserError` for fewer than :data:`LEAST`, or if the schedule's number of sessions
    is wrong.
    """
    if n < LEAST:
        hint = f"use at least {LEAST}, better 10000"
        raise UserError(f"{n} random portfolios are too few for a distribution", hint=hint)
    sessions = len(market.sessions)
    if schedule.gross.size != sessions:
        hint = "use the same window for both"
        raise UserError(
            f"a schedule of {schedule.gross.size} sessions for a market of {sessions}", hint=hint
        )
    nav, shapes = np.empty((n, sessions + 1)), np.zeros((n, len(Shape._fields)))
    numbers, nothing = np.arange(n), np.empty((0, 3))

    def play(part: slice) -> None:
        with np.errstate(over="ignore"):  # overflow is intended; plain Python would warn
            play_numbered(market, schedule, (seed, numbers[part]), nav[part], shapes[part], nothing)

    play(slice(0, 1))  # compiles once, before the threads start
    workers = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    # The size of a batch: large enough to share a session's prices, small enough to stay in the
    # cache.
    parts = [slice(first, min(first + 128, n)) for first in range(1, n, 128)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(play, parts))
    return RandomPortfolios(nav, shapes)


def play_numbered(
    market: LuckMarket,
    schedule: SeatChanges,
    numbered: tuple[int, Ints],
    nav: Floats,
    shapes: Floats,
    log: Floats,
) -> int:
    """Run the portfolios with the given numbers. Return the number of orders of the first one.

    ``numbered`` contains the seed and the numbers. The orders of the first portfolio are written to
    ``log``, up to its size: (session, column, units).
    """
    from tradeassay_bench.account.compiled.book import blank_books
    from tradeassay_bench.examine.luck.simulate import seeds_for, simulate

    tape, seats = market.tape, schedule.seats
    dice = seeds_for(*numbered)
    books = blank_books(
        dice.size, seats=seats, names=tape.facts.shape[0], cash=market.cash, log=log
    )
    return simulate(
        dice, nav, shapes, books, tape, market.rules, schedule, np.zeros(max(1, schedule.seat.size))
    )


# The rank of a result among them -----------------------------------------------------------------

By = Literal["return", "sharpe"]
_TINY = 1e-12
"""The value assigned to an account that lost everything, so that its log growth is finite."""
_TIE = 1e-12
"""The maximum difference of a tie.

Sums over the same sessions may be added in a different order, so they may differ by rounding.
"""
NO_PORTFOLIO = "no random portfolio"


class LuckPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The rank of a result among random portfolios.

    ``by`` is the score that determines the rank: the return over the window, or the annual Sharpe
    ratio. ``percentile`` is the share of portfolios with a lower score (half of the ties are
    included). Its interval resamples sessions, which are the same for all portfolios. ``by_luck``
    is the share with a score at least as high, ``as_badly`` the share with a score at least as low,
    both with Wilson's interval. ``median``, ``low`` and ``high`` (5 % and 95 %) describe the random
    portfolios. ``quantiles`` contains their percentiles from 0 to 100, for a chart.
    """

    by: By
    value: float | None
    percentile: Measure
    by_luck: Measure
    as_badly: Measure
    median: float
    low: float
    high: float
    quantiles: tuple[float, ...]
    portfolios: int


def place_among(
    nav: Floats,
    random_nav: Floats,
    *,
    by: By = "return",
    periods_per_year: float = 252,
    bootstrap: BootstrapConfig = DEFAULT,
) -> LuckPlace:
    """Return the rank of a value path among random paths.

    The shapes are (n + 1,) and (portfolios, n + 1). With too few sessions the percentile has no
    interval. Raises :class:`UserError` for paths of a different length.
    """
    nav, random_nav = np.asarray(nav, dtype=np.float64), np.asarray(random_nav, dtype=np.float64)
    if nav.ndim != 1 or random_nav.ndim != 2 or random_nav.shape[1] != nav.size or nav.size < 2:
        hint = "use the same sessions for all paths"
        raise UserError(f"a path of {nav.shape} among paths of {random_nav.shape}", hint=hint)
    own_steps, random_steps = _steps(nav[None], by), _steps(random_nav, by)
    n, count = nav.size - 1, random_nav.shape[0]
    own, others = (_score(side, np.ones((1, n)), by)[0] for side in (own_steps, random_steps))
    value = float(own[0])
    worse = float(_worse(others[None], own[None, :1])[0])
    scale = periods_per_year**0.5
    results = np.expm1(others) if by == "return" else others * scale
    quantiles = np.quantile(results, np.linspace(0.0, 1.0, 101))
    return LuckPlace(
        by=by,
        value=significant(float(np.expm1(value)) if by == "return" else value * scale),
        percentile=_with_interval(worse, own_steps, random_steps, by, bootstrap),
        by_luck=rate_measure(
            int((others >= value - _TIE).sum()), count, nothing=NO_PORTFOLIO, level=bootstrap.level
        ),
        as_badly=rate_measure(
            int((others <= value + _TIE).sum()), count, nothing=NO_PORTFOLIO, level=bootstrap.level
        ),
        median=significant(float(quantiles[50])),
        low=significant(float(quantiles[5])),
        high=significant(float(quantiles[95])),
        quantiles=tuple(significant(float(quantile)) for quantile in quantiles),
        portfolios=count,
    )


def _steps(nav: Floats, by: By) -> Floats:
    """Return the terms of a score by session: log growth, or returns. The shape is (paths, n)."""
    alive = np.maximum(nav, _TINY * nav[:, :1])
    if by == "return":
        return np.asarray(np.diff(np.log(alive), axis=1))
    return np.nan_to_num(simple_returns(alive), nan=0.0)


def _score(steps: Floats, counts: Floats, by: By) -> Floats:
    """Return the score of each path in each resample, shape (draws, paths).

    ``counts[draw, t]`` is the number of times that session t occurs in a resample.
    """
    total = counts @ steps.T
    if by == "return":
        return np.asarray(total)
    n = steps.shape[1]
    variance = np.maximum(counts @ (steps * steps).T - total * total / n, 0.0) / max(n - 1, 1)
    return np.asarray(total / n / np.sqrt(np.where(variance > 1e-30, variance, np.inf)))


def _with_interval(
    value: float, own_steps: Floats, random_steps: Floats, by: By, config: BootstrapConfig
) -> Measure:
    """Return a share with its interval over resampled sessions."""
    n = own_steps.shape[1]
    if n < config.least:
        return too_few(value, n, config)
    # The interval is tens of points wide, and 2,500 portfolios give a share to one point.
    block, random_steps = (
        choose_block(np.ascontiguousarray(own_steps[0]), config),
        random_steps[:2500],
    )
    seed = content_seed(config, own_steps, random_steps[:1])
    draws = []
    for rows in resamples(n, config.draws, block, seed):
        for first in range(0, len(rows), 100):
            part = rows[first : first + 100]
            counts = np.stack([np.bincount(row, minlength=n) for row in part]).astype(np.float64)
            draws.append(_worse(_score(random_steps, counts, by), _score(own_steps, counts, by)))
    return measure_from(value, np.concatenate(draws), level=config.level, n=n)


def _worse(others: Floats, own: Floats) -> Floats:
    """Return the share of ``others`` (draws, paths) below ``own`` (draws, 1).

    Half of the ties are included.
    """
    gap = others - own
    tie = np.abs(gap) <= _TIE
    return np.asarray(((gap < 0) & ~tie).mean(axis=1) + 0.5 * tie.mean(axis=1))
