"""Implement the built-in rules and their base class.

A rule answers immediately, repeats its answer for the same step, and may abstain.
"""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np
from msgspec import Meta
from msgspec.structs import asdict, replace

from tradeassay.core.arguments import typed
from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay_bench.agents.registry import AgentConfig, agents
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay_bench.core.errors import AgentError
from tradeassay_bench.core.orders import Decision, Failure, Order


def trades_towards(
    observation: Observation, targets: Mapping[str, float], *, buffer: float, band: float
) -> tuple[Order, ...]:
    """Return the orders that move the account towards ``targets`` (weights that sum to at most 1).

    Held names without a target are sold. Names that do not trade or have no price are left
    unchanged. Positions are also left unchanged if the change is smaller than ``band`` times the
    target, or below one lot, which the venue would refuse. The other targets are scaled so that the
    account can pay for all of them and ``buffer`` of NAV stays in cash.
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
    # This runs for every holding of every session, so the common case (a weight inside the band)
    # comes first.
    for symbol, position in positions.items():
        target_weight = targets.get(symbol, 0.0) * invested
        if target_weight > cap:
            target_weight = cap
        value = position.quantity * position.mark * position.multiplier
        if abs(target_weight * nav - value) <= band * target_weight * nav or not trading(
            column(symbol)
        ):
            untouched += value
            staying += 1
        elif target_weight > 0.0:
            changing[symbol] = target_weight
            staying += 1
        else:
            locked = position.quantity - position.sellable
            untouched += locked * position.mark * position.multiplier
            staying += locked > 0
            if position.sellable > 0:
                exits.append(Order(symbol=symbol, amount=position.sellable, side="SELL"))
    free_slots = math.inf if rules.max_positions is None else rules.max_positions - staying
    for symbol, weight in targets.items():
        if symbol not in positions and weight > 0.0 and free_slots > 0 and trading(column(symbol)):
            changing[symbol] = min(weight * invested, cap)
            free_slots -= 1
    if not changing:
        return tuple(exits)
    requested = math.fsum(changing.values())
    available = max(0.0, invested - untouched / nav)
    scale = 1.0 if requested <= available else available / requested
    prices = known_prices(observation)
    sells: list[Order] = []
    buys: list[Order] = []
    for symbol, target_weight in changing.items():
        held = positions.get(symbol)
        target = target_weight * scale
        change = target * nav - (0.0 if held is None else held.value)
        price = float(prices[column(symbol)])
        least = rules.lot * price * observation.view.instrument(symbol).multiplier
        if price > 0.0 and abs(change) >= least and target > 0.0:
            (buys if change > 0.0 else sells).append(
                Order(symbol=symbol, amount=target, unit="target_weight")
            )
    return (*exits, *sells, *buys)


PATIENCE = 5
"""Number of earlier sessions in which the bar of a name is searched if the day has none."""


def known_prices(observation: Observation) -> Floats:
    """Return the latest price of every column of the view.

    A column without a price in the last session is NaN.
    """
    view = observation.view
    opens = view.opens()
    if opens is not None and observation.session not in view.sessions(1).astype(str):
        return opens
    closes = view.bars("close", 1)
    return closes[-1] if len(closes) else np.full(len(view.symbols), np.nan)


def as_of(bars: Floats, row: int, columns: Ints) -> Floats:
    """Return one row of the given columns.

    A missing value is filled from up to :data:`PATIENCE` earlier rows.
    """
    window = bars[max(row - PATIENCE, 0) : row + 1, columns]
    values: Floats = window[-1].copy()
    for earlier in window[-2::-1]:
        gaps = np.isnan(values)
        if not gaps.any():
            break
        values[gaps] = earlier[gaps]
    return values


def buyable(observation: Observation) -> Bools:
    """Return a mask, in the order of the universe, of the names that trade and have a price."""
    view, columns = observation.view, observation.columns
    opens = view.opens()
    prices = view.bars("close", 1, adjust="none") if opens is None else opens[None, :]
    if len(prices) == 0:
        return np.zeros(len(columns), dtype=np.bool_)
    mask: Bools = (view.tradable() & (prices[-1] > 0.0))[columns]
    return mask


def names_to_buy(observation: Observation) -> list[str]:
    """Return the symbols of the universe that trade and have a price."""
    can = buyable(observation).tolist()
    return [symbol for symbol, ok in zip(observation.universe, can, strict=True) if ok]


C = TypeVar("C", bound=AgentConfig)

Buffer = Annotated[
    float,
    Meta(
        ge=0,
        lt=1,
        description="share of NAV that stays in cash, for costs and overnight price changes",
    ),
]
Every = Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")]
Band = Annotated[
    float,
    Meta(
        ge=0,
        description="a held name is resized only when it is off by more than this share of its "
        "target",
    ),
]


class PortfolioConfig(AgentConfig, frozen=True, kw_only=True):
    """The settings of all rules that rebalance a portfolio."""

    buffer: Buffer = 0.02
    every: Every = 21
    band: Band = 0.2


P = TypeVar("P", bound=PortfolioConfig)


@dataclass(frozen=True, slots=True)
class Abstain:
    """The answer of a rule that has no targets yet. ``reason`` is recorded in the journal."""

    reason: str


class Rule(ABC, Generic[C]):
    """An agent whose answer depends only on its observations and its random generator."""

    Config: ClassVar[type[AgentConfig]] = AgentConfig
    summary: ClassVar[str] = ""

    def __init__(self, config: C) -> None:
        # A config written in code is converted to the same types as a config read from a file.
        self.config: C = replace(config, **typed(asdict(config), type(config)))
        self.rng = np.random.default_rng(0)
        self._last: tuple[int, Decision] | None = None

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self.rng = rng
        self._last = None

    def answer(self, request: AskDecision) -> Decision:
        """Return the decision of a step. The same step always has the same answer."""
        step = request.observation.step
        if self._last is not None and self._last[0] == step:
            return self._last[1]
        decision = self.decide(request.observation)
        self._last = (step, decision)
        return decision

    @abstractmethod
    def decide(self, observation: Observation) -> Decision:
        """Return the decision for an observation."""


class Rebalancer(Rule[P]):
    """A rule that sets target weights every ``config.every`` sessions and trades towards them."""

    _since: int | None = None

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        super().begin(info, rng)
        self._since = None

    def decide(self, observation: Observation) -> Decision:
        """Return orders towards new targets, or no orders until the next rebalancing."""
        if self._since is not None and observation.step - self._since < self.config.every:
            return Decision(reason="holds until the next rebalancing")
        targets = self.targets(observation)
        if isinstance(targets, Abstain):
            return Decision(reason=targets.reason)
        weights = _weights(targets)
        self._since = observation.step
        orders = trades_towards(
            observation, weights, buffer=self.config.buffer, band=self.config.band
        )
        return Decision(orders=orders, reason="rebalances" if orders else "is where it wants to be")

    @abstractmethod
    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return target weights of the invested part (they sum to at most 1), or abstain."""


