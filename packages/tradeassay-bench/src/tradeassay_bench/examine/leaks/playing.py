"""Run an agent for a leak test.

A rule runs through the daily protocol, a model through the protocol of the benchmark suite. A model
is queried once, on the true data. It never receives tool results with a time stamp after the clock.
In every alternative future its recorded answers are replayed. A model with the same messages gives
the same answers, and data can reach it through its messages only.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from tradeassay.core.our_code import is_ours
from tradeassay_bench.benchmarks import Benchmark, ModelProtocol
from tradeassay_bench.benchmarks.daily import ByObservation
from tradeassay_bench.core.agent import Agent, AskDecision, Observation
from tradeassay_bench.core.dialogue import AskModel, Dialogue, Message, ModelReply
from tradeassay_bench.core.drive import Ended, advance, drive
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import ENCODER, StepRecord
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.core.time import instant
from tradeassay_bench.data import Snapshot, SplicedSnapshot
from tradeassay_bench.llm import Model, QuestionPlace, fenced_blocks, parse_object
from tradeassay_bench.play import AddressedQuestion, Episode as Play
from tradeassay_bench.play.episode import addressed, as_recorded, by_observation
from tradeassay_bench.play.market import MOMENTS
from tradeassay_bench.runs.play.episodes import conversation_rng, episode_rng, steps
from tradeassay_bench.runs.spec.episode import EpisodeSpec, open_protocol

AHEAD = frozenset(
    ("ex_date", "expiry", "delisted", "until", "end", "to", "end_date", "calendar", "pay_date")
)
"""Fields whose dates may be in the future, because their content was announced."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*")
_LABEL = re.compile(r"day_([+-]?\d+)")
WITHHELD = (
    '{"error":"withheld: the answer carries a time stamp that lies after the clock","kind":"late"}'
)


class LateStamp(msgspec.Struct, frozen=True, kw_only=True):
    """A time stamp after the clock: its place (``prompt`` or ``tool <name>``), field and value."""

    through: str
    field: str
    stamp: str


def late_stamps(value: object, observation: Observation) -> tuple[tuple[str, str], ...]:
    """Return all time stamps in a JSON value after the observation's clock, each with its field.

    Time stamps are ISO days and instants, masked day labels (``day_+12``, counted from the first
    session of the episode) and instants in nanoseconds. A text that contains a date among other
    words is not a time stamp.
    """
    return tuple(_late(value, observation, ""))


def withhold_late(
    request: AskModel, observation: Observation
) -> tuple[AskModel, tuple[LateStamp, ...]]:
    """Return a request without its late tool results, and its late stamps.

    A prompt cannot be withheld without ending the day. A prompt with a late stamp is therefore
    shown, and the stamp is reported.
    """
    messages: list[Message] = []
    found: list[LateStamp] = []
    for message in request.messages:
        texts = [message.text] if message.role == "tool" else []
        if message.role in ("user", "system"):
            texts = [block.text for block in fenced_blocks(message.text) if block.label == "json"]
        bodies = [body for body in map(parse_object, texts) if body is not None]
        late: list[tuple[str, str]] = []
        for body in bodies:
            late.extend(late_stamps(body, observation))
        through = through_of(message, request)
        found += [LateStamp(through=through, field=field, stamp=stamp) for field, stamp in late]
        if late and message.role == "tool":
            message = msgspec.structs.replace(message, text=WITHHELD)
        messages.append(message)
    return (
        msgspec.structs.replace(request, messages=tuple(messages)) if found else request
    ), tuple(found)


def through_of(message: Message, request: AskModel) -> str:
    """Return the source of a message in a request: ``prompt`` or ``tool <name>``."""
    if message.role != "tool":
        return "prompt"
    names = {}
    for one in request.messages:
        for call in one.calls:
            names[call.id] = call.name
    return f"tool {names.get(message.call_id or '', '?')}"


