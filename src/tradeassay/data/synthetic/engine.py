"""The day loop: latent values move, boards clip them, and what is left is printed in whole ticks.

Every name has a latent value that no limit holds. A session prints it, cut at the board's limits, so that a move
too great for one day spills into the next. All state is whole numbers or made by elementwise IEEE arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tradeassay.core import exact
from tradeassay.core.view import Bools, Floats, Ints
from tradeassay.data.synthetic.config import SyntheticConfig
from tradeassay.data.synthetic.draws import Draws
from tradeassay.data.synthetic.regimes import MarketPath
from tradeassay.data.synthetic.schedule import Plan, Schedule, split_ratio
from tradeassay.data.synthetic.universe import Universe
from tradeassay.factors import FACTOR_NAMES, FactorStream, standardise

DISTRESS = 40
"""A name that is to be delisted declines over this many sessions."""
_DISTRESS_DRIFT = -0.012
_STEPS = 256
_EXP_RANGE = 8


@dataclass(frozen=True, slots=True)
class Drivers:
    """What moves prices, all known before the loop. Pairs are (overnight, intraday).

    ``styles`` has shape (2, rows, 9), ``sectors`` (2, rows, sectors), ``planted`` (news: 2, rows, names), ``decline``
    (rows, names) what names lose before they are delisted.
    """

    market: MarketPath
    styles: Floats
    sectors: Floats
    planted: Floats
    decline: Floats


@dataclass(frozen=True, slots=True)
class Action:
    """A corporate action that took place. ``value`` is in ticks per share (dividend) or new per old (split)."""

    column: int
    kind: str
    announced: int
    ex: int
    value: float


@dataclass(slots=True)
class Tape:
    """Everything the loop leaves behind; arrays have shape (rows, names), prices in ticks, NaN without trade.

    ``last`` is the last close so far (in ticks, 0 before listing), ``shares`` thousands of shares, ``scale`` the
    product of split ratios so far, ``exposures`` (rows, 9, names) what was known before each session.
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
    actions: list[Action] = field(default_factory=list)


def make_decline(config: SyntheticConfig, universe: Universe, burn: int) -> Floats:
    """Return what names lose per session in the weeks before they are delisted, shape (rows, names)."""
    decline = np.zeros((burn + config.sessions, universe.size))
    for column in np.flatnonzero(universe.last < config.sessions - 1).tolist():
        end = burn + int(universe.last[column]) + 1
        decline[end - DISTRESS : end, column] = _DISTRESS_DRIFT
    return decline


def run_days(config: SyntheticConfig, universe: Universe, drivers: Drivers, schedule: Schedule, burn: int) -> Tape:
    """Run all sessions, hidden ones first."""
    rows = burn + config.sessions
    loop = _Loop(config, universe, drivers, schedule, burn)
    with np.errstate(invalid="ignore", divide="ignore"):
        for row in range(rows):
            loop.session(row)
    return loop.tape