def _weights(targets: Any) -> dict[str, float]:
    """Return targets as plain floats, whatever library produced them.

    Raises :class:`AgentError` unless every target is a finite number of at least 0.
    """
    if not hasattr(targets, "items"):  # a pandas Series has the same method
        raise AgentError(
            f"expected a dict of weights, got a {type(targets).__name__}",
            hint="return weights by symbol, or Abstain",
        )
    weights = {}
    for symbol, weight in targets.items():
        try:
            weights[symbol] = math.nan if isinstance(weight, str) else float(weight)
        except (TypeError, ValueError):
            weights[symbol] = math.nan
        if not 0.0 <= weights[symbol] < math.inf:
            raise AgentError(
                f"expected weights of 0 or more, got {weight} for {symbol}",
                hint="leave a name out to sell it",
            )
    return weights


def least_variance(covariance: Floats, cap: float) -> Floats:
    """Return the weights w that minimise w' C w with 0 <= w <= cap and sum(w) = 1.

    A ``cap`` too small to invest everything is raised to 1 / names. The result is deterministic:
    the method starts from equal weights and takes steps of fixed length.
    """
    names = len(covariance)
    cap = max(cap, 1.0 / names)
    step = 1.0 / float(np.linalg.eigvalsh(covariance)[-1])
    weights = np.full(names, 1.0 / names)
    ahead, speed = weights, 1.0
    for _ in range(2_000):
        moved = onto_capped_simplex(ahead - step * (covariance @ ahead), cap)
        change = moved - weights
        if float(np.dot(ahead - moved, change)) > 0.0:
            # The momentum points uphill: reset it (O'Donoghue and Candes' restart).
            speed = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
        ahead = moved + ((speed - 1.0) / faster) * change
        weights, speed = moved, faster
        if float(np.max(np.abs(change))) < 1e-12:
            break
    return weights


