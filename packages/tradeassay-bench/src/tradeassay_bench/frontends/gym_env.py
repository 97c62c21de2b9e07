"""The market as a Gymnasium environment (extra ``[rl]``).

Importing this registers ``tradeassay/Daily-v1``.

The market, its costs and its as-of views are the same as for every other agent. A step is a
decision at the close of a session, filled at that close. Its reward is the account's log return
until the next close, net of costs.
"""

import math
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Never, SupportsIndex, get_args
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError, require
from tradeassay.factors import FACTOR_NAMES, last_row_of, standardise
from tradeassay_bench.account import venues
from tradeassay_bench.core.agent import Observation
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.time import day_text, parse_day
from tradeassay_bench.data import Snapshot, load_dataset
from tradeassay_bench.play import Episode, MarketConfig

if TYPE_CHECKING:
    import gymnasium
    from gymnasium import spaces
else:
    gymnasium = require("gymnasium", "rl", "the market as a Gymnasium environment")
    spaces = gymnasium.spaces

ID = "tradeassay/Daily-v1"
RETURNS = 5
COLUMNS: tuple[str, ...] = (
    "weight",
    *(f"return_{lag}" for lag in range(RETURNS, 0, -1)),
    *FACTOR_NAMES,
    "tradable",
)
"""The features of each asset.

Returns are in units of 5 %. Factors are standardised across all names that trade.
"""

BOUND = 10.0
CASH = 100_000.0
INVESTED = 0.995
"""The maximum fraction of the account that is invested. The rest pays trading costs."""
DEADBAND = 0.001
"""The minimum change of weight that is traded."""
SELL, HOLD, BUY = 0, 1, 2

Array = NDArray[np.float32]
ActionKind = Literal["weights", "discrete"]


