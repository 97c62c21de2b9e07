"""Playing an agent for a leak test: a rule through the daily protocol, a model through the benchmark's own.

A model is asked once, on the true data. In every other future its recorded answers are given again: as long as it
is shown the same, it says the same, and what it is shown is the only way by which data can reach it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from tradeassay.assay.leaks.time_guard import LateStamp, withhold_late
from tradeassay.benchmarks import Benchmark
from tradeassay.core.agent import Agent, EpisodeInfo, Observation
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.events import ENCODER
from tradeassay.core.orders import Decision
from tradeassay.data import Snapshot
from tradeassay.llm import ModelParams, Place, open_model
from tradeassay.play import Market
from tradeassay.runs.conversation import open_protocol
from tradeassay.runs.episode import Episode
from tradeassay.runs.model_play import conversation_rng
from tradeassay.runs.play import as_recorded, steps


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a day, as the model got it, with its answer."""

    request: AskModel
    reply: ModelReply


@dataclass(frozen=True, slots=True)
class Day:
    """One decision: what was asked on the way to it (nothing for a rule), and what was late in that."""

    step: int
    session: str
    decision: Decision
    asked: tuple[Asked, ...] = ()
    late: tuple[LateStamp, ...] = ()

    @property
    def words(self) -> str:
        """Everything in which a planted word could show: the decision, and what the model was shown."""
        shown = [message.text for one in self.asked for message in one.request.messages]
        return "\n".join([ENCODER.encode(self.decision).decode(), *shown])


@dataclass(frozen=True, slots=True)
class Moved:
    """The first thing that came out differently, and where it was seen."""

    step: int
    session: str
    through: str
    detail: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The days of another future up to a step, and the first thing that moved; None when nothing did."""

    days: tuple[Day, ...]
    moved: Moved | None


class Subject(Protocol):
    """Somebody who can be tested."""

    name: str

    def play(self, snapshot: Snapshot) -> tuple[Day, ...]:
        """Play the whole window on the true data."""
        ...

    def replay(self, snapshot: Snapshot, until: int, like: tuple[Day, ...]) -> Replay:
        """Play up to step ``until`` in another future and compare with ``like``."""
        ...


class RuleSubject:
    """An agent that answers at once."""

    def __init__(self, name: str, make: Callable[[], Agent], benchmark: Benchmark, episode: Episode) -> None:
        self.name = name
        self._make, self._benchmark, self._episode = make, benchmark, episode

    def play(self, snapshot: Snapshot, until: int | None = None) -> tuple[Day, ...]:
        """Play the window, or its first steps."""
        records = steps(snapshot, self._benchmark, self._episode, self._make())
        count = None if until is None else until + 1
        return tuple(Day(one.step, one.session, one.decision) for one in islice(records, count))

    def replay(self, snapshot: Snapshot, until: int, like: tuple[Day, ...]) -> Replay:
        """Play again and compare the decisions, byte by byte."""
        days = self.play(snapshot, until)
        for day, before in zip(days, like, strict=False):
            if ENCODER.encode(day.decision) != ENCODER.encode(before.decision):
                return Replay(days, Moved(day.step, day.session, "decision", _difference(before, day)))
        return Replay(days, None)


class ModelSubject:
    """A language model in the benchmark's own conversation. Late tool results never reach it."""

    def __init__(self, name: str, params: ModelParams, benchmark: Benchmark, episode: Episode) -> None:
        self.name = name
        self._params, self._benchmark, self._episode = params, benchmark, episode

    def play(self, snapshot: Snapshot) -> tuple[Day, ...]:
        """Ask the model through the whole window."""
        return asyncio.run(self._live(snapshot))

    async def _live(self, snapshot: Snapshot) -> tuple[Day, ...]:
        talk = _Talk(self._benchmark, self._episode, snapshot, None)
        asking = talk.days()
        async with open_model(self.name, self._params) as model:
            try:
                request, place = next(asking)
                while True:
                    request, place = asking.send(await model.ask(request, place))
            except StopIteration:
                return tuple(talk.done)

    def replay(self, snapshot: Snapshot, until: int, like: tuple[Day, ...]) -> Replay:
        """Give the recorded answers again and compare what the model is shown, byte by byte."""
        known = {(day.step, index): one for day in like for index, one in enumerate(day.asked)}
        talk = _Talk(self._benchmark, self._episode, snapshot, until)
        asking = talk.days()
        try:
            request, place = next(asking)
            while True:
                before = known.get((place.step, place.index))
                if before is None or before.request != request:
                    asking.close()
                    moved = _shown_differently(before, request, place.step, talk.session)
                    return Replay((*talk.done, talk.today(request)), moved)
                request, place = asking.send(before.reply)
        except StopIteration:
            return Replay(tuple(talk.done), None)