def onto_capped_simplex(point: Floats, cap: float) -> Floats:
    """Return the nearest vector with entries in [0, cap] that sum to 1.

    ``cap`` x length must be at least 1. The solution is clip(point - t, 0, cap) for one t. The sum
    is piecewise linear in t, so its breakpoints determine t exactly.
    """
    breaks = np.sort(np.concatenate((point - cap, point)))
    rising = np.sort(point)
    below = np.concatenate(([0.0], np.cumsum(rising)))

    def excess(at: Floats) -> Floats:
        total = below[-1]
        # sum over i of max(point_i - at, 0), by ranks in the sorted point
        rank = np.searchsorted(rising, at, side="right")
        above: Floats = (total - below[rank]) - (len(point) - rank) * at
        return above

    sums = excess(breaks) - excess(breaks + cap)
    # The sums fall along the breakpoints. The sum 1 is between the last breakpoint with at least 1
    # and the next one.
    i = int(np.count_nonzero(sums >= 1.0)) - 1
    i = min(max(i, 0), len(breaks) - 2)
    slope = sums[i] - sums[i + 1]
    share = 0.0 if slope <= 0.0 else (sums[i] - 1.0) / slope
    t = breaks[i] + share * (breaks[i + 1] - breaks[i])
    clipped: Floats = np.clip(point - t, 0.0, cap)
    return clipped


Count = Annotated[
    int, Meta(ge=1, description="names to hold (never more than a third of the universe)")
]


