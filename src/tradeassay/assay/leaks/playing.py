"""Playing an agent for a leak test: a rule through the daily protocol, a model through the benchmark's own.

A model is asked once, on the true data; tool results that are stamped later than the clock never reach it. In
every other future its recorded answers are given again: as long as it is shown the same, it says the same, and
what it is shown is the only way by which data can reach it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Protocol

import msgspec

from tradeassay.benchmarks import Benchmark, ModelProtocol
from tradeassay.core.agent import Agent, Observation
from tradeassay.core.dialogue import AskModel, Dialogue, Message, ModelReply
from tradeassay.core.drive import Ended, advance
from tradeassay.core.events import ENCODER, StepRecord
from tradeassay.core.orders import Decision
from tradeassay.core.time import instant
from tradeassay.data import Snapshot
from tradeassay.llm import ModelParams, fenced_blocks, open_model, parse_object
from tradeassay.play import Asked
from tradeassay.play import Episode as Play
from tradeassay.runs.conversation import open_protocol
from tradeassay.runs.episode import EpisodeSpec
from tradeassay.runs.play import conversation_rng, steps

AHEAD = frozenset(("ex_date", "expiry", "delisted", "until", "end", "to", "end_date", "calendar", "pay_date"))
"""Fields whose dates may lie ahead: what they hold was announced."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*")
_LABEL = re.compile(r"day_([+-]?\d+)")
_NANOSECONDS = 10**17
WITHHELD = '{"error":"withheld: the answer carries a time stamp that lies after the clock","kind":"late"}'


class LateStamp(msgspec.Struct, frozen=True, kw_only=True):
    """A time stamp after the clock: where it was (``prompt`` or ``tool <name>``), its field, and itself."""

    through: str
    field: str
    stamp: str


class _Clock(msgspec.Struct, frozen=True):
    session: str
    step: int
    time: int


def late_stamps(value: object, observation: Observation) -> tuple[tuple[str, str], ...]:
    """Return (field, stamp) of everything in a JSON value that is dated after the observation's clock.

    It looks at ISO days and instants, masked day labels (``day_+12``, counted from the first session of the
    episode) and instants in nanoseconds. Texts that only contain a date are not time stamps.
    """
    clock = _Clock(observation.session, observation.step, observation.time)
    return tuple(_late(value, clock, ""))


def withhold_late(request: AskModel, observation: Observation) -> tuple[AskModel, tuple[LateStamp, ...]]:
    """Return a request whose late tool results are withheld, and what was late in it.

    A prompt cannot be withheld without ending the day; a late stamp in one is reported and shown.
    """
    calls = {call.id: call.name for message in request.messages for call in message.calls}
    messages: list[Message] = []
    found: list[LateStamp] = []
    for message in request.messages:
        late = [stamp for body in _bodies(message) for stamp in late_stamps(body, observation)]
        through = f"tool {calls.get(message.call_id or '', '?')}" if message.role == "tool" else "prompt"
        found += [LateStamp(through=through, field=field, stamp=stamp) for field, stamp in late]
        if late and message.role == "tool":
            message = msgspec.structs.replace(message, text=WITHHELD)
        messages.append(message)
    return (msgspec.structs.replace(request, messages=tuple(messages)) if found else request), tuple(found)


def _bodies(message: Message) -> Iterator[object]:
    if message.role == "tool":
        body = parse_object(message.text)
        if body is not None:
            yield body
    elif message.role in ("user", "system"):
        for block in fenced_blocks(message.text):
            body = parse_object(block.text) if block.label == "json" else None
            if body is not None:
                yield body


