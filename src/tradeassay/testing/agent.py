"""``check_agent``: does an agent keep its side of the contract?

It plays small seeded markets of three venues and looks for what spoils an evaluation: invalid answers,
exceptions, clocks, foreign randomness, two runs that disagree, and decisions that move when only the future does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from tradeassay.agents import AgentClass, AgentConfig, agents, make_agent
from tradeassay.agents.registry import Value, make_config
from tradeassay.benchmarks.daily import DayConfig, complaint
from tradeassay.core.account import AccountState
from tradeassay.core.agent import Agent, AskDecision, EpisodeInfo, Observation
from tradeassay.core.errors import CheckFailed
from tradeassay.core.events import ENCODER
from tradeassay.core.orders import Decision
from tradeassay.data import Snapshot
from tradeassay.play import Market, MarketConfig
from tradeassay.testing._watch import BlankView, fingerprint, watched
from tradeassay.testing._worlds import CUT, MARKETS, SmallWorld, small_world

_MAX_ORDERS = DayConfig().max_orders
_SEED = 5
_LOOK_EVERY = 6
"""Hashing all that an agent can see is slow; a few sessions of each episode are enough to catch tampering."""


def check_agent(agent: str | type[AgentClass], params: Mapping[str, Value] | None = None) -> None:
    """Raise :class:`CheckFailed` with one sentence when an agent breaks the contract; return when it does not.

    ``agent`` is a registered name, or a class before it is registered. Takes a few seconds, most of them for the
    first call of a process, which makes the markets. Of an agent that is asked in a conversation only the class is
    examined: what it answers is checked by the benchmark, day by day.
    """
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
        for step, (here, there) in enumerate(zip(first, other, strict=False)):
            if here != there:
                trial.fail(f"decides differently at step {step} when only the future after step {CUT} is changed")


class _Trial:
    """One agent under examination."""

    def __init__(self, agent: str | type[AgentClass], params: Mapping[str, Value]) -> None:
        self.agent = agent
        self.params = params
        self.name = agent if isinstance(agent, str) else agent.__name__
        self.where = ""

    @property
    def converses(self) -> bool:
        cls = agents.get(self.agent) if isinstance(self.agent, str) else self.agent
        return getattr(cls, "asked", "observation") == "conversation"

    def fail(self, what: str) -> None:
        raise CheckFailed(f"agent '{self.name}' {what} {self.where}".rstrip())

    def check_class(self) -> None:
        """Check what can be seen without playing."""
        cls = agents.get(self.agent) if isinstance(self.agent, str) else self.agent
        if not isinstance(getattr(cls, "summary", None), str) or not cls.summary.strip():
            self.fail("has no summary: one line that says what it does")
        config = getattr(cls, "Config", None)
        if not (isinstance(config, type) and issubclass(config, AgentConfig)):
            self.fail("has no Config derived from AgentConfig")
            return
        if not config.__struct_config__.frozen:
            self.fail("has a Config that is not frozen")
        for field in msgspec.structs.fields(config):
            if field.required:
                self.fail(f"has a parameter '{field.name}' without a default")
        for method in ("open",) if self.converses else ("begin", "answer"):
            if not callable(getattr(cls, method, None)):
                self.fail(f"has no method '{method}'")

    def make(self, market: Market) -> Agent:
        """Return a fresh agent that has begun an episode."""
        try:
            agent = (
                make_agent(self.agent, self.params)
                if isinstance(self.agent, str)
                else self.agent(make_config(self.name, self.agent.Config, self.params))
            )
            with watched(self.fail):
                agent.begin(
                    EpisodeInfo(episode="check", seed=_SEED, rules=market.rules), np.random.default_rng(_SEED)
                )
        except CheckFailed:
            raise
        except Exception as error:
            raise self.raised(error, "when it is made") from error
        return agent

    def raised(self, error: Exception, when: str) -> CheckFailed:
        return CheckFailed(
            f"agent '{self.name}' raised {type(error).__name__}: {error} {when} {self.where}".rstrip()
        )

    def play(
        self, snapshot: Snapshot, config: MarketConfig, *, look: bool = False, stop_after: int | None = None
    ) -> list[bytes]:
        """Play an episode and return its decisions; with ``look`` check that nothing observed is changed."""
        market = Market(snapshot, config)
        agent = self.make(market)
        seen: Observation | None = market.reset()
        decisions: list[bytes] = []
        while seen is not None and (stop_after is None or seen.step <= stop_after):
            looked = fingerprint(seen, config.index) if look and seen.step % _LOOK_EVERY == 0 else None
            decision = self.ask(agent, AskDecision(seen))
            if looked is not None and fingerprint(seen, config.index) != looked:
                self.fail(f"changed what it observed on {seen.session}")
            decisions.append(ENCODER.encode(decision))
            seen = market.step(decision).observation
        return decisions

    def ask(self, agent: Agent, request: AskDecision) -> Decision:
        """Ask once, watching; fail on an exception, a wrong answer, a clock or foreign randomness."""
        when = f"on {request.observation.session}"
        try:
            with watched(self.fail):
                reply: Any = agent.answer(request)
        except CheckFailed:
            raise
        except Exception as error:
            raise self.raised(error, when) from error
        wrong = complaint(reply, request.observation, _MAX_ORDERS)
        if wrong is not None:
            self.fail(f"gave an invalid answer ({wrong.detail}) {when}")
        decision: Decision = reply
        return decision

    def check_hard_days(self, world: SmallWorld) -> None:
        """Ask on days that have nothing to offer: no history, no trading, no prices, no money, no universe."""
        here = self.where
        self.where = f"{here}, from the first session on"
        self.play(world.snapshot, world.from_nothing)
        for what, change in _HARD_DAYS.items():
            self.where = f"{here}, on a day {what}"
            market = Market(world.snapshot, world.config)
            agent = self.make(market)
            seen = change(market.reset())
            self.ask(agent, AskDecision(seen))
            self.ask(agent, AskDecision(seen, attempt=2, feedback="that was no answer"))
        self.where = here


_HARD_DAYS: dict[str, Callable[[Observation], Observation]] = {
    "when everything is suspended": lambda seen: replace(seen, view=BlankView(seen.view, trading=False)),
    "without any price": lambda seen: replace(seen, view=BlankView(seen.view, prices=False)),
    "without money": lambda seen: replace(
        seen, account=AccountState(cash=0.0, nav=0.0, initial=seen.account.initial, positions={})
    ),
    "without a universe": lambda seen: replace(seen, universe=(), columns=seen.columns[:0]),
}