def how_many(k: int, universe: int) -> int:
    """Return ``k``, but at most a third of the universe.

    A portfolio of nearly all names would not be a selection.
    """
    return min(k, max(1, universe // 3))


def best(scores: Floats, k: int) -> list[int]:
    """Return the positions of the ``k`` highest scores, best first.

    NaN is skipped. Equal scores keep their order. The list is shorter if fewer scores are known.
    """
    # Array methods instead of numpy's functions: this runs every session, and the wrappers cost
    # more than the computation.
    losses = -scores
    eligible = losses == losses
    if k < losses.size:
        # Only candidates for the first k are sorted, including ties with the k-th.
        ranks = losses.copy()
        ranks.partition(k - 1)
        worst = ranks[k - 1]
        if worst == worst:
            eligible = losses <= worst
    candidates = eligible.nonzero()[0]
    order = candidates[losses[candidates].argsort(kind="stable")]
    positions: list[int] = order[:k].tolist()
    return positions


def rotate(observation: Observation, scores: Floats, k: int, keep: float) -> dict[str, float]:
    """Return equal weights of at most ``k`` names (see :func:`how_many`).

    Held names that still rank in the first ``keep`` x ``k`` are selected first. Then the best other
    names are added.
    """
    universe, held = observation.universe, observation.account.positions
    k = how_many(k, len(universe))
    ranked = [universe[i] for i in best(scores, max(k, int(keep * k)))]
    staying = [name for name in ranked if name in held][:k]
    fresh = [name for name in ranked[:k] if name not in held]
    return dict.fromkeys(staying + fresh[: k - len(staying)], 1.0 / k)


Lookback = Annotated[int, Meta(ge=2, description="start of the measured period, in sessions back")]
Skip = Annotated[
    int,
    Meta(ge=1, description="end of the measured period, in sessions back (1 = the last close)"),
]


class MomentumConfig(PortfolioConfig, frozen=True, kw_only=True):
    """The number of names and the period of their ranking."""

    k: Count = 20
    keep: Annotated[
        float, Meta(ge=1, description="a held name stays while it ranks in the first keep x k")
    ] = 2.0
    lookback: Lookback = 252
    skip: Skip = 21


@agents.register("momentum-12-1")
class Momentum(Rebalancer[MomentumConfig]):
    """Hold the ``k`` names with the highest momentum in equal weights.

    Momentum is close[-skip] / close[-lookback] - 1.
    """

    summary: ClassVar[str] = (
        "holds the winners of the past year without its last month, equal weights"
    )
    Config: ClassVar[type[AgentConfig]] = MomentumConfig

    def __init__(self, config: MomentumConfig) -> None:
        super().__init__(config)
        check_period(config.lookback, config.skip)

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        config = self.config
        scores = momentum(observation, config.lookback, config.skip)
        if isinstance(scores, Abstain):
            return scores
        weights = rotate(observation, scores, config.k, config.keep)
        return weights or Abstain("no name of the universe has a momentum yet")


def check_period(lookback: int, skip: int) -> None:
    """Raise :class:`UserError` for a period that ends before it starts."""
    if skip >= lookback:
        raise UserError(
            f"momentum from {lookback} to {skip} sessions back is empty",
            hint="make skip < lookback",
        )


def momentum(observation: Observation, lookback: int, skip: int) -> Floats | Abstain:
    """Return the universe's past returns.

    A return is NaN if it is unknown or if the name does not trade. Return :class:`Abstain` if the
    history is too short.
    """
    closes = observation.view.bars("close", lookback + PATIENCE)
    rows = len(closes)
    if rows < lookback:
        return Abstain(f"needs {lookback} sessions of history, has {rows}")
    columns = observation.columns
    scores: Floats = closes[rows - skip][columns] / closes[rows - lookback][columns] - 1.0
    gaps = np.isnan(scores).nonzero()[0]
    if gaps.size:
        missing = columns[gaps]
        scores[gaps] = (
            as_of(closes, rows - skip, missing) / as_of(closes, rows - lookback, missing) - 1.0
        )
    scores[~buyable(observation)] = np.nan
    return scores


class MomentumWeightedConfig(PortfolioConfig, frozen=True, kw_only=True):
    """The period of the returns that set the weights, and the largest weight."""

    lookback: Lookback = 63
    skip: Skip = 1
    cap: Annotated[
        float, Meta(gt=0, le=1, description="largest weight of one name before the cash buffer")
    ] = 0.2


@agents.register("momentum-weighted")
class MomentumWeighted(Rebalancer[MomentumWeightedConfig]):
    """Weight each name by its past return if that return is positive.

    Falling names have no weight. If no name rises, the rule sells everything and stays in cash.
    """

    summary: ClassVar[str] = "holds every rising name in proportion to its past return"
    Config: ClassVar[type[AgentConfig]] = MomentumWeightedConfig

    def __init__(self, config: MomentumWeightedConfig) -> None:
        super().__init__(config)
        check_period(config.lookback, config.skip)

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        scores = momentum(observation, self.config.lookback, self.config.skip)
        if isinstance(scores, Abstain):
            return scores
        rising = np.where(scores > 0.0, scores, 0.0)
        total = math.fsum(rising)
        if total <= 0.0:
            return {}
        # Weight above the cap is not distributed to other names. It stays in cash.
        weights = zip(
            observation.universe, np.minimum(rising / total, self.config.cap).tolist(), strict=True
        )
        return {symbol: weight for symbol, weight in weights if weight > 0.0}


class ReversalConfig(PortfolioConfig, frozen=True, kw_only=True):
    """The number of names and the length of the period."""

    k: Count = 20
    lookback: Lookback = 6
    every: Every = 5


@agents.register("reversal")
class Reversal(Rebalancer[ReversalConfig]):
    """Hold the ``k`` names that fell most over the last ``lookback - 1`` sessions."""

    summary: ClassVar[str] = "holds the losers of the last week, equal weights"
    Config: ClassVar[type[AgentConfig]] = ReversalConfig

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        scores = momentum(observation, self.config.lookback, 1)
        if isinstance(scores, Abstain):
            return scores
        k = how_many(self.config.k, len(observation.universe))
        chosen = best(-scores, k)
        if not chosen:
            return Abstain("no name of the universe has a past return yet")
        return {observation.universe[i]: 1.0 / k for i in chosen}


@agents.register("cash")
class KeepsCash(Rule[AgentConfig]):
    """Hold only cash."""

    summary: ClassVar[str] = "holds only cash and never trades"

    def decide(self, observation: Observation) -> Decision:
        return Decision(reason="stays in cash")


SESSIONS = 60
"""Number of sessions whose traded amounts are summed to rank names if not all can be held."""


class HoldConfig(AgentConfig, frozen=True, kw_only=True):
    """The share of NAV that a buy-once rule holds in cash on the day of the purchase."""

    buffer: Buffer = 0.005


@agents.register("equal-weight")
class EqualWeight(Rule[HoldConfig]):
    """Buy the same amount of every name that trades on the first session, and never trade again.

    If the number of positions is limited, the rule buys the names with the highest traded amounts
    over the last 60 sessions, because a baseline with mostly idle money would be easy to beat in a
    rising market. Dividends and payouts stay in cash. If the account holds no position (every order
    of the first session was refused, or every holding left the exchange), the rule buys once more.
    """

    summary: ClassVar[str] = "buys the whole universe in equal amounts once, then holds"
    Config: ClassVar[type[AgentConfig]] = HoldConfig

    def decide(self, observation: Observation) -> Decision:
        if observation.account.positions:
            return _KEEPS
        names = names_to_buy(observation)
        limit = observation.rules.max_positions
        if limit is not None and len(names) > limit:
            amounts = np.nan_to_num(observation.view.bars("amount", SESSIONS))
            columns = [observation.view.column(name) for name in names]
            most_traded = np.argsort(-amounts[:, columns].sum(axis=0), kind="stable")[
                :limit
            ].tolist()
            names = [names[place] for place in sorted(most_traded)]
        if not names:
            return Decision(reason="no name of the universe has a price yet")
        targets = dict.fromkeys(names, 1.0 / len(names))
        orders = trades_towards(observation, targets, buffer=self.config.buffer, band=0.0)
        if not orders:
            return Decision(reason="the account cannot pay for one lot of any name")
        return Decision(orders=orders, reason=f"buys equal amounts of {len(names)} names")


_KEEPS = Decision(reason="holds")


class SectorEqualConfig(PortfolioConfig, frozen=True, kw_only=True):
    """The frequency of rebalancing and the number of sectors held."""

    every: Every = 63
    best: Annotated[
        int,
        Meta(
            ge=0, description="number of sectors to hold, those with the highest returns (0: all)"
        ),
    ] = 0
    lookback: Annotated[
        int, Meta(ge=2, description="with best: number of sessions in a sector's return")
    ] = 63


@agents.register("sector-equal")
class SectorEqual(Rebalancer[SectorEqualConfig]):
    """Split the money equally between sectors, then equally between the names of a sector.

    Names without a sector form one more group. If no sector is known, that group contains all
    names, and the rule is an equal-weight portfolio with rebalancing. With ``best`` the rule holds
    only the sectors whose names rose most on average.
    """

    summary: ClassVar[str] = "equal money for every sector, rebalanced each quarter"
    Config: ClassVar[type[AgentConfig]] = SectorEqualConfig

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        groups: dict[str | None, list[str]] = {}
        for symbol in names_to_buy(observation):
            groups.setdefault(observation.view.instrument(symbol).sector, []).append(symbol)
        if not groups:
            return Abstain("no name of the universe has a price yet")
        if self.config.best:
            scores = momentum(observation, self.config.lookback, 1)
            if isinstance(scores, Abstain):
                return scores
            gains = dict(zip(observation.universe, scores.tolist(), strict=True))
            means = {
                sector: np.nanmean([gains[symbol] for symbol in symbols] or [np.nan])
                for sector, symbols in groups.items()
            }
            # A sector without a known return has the mean NaN, which is not equal to itself.
            ranked = sorted(
                (sector for sector in groups if means[sector] == means[sector]),
                key=lambda sector: -means[sector],
            )
            groups = {sector: groups[sector] for sector in ranked[: self.config.best]}
        weights: dict[str, float] = {}
        for names in groups.values():
            weights |= dict.fromkeys(names, 1.0 / (len(groups) * len(names)))
        return weights


@agents.register("index-hold")
class IndexHold(Rule[HoldConfig]):
    """Buy the index fund once and hold it.

    The rule fails in every session of a market without an index fund.
    """

    summary: ClassVar[str] = "buys the index fund once, then holds (fails in a market without one)"
    Config: ClassVar[type[AgentConfig]] = HoldConfig

    _searched, _funds = 0, tuple[str, ...]()

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        super().begin(info, rng)
        self._searched, self._funds = 0, ()

    def decide(self, observation: Observation) -> Decision:
        if observation.account.positions:
            return _KEEPS
        # The fund of the benchmark index if it can be identified, else the first fund listed.
        # Columns are only appended, so only new listings need a check.
        view, index = observation.view, observation.rules.benchmark_index
        fresh = (
            name for name in view.symbols[self._searched :] if view.instrument(name).kind == "index"
        )
        self._funds = (*self._funds, *fresh)
        self._searched = len(view.symbols)
        tracking = (
            name
            for name in self._funds
            if index is not None and view.instrument(name).tracks(index)
        )
        fund = next(tracking, self._funds[0] if self._funds else None)
        if fund is None:
            return _NO_FUND
        orders = trades_towards(observation, {fund: 1.0}, buffer=self.config.buffer, band=0.0)
        if not orders:
            return Decision(
                reason=f"{fund} cannot be bought yet: no price, no trading, or too little cash"
            )
        return Decision(orders=orders, reason=f"buys {fund}")


_NO_FUND = Decision(
    status="failed",
    reason="this market has no index fund to buy",
    failures=(Failure(kind="unsupported", detail="no instrument of kind 'index' is listed"),),
)


def shrunk_covariance(returns: Floats, shrinkage: float | None = None) -> Floats:
    """Return the shrunk covariance matrix (1 - s) S + s m I.

    S is the sample covariance (divisor n) and m the mean variance. ``returns`` has shape (days,
    names), simple returns per day. NaN is replaced by the name's mean. With ``shrinkage`` None, s
    is the weight of Ledoit and Wolf (2004) that minimises the expected squared error.
    """
    counts = np.count_nonzero(~np.isnan(returns), axis=0)
    means = np.nansum(returns, axis=0) / np.maximum(counts, 1)
    centred = np.where(np.isnan(returns), 0.0, returns - means)
    days, names = centred.shape
    sample = centred.T @ centred / days
    mean_variance = float(np.trace(sample)) / names
    if shrinkage is None:
        distance = float(np.sum(sample**2)) / names - mean_variance**2
        squares = np.sum(centred**2, axis=1)
        noise = (float(np.sum(squares**2)) / days - float(np.sum(sample**2))) / (days * names)
        shrinkage = 1.0 if distance <= 0.0 else min(1.0, max(0.0, noise / distance))
    shrunk: Floats = (1.0 - shrinkage) * sample
    shrunk[np.diag_indices(names)] += shrinkage * mean_variance
    return shrunk


_DIGITS = 5
"""Decimals of a weight. The last bits of a matrix product depend on the CPU. Rounding removes these
bits before they can affect an order.
"""


def _past(observation: Observation, sessions: int) -> Floats | Abstain:
    """Return the last daily returns of the universe, shape (sessions, names).

    Dividends are included. A return is NaN if the name has no bar on the day or the day before.
    Return :class:`Abstain` if the history is too short.
    """
    closes = observation.view.bars("close", sessions + 1, adjust="total")
    if len(closes) <= sessions:
        have = len(observation.view.sessions(sessions + 1))
        return Abstain(f"needs {sessions + 1} sessions of history, has {have}")
    closes = closes[:, observation.columns]
    changes: Floats = closes[1:] / closes[:-1] - 1.0
    return changes


class MinVarianceConfig(PortfolioConfig, frozen=True, kw_only=True):
    """The period of the covariance, its shrinkage, and the limits of a weight."""

    lookback: Annotated[
        int, Meta(ge=10, description="number of daily returns in the covariance")
    ] = 126
    cap: Annotated[
        float, Meta(gt=0, le=1, description="largest weight of one name before the cash buffer")
    ] = 0.1
    shrinkage: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="weight of the shrinkage target, 0 to 1; not set = estimated (Ledoit-Wolf)"
        ),
    ] = None
    present: Annotated[
        float,
        Meta(gt=0, le=1, description="minimum share of the returns that a name must have"),
    ] = 0.8
    floor: Annotated[
        float,
        Meta(ge=0, lt=1, description="smaller weights are dropped and distributed to the rest"),
    ] = 0.005


