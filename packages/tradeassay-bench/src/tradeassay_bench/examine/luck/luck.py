"""Compute the luck of a recorded episode, of a whole run, or of a user's own returns."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.metrics import BootstrapConfig, growth, significant
from tradeassay.metrics.horizon import Horizon
from tradeassay.metrics.intervals import DEFAULT, MOST_DRAWS
from tradeassay_bench.core.executors import HERE, Spread
from tradeassay_bench.examine.luck.portfolios import (
    By,
    LuckPlace,
    RandomPortfolios,
    affordable,
    place_among,
    random_portfolios,
)
from tradeassay_bench.examine.luck.schedule import (
    LuckMarket,
    Shape,
    even_schedule,
    luck_market,
    schedule_of,
)

if TYPE_CHECKING:
    from tradeassay_bench.benchmarks import Benchmark
    from tradeassay_bench.data import Snapshot
    from tradeassay_bench.runs import Run

_FIRST, _CLEAR = 2_000, 0.07
"""The number of portfolios before the first check, and the share that stops the simulation.

The simulation stops early if at least this share of the portfolios is as good as the result, and at
least this share as bad. The p-value of a sequence that stops at enough hits is valid (Besag and
Clifford 1991).
"""


class LuckConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The number of portfolios, and the measure that ranks a result among them.

    Raises :class:`UserError` for numbers that are not finite.
    """

    portfolios: int = 10_000
    seed: int = 0
    by: By = "return"
    bootstrap: BootstrapConfig = DEFAULT

    def __post_init__(self) -> None:
        if not 1 <= self.portfolios <= MOST_DRAWS:
            raise UserError(f"{self.portfolios} random portfolios", hint=f"use 1 to {MOST_DRAWS:,}")


USUAL = LuckConfig()
_shared_market = lru_cache(maxsize=2)(luck_market)  # read once for all agents of this market


