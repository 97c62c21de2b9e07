"""Test with ``check_agent`` whether an agent satisfies its contract.

The test runs small seeded markets of three venues and searches for problems that invalidate an
evaluation: invalid answers, exceptions, use of a clock or of external randomness, differences
between two runs, and decisions that change when only the future changes.
"""

import gc
import hashlib
import pickle
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from tradeassay.core.arguments import shown
from tradeassay.core.arrays import Bools, Floats
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.hashing import canonical_json
from tradeassay_bench.agents import AgentClass, AgentConfig, agents, make_agent
from tradeassay_bench.agents.registry import Value, make_config
from tradeassay_bench.benchmarks.daily import DayConfig, complaint
from tradeassay_bench.core.agent import Agent, AskDecision, EpisodeInfo, Observation
from tradeassay_bench.core.errors import CheckFailed
from tradeassay_bench.core.events import ENCODER
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.core.view import FIELDS, AccountState, Adjustment, Field, MarketView
from tradeassay_bench.data import Panel, Snapshot, open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.play import Market, MarketConfig


def rewrite_after(
    panel: Panel,
    row: int,
    rng: np.random.Generator,
    phase: Literal["pre_open", "open", "close"] = "pre_open",
) -> Panel:
    """Return ``panel`` with all data changed that is unknown in ``phase`` of session ``row``.

    Prices and volumes change, suspensions are redrawn, and delistings and index changes are
    removed. Unannounced corporate actions, unpublished news and unknown figures are removed.
    """
    clock = int(panel.close_time[row] if phase == "close" else panel.open_time[row])
    if phase == "pre_open":
        clock -= 1
    bars = {field: panel.bars[field].copy() for field in FIELDS}
    suspended = panel.suspended.copy()
    start = row + 1 if phase == "close" else row
    shape = bars["close"][start:].shape
    factor = np.exp(rng.normal(0.0, 0.3, shape))
    known_opens = bars["open"][row].copy(), suspended[row].copy()
    for field in FIELDS:
        bars[field][start:] *= factor if field != "volume" else rng.uniform(0.1, 3.0, shape)
    halted = rng.random(shape) < 0.2
    for field in FIELDS:
        bars[field][start:][halted] = np.nan
    suspended[start:] = np.isnan(bars["close"][start:])
    if phase == "open":
        bars["open"][row], suspended[row] = known_opens
    today = str(panel.sessions[row])
    # The past, and today's membership and listing, were known.
    return replace(
        panel,
        bars=bars,
        suspended=suspended,
        listings=tuple(
            entry
            if entry.delisted is None or entry.delisted < today
            else msgspec.structs.replace(entry, delisted=None)
            for entry in panel.listings
        ),
        actions=tuple(action for action in panel.actions if action.known_at <= clock),
        memberships=tuple(
            entry
            if entry.end is None or entry.end < today
            else msgspec.structs.replace(entry, end=None)
            for entry in panel.memberships
            if entry.start <= today
        ),
        indices={
            name: np.concatenate(
                (levels[:start], levels[start:] * np.exp(rng.normal(0.0, 0.3, shape[0])))
            )
            for name, levels in panel.indices.items()
        },
        fundamentals=tuple(figure for figure in panel.fundamentals if figure.known_at <= clock),
        news=tuple(item for item in panel.news if item.published_at <= clock),
        minutes=None,
    )


MARKETS = ("us", "ashare", "crypto")
HISTORY = 258
"""The sessions before the first decision: a year and a few days, for the longest rule."""
DECISIONS = 26
CUT = 23
"""The decision after which the alternative future differs. It follows a second monthly rebalancing.
"""
_SEED = 5
_SIZE = {"names": 18, "sessions": HISTORY + DECISIONS + 16, "new_listings": 1, "delistings": 1}