class _Loop:
    """State of the loop; one :meth:`session` per row."""

    def __init__(
        self, config: SyntheticConfig, universe: Universe, drivers: Drivers, schedule: Schedule, burn: int
    ) -> None:
        rows, n = burn + config.sessions, universe.size
        self.config, self.universe, self.drivers, self.schedule = config, universe, drivers, schedule
        self.first = np.where(universe.first == 0, 0, universe.first + burn)
        self.final = universe.last + burn
        self.due: dict[int, list[Action]] = {}
        self.latent = universe.price.astype(np.float64)
        self.last = universe.price.astype(np.float64)
        self.scale = np.ones(n)
        self.shares = universe.shares.copy()
        self.variance = universe.sigma * universe.sigma
        self.exposure = np.zeros((len(FACTOR_NAMES), n))
        self.stream = FactorStream(n)
        self.unit = universe.unit.astype(np.float64)
        self.lot = 100.0 if config.preset in ("ashare", "futures") else 1.0
        self._draw(rows, n)
        self.tape = _blank(rows, n)

    def _draw(self, rows: int, n: int) -> None:
        config, drivers, universe = self.config, self.drivers, self.universe
        draws = Draws(config.seed, "days")
        share, df = config.trading.overnight, config.noise.df
        night = draws.student((rows, n), df) * math.sqrt(share)
        day = draws.student((rows, n), df) * math.sqrt(1.0 - share)
        self.shocks = np.stack([night, day], axis=1)
        self.reach = np.abs(draws.normal((rows, 2, n))) * (0.55 * math.sqrt(1.0 - share))
        self.chatter = draws.normal((rows, 2, n))
        self.activity = np.zeros(n)
        market = np.stack([drivers.market.overnight, drivers.market.intraday], axis=1)
        base = market[:, :, None] * universe.beta + drivers.sectors.transpose(1, 0, 2)[:, :, universe.sector]
        base += drivers.planted.transpose(1, 0, 2)
        base[:, 1] += universe.alpha + drivers.decline
        self.base = base
        self.mean_volume = universe.shares * 1000.0 * config.trading.turnover * exact.exp(0.5 * draws.normal(n))
        steps = np.arange(-_EXP_RANGE * _STEPS, _EXP_RANGE * _STEPS + 1) / _STEPS
        self.exp_table = exact.exp(steps)

    def session(self, row: int) -> None:
        """Trade one session and remember it."""
        self._go_ex(row)
        active = (self.first <= row) & (row <= self.final)
        trading = active & ~self.schedule.suspended[row]
        sigma = np.sqrt(self.variance)
        noise = self.shocks[row] * sigma
        style = exact.total(self.drivers.styles[:, row, :, None] * self.exposure, axis=1)
        moves = self.base[row] + style + noise
        start = self.latent
        opened = start * (1.0 + moves[0])
        closed = np.maximum(start * (1.0 + moves[0] + moves[1]), self.unit)
        self.latent = np.where(active, closed, start)
        low, high = _limits(self.last, self.universe.limit)
        prices = self._print(opened, closed, low, high, sigma * self.reach[row])
        volume, amount = self._trade(row, prices, sigma, (low, high))
        self._remember(row, trading, prices, volume, amount, noise)
        model, total = self.config.noise, noise[0] + noise[1]
        base = self.universe.sigma * self.universe.sigma
        variance = (
            base * (1.0 - model.arch - model.garch) + model.arch * total * total + model.garch * self.variance
        )
        self.variance = np.minimum(variance, 16.0 * base)
        self._look(row, trading, active)
        self._announce(row)

    @staticmethod
    def _print(opened: Floats, closed: Floats, low: Floats, high: Floats, reach: Floats) -> Floats:
        """Return open, high, low and close in ticks, inside the limits."""
        first = np.minimum(np.maximum(np.rint(opened), low), high)
        final = np.minimum(np.maximum(np.rint(closed), low), high)
        above = np.rint(np.maximum(opened, closed) * (1.0 + reach[0]))
        below = np.rint(np.minimum(opened, closed) / (1.0 + reach[1]))
        top = np.maximum(np.minimum(above, high), np.maximum(first, final))
        bottom = np.minimum(np.maximum(below, low), np.minimum(first, final))
        return np.stack([first, top, bottom, final])

    def _trade(
        self, row: int, prices: Floats, sigma: Floats, limits: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Return volume and amount: more when prices move or news is out, little when a limit locks the name."""
        first, top, bottom, final = prices
        self.activity = 0.85 * self.activity + 0.18 * self.chatter[row, 0]
        surprise = np.minimum(np.abs(final / self.last - 1.0) / sigma, 5.0)
        told = np.minimum(np.abs(self.drivers.planted[0, row]) * 30.0, 1.0)
        power = self.activity + 0.25 * self.chatter[row, 1] + 0.32 * (surprise - 0.8) + told
        locked = (bottom == limits[1]) | (top == limits[0])
        power -= np.where(locked, 2.2, 0.0)
        place = np.rint(np.clip(power, -_EXP_RANGE, _EXP_RANGE) * _STEPS).astype(np.int64) + _EXP_RANGE * _STEPS
        shares = self.mean_volume * self.scale * self.exp_table[place]
        volume = np.maximum(np.rint(shares / self.lot), 1.0) * self.lot
        paid = (first + top + bottom + final) * 0.25 / self.unit
        return volume, np.rint(paid * volume * 100.0) / 100.0

    def _remember(
        self, row: int, trading: Bools, prices: Floats, volume: Floats, amount: Floats, noise: Floats
    ) -> None:
        tape = self.tape
        self.last = np.where(trading, prices[3], self.last)
        for array, values in zip(
            (tape.open, tape.high, tape.low, tape.close, tape.volume, tape.amount),
            (*prices, volume, amount),
            strict=True,
        ):
            array[row] = np.where(trading, values, np.nan)
        tape.last[row] = np.where(self.first <= row, self.last, 0.0)
        tape.shares[row] = self.shares
        tape.scale[row] = self.scale
        tape.trading[row] = trading
        tape.exposures[row] = self.exposure
        tape.residual[row] = noise[0] + noise[1]

    def _look(self, row: int, trading: Bools, active: Bools) -> None:
        """Bring the exposures up to date with the session's printed bars."""
        tape, scale = self.tape, self.scale
        raw = self.stream.push(
            tape.open[row] * scale,
            tape.high[row] * scale,
            tape.close[row] * scale,
            tape.volume[row] / scale,
            tape.amount[row],
        )
        exposure = standardise(np.where(active, raw, np.nan))
        self.exposure = np.where(np.isnan(exposure), 0.0, exposure)

    def _announce(self, row: int) -> None:
        for plan in self.schedule.plans.get(row, ()):
            value = self._terms(plan)
            if value:
                action = Action(plan.column, plan.kind, row, plan.ex, value)
                self.due.setdefault(plan.ex, []).append(action)

    def _terms(self, plan: Plan) -> float:
        """Return a dividend in ticks or a split ratio; 0 when nothing comes of the plan."""
        price = float(self.last[plan.column])
        if plan.kind == "dividend":
            return float(math.floor(price * plan.size))
        ratio = split_ratio(self.config.preset, price / float(self.unit[plan.column]), plan.size)
        return ratio[0] / ratio[1] if ratio else 0.0

    def _go_ex(self, row: int) -> None:
        for action in self.due.pop(row, ()):
            i, value = action.column, action.value
            if action.kind == "dividend":
                self.latent[i] -= value
                self.last[i] -= value
            else:
                self.latent[i] /= value
                self.last[i] = max(math.floor(self.last[i] / value + 0.5), 1.0)
                self.scale[i] *= value
                self.shares[i] = int(self.shares[i] * value)
            self.tape.actions.append(action)


def _blank(rows: int, n: int) -> Tape:
    def missing() -> Floats:
        return np.full((rows, n), np.nan)

    return Tape(
        open=missing(),
        high=missing(),
        low=missing(),
        close=missing(),
        volume=missing(),
        amount=missing(),
        last=np.zeros((rows, n)),
        shares=np.zeros((rows, n), dtype=np.int64),
        scale=np.ones((rows, n)),
        trading=np.zeros((rows, n), dtype=np.bool_),
        exposures=np.zeros((rows, len(FACTOR_NAMES), n)),
        residual=np.zeros((rows, n)),
    )


def _limits(reference: Floats, percent: Ints) -> tuple[Floats, Floats]:
    """Return the lowest and highest price of a session in ticks: the reference +- percent, rounded half up."""
    whole = reference.astype(np.int64)
    low = (whole * (100 - percent) * 2 + 100) // 200
    high = (whole * (100 + percent) * 2 + 100) // 200
    return np.maximum(low, 1).astype(np.float64), high.astype(np.float64)