class StatedTrades(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that returns do not contain.

    ``names`` is the number of names held at equal weight. ``turnover`` is one-way and annual.
    """

    names: int
    turnover: float


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """The values that random portfolios match, and the medians of the random portfolios.

    All values are means over sessions: one-way annual turnover, cash as a share of the account's
    value, and the number of names held.
    """

    turnover: tuple[float, float]
    cash: tuple[float, float]
    names: tuple[float, float]


class Luck(msgspec.Struct, frozen=True, kw_only=True):
    """The rank of a result among random portfolios on the same schedule.

    If ``place`` is None, ``reason`` states why there is no rank.
    """

    episode: str
    agent: str
    seed: int
    place: LuckPlace | None
    matched: Matched | None = None
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """Return the result as a sentence."""
        if self.place is None:
            return f"no luck baseline: {self.reason}"
        share, place = self.place.percentile, self.place
        span = (
            ""
            if share.low is None
            else f" ({share.low:.0%} to {share.high:.0%} on days like these)"
        )
        return (
            f"did better than {share.value:.1%} of {place.portfolios:,} random portfolios that "
            "held as many "
            f"names, traded as much and paid the same costs{span}"
        )


def luck_of_episode(
    run: Run, key: str, config: LuckConfig = USUAL, *, stop_early: bool = False
) -> Luck:
    """Return the rank of an episode among random portfolios with the same trade times and sizes.

    With ``stop_early``, the first 2,000 portfolios suffice if they are nearly equal, or if the
    result is in their middle. An episode has no place, but a reason, if it failed, lost everything,
    never traded, ran in a market with futures, or used rules that its venue no longer has. Raises
    :class:`~tradeassay_bench.core.errors.RunError` if the episode has not ended.
    """
    episode, series = run.episode(key), run.series(key)
    luck = Luck(
        episode=key, agent=run.names[episode.label], seed=episode.seed, place=None, reason=""
    )
    if series.failure is not None or series.ruined is not None:
        return msgspec.structs.replace(
            luck, reason=series.failure or f"everything was lost by {series.ruined}"
        )
    try:
        run.manifest.refuse_other_venue(episode.benchmark)
        market = _shared_market(run.snapshot(key), run.manifest.benchmark(episode).market)
        schedule, shape = schedule_of(run.records(key), market)
        portfolios = affordable(config.portfolios, schedule, shape)
    except UserError as error:
        return msgspec.structs.replace(luck, reason=str(error))
    if not schedule.seat.size:
        return msgspec.structs.replace(luck, reason="it never traded")
    if stop_early and portfolios > 2 * _FIRST:
        made = random_portfolios(market, schedule, n=_FIRST, seed=config.seed)
        # The result is so far from both ends that more portfolios would not change the conclusion.
        own, others = series.nav[-1] / series.nav[0], made.nav[:, -1] / made.nav[:, 0]
        clear = min(float((others >= own).mean()), float((others <= own).mean())) >= _CLEAR
        if clear or _all_alike(made.nav, market.periods_per_year) is not None:
            return _placed(luck, series.nav, made, market, shape, config)
    made = random_portfolios(market, schedule, n=portfolios, seed=config.seed)
    return _placed(luck, series.nav, made, market, shape, config)


def luck_of_run(
    run: Run, *, agents: tuple[str, ...] = (), config: LuckConfig = USUAL, spread: Spread = HERE
) -> tuple[Luck, ...]:
    """Return the luck of every episode of a run, or of some agents, in the order of the run.

    ``spread`` distributes the episodes. Raises :class:`UserError` for an agent that the run does
    not have.
    """
    known = dict.fromkeys(episode.label for episode in run.episodes)
    for agent in agents:
        if agent not in known:
            raise UserError(
                f"no agent '{agent}' in {run.folder}", hint=f"it has {', '.join(known)}"
            )
    wanted = [episode.key for episode in run.episodes if not agents or episode.label in agents]
    return tuple(spread.map(partial(luck_of_episode, run, config=config), wanted))


def luck_of_returns(
    returns: dict[str, float],
    benchmark: Benchmark,
    snapshot: Snapshot,
    stated: StatedTrades,
    *,
    config: LuckConfig = USUAL,
    title: str = "returns",
) -> Luck:
    """Return the rank of a user's own returns among random portfolios of a benchmark's market.

    ``returns`` maps ISO days to simple returns, one for every session from the first to the last.
    Returns do not contain trades, so the trades are ``stated``. Raises :class:`UserError` if a
    session is missing or the stated numbers are impossible.
    """
    days = sorted(returns)
    if len(days) < 2:
        raise UserError(f"{len(days)} returns", hint="give at least two sessions")
    window = msgspec.structs.replace(benchmark.market, first=days[0], last=days[-1])
    market = luck_market(snapshot, window)
    missing = sorted(set(market.sessions).symmetric_difference(days))
    if missing:
        raise UserError(
            f"the returns and the sessions of '{snapshot.name}' differ, first on {missing[0]}",
            hint="give exactly one return for every session of the market",
        )
    turnover = stated.turnover / market.periods_per_year
    schedule, shape = even_schedule(len(days), names=stated.names, turnover=turnover)
    portfolios = affordable(config.portfolios, schedule, shape)
    made = random_portfolios(market, schedule, n=portfolios, seed=config.seed)
    held = float(np.median(made.shapes[:, Shape._fields.index("names")]))
    if (
        held < 0.8 * stated.names
    ):  # Portfolios with fewer names than stated are not a valid comparison.
        raise UserError(
            f"{stated.names} names cannot be held in this market with {market.cash:,.0f}: random "
            "portfolios hold "
            f"{held:.0f}",
            hint="give fewer names, or a benchmark with a larger universe",
        )
    nav = growth(np.array([returns[day] for day in days])) * market.cash
    luck = Luck(episode=title, agent=title, seed=0, place=None, reason="everything was lost")
    return _placed(luck, nav, made, market, shape, config) if (nav > 0).all() else luck


def _placed(
    luck: Luck,
    nav: Floats,
    made: RandomPortfolios,
    market: LuckMarket,
    shape: Shape,
    config: LuckConfig,
) -> Luck:
    year = market.periods_per_year
    same = _all_alike(made.nav, year)
    if same is not None:
        return msgspec.structs.replace(luck, reason=same)
    place = place_among(
        nav, made.nav, by=config.by, periods_per_year=year, bootstrap=config.bootstrap
    )
    turnover, cash, names = np.median(made.shapes, axis=0).tolist()
    matched = Matched(
        turnover=(significant(shape.turnover * year), significant(turnover * year)),
        cash=(significant(shape.cash), significant(cash)),
        names=(significant(shape.names), significant(names)),
    )
    return msgspec.structs.replace(luck, place=place, matched=matched, reason=None)


def _all_alike(paths: Floats, year: int) -> str | None:
    """Return why nearly equal portfolios give a result no rank; None if they differ enough.

    For example, portfolios that hold the whole universe are nearly equal.
    """
    horizon = Horizon(paths.shape[1] - 1, year)
    ends = np.log(np.maximum(paths[:, -1] / paths[:, 0], 1e-12)) * year / horizon.rows
    low, high = np.quantile(ends, [0.05, 0.95])
    if high - low >= 0.01:
        return None
    apart = horizon.grown(Measure(value=float(high - low))).value or 0.0
    return (
        f"random portfolios with the same trades hardly differ ({apart:.1%} {horizon.words} "
        "between "
        "the worst and the best twentieth): nearly all available names are held"
    )