def _late(value: object, now: Observation, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _late(item, now, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _late(item, now, field)
    elif field.lower() not in AHEAD and _is_late(value, now):
        yield field, str(value)


def _is_late(value: object, now: Observation) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return value > max(now.time, 10**17)  # nanoseconds; a smaller number is not an instant
    if not isinstance(value, str):
        return False
    label = _LABEL.fullmatch(value)
    if label is not None:
        return int(label[1]) > now.step
    if _DAY.fullmatch(value):
        return value > now.session
    if not _INSTANT.fullmatch(value):
        return False
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:  # an unreadable stamp is not late
        return False
    return instant(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment) > now.time


class QuestionShown(NamedTuple):
    """One question of a day as the model received it, with its answer."""

    request: AskModel
    reply: ModelReply


@dataclass(frozen=True, slots=True)
class PlayedDay:
    """One decision with its questions (none for a rule) and the late stamps in them."""

    step: int
    session: str
    decision: Decision
    asked: tuple[QuestionShown, ...] = ()
    late: tuple[LateStamp, ...] = ()

    @property
    def words(self) -> str:
        """Return the text that could contain a planted word: the decision and the messages."""
        shown = []
        for one in self.asked:
            for message in one.request.messages:
                shown.append(message.text)
        return "\n".join([ENCODER.encode(self.decision).decode(), *shown])


@dataclass(frozen=True, slots=True)
class Moved:
    """The first difference and its place."""

    step: int
    session: str
    through: str
    detail: str


Sweep = tuple[tuple[PlayedDay, ...], tuple[Moved, ...]]
"""The result of a pass with an alternative future after each decision: days and differences."""


def _in_other_future(
    play: Play[Any, Any], snapshot: SplicedSnapshot, like: tuple[PlayedDay, ...]
) -> Iterator[tuple[Observation, PlayedDay]]:
    """Yield each day's observation in the alternative future, with the recorded day.

    The present of a spliced market is the moment of decision. After each decision, the account
    continues with the decision of the recorded day.
    """
    rows, moment = play.market.rows, MOMENTS[play.market.config.decide]
    snapshot.move(rows[0], "close")
    seen: Observation | None = play.open()
    for before in like:
        if seen is None:
            return
        snapshot.move(rows[before.step], moment)
        yield seen, before
        # The market needs its whole data to execute orders and to open a session.
        snapshot.move(rows[min(before.step + 1, len(rows) - 1)], "close")
        play.decide(before.decision)
        seen = play.observation


class RuleSubject:
    """An agent under test that answers directly.

    ``own_code`` is true if the agent is a user's own code with access to files.
    """

    def __init__(
        self, name: str, make: Callable[[], Agent], benchmark: Benchmark, episode: EpisodeSpec
    ) -> None:
        self.name = name
        self._make, self._benchmark, self._episode = make, benchmark, episode
        self.own_code = False

    def play(self, snapshot: Snapshot) -> tuple[PlayedDay, ...]:
        """Run the agent through the window and return its days."""
        agent = self._make()
        self.own_code = self.own_code or not is_ours(type(agent).__module__)
        records = steps(snapshot, self._benchmark, self._episode, agent)
        return tuple(PlayedDay(one.step, one.session, one.decision) for one in records)

    def sweep(self, snapshot: SplicedSnapshot, like: tuple[PlayedDay, ...]) -> Sweep:
        """Run the agent again with an alternative future after every decision.

        Returns the days and all differences. Decisions are compared byte by byte.
        """
        talk = ByObservation(self._benchmark.day)
        play: Play[AskDecision, Decision] = Play(
            snapshot, self._benchmark.market, talk, key=self._episode.key, seed=self._episode.seed
        )
        agent = self._make()
        agent.begin(play.info, episode_rng(self._benchmark, self._episode, snapshot.name))
        answer = by_observation(agent)
        days, moved = [], []
        for seen, before in _in_other_future(play, snapshot, like):
            decision = as_recorded(drive(talk.dialogue(seen), answer))
            days.append(PlayedDay(before.step, before.session, decision))
            then, now = (ENCODER.encode(one).decode() for one in (before.decision, decision))
            if then != now:
                moved.append(
                    Moved(before.step, before.session, "decision", _first_difference(then, now))
                )
        return tuple(days), tuple(moved)


class ModelSubject:
    """An agent under test that queries a model in the protocol of the benchmark suite.

    ``opened`` opens the model. Late tool results are withheld from the model. If ``answers`` is
    given, the model is not queried. ``answers`` contains recorded replies by step and number of the
    question.
    """

    own_code = False

    def __init__(
        self,
        name: str,
        opened: Callable[[], AbstractAsyncContextManager[Model]] | None,
        benchmark: Benchmark,
        episode: EpisodeSpec,
        answers: Mapping[tuple[int, int], ModelReply] | None = None,
        secret: str | None = None,
    ) -> None:
        self.name = name
        self._opened, self._benchmark, self._episode = opened, benchmark, episode
        self._answers, self._secret = answers, secret

    def play(self, snapshot: Snapshot) -> tuple[PlayedDay, ...]:
        """Query the model through the whole window, or replay its recorded answers.

        Return the days.
        """
        days = _Days(self._benchmark, self._episode, snapshot, self._secret)
        days.play.open()
        if self._answers is None:
            asyncio.run(self._live(days))
            return tuple(days.done)
        answers = self._answers

        def answer(asked: AddressedQuestion[AskModel]) -> ModelReply:
            reply = answers.get((asked.place.step, asked.place.index))
            if reply is None:
                raise RunError(
                    f"the recorded conversation of {self._episode.key} has no answer to a question "
                    "of step "
                    f"{asked.place.step}",
                    hint="verify the run: tradeassay verify <folder>",
                )
            days.shown.append(QuestionShown(asked.request, reply))
            return reply

        for record in days.play.records(answer):
            days.end(record)
        return tuple(days.done)

    async def _live(self, days: _Days) -> None:
        assert self._opened is not None
        async with self._opened() as model:

            async def answer(asked: AddressedQuestion[AskModel]) -> ModelReply:
                reply = await model.ask(*asked)
                days.shown.append(QuestionShown(asked.request, reply))
                return reply

            async for record in days.play.arecords(answer):
                days.end(record)

    def sweep(self, snapshot: SplicedSnapshot, like: tuple[PlayedDay, ...]) -> Sweep:
        """Replay the recorded answers in alternative futures. Return the days and differences.

        The messages to the model are compared byte by byte.
        """
        days = _Days(self._benchmark, self._episode, snapshot, self._secret)
        moved = []
        for seen, before in _in_other_future(days.play, snapshot, like):
            days.shown.clear()
            place = QuestionPlace(
                episode=days.play.key, step=seen.step, sample=days.play.seed, index=0
            )

            def answer(
                asked: AddressedQuestion[AskModel], known: tuple[QuestionShown, ...] = before.asked
            ) -> ModelReply:
                then = known[asked.place.index] if asked.place.index < len(known) else None
                if then is None or then.request != asked.request:
                    raise _Differs(then, asked.request)
                days.shown.append(then)
                return then.reply

            try:
                drive(addressed(days.protocol.dialogue(seen), place), answer)
                days.end(before)
            except _Differs as differs:
                # The day is used up to the question at which it was interrupted.
                days.shown.append(QuestionShown(differs.now, ModelReply()))
                days.end(replace(before, decision=Decision(status="failed")))
                moved.append(Moved(before.step, before.session, *differs.how()))
        return tuple(days.done), tuple(moved)


class _Differs(Exception):
    """A question in an alternative future differs from the question on the true data."""

    def __init__(self, before: QuestionShown | None, now: AskModel) -> None:
        super().__init__("another question")
        self.before, self.now = before, now

    def how(self) -> tuple[str, str]:
        """Return the place of the first difference between two questions, and the difference."""
        if self.before is None:
            return "prompt", "a question was asked that was not asked on the true data"
        for old, new in zip(self.before.request.messages, self.now.messages, strict=False):
            if old != new:
                return through_of(new, self.now), _first_difference(old.text, new.text)
        return "prompt", "the available tools or the number of messages differ"


class _Days:
    """Collect the days of a model's episode.

    Late parts of a question are withheld and recorded with it.
    """

    def __init__(
        self, benchmark: Benchmark, episode: EpisodeSpec, snapshot: Snapshot, secret: str | None
    ) -> None:
        self.done: list[PlayedDay] = []
        self.shown: list[QuestionShown] = []
        self.protocol = _Guarded(open_protocol(benchmark))
        rng = conversation_rng(benchmark, episode, snapshot.name, secret)
        self.play = Play(
            snapshot, benchmark.market, self.protocol, key=episode.key, seed=episode.seed, rng=rng
        )

    def end(self, day: StepRecord | PlayedDay) -> None:
        shown, late = tuple(self.shown), tuple(self.protocol.late)
        self.done.append(PlayedDay(day.step, day.session, day.decision, shown, late))
        self.shown.clear()


class _Guarded:
    """A conversation that withholds all late parts from its questions.

    ``late`` contains the parts withheld today.
    """

    def __init__(self, protocol: ModelProtocol) -> None:
        self.late: list[LateStamp] = []
        self.begin, self.remember, self._dialogue = (
            protocol.begin,
            protocol.remember,
            protocol.dialogue,
        )

    def dialogue(self, observation: Observation) -> Dialogue:
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


def _first_difference(one: str, other: str) -> str:
    at = next(
        (k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    around = slice(max(0, at - 40), at + 40)
    return f"'{one[around]}' became '{other[around]}'"
