"""What all rules share: a rule answers at once, repeats itself when asked again, and may abstain."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.agents.registry import AgentConfig
from tradeassay.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay.core.errors import UserError
from tradeassay.core.measure import plain_sum
from tradeassay.core.orders import Decision, Order
from tradeassay.core.view import Bools, Floats, Ints


def trades_towards(
    observation: Observation, targets: Mapping[str, float], *, buffer: float, band: float
) -> tuple[Order, ...]:
    """Return the orders that bring the account towards ``targets`` (weights that sum to at most 1).

    Held names without a target are sold. Names that do not trade or have no price are left alone, and so are
    changes smaller than ``band`` times the target or below one lot, which the venue would refuse. The other
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
    asked = plain_sum(changing.values())
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


PATIENCE = 5
"""A name without a bar on the wanted day is read up to this many sessions earlier."""


def known_prices(observation: Observation) -> Floats:
    """Return the latest price of every column of the view; NaN where the last session had none."""
    view = observation.view
    opens = view.opens()
    if opens is not None:
        last = view.sessions(1)
        if len(last) == 0 or str(last[-1]) != observation.session:
            return opens
    closes = view.bars("close", 1)
    return closes[-1] if len(closes) else np.full(len(view.symbols), np.nan)


def as_of(bars: Floats, row: int, columns: Ints) -> Floats:
    """Return one row of some columns; a missing value is taken from up to :data:`PATIENCE` rows before it."""
    window = bars[max(row - PATIENCE, 0) : row + 1, columns]
    found: Floats = window[-1].copy()
    for earlier in window[-2::-1]:
        missing = np.isnan(found)
        if not missing.any():
            break
        found[missing] = earlier[missing]
    return found


def buyable(observation: Observation) -> Bools:
    """Return which names of the universe can be traded and have a price, in the order of the universe."""
    view, columns = observation.view, observation.columns
    opens = view.opens()
    prices = view.bars("close", 1, adjust="none") if opens is None else opens[None, :]
    if len(prices) == 0:
        return np.zeros(len(columns), dtype=np.bool_)
    mask: Bools = (view.tradable() & (prices[-1] > 0.0))[columns]
    return mask


def returns(observation: Observation, sessions: int) -> Floats | None:
    """Return the last daily returns of the universe, shape (sessions, names); None when history is shorter.

    Dividends are included. NaN where a name has no bar on the day or the day before.
    """
    closes = observation.view.bars("close", sessions + 1, adjust="total")
    if len(closes) <= sessions:
        return None
    closes = closes[:, observation.columns]
    changes: Floats = closes[1:] / closes[:-1] - 1.0
    return changes


C = TypeVar("C", bound=AgentConfig)

Buffer = Annotated[
    float, Meta(ge=0, lt=1, description="share of NAV that stays in cash, for costs and overnight moves")
]
Every = Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")]
Band = Annotated[
    float,
    Meta(ge=0, description="a held name is resized only when it is off by more than this share of its target"),
]


class PortfolioConfig(AgentConfig, frozen=True, kw_only=True):
    """The settings shared by all rules that steer a portfolio."""

    buffer: Buffer = 0.02
    every: Every = 21
    band: Band = 0.2


P = TypeVar("P", bound=PortfolioConfig)


@dataclass(frozen=True, slots=True)
class Abstain:
    """The rule cannot say anything yet; ``reason`` goes into the journal."""

    reason: str


class Rule(ABC, Generic[C]):
    """An agent whose answer is a function of what it observes and of its own random generator."""

    Config: ClassVar[type[AgentConfig]] = AgentConfig
    summary: ClassVar[str] = ""

    def __init__(self, config: C) -> None:
        # A struct does not check its field limits when it is built in code, only when it is decoded.
        try:
            self.config: C = msgspec.convert(msgspec.structs.asdict(config), type(config))
        except msgspec.ValidationError as error:
            raise UserError(f"{type(config).__qualname__}: {error}", hint="correct the parameter") from error
        self.rng = np.random.default_rng(0)
        self._last: tuple[int, Decision] | None = None

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Take the episode's random generator."""
        self.rng = rng
        self._last = None

    def answer(self, request: AskDecision) -> Decision:
        """Decide; a rule that is asked again has nothing new to say and repeats its answer."""
        step = request.observation.step
        if self._last is not None and self._last[0] == step:
            return self._last[1]
        decision = self.decide(request.observation)
        self._last = (step, decision)
        return decision

    @abstractmethod
    def decide(self, observation: Observation) -> Decision:
        """Return the decision for one session."""


class Rebalancer(Rule[P]):
    """A rule that names target weights every ``config.every`` sessions and trades towards them."""

    def __init__(self, config: P) -> None:
        super().__init__(config)
        self._since: int | None = None

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start without a previous rebalancing."""
        super().begin(info, rng)
        self._since = None

    def decide(self, observation: Observation) -> Decision:
        """Trade towards the targets when it is time to; otherwise hold."""
        if self._since is not None and observation.step - self._since < self.config.every:
            return _HOLDS
        targets = self.targets(observation)
        if isinstance(targets, Abstain):
            return Decision(reason=targets.reason)
        self._since = observation.step
        orders = trades_towards(observation, targets, buffer=self.config.buffer, band=self.config.band)
        return Decision(orders=orders, reason="rebalances" if orders else "is where it wants to be")

    @abstractmethod
    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return the wanted weights of the invested part (they sum to at most 1), or abstain."""


_HOLDS = Decision(reason="holds until the next rebalancing")


_MAX_ITERATIONS = 2_000
_TOLERANCE = 1e-12


def least_variance(covariance: Floats, cap: float) -> Floats:
    """Return the weights w that minimise w' C w with 0 <= w <= cap and sum(w) = 1.

    A ``cap`` too small to invest everything is raised to 1 / names. Deterministic: starts from equal weights and
    takes steps of fixed length.
    """
    names = len(covariance)
    cap = max(cap, 1.0 / names)
    step = 1.0 / float(np.linalg.eigvalsh(covariance)[-1])
    weights = np.full(names, 1.0 / names)
    ahead, speed = weights, 1.0
    for _ in range(_MAX_ITERATIONS):
        moved = onto_capped_simplex(ahead - step * (covariance @ ahead), cap)
        change = moved - weights
        if float(np.dot(ahead - moved, change)) > 0.0:
            # The momentum points uphill: reset it (O'Donoghue and Candes' restart).
            speed = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
        ahead = moved + ((speed - 1.0) / faster) * change
        weights, speed = moved, faster
        if float(np.max(np.abs(change))) < _TOLERANCE:
            break
    return weights


def onto_capped_simplex(point: Floats, cap: float) -> Floats:
    """Return the nearest vector with entries in [0, cap] that sum to 1 (cap x length must be at least 1).

    The answer is clip(point - t, 0, cap) for one t. The sum is piecewise linear in t, so its breakpoints give t
    exactly.
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
    # Sums fall along the breaks; the wanted 1 lies between the last break with at least 1 and the next.
    i = int(np.count_nonzero(sums >= 1.0)) - 1
    i = min(max(i, 0), len(breaks) - 2)
    slope = sums[i] - sums[i + 1]
    share = 0.0 if slope <= 0.0 else (sums[i] - 1.0) / slope
    t = breaks[i] + share * (breaks[i + 1] - breaks[i])
    clipped: Floats = np.clip(point - t, 0.0, cap)
    return clipped
