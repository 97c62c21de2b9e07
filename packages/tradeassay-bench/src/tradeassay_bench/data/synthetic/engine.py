"""Generate the prices of a synthetic world: the drivers, and the loop over the days.

All drivers are drawn before the first session: a common factor with regimes of known drift and
clustered volatility, and planted style and sector returns. Each has an overnight and an intraday
part.

Every name has a latent value without price limits. Its session prices are rounded to whole ticks
and cut at the limits of the board, so the rest of a large move follows on the next days.

Suspensions, dividends and splits are planned before the loop, without prices. The loop sets the
amount of a dividend and the ratio of a split at their announcement. All state consists of whole
numbers or results of elementwise IEEE arithmetic, so that every machine produces the same bytes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay.factors import FACTOR_NAMES, FactorStream, standardise
from tradeassay_bench.data.synthetic.universe import (
    Draws,
    MarketModel,
    SyntheticConfig,
    WorldNames,
    sectors,
)

_ARCH, _GARCH, _DF = 0.08, 0.90, 6


@dataclass(frozen=True, slots=True)
class MarketPath:
    """The common return per session, split at the open, and the regime of each row.

    Hidden rows have an empty regime.
    """

    overnight: Floats
    intraday: Floats
    regime: tuple[str, ...]


def make_market(config: SyntheticConfig, burn: int) -> MarketPath:
    """Return the common return of every session, drawn with its regimes."""
    draws = Draws(config.seed, "market")
    model, rows = config.market, burn + config.sessions
    noise = clustered(draws, rows, model.volatility / math.sqrt(config.year), _ARCH, _GARCH, _DF)
    drift = np.zeros(rows)
    regime = [""] * burn
    start = burn
    for kind, length, legs in _spans(model, config.sessions, config.year):
        regime += [kind] * length
        for leg, total in legs:
            stop = start + leg
            noise[start:stop] -= noise[start:stop].mean()
            drift[start:stop] = total / leg
            start = stop
    share = config.trading.overnight
    shift = draws.normal(rows) * (
        model.volatility / math.sqrt(config.year) * math.sqrt(share * (1.0 - share))
    )
    overnight = share * noise + shift
    return MarketPath(overnight, noise - overnight + drift, tuple(regime))


def _spans(
    model: MarketModel, sessions: int, year: int
) -> list[tuple[str, int, list[tuple[int, float]]]]:
    """Return (kind, length, legs) of each regime. A leg is (length, total return).

    The lengths sum to the number of sessions.
    """
    whole = math.fsum(span.share for span in model.regimes)
    edges, passed = [0], 0.0
    for span in model.regimes:
        passed += span.share
        edges.append(min(sessions, round(sessions * passed / whole)))
    edges[-1] = sessions
    spans = []
    for span, start, stop in zip(model.regimes, edges, edges[1:], strict=False):
        length = stop - start
        if length <= 0:
            continue
        rate = {"bull": model.bull, "bear": model.bear}.get(span.kind, 0.0)
        legs = [(length, rate * length / year)]
        if span.kind == "v" and length > 1:
            legs = [(length // 2, -model.depth), (length - length // 2, model.depth)]
        spans.append((str(span.kind), length, legs))
    return spans


def clustered(draws: Draws, rows: int, sigma: float, arch: float, garch: float, df: int) -> Floats:
    """Return GARCH(1,1) returns with Student shocks.

    ``sigma`` is the long-run standard deviation per row, and ``df`` the degrees of freedom.
    """
    shocks = draws.student(rows, df).tolist()
    base = sigma * sigma
    variance, path = base, []
    for shock in shocks:
        value = math.sqrt(variance) * shock
        path.append(value)
        variance = min(
            base * (1.0 - arch - garch) + arch * value * value + garch * variance, 16.0 * base
        )
    return np.array(path)


def planted(config: SyntheticConfig, kind: Literal["styles", "sectors"], rows: int) -> Floats:
    """Return the returns of sectors, or of styles per unit of exposure.

    The shape is (2, rows, sectors or 9), with the overnight part before the intraday part.
    """
    draws, year, share = Draws(config.seed, kind), float(config.year), config.trading.overnight
    mean = np.array(config.styles.premia) / year
    scale = np.array(config.styles.volatility) / math.sqrt(year)
    if kind == "sectors":
        mean = np.zeros(len(sectors(config.preset)))
        scale = np.full(mean.size, config.market.sector_volatility / math.sqrt(year))
    overnight = draws.student((rows, mean.size), _DF) * (scale * math.sqrt(share))
    intraday = draws.student((rows, mean.size), _DF) * (scale * math.sqrt(1.0 - share)) + mean
    return np.stack([overnight, intraday])


DISTRESS = 40
"""Number of sessions for which a name declines before its delisting."""
_DISTRESS_DRIFT = -0.012


@dataclass(frozen=True, slots=True)
class Drivers:
    """All planted returns. Arrays of shape (2, ...) contain an overnight and an intraday part.

    - ``styles``: returns per unit of exposure, shape (2, rows, 9).
    - ``sectors``: returns of sectors, shape (2, rows, sectors).
    - ``planted``: effects of news, shape (2, rows, names).
    - ``decline``: losses before a delisting, shape (rows, names).
    """

    market: MarketPath
    styles: Floats
    sectors: Floats
    planted: Floats
    decline: Floats


def make_decline(config: SyntheticConfig, universe: WorldNames, burn: int) -> Floats:
    """Return the loss per session of every name that is about to be delisted."""
    decline = np.zeros((burn + config.sessions, universe.size))
    for column in np.flatnonzero(universe.last < config.sessions - 1).tolist():
        end = burn + int(universe.last[column]) + 1
        decline[end - DISTRESS : end, column] = _DISTRESS_DRIFT
    return decline


@dataclass(frozen=True, slots=True)
class CorporateMove:
    """A corporate action, announced at the close of row ``announced`` and effective at row ``ex``.

    ``value`` is in ticks per share for a dividend, and in new shares per old share for a split. In
    a plan it is the dividend as a fraction of the price, or a number in [0, 1) that selects the
    ratio of the split.
    """

    column: int
    kind: Literal["dividend", "split"]
    announced: int
    ex: int
    value: float


@dataclass(frozen=True, slots=True)
class WorldTape:
    """The generated sessions. Arrays have shape (rows, names), hidden rows first.

    - Prices are in ticks, and NaN without a trade.
    - ``last``: the last close so far, 0 before the listing.
    - ``shares``: the shares outstanding, in thousands.
    - ``scale``: the product of all split ratios so far.
    - ``exposures``: the exposures known before each session, shape (rows, 9, names).
    - ``residual``: the idiosyncratic return.
    """

    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats
    amount: Floats
    last: Floats
    shares: Ints
    scale: Floats
    trading: Bools
    exposures: Floats
    residual: Floats
    actions: tuple[CorporateMove, ...]


_NOTICE = {"dividend": 12, "split": 15}


MoveSchedule = tuple[Bools, dict[int, list[CorporateMove]]]
"""A mask of suspensions with shape (rows, names), and planned actions by the row of
announcement.
"""


def make_schedule(config: SyntheticConfig, universe: WorldNames, burn: int) -> MoveSchedule:
    """Return the drawn suspensions, and the plans of dividends and splits without prices."""
    rows = burn + config.sessions
    first = np.where(universe.first == 0, 0, universe.first + burn)
    last = universe.last + burn
    draws = Draws(config.seed, "suspensions")
    longest = 12 if config.preset == "ashare" else 2
    suspended = np.zeros((rows, first.size), dtype=np.bool_)
    for cell in draws.rare(config.trading.suspensions / config.year, suspended.size).tolist():
        row, column = divmod(cell, first.size)
        length = draws.integer(1, longest)
        if row > max(burn, first[column] + 10) and row + length < last[column] - 3:
            suspended[row : row + length, column] = True
    busy: dict[int, list[tuple[int, int]]] = defaultdict(list)
    plans: dict[int, list[CorporateMove]] = defaultdict(list)
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
    return suspended, dict(plans)


def _dividends(config: SyntheticConfig, first: Ints, last: Ints, rows: int) -> list[CorporateMove]:
    """Return plans for regular dividends, as fractions of the price."""
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
                plans.append(CorporateMove(i, "dividend", announced, ex, float(size[i])))
    return plans


def _splits(config: SyntheticConfig, first: Ints, last: Ints, rows: int) -> list[CorporateMove]:
    draws = Draws(config.seed, "splits")
    plans = []
    for cell in draws.rare(config.actions.splits / config.year, rows * first.size).tolist():
        ex, column = divmod(cell, first.size)
        size = float(draws.uniform(1)[0])
        announced = ex - _NOTICE["split"]
        if announced >= max(first[column] + 20, 1) and ex <= last[column] - 2:
            plans.append(CorporateMove(column, "split", announced, ex, size))
    return plans


def split_ratio(market: str, price: float, pick: float) -> tuple[int, int] | None:
    """Return (new, old) shares of a split, or None for a price at which companies do not split."""
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


_STEPS, _RANGE = 256, 8
_FLOOR = 50.0
"""Smallest latent value, in ticks. At lower values one tick would be a large move."""


def run_days(
    config: SyntheticConfig,
    universe: WorldNames,
    drivers: Drivers,
    schedule: MoveSchedule,
    burn: int,
) -> WorldTape:
    """Return the generated sessions."""
    loop = _Loop(config, universe, drivers, schedule, burn)
    with np.errstate(invalid="ignore", divide="ignore"):
        for row in range(burn + config.sessions):
            loop.session(row)
    opened, high, close, volume, amount, low = (
        np.ascontiguousarray(loop.bars[:, k]) for k in range(6)
    )
    rows = np.arange(close.shape[0])[:, None]
    at = np.maximum.accumulate(np.where(np.isnan(close), -1, rows), axis=0)
    last = np.where(at < 0, 0.0, np.take_along_axis(close, np.maximum(at, 0), axis=0))
    shares = np.broadcast_to(loop.universe.shares, close.shape).copy()
    scale = np.ones(close.shape)
    for action in loop.actions:
        if action.kind == "split":
            scale[action.ex :, action.column] *= action.value
            shares[action.ex :, action.column] = int(
                shares[action.ex - 1, action.column] * action.value
            )
    drawn = (loop.trading, loop.exposures, loop.residual, tuple(loop.actions))
    return WorldTape(opened, high, low, close, volume, amount, last, shares, scale, *drawn)


class _Loop:
    """The state of the loop, which calls :meth:`session` for each row. Prices are in ticks."""

    def __init__(
        self,
        config: SyntheticConfig,
        universe: WorldNames,
        drivers: Drivers,
        schedule: MoveSchedule,
        burn: int,
    ) -> None:
        rows, n = burn + config.sessions, universe.size
        self.config, self.universe, self.burn = config, universe, burn
        suspended, self.plans = schedule
        self.styles = np.ascontiguousarray(drivers.styles.transpose(1, 2, 0))[:, :, :, None]
        at = np.arange(rows)[:, None]
        self.active = (at >= np.where(universe.first == 0, 0, universe.first + burn)) & (
            at <= universe.last + burn
        )
        self.trading = self.active & ~suspended
        self.due: dict[int, list[CorporateMove]] = {}
        self.actions: list[CorporateMove] = []
        self.latent = universe.price.astype(np.float64)
        self.last = universe.price.astype(np.float64)
        self.rescale = np.ones((5, n))
        self.long_run = universe.sigma * universe.sigma
        self.variance = self.long_run
        self.exposure = np.zeros((len(FACTOR_NAMES), n))
        self.stream = FactorStream(n)
        self.unit = universe.unit.astype(np.float64)
        self.limit = universe.limit.astype(np.float64)
        self.lot = 100.0 if config.preset == "ashare" else 1.0
        self.bars = np.full((rows, 6, n), np.nan)
        self.exposures = np.zeros((rows, len(FACTOR_NAMES), n))
        self.residual = np.zeros((rows, n))
        draws = Draws(config.seed, "days")
        share, df = config.trading.overnight, config.noise.df
        night = draws.student((rows, n), df) * math.sqrt(share)
        day = draws.student((rows, n), df) * math.sqrt(1.0 - share)
        self.shocks = np.stack([night, day], axis=1)
        self.reach = np.abs(draws.normal((rows, 2, n))) * (0.55 * math.sqrt(1.0 - share))
        slow, state = draws.normal((rows, n)), np.zeros(n)
        for row in range(rows):  # autocorrelated: busy weeks follow busy weeks
            state = 0.85 * state + 0.18 * slow[row]
            slow[row] = state
        self.activity = (
            slow
            + 0.25 * draws.normal((rows, n))
            + np.minimum(np.abs(drivers.planted[0]) * 30.0, 1.0)
        )
        # Everything that does not depend on the path of prices, shape (rows, 2, names).
        market = np.stack([drivers.market.overnight, drivers.market.intraday], axis=1)
        self.base = (
            market[:, :, None] * universe.beta
            + drivers.sectors.transpose(1, 0, 2)[:, :, universe.sector]
        )
        self.base += drivers.planted.transpose(1, 0, 2)
        self.base[:, 1] += universe.alpha + drivers.decline
        self.mean_volume = (
            universe.shares * 1000.0 * config.trading.turnover * np.exp(0.5 * draws.normal(n))
        )

    def session(self, row: int) -> None:
        """Generate one session: apply actions, draw prices and volumes, and update the state."""
        for action in self.due.pop(row, ()):  # the value of actions with today's ex-date is removed
            # from the price
            i, value = action.column, action.value
            if action.kind == "dividend":
                self.latent[i] -= value
                self.last[i] -= value
            else:
                self.latent[i] /= value
                self.last[i] = max(math.floor(self.last[i] / value + 0.5), 1.0)
                self.rescale[:3, i] *= value
                self.rescale[3, i] /= value
            self.actions.append(action)
        active, trading = self.active[row], self.trading[row]
        sigma = np.sqrt(self.variance)
        noise = self.shocks[row] * sigma
        moves = self.base[row] + (self.styles[row] * self.exposure[:, None, :]).sum(axis=0) + noise
        start = self.latent
        opened = start * (1.0 + moves[0])
        closed = np.maximum(start * (1.0 + moves[0] + moves[1]), _FLOOR)
        self.latent = np.where(active, closed, start)
        reach = sigma * self.reach[row]
        low, high = limits(self.last, self.limit)
        first = np.minimum(np.maximum(np.rint(opened), low), high)
        final = np.minimum(np.maximum(np.rint(closed), low), high)
        above = np.rint(np.maximum(opened, closed) * (1.0 + reach[0]))
        below = np.rint(np.minimum(opened, closed) / (1.0 + reach[1]))
        top = np.maximum(np.minimum(above, high), np.maximum(first, final))
        bottom = np.minimum(np.maximum(below, low), np.minimum(first, final))
        surprise = np.abs(final / self.last - 1.0) / sigma
        locked = (bottom == high) | (top == low)
        power = self.activity[row] + 0.32 * (np.minimum(surprise, 5.0) - 0.8) - 2.2 * locked
        shares = self.mean_volume * self.rescale[0] * bounded_exp(power)
        volume: Floats = np.maximum(np.rint(shares / self.lot), 1.0) * self.lot
        paid = (first + top + bottom + final) * 0.25 / self.unit
        bars = np.stack((first, top, final, volume, np.rint(paid * volume * 100.0) / 100.0, bottom))
        self.last = np.where(trading, bars[2], self.last)
        self.bars[row] = np.where(trading, bars, np.nan)
        self.exposures[row] = self.exposure
        total = noise[0] + noise[1]
        self.residual[row] = total
        model = self.config.noise
        variance = model.arch * total * total + model.garch * self.variance
        variance += (1.0 - model.arch - model.garch) * self.long_run
        self.variance = np.minimum(variance, 16.0 * self.long_run)
        # An announced plan becomes a dividend in ticks or a split's ratio. A plan without a value
        # is dropped.
        for plan in self.plans.get(row, ()):
            price = float(self.last[plan.column])
            ratio = split_ratio(
                self.config.preset, price / float(self.unit[plan.column]), plan.value
            )
            value = ratio[0] / ratio[1] if ratio else 0.0
            value = float(math.floor(price * plan.value)) if plan.kind == "dividend" else value
            if value:
                self.due.setdefault(plan.ex, []).append(replace(plan, value=value))
        self.stream.feed(self.bars[row, :5] * self.rescale)
        if row + 1 >= self.burn:
            exposure = standardise(np.where(active, self.stream.values(), np.nan))
            self.exposure = np.where(np.isnan(exposure), 0.0, exposure)


@cache
def _exponentials() -> Floats:
    return np.exp(np.arange(-_RANGE * _STEPS, _RANGE * _STEPS + 1) / _STEPS)


def bounded_exp(power: Floats) -> Floats:
    """Return exponentials of numbers, which are first cut to [-8, 8] and rounded to 1/256.

    The values are read from a table, so that every machine returns the same bytes.
    """
    result: Floats = _exponentials()[
        np.rint(np.clip(power, -_RANGE, _RANGE) * _STEPS).astype(np.int64) + _RANGE * _STEPS
    ]
    return result


def limits(reference: Floats, percent: Floats | Ints) -> tuple[Floats, Floats]:
    """Return the lowest and the highest price of a session.

    These are the reference minus and plus a percentage, rounded half up to ticks.
    """
    low = np.floor(reference * (100.0 - percent) / 100.0 + 0.5)
    high = np.floor(reference * (100.0 + percent) / 100.0 + 0.5)
    return np.maximum(low, 1.0), high