@dataclass(frozen=True, slots=True)
class SmallWorld:
    """A market for testing an agent.

    It has data, the same data with an alternative future, and rules.
    """

    market: str
    snapshot: Snapshot
    other_future: Snapshot
    config: MarketConfig
    from_nothing: MarketConfig
    """The same rules from the first session of the data, without any history."""


@cache
def small_world(market: str) -> SmallWorld:
    """Return the small test market of a venue."""
    panel = generate(preset(market, seed=_SEED, **_SIZE)).panel
    days = [str(day) for day in panel.sessions]
    config = MarketConfig(
        venue="ashare-flat-v1" if market == "ashare" else f"{market}-v1",
        universe="IDX",
        index="IDX",
        cash=1_000_000.0,
        first=days[HISTORY],
        last=days[HISTORY + DECISIONS - 1],
    )
    other = rewrite_after(panel, HISTORY + CUT, np.random.default_rng(_SEED))
    return SmallWorld(
        market=market,
        snapshot=_stored(panel, market),
        other_future=_stored(other, f"{market}-other"),
        config=config,
        from_nothing=msgspec.structs.replace(config, first=days[0], last=days[7]),
    )


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    # The cache owns it, and its finaliser removes it when the interpreter ends.
    return tempfile.TemporaryDirectory(prefix="tradeassay-check-")


def _stored(panel: Panel, name: str) -> Snapshot:
    folder = Path(_folder().name) / name
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)


_CLOCK_NAMES = frozenset(
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns "
    "localtime "
    "gmtime clock_gettime clock_gettime_ns ctime".split()
)
_DATE_NAMES = frozenset(("now", "utcnow", "today"))
_ENTROPY_NAMES = frozenset(("urandom", "getrandom"))