def _late(value: object, clock: _Clock, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _late(item, clock, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _late(item, clock, field)
    elif field.lower() not in AHEAD and _is_late(value, clock):
        yield field, str(value)


def _is_late(value: object, clock: _Clock) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return value > max(clock.time, _NANOSECONDS)
    if not isinstance(value, str):
        return False
    label = _LABEL.fullmatch(value)
    if label is not None:
        return int(label[1]) > clock.step
    if _DAY.fullmatch(value):
        return value > clock.session
    return _INSTANT.fullmatch(value) is not None and _instant(value, clock) > clock.time


def _instant(text: str, clock: _Clock) -> int:
    """Return an ISO instant in nanoseconds; one without a zone is UTC, one that cannot be read is not late."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return clock.time
    return instant(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment)


@dataclass(frozen=True, slots=True)
class QuestionShown:
    """One question of a day, as the model got it, with its answer."""

    request: AskModel
    reply: ModelReply


@dataclass(frozen=True, slots=True)
class PlayedDay:
    """One decision: what was asked for it (nothing for a rule), and what was late in that."""

    step: int
    session: str
    decision: Decision
    asked: tuple[QuestionShown, ...] = ()
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
class FutureReplay:
    """The days of another future up to a step, and the first thing that moved; None when nothing did."""

    days: tuple[PlayedDay, ...]
    moved: Moved | None


class TestedAgent(Protocol):
    """An agent that can be tested."""

    name: str

    def play(self, snapshot: Snapshot) -> tuple[PlayedDay, ...]:
        """Play the whole window on the true data."""
        ...

    def replay(self, snapshot: Snapshot, until: int, like: tuple[PlayedDay, ...]) -> FutureReplay:
        """Play up to step ``until`` in another future and compare with ``like``."""
        ...


class RuleSubject:
    """An agent that answers at once."""

    def __init__(self, name: str, make: Callable[[], Agent], benchmark: Benchmark, episode: EpisodeSpec) -> None:
        self.name = name
        self._make, self._benchmark, self._episode = make, benchmark, episode

    def play(self, snapshot: Snapshot, until: int | None = None) -> tuple[PlayedDay, ...]:
        """Play the window, or its first steps."""
        records = steps(snapshot, self._benchmark, self._episode, self._make())
        count = None if until is None else until + 1
        return tuple(PlayedDay(one.step, one.session, one.decision) for one in islice(records, count))

    def replay(self, snapshot: Snapshot, until: int, like: tuple[PlayedDay, ...]) -> FutureReplay:
        """Play again and compare the decisions, byte by byte."""
        days = self.play(snapshot, until)
        for day, before in zip(days, like, strict=False):
            if ENCODER.encode(day.decision) != ENCODER.encode(before.decision):
                return FutureReplay(days, Moved(day.step, day.session, "decision", _difference(before, day)))
        return FutureReplay(days, None)


class ModelSubject:
    """A language model in the benchmark's own conversation. Late tool results never reach it."""

    def __init__(self, name: str, params: ModelParams, benchmark: Benchmark, episode: EpisodeSpec) -> None:
        self.name = name
        self._params, self._benchmark, self._episode = params, benchmark, episode

    def play(self, snapshot: Snapshot) -> tuple[PlayedDay, ...]:
        """Ask the model through the whole window."""
        return asyncio.run(self._live(snapshot))

    async def _live(self, snapshot: Snapshot) -> tuple[PlayedDay, ...]:
        days = _Days(self._benchmark, self._episode, snapshot)
        async with open_model(self.name, self._params) as model:

            async def answer(asked: Asked[AskModel]) -> ModelReply:
                reply = await model.ask(*asked)
                days.heard(asked, reply)
                return reply

            async for record in days.play.arecords(answer):
                days.end(record)
        return tuple(days.done)

    def replay(self, snapshot: Snapshot, until: int, like: tuple[PlayedDay, ...]) -> FutureReplay:
        """Give the recorded answers again and compare what the model is shown, byte by byte."""
        known = {(day.step, index): one for day in like for index, one in enumerate(day.asked)}
        days = _Days(self._benchmark, self._episode, snapshot)

        def answer(asked: Asked[AskModel]) -> ModelReply:
            before = known.get((asked.place.step, asked.place.index))
            if before is None or before.request != asked.request:
                raise _Differs(before, asked)
            days.heard(asked, before.reply)
            return before.reply

        try:
            for record in islice(days.play.records(answer), until + 1):
                days.end(record)
        except _Differs as differs:
            today = days.broken_off(differs.asked)
            moved = _shown_differently(differs.before, differs.asked.request, today.step, today.session)
            return FutureReplay((*days.done, today), moved)
        return FutureReplay(tuple(days.done), None)


class _Differs(Exception):
    """A question of another future is not the one that was asked on the true data."""

    def __init__(self, before: QuestionShown | None, asked: Asked[AskModel]) -> None:
        super().__init__("another question")
        self.before, self.asked = before, asked


class _Days:
    """Collects the days of a model's episode; what is late in a question is withheld and kept beside it."""

    def __init__(self, benchmark: Benchmark, episode: EpisodeSpec, snapshot: Snapshot) -> None:
        self.done: list[PlayedDay] = []
        self._shown: list[QuestionShown] = []
        self._protocol = _Guarded(open_protocol(benchmark))
        rng = conversation_rng(episode, snapshot.name)
        self.play = Play(snapshot, benchmark.market, self._protocol, key=episode.key, seed=episode.seed, rng=rng)
        self.play.open()

    def heard(self, asked: Asked[AskModel], reply: ModelReply) -> None:
        """Take one question of today with its answer."""
        self._shown.append(QuestionShown(asked.request, reply))

    def end(self, record: StepRecord) -> None:
        """Take today's record."""
        late, shown = tuple(self._protocol.late), tuple(self._shown)
        self._shown.clear()
        self.done.append(PlayedDay(record.step, record.session, record.decision, shown, late))

    def broken_off(self, asked: Asked[AskModel]) -> PlayedDay:
        """Return the day that was broken off at a question."""
        step, shown = asked.place.step, (*self._shown, QuestionShown(asked.request, ModelReply()))
        session = self.play.market.sessions[step]
        return PlayedDay(step, session, Decision(status="failed"), shown, tuple(self._protocol.late))


class _Guarded:
    """A conversation whose questions have everything late removed; ``late`` is what was removed today."""

    def __init__(self, protocol: ModelProtocol) -> None:
        self.late: list[LateStamp] = []
        self.begin, self.remember, self._dialogue = protocol.begin, protocol.remember, protocol.dialogue

    def dialogue(self, observation: Observation) -> Dialogue:
        """Return today's conversation."""
        self.late = []
        talk = self._dialogue(observation)
        try:
            now = advance(talk)
            while not isinstance(now, Ended):
                request, late = withhold_late(now, observation)
                self.late += [stamp for stamp in late if stamp not in self.late]
                now = advance(talk, (yield request))
            return now.result
        finally:
            talk.close()


def _shown_differently(before: QuestionShown | None, now: AskModel, step: int, session: str) -> Moved:
    if before is None:
        return Moved(step, session, "prompt", "a question was asked that was not asked on the true data")
    names = {call.id: call.name for message in now.messages for call in message.calls}
    for old, new in zip(before.request.messages, now.messages, strict=False):
        if old != new:
            through = f"tool {names.get(new.call_id or '', '?')}" if new.role == "tool" else "prompt"
            return Moved(step, session, through, _first_difference(old.text, new.text))
    return Moved(step, session, "prompt", "the tools on offer differ, or the number of messages does")


def _difference(before: PlayedDay, after: PlayedDay) -> str:
    return _first_difference(ENCODER.encode(before.decision).decode(), ENCODER.encode(after.decision).decode())


def _first_difference(one: str, other: str, around: int = 40) -> str:
    at = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, at - around)
    return f"'{one[start : at + around]}' became '{other[start : at + around]}'"