class _Talk:
    """An episode's conversations without input or output: yields questions, is sent answers."""

    def __init__(self, benchmark: Benchmark, episode: Episode, snapshot: Snapshot, until: int | None) -> None:
        self._market = Market(snapshot, benchmark.market)
        self._protocol = open_protocol(benchmark)
        self._episode, self._until = episode, until
        info = EpisodeInfo(episode=episode.key, seed=episode.seed, rules=self._market.rules)
        self._protocol.begin(info, conversation_rng(episode, snapshot.name))
        self.done: list[Day] = []
        self.session = ""
        self._step = 0
        self._asked: list[Asked] = []
        self._late: list[LateStamp] = []

    def days(self) -> Generator[tuple[AskModel, Place], ModelReply, None]:
        """Yield every question of every day up to the last one wanted."""
        seen: Observation | None = self._market.reset()
        while seen is not None and (self._until is None or seen.step <= self._until):
            self.session, self._step, self._asked, self._late = seen.session, seen.step, [], []
            decision = yield from self._day(seen)
            self.done.append(Day(seen.step, seen.session, decision, tuple(self._asked), tuple(self._late)))
            step = self._market.step(decision)
            self._protocol.remember(seen, decision)
            seen = step.observation

    def today(self, request: AskModel) -> Day:
        """Return the day that was broken off at a question."""
        asked = (*self._asked, Asked(request, ModelReply()))
        return Day(self._step, self.session, Decision(status="failed"), asked, tuple(self._late))

    def _day(self, seen: Observation) -> Generator[tuple[AskModel, Place], ModelReply, Decision]:
        dialogue = self._protocol.dialogue(seen)
        try:
            request = next(dialogue)
            while True:
                request, late = withhold_late(request, seen)
                self._late += [stamp for stamp in late if stamp not in self._late]
                place = Place(
                    episode=self._episode.key, step=seen.step, sample=self._episode.seed, index=len(self._asked)
                )
                reply = yield request, place
                self._asked.append(Asked(request, reply))
                request = dialogue.send(reply)
        except StopIteration as done:
            decision: Decision = done.value
            return as_recorded(decision)
        finally:
            dialogue.close()


def _shown_differently(before: Asked | None, now: AskModel, step: int, session: str) -> Moved:
    if before is None:
        return Moved(step, session, "prompt", "a question was asked that was not asked on the true data")
    names = {call.id: call.name for message in now.messages for call in message.calls}
    for old, new in zip(before.request.messages, now.messages, strict=False):
        if old != new:
            through = f"tool {names.get(new.call_id or '', '?')}" if new.role == "tool" else "prompt"
            return Moved(step, session, through, _first_difference(old.text, new.text))
    return Moved(step, session, "prompt", "the tools on offer differ, or the number of messages does")


def _difference(before: Day, after: Day) -> str:
    return _first_difference(ENCODER.encode(before.decision).decode(), ENCODER.encode(after.decision).decode())


def _first_difference(one: str, other: str, around: int = 40) -> str:
    at = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, at - around)
    return f"'{one[start : at + around]}' became '{other[start : at + around]}'"