@contextmanager
def watched(accuse: Callable[[str], None]) -> Iterator[None]:
    """Run a block and call ``accuse`` for every use of a clock or of external randomness.

    The interpreter's profiling hook detects calls into C under any imported name. An active
    profiler is restored afterwards.
    """
    accused: set[str] = set()
    # A test framework may time the garbage collector. The agent is not responsible for a collection
    # during its answer.
    collecting = {getattr(callback, "__code__", None) for callback in gc.callbacks}

    def hook(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and frame.f_code not in collecting:
            charge = _charge(called)
            if charge is not None:
                accused.add(charge)

    before = random_states()
    profiler = sys.getprofile()
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(profiler)
    for charge in sorted(accused):
        accuse(charge)
    if before[0] != (after := random_states())[0]:
        accuse("uses Python's global random generator")
    if before[1] != after[1]:
        accuse("uses numpy's global random generator")


def _charge(called: Any) -> str | None:
    name = getattr(called, "__name__", "")
    if name in _CLOCK_NAMES and getattr(called, "__module__", None) == "time":
        return f"reads the clock (time.{name})"
    if (
        name in _DATE_NAMES
        and getattr(getattr(called, "__self__", None), "__module__", None) == "datetime"
    ):
        return f"reads the clock ({called.__self__.__name__}.{name})"
    if name in _ENTROPY_NAMES:
        return "draws randomness from the operating system (an unseeded generator?)"
    return None


def random_states() -> tuple[object, bytes]:
    """Return the states of Python's and numpy's global random generators, for comparison."""
    # Its use is detected by reading numpy's global state.
    return random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002


def fingerprint(observation: Observation, index: str | None = None) -> str:
    """Return a hash of the observation and of all data that its view returns."""
    digest = hashlib.sha256()
    seen = observation
    facts = (
        seen.step,
        seen.session,
        seen.time,
        seen.universe,
        seen.account,
        seen.rules,
        seen.since_last,
    )
    digest.update(canonical_json((*facts, seen.sessions_left)))
    _add(digest, seen.columns)
    view = seen.view
    symbols = view.symbols
    digest.update(
        canonical_json((view.clock, symbols, [view.instrument(symbol) for symbol in symbols]))
    )
    _add(digest, view.sessions())
    for field in FIELDS:
        for adjust in get_args(Adjustment):
            _add(digest, view.bars(field, adjust=adjust))
    opens = view.opens()
    _add(digest, np.empty(0) if opens is None else opens)
    _add(digest, view.tradable())
    digest.update(canonical_json([view.news(0), view.actions(0)]))
    figures: list[object] = []
    for symbol in symbols:
        try:
            figures.append(view.fundamentals(symbol))
        except DataError as error:
            figures.append(str(error))
    digest.update(canonical_json(figures))
    if index is not None:
        digest.update(canonical_json(view.members(index)))
        _add(digest, view.index_levels(index))
    return digest.hexdigest()


def _add(digest: Any, array: np.ndarray[Any, Any]) -> None:
    digest.update(f"{array.shape}{array.dtype}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())


class BlankView:
    """A :class:`~tradeassay_bench.core.view.MarketView` without trading or prices.

    All other data is from the wrapped view.
    """

    def __init__(self, view: MarketView, *, trading: bool = True, prices: bool = True) -> None:
        self._view, self._trading, self._prices = view, trading, prices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def bars(
        self, field: Field, lookback: int | None = None, *, adjust: Adjustment = "split"
    ) -> Floats:
        bars = self._view.bars(field, lookback, adjust=adjust)
        return bars if self._prices else _read_only(np.full_like(bars, np.nan))

    def opens(self) -> Floats | None:
        opens = self._view.opens()
        return opens if opens is None or self._prices else _read_only(np.full_like(opens, np.nan))

    def tradable(self) -> Bools:
        tradable = self._view.tradable()
        return tradable if self._trading else _read_only(np.zeros_like(tradable))


def _read_only(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values.setflags(write=False)
    return values


_MAX_ORDERS = DayConfig().max_orders
_LOOK_EVERY = 6
"""The number of sessions between checks for tampering.

Hashing all data that an agent can see is slow.
"""


def check_agent(agent: str | type[AgentClass], params: Mapping[str, Value] | None = None) -> None:
    """Raise :class:`CheckFailed` with one sentence if an agent violates its contract.

    ``agent`` is a registered name, or a class before its registration. The check takes a few
    seconds. The first call of a process is the slowest, because it generates the markets. Of an
    agent that uses a model only the class is checked. The benchmark checks its answers day by day.
    """
    if not isinstance(agent, str | type):
        raise UserError(
            f"agent cannot be {shown(agent)}", hint="give a registered name, or a class"
        )
    trial = _Trial(agent, params or {})
    trial.check_class()
    if trial.converses:
        return
    for market in MARKETS:
        world = small_world(market)
        trial.where = f"in the small {market} market"
        trial.check_hard_days(world)
        first = trial.play(world.snapshot, world.config, look=True)
        if trial.play(world.snapshot, world.config) != first:
            trial.fail("gives different answers to the same questions (two copies, same seed)")
        other = trial.play(world.other_future, world.config, stop_after=CUT)
        for step, (decision, other_decision) in enumerate(zip(first, other, strict=False)):
            if decision != other_decision:
                trial.fail(
                    f"decides differently at step {step} if only the future after step {CUT} "
                    "changes"
                )


class _Trial:
    """Tests one agent. Every check raises :class:`CheckFailed` if the agent fails."""

    def __init__(self, agent: str | type[AgentClass], params: Mapping[str, Value]) -> None:
        self.agent, self.params, self.where = agent, params, ""
        self.cls = agents.get(agent) if isinstance(agent, str) else agent
        self.name = agent if isinstance(agent, str) else agent.__name__
        self.converses = getattr(self.cls, "asked", "observation") == "conversation"

    def fail(self, what: str, error: Exception | None = None) -> None:
        raise CheckFailed(f"agent '{self.name}' {what} {self.where}".rstrip()) from error

    def check_class(self) -> None:
        """Check the summary, the configuration and the methods of the agent's class."""
        if not isinstance(getattr(self.cls, "summary", None), str) or not self.cls.summary.strip():
            self.fail("has no summary of one line")
        config = getattr(self.cls, "Config", None)
        if not (isinstance(config, type) and issubclass(config, AgentConfig)):
            self.fail("has no Config derived from AgentConfig")
            return
        if not config.__struct_config__.frozen:
            self.fail("has a Config that is not frozen")
        for field in msgspec.structs.fields(config):
            if field.required:
                self.fail(f"has a parameter '{field.name}' without a default")
        for method in ("open",) if self.converses else ("begin", "answer"):
            if not callable(getattr(self.cls, method, None)):
                self.fail(f"has no method '{method}'")

    @contextmanager
    def blamed(self, when: str) -> Iterator[None]:
        """Report an exception of the agent as a failure of the test."""
        try:
            yield
        except CheckFailed:
            raise
        except Exception as error:
            self.fail(f"raised {type(error).__name__}: {error} {when}", error)

    def make(self, market: Market) -> Agent:
        """Return a new agent that has begun an episode in a market."""
        with self.blamed("in its constructor"):
            agent = (
                make_agent(self.agent, self.params)
                if isinstance(self.agent, str)
                else self.agent(make_config(self.name, self.agent.Config, self.params))
            )
            info = EpisodeInfo(episode="check", seed=_SEED, rules=market.rules)
            with watched(self.fail):
                agent.begin(info, np.random.default_rng(_SEED))
        return agent

    def play(
        self,
        snapshot: Snapshot,
        config: MarketConfig,
        *,
        look: bool = False,
        stop_after: int | None = None,
    ) -> list[bytes]:
        """Run an episode and return its decisions.

        If ``look`` is True, the method also checks that the agent does not change its observations.
        """
        market = Market(snapshot, config)
        agent = self.make(market)
        seen: Observation | None = market.reset()
        decisions: list[bytes] = []
        while seen is not None and (stop_after is None or seen.step <= stop_after):
            looked = (
                fingerprint(seen, config.index) if look and seen.step % _LOOK_EVERY == 0 else None
            )
            decision = self.ask(agent, AskDecision(seen))
            if looked is not None and fingerprint(seen, config.index) != looked:
                self.fail(f"modified its observation on {seen.session}")
            decisions.append(ENCODER.encode(decision))
            seen = market.step(decision).observation
        return decisions

    def ask(self, agent: Agent, request: AskDecision) -> Decision:
        """Query the agent once.

        Fail on an exception, an invalid answer, a clock or external randomness.
        """
        when = f"on {request.observation.session}"
        with self.blamed(when), watched(self.fail):
            reply: Any = agent.answer(request)
        failure = complaint(reply, request.observation, _MAX_ORDERS)
        if failure is not None:
            self.fail(f"gave an invalid answer ({failure.detail}) {when}")
        decision: Decision = reply
        return decision

    def check_hard_days(self, world: SmallWorld) -> None:
        """Query the agent on days without history, trading, prices, money or a universe."""
        place = self.where
        self.where = f"{place}, from the first session on"
        self.play(world.snapshot, world.from_nothing)
        for description, change in _HARD_DAYS.items():
            self.where = f"{place}, on a day {description}"
            market = Market(world.snapshot, world.config)
            agent = self.make(market)
            observation = change(market.reset())
            self.ask(agent, AskDecision(observation))
            self.ask(agent, AskDecision(observation, attempt=2, feedback="that was no answer"))
        self.where = place


_HARD_DAYS: dict[str, Callable[[Observation], Observation]] = {
    "when everything is suspended": lambda seen: replace(
        seen, view=BlankView(seen.view, trading=False)
    ),
    "without any price": lambda seen: replace(seen, view=BlankView(seen.view, prices=False)),
    "without money": lambda seen: replace(
        seen, account=AccountState(cash=0.0, nav=0.0, initial=seen.account.initial, positions={})
    ),
    "without a universe": lambda seen: replace(seen, universe=(), columns=seen.columns[:0]),
}