@agents.register("min-variance")
class MinVariance(Rebalancer[MinVarianceConfig]):
    """Hold the long-only portfolio with the lowest variance over the recent past."""

    summary: ClassVar[str] = (
        "holds the long-only portfolio with the lowest variance, rebalanced monthly"
    )
    Config: ClassVar[type[AgentConfig]] = MinVarianceConfig

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        config = self.config
        past = _past(observation, config.lookback)
        if isinstance(past, Abstain):
            return past
        complete = np.count_nonzero(~np.isnan(past), axis=0) >= config.present * config.lookback
        # A name whose price did not change at all was not traded. It would take the whole
        # portfolio.
        moving = np.nanmax(np.abs(past), axis=0, initial=0.0) > 0.0
        (usable,) = np.nonzero(complete & moving & buyable(observation))
        if len(usable) == 0:
            return Abstain("no name of the universe has enough history yet")
        weights = least_variance(shrunk_covariance(past[:, usable], config.shrinkage), config.cap)
        least = min(config.floor, 1.0 / len(usable))
        rounded = zip(usable.tolist(), np.round(weights, _DIGITS).tolist(), strict=True)
        large = {observation.universe[i]: weight for i, weight in rounded if weight >= least}
        total = math.fsum(large.values())
        return {symbol: weight / total for symbol, weight in large.items()}