class DailyMarket(gymnasium.Env):  # type: ignore[misc]  # read as untyped where it is not installed
    """A market of ``assets`` names over ``sessions`` days.

    Every reset draws new days from the seed.

    ``dataset`` is a data set's name, folder or open snapshot. ``first`` and ``last`` bound the days
    of all episodes. The names are the most traded members of ``index`` on an episode's first day.

    ``actions="weights"`` takes target weights (negative ones if the venue allows short sales). They
    are clipped to the action space and scaled down if their sum exceeds the account.
    ``actions="discrete"`` takes 0 (sell: no position, or a short one if allowed), 1 (keep) or 2
    (buy an equal share) for each name.

    Observations have the shape ``(assets, len(COLUMNS))`` and use only the as-of view of the
    decision. ``reset(options={"first": day})`` starts at a given day. Raises :class:`UserError` for
    a window that is too short for an episode, and for an invalid action or option.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        dataset: str | Path | Snapshot = "synthetic/us:7",
        *,
        venue: str = "us-fractional-v1",
        index: str = "IDX",
        assets: int = 5,
        sessions: int = 60,
        first: str | date | None = None,
        last: str | date | None = None,
        actions: ActionKind = "weights",
    ) -> None:
        if actions not in get_args(ActionKind):
            raise UserError(
                f"unknown actions {actions!r}", hint="actions='weights' or actions='discrete'"
            )
        for name, value in (("assets", assets), ("sessions", sessions)):
            if not isinstance(value, SupportsIndex) or value < 1:
                raise UserError(
                    f"an episode cannot have {value!r} {name}", hint="give a positive whole number"
                )
        self._snapshot = dataset if isinstance(dataset, Snapshot) else _loaded(str(dataset))
        self._venue, self._index = venue, index
        self._assets, self._sessions, self._kind = assets, sessions, actions
        rows = self._snapshot.rows(day_text(first), day_text(last))
        # An episode needs one session more than decisions, because the last decision is rewarded at
        # the following close.
        self._starts = range(rows.start, rows.stop - sessions)
        if not self._starts:
            hint = "widen the window, or use fewer sessions"
            raise UserError(
                f"{len(rows)} sessions are too few for an episode of {sessions}", hint=hint
            )
        short = venues.get(venue).shorting.allowed
        self._short = short
        self.observation_space = spaces.Box(-BOUND, BOUND, (assets, len(COLUMNS)), np.float32)
        if actions == "discrete":
            self.action_space = spaces.MultiDiscrete([3] * assets)
        else:
            lowest = -1.0 if short else 0.0
            self.action_space = spaces.Box(lowest, 1.0, (assets,), np.float32)
        self._play: Episode[Never, Never] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start an episode at a day drawn from the seed, or at ``options["first"]``."""
        super().reset(seed=seed)
        start = self._start(options or {})
        days = self._snapshot.sessions
        config = MarketConfig(
            venue=self._venue,
            universe=f"{self._index}:{self._assets}",
            cash=CASH,
            decide="close",
            fill="close",
            first=str(days[start]),
            last=str(days[start + self._sessions]),
        )
        self._play = Episode(self._snapshot, config)
        self._seen = self._play.open()
        self._now = features_of(self._snapshot, self._seen)
        self._symbols = self._seen.universe
        self._columns = [self._seen.view.column(symbol) for symbol in self._symbols]
        self._value = self._seen.account.nav
        self._steps = 0
        return self._observe(), self._info()

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Trade at the close and move to the next close.

        The reward is the log return between them.
        """
        if self._play is None or self._steps >= self._sessions:
            raise UserError("the episode is over or was not started", hint="call reset()")
        account, today = self._seen.account, frozenset(self._seen.universe)
        held = [account.weight(symbol) for symbol in self._symbols]
        values = self._read(action)
        if self._kind == "weights":
            least = -1.0 if self._short else 0.0
            targets = [min(1.0, max(least, value)) for value in values]
        else:
            share = INVESTED / self._assets
            weights = {SELL: -share if self._short else 0.0, BUY: share}
            pairs = zip(values, held, strict=True)
            targets = [weights.get(int(value), weight) for value, weight in pairs]
        # Plain floats are faster than an array for a few numbers.
        total = math.fsum(map(abs, targets))
        if total > INVESTED:
            targets = [target * (INVESTED / total) for target in targets]
        orders = tuple(
            Order(symbol=symbol, amount=target, unit="target_weight")
            for symbol, target, weight in zip(self._symbols, targets, held, strict=True)
            if symbol in today and abs(target - weight) > DEADBAND
        )
        self._play.decide(Decision(orders=orders))
        after = self._play.observation
        assert after is not None  # the market has one more session than the episode
        self._seen = after
        self._now = features_of(self._snapshot, after)
        before, self._value = self._value, _value(after, self._now.close)
        self._steps += 1
        ruined = self._value <= 0.0
        reward = -BOUND if ruined else float(np.log(self._value / before))
        return self._observe(), reward, ruined, self._steps >= self._sessions, self._info()

    def _start(self, options: dict[str, Any]) -> int:
        if not isinstance(options, dict) or options.keys() - {"first"}:
            raise UserError(
                f"expected options, got {options!r}",
                hint="""the only option is {"first": "2022-03-01"}""",
            )
        first = options.get("first")
        if first is None:
            return int(self.np_random.integers(self._starts.start, self._starts.stop))
        days, day = self._snapshot.sessions, np.datetime64(parse_day(day_text(first)), "D")
        earliest, latest = days[self._starts[0]], days[self._starts[-1]]
        if not earliest <= day <= latest:
            raise UserError(
                f"no episode can start on {day}", hint=f"choose a day from {earliest} to {latest}"
            )
        return int(np.searchsorted(days, day))

    def _read(self, action: Any) -> list[float]:
        """Return an action as one number per asset.

        Raises :class:`UserError` for an invalid action.
        """
        try:
            array = np.asarray(action, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        values: list[float] = array.tolist() if array.shape == (self._assets,) else []
        if self._kind == "weights":
            form = "finite weights"
            valid = all(map(math.isfinite, values))
        else:
            form = "numbers of 0 (sell), 1 (keep) and 2 (buy)"
            valid = {SELL, HOLD, BUY}.issuperset(values)
        if not (values and valid):
            text = " ".join(repr(action).split())
            hint = f"give {self._assets} {form}, one for each asset"
            raise UserError(f"invalid action {text:.80}", hint=hint)
        return values

    def _observe(self) -> Array:
        table = np.empty((self._assets, len(COLUMNS)), dtype=np.float32)
        weight = self._seen.account.weight
        table[:, 0] = [min(BOUND, max(-BOUND, weight(symbol))) for symbol in self._symbols]
        table[:, 1:] = self._now.table[self._columns]
        return table

    def _info(self) -> dict[str, Any]:
        return {"session": self._seen.session, "value": self._value, "symbols": self._symbols}


@dataclass(frozen=True, slots=True)
class SessionFeatures:
    """The features of every listed name at a close:

    ``COLUMNS`` without the weight, and raw closes.
    """

    table: Array
    close: Floats


_FEATURES: WeakKeyDictionary[Snapshot, dict[str, SessionFeatures]] = WeakKeyDictionary()
"""Features by data set and session, computed once for all environments of this process."""


def features_of(snapshot: Snapshot, seen: Observation) -> SessionFeatures:
    """Return the features of the observed session, computed only from its as-of view."""
    cache = _FEATURES.setdefault(snapshot, {})
    features = cache.get(seen.session)
    if features is None:
        view = seen.view
        closes, tradable = view.bars("close", RETURNS + 1), view.tradable()
        table = np.full((len(view.symbols), len(COLUMNS) - 1), np.nan)
        moves = closes[1:] / closes[:-1] - 1.0
        table[:, RETURNS - len(moves) : RETURNS] = moves.T / 0.05
        listed = np.flatnonzero(tradable)
        table[listed, RETURNS:-1] = standardise(last_row_of(view)[:, listed]).T
        table[:, -1] = tradable
        bounded = np.clip(np.nan_to_num(table), -BOUND, BOUND).astype(np.float32)
        features = SessionFeatures(bounded, view.bars("close", 1, adjust="none")[-1].copy())
        cache[seen.session] = features
    return features


def _value(seen: Observation, close: Floats) -> float:
    """Return an account's value at today's close: its last mark plus the price moves since."""
    account, view = seen.account, seen.view
    moved = 0.0
    for symbol, position in account.positions.items():
        price = float(close[view.column(symbol)])
        if math.isfinite(price):
            moved += position.quantity * position.multiplier * (price - position.mark)
    return account.nav + moved


@lru_cache(maxsize=4)
def _loaded(name: str) -> Snapshot:
    return load_dataset(name)


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=DailyMarket)