class VolTargetConfig(PortfolioConfig, frozen=True, kw_only=True):
    """The target volatility and the settings of its estimate."""

    volatility: Annotated[
        float, Meta(gt=0, description="target annual volatility (0.1 = 10 %)")
    ] = 0.1
    lookback: Annotated[int, Meta(ge=5, description="number of daily returns in the estimate")] = 20
    most: Annotated[
        float, Meta(gt=0, le=1, description="largest invested share before the cash buffer")
    ] = 1.0
    every: Every = 5


@agents.register("vol-target")
class VolTarget(Rebalancer[VolTargetConfig]):
    """Hold the universe in equal weights, scaled to the target volatility."""

    summary: ClassVar[str] = (
        "holds the universe, scaled down when volatility rises (target 10 % per year)"
    )
    Config: ClassVar[type[AgentConfig]] = VolTargetConfig

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        config = self.config
        past = _past(observation, config.lookback)
        if isinstance(past, Abstain):
            return past
        names = names_to_buy(observation)
        present = ~np.isnan(past)
        counts = np.count_nonzero(present, axis=1)
        if not names or not (counts > 0).all():
            return Abstain("no name of the universe has enough history yet")
        daily = [
            math.fsum(row) / count
            for row, count in zip(np.where(present, past, 0.0), counts, strict=True)
        ]
        volatility = statistics.stdev(daily) * math.sqrt(observation.rules.periods_per_year)
        exposure = (
            config.most if volatility <= 0.0 else min(config.most, config.volatility / volatility)
        )
        return dict.fromkeys(names, exposure / len(names))


class RandomConfig(PortfolioConfig, frozen=True, kw_only=True):
    """The number of names and the share of them that is exchanged.

    Set both to match the agent whose luck is measured.
    """

    k: Count = 20
    turnover: Annotated[
        float, Meta(ge=0, le=1, description="share of the names exchanged at each rebalancing")
    ] = 0.2
    every: Every = 5


@agents.register("random")
class Random(Rebalancer[RandomConfig]):
    """Hold ``k`` random names in equal weights and exchange some of them at each rebalancing."""

    summary: ClassVar[str] = "holds names drawn at random (seeded), under the same rules"
    Config: ClassVar[type[AgentConfig]] = RandomConfig

    _names: Sequence[str] = ()

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        super().begin(info, rng)
        self._names = ()

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        config = self.config
        pool = names_to_buy(observation)
        if not pool:
            return Abstain("no name of the universe has a price yet")
        k = how_many(config.k, len(observation.universe))
        present = set(pool)
        staying = [name for name in self._names if name in present]
        leaving = self.rng.binomial(len(staying), config.turnover) if staying else 0
        if leaving:
            gone = set(self.rng.choice(len(staying), size=leaving, replace=False).tolist())
            staying = [name for i, name in enumerate(staying) if i not in gone]
        outside = [name for name in pool if name not in set(self._names)] or pool
        needed = min(k - len(staying), len(outside))
        drawn = (
            self.rng.choice(len(outside), size=needed, replace=False).tolist() if needed > 0 else []
        )
        self._names = staying + [outside[i] for i in drawn if outside[i] not in staying]
        return dict.fromkeys(self._names, 1.0 / k)
